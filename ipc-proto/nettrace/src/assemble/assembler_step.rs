//! The next thing to do with an `EventAssembler`.
use crate::parse::end::End;

/// The next thing to do with an [`EventAssembler`](crate::EventAssembler).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssemblerStep {
    /// [`EventAssembler::event`](crate::EventAssembler::event) returns the next event.
    Event,
    /// The next event needs more bytes than have arrived.
    More,
    /// There are no more events.
    End(End),
}
