//! The errors of a rewrite.
use core::fmt;

use crate::write::WriteError;

/// A reason why a stream cannot be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteError {
    /// The writer cannot write a record.
    Write(WriteError),
    /// There are more metadata records than slots.
    TooManyMetadata,
    /// There are more threads than slots.
    TooManyThreads,
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(e) => e.fmt(f),
            Self::TooManyMetadata => {
                f.write_str("the stream has more metadata records than the space has slots")
            }
            Self::TooManyThreads => f.write_str("the stream has more threads than the space has slots"),
        }
    }
}
impl core::error::Error for RewriteError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Write(e) => Some(e),
            _ => None,
        }
    }
}
impl From<WriteError> for RewriteError {
    fn from(e: WriteError) -> Self {
        Self::Write(e)
    }
}
