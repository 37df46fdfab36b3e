//! What a reader found in the bytes that have arrived.
use crate::parse::end::End;

/// What a reader found in the bytes that have arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    /// At least one event is ready.
    Event,
    /// The next event needs more bytes.
    More,
    End(End),
}
