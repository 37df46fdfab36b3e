//! Traces that are read as a whole, in the order of time.
use core::ops::ControlFlow;
use std::path::Path;

use ipc_proto::nettrace::{End, EventAssembler, TraceEvent};
use ipc_std::TraceReader;

use crate::failure::Failure;
use crate::globals::Globals;
use crate::source::{self, Source};

/// Passes each event of the trace to `take`, without its stack and in the order of time, until that breaks.
///
/// Notes report events that may be missing or out of order. A truncated or corrupt trace is a failure after its last
/// event.
pub(crate) fn read_in_order(
    file: &Path,
    globals: &Globals,
    take: impl FnMut(&TraceEvent<'_>) -> ControlFlow<()>,
) -> Result<(), Failure> {
    read_all(&mut open(file)?.without_stacks(), globals, take)
}

/// Opens a trace, to be read with its stacks in the order of time.
pub(crate) fn open(file: &Path) -> Result<TraceReader<Source>, Failure> {
    Ok(TraceReader::new(Source::open(file)?).in_order(EventAssembler::ORDER_LIMIT))
}

/// Passes each event of the trace to `take`, as [`read_in_order`] does.
pub(crate) fn read_all(
    trace: &mut TraceReader<Source>,
    globals: &Globals,
    mut take: impl FnMut(&TraceEvent<'_>) -> ControlFlow<()>,
) -> Result<(), Failure> {
    loop {
        match trace.next_event() {
            Ok(Some(event)) if take(&event).is_break() => return Ok(()),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(e) => return Err(trace.get_ref().failed(&e)),
        }
    }
    if let lost @ 1.. = trace.lost().saturating_add(trace.lost_at_start()) {
        globals
            .note(&format!("{lost} events were lost when the trace was recorded: the event buffer was full"));
    }
    if let late @ 1.. = trace.late() {
        globals.note(&format!("{late} events are out of order: sorting them needs too much memory"));
    }
    source::check(trace.end().unwrap_or(End::Complete), trace.get_ref().name())
}
