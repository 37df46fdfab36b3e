//! Errors of values in bytes. Packages that read values have errors of their own, and convert these into them.
use core::fmt;

/// An error in the bytes of a value, and its place.
///
/// ```
/// use ipc_proto::wire::{WireErrorKind, decode};
///
/// let error = decode::<u32>(&[1, 0]).unwrap_err();
/// assert_eq!((error.kind, error.offset), (WireErrorKind::UnexpectedEnd, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError {
    /// The kind of error.
    pub kind: WireErrorKind,
    /// The byte offset from the start of the decoded input.
    pub offset: usize,
}

/// A kind of error in the bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// A field extends past the end of the region that contains it.
    UnexpectedEnd,
    /// The last unit of a string is not NUL.
    Unterminated,
    /// A count is too large for the remaining bytes.
    CountTooLarge,
    /// Bytes follow where none are allowed.
    TrailingBytes,
    /// A field has a value that its type does not allow.
    BadValue,
}

impl fmt::Display for WireErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnexpectedEnd => "a field extends past the end",
            Self::Unterminated => "a string without its final NUL",
            Self::CountTooLarge => "a count too large for the bytes that follow",
            Self::TrailingBytes => "bytes where none are allowed",
            Self::BadValue => "a value that is not allowed here",
        })
    }
}
impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.offset)
    }
}
impl core::error::Error for WireError {}

/// A buffer is too small for the values that are written to it.
///
/// ```
/// use ipc_proto::{Encode, wire::{BufferTooSmall, Writer}};
///
/// let mut w = Writer::new(&mut []);
/// 7u32.encode(&mut w);
/// assert_eq!(w.finish(), Err(BufferTooSmall { needed: 4 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The required length.
    pub needed: usize,
}

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the buffer is too small: {} bytes are needed", self.needed)
    }
}
impl core::error::Error for BufferTooSmall {}
