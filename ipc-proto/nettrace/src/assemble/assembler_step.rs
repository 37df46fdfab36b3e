//! The next thing to do with an `EventAssembler`.
use crate::assemble::trace_event::TraceEvent;
use crate::parse::End;

/// The next thing to do with an [`EventAssembler`](crate::EventAssembler).
#[derive(Debug, Clone, Copy)]
pub enum AssemblerStep<'a> {
    /// The next event. It borrows from the assembler.
    Event(TraceEvent<'a>),
    /// The next event needs more bytes than have arrived. [`push`](crate::EventAssembler::push) them, or report by
    /// [`finish`](crate::EventAssembler::finish) that there are none.
    More,
    /// There are no more events.
    End(End),
}
