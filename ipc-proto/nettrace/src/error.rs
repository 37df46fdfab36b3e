//! Errors in the bytes of a stream.
use core::fmt;

use ipc_proto::wire::{Reader, WireError, WireErrorKind};

/// An error in the bytes of a record, and its offset.
///
/// ```
/// use nettrace::{DecodeErrorKind, Metadata, Version};
///
/// let error = Metadata::decode(Version::V4, &[1, 0]).unwrap_err();
/// assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnexpectedEnd, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The kind of error.
    pub kind: DecodeErrorKind,
    /// The byte offset from the start of the decoded input.
    pub offset: usize,
}

impl DecodeError {
    /// Creates an error at the next byte of a reader.
    pub(crate) const fn at(r: &Reader<'_>, kind: DecodeErrorKind) -> Self {
        Self { kind, offset: r.offset() }
    }
}

/// A kind of error in the bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A field extends past the end of the region that contains it.
    UnexpectedEnd,
    /// A size field is smaller than the structure that it belongs to.
    BadSize,
    /// The last unit of a string is not NUL.
    Unterminated,
    /// A count is too large for the remaining bytes.
    CountTooLarge,
    /// A block or a record is longer than the limit of the reader.
    TooLong,
    /// A variable-length integer has more bytes or more bits than its type.
    BadVarint,
    /// A type code or a kind is not documented, or not allowed at this place.
    UnknownType,
    /// Objects and arrays are nested in more than 16 levels, which no writer does.
    TooDeep,
    /// A payload has more values than its bytes can contain.
    TooManyItems,
    /// The version of a layout is not documented.
    UnknownVersion,
    /// The bytes have several meanings, and the input does not state which one applies.
    Ambiguous,
    /// A description belongs to another event than the event that contains the description.
    OtherEvent,
    /// A record describes fields in V1 and again in the tag V2Params, although a record with this tag must have no V1
    /// fields.
    DescribedTwice,
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnexpectedEnd => "a field extends past the end",
            Self::BadSize => "a size field too small for its structure",
            Self::Unterminated => "a string without its final NUL",
            Self::CountTooLarge => "a count too large for the bytes that follow",
            Self::TooLong => "a block or record longer than the limit",
            Self::BadVarint => "a variable-length integer too large for its type",
            Self::UnknownType => "a type that is unknown or not allowed here",
            Self::TooDeep => "objects and arrays nested too deep",
            Self::TooManyItems => "more values than the bytes can contain",
            Self::UnknownVersion => "an unknown version of the layout",
            Self::Ambiguous => "a layout that cannot be determined",
            Self::OtherEvent => "the description of another event",
            Self::DescribedTwice => "a second description of the fields",
        })
    }
}
impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.offset)
    }
}
impl core::error::Error for DecodeError {}

impl From<WireErrorKind> for DecodeErrorKind {
    /// In a record, only a variable-length integer can have bytes that are not allowed. Each other value of
    /// [`wire`](ipc_proto::wire) can only end too early.
    fn from(kind: WireErrorKind) -> Self {
        match kind {
            WireErrorKind::UnexpectedEnd => Self::UnexpectedEnd,
            _ => Self::BadVarint,
        }
    }
}
impl From<WireError> for DecodeError {
    fn from(e: WireError) -> Self {
        Self { kind: e.kind.into(), offset: e.offset }
    }
}
