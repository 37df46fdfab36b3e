use core::fmt;

use crate::nettrace::Version;

/// A reason why a record cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer is too small for this record alone.
    BufferTooSmall {
        /// The length in bytes that the buffer needs.
        needed: usize,
    },
    /// The record is too long for the length field of the layout.
    TooLong {
        /// The length of the record in bytes.
        len: usize,
    },
    /// The version has no such record, or cannot express its content.
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
            Self::TooLong { len } => write!(f, "a record of {len} bytes is too long for the format"),
            Self::Version(version) => write!(f, "{version} cannot express this record"),
            Self::Misplaced => f.write_str("the record is not allowed at this place of the stream"),
        }
    }
}
impl core::error::Error for WriteError {}
