//! The reasons of the parser for not returning a record.
use ipc_proto::wire::WireError;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::parse::end::Corruption;

/// The reason why the parser cannot return the next record.
pub(super) enum Stop {
    /// The window must hold this many bytes from the next byte to parse.
    More(usize),
    /// The rest of this block is bad.
    Bad(DecodeErrorKind),
    /// The stream is corrupt, this many bytes after the next byte to parse.
    Fatal(usize, Corruption),
}

impl Stop {
    /// Returns the same reason with its byte counts from a place `n` bytes earlier in the stream.
    pub(super) fn after(self, n: usize) -> Self {
        match self {
            Self::More(needed) => Self::More(needed.saturating_add(n)),
            Self::Fatal(at, reason) => Self::Fatal(at.saturating_add(n), reason),
            Self::Bad(error) => Self::Bad(error),
        }
    }
}

impl From<DecodeError> for Stop {
    fn from(e: DecodeError) -> Self {
        Self::Bad(e.kind)
    }
}
impl From<WireError> for Stop {
    fn from(e: WireError) -> Self {
        Self::Bad(e.kind.into())
    }
}
