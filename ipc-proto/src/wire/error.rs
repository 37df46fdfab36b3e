//! Errors of values in bytes. Packages that read values convert these errors into their own.
use core::fmt;

use crate::sentences::sentences;

/// An error in the bytes of a value, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError {
    /// The kind of error.
    pub kind: WireErrorKind,
    /// The byte offset from the start of the decoded input.
    pub offset: usize,
}

sentences! {
    /// A kind of error in the bytes of a value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum WireErrorKind {
        /// A field extends past the end of the region that contains it.
        UnexpectedEnd = "a field extends past the end",
        /// The last unit of a string is not NUL.
        Unterminated = "a string without its final NUL",
        /// A count is too large for the remaining bytes.
        CountTooLarge = "a count too large for the bytes that follow",
        /// Bytes follow a value that must be the last one.
        TrailingBytes = "bytes where none are allowed",
        /// A field has a value that its type does not allow.
        BadValue = "a value that is not allowed here",
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.offset)
    }
}
impl core::error::Error for WireError {}

/// A buffer is too small for the values that are written to it.
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
