//! The errors of writers.
use core::fmt;

use crate::parse::Version;

/// A reason why a record cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer is too small for this record alone, for a payload or for a description.
    BufferTooSmall {
        /// The length in bytes that the buffer needs.
        needed: usize,
    },
    /// A record or a text is too long for the length field of the layout.
    TooLong {
        /// The length in bytes.
        len: usize,
    },
    /// An array has more than 65,535 elements.
    TooManyElements {
        /// The number of elements.
        count: usize,
    },
    /// A text that ends with a NUL has another NUL inside.
    EmbeddedNul,
    /// This version of the format has no such record, or cannot express the content of the record.
    Version(Version),
    /// A thread sequence that does not follow a sequence point.
    Misplaced,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed } => {
                write!(f, "the buffer is too small: {needed} bytes are needed")
            }
            Self::TooLong { len } => {
                write!(f, "a record or a text of {len} bytes is too long for the format")
            }
            Self::TooManyElements { count } => {
                write!(f, "an array of {count} elements is too long for the format")
            }
            Self::EmbeddedNul => f.write_str("a NUL inside a text would end it"),
            Self::Version(version) => write!(f, "{version} cannot express this record"),
            Self::Misplaced => f.write_str("the record is not allowed at this place of the stream"),
        }
    }
}
impl core::error::Error for WriteError {}
