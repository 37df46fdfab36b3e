//! Reads whole traces in the order of time, and reports their lost and late events.
use core::ops::ControlFlow;
use std::io::Read;
use std::path::Path;

use ipc_std::TraceReader;
use nettrace::{End, EventAssembler, TraceEvent};

use super::source::{self, Source};
use crate::output::failure::Failure;
use crate::output::globals::Globals;

/// Opens a trace, to be read with its stacks in the order of time. A terminal shows the progress of reading.
pub(crate) fn open(file: &Path) -> Result<TraceReader<Source>, Failure> {
    Ok(TraceReader::new(Source::open(file)?.with_progress()).in_order(EventAssembler::ORDER_LIMIT))
}

/// Passes each event of the trace to `take`, until that breaks.
///
/// Notes report events that may be missing or out of order. A truncated or corrupt trace is a failure after its last
/// event.
pub(crate) fn read_all(
    trace: &mut TraceReader<Source>,
    globals: &Globals,
    mut take: impl FnMut(&TraceEvent<'_>) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let read = loop {
        match trace.next_event() {
            Ok(Some(event)) if take(&event).is_break() => break Ok(ControlFlow::Break(())),
            Ok(Some(_)) => {}
            Ok(None) => break Ok(ControlFlow::Continue(())),
            Err(e) => break Err(trace.get_ref().failed(&e)),
        }
    };
    trace.get_mut().hide_progress();
    if read?.is_break() {
        return Ok(());
    }
    report_lost(trace, globals);
    report_late(trace, globals);
    source::check(trace.end().unwrap_or(End::Complete), trace.get_ref().name())
}

/// Returns how many events the runtime dropped, also before the first event of their thread.
pub(crate) fn lost<R: Read>(trace: &TraceReader<R>) -> u64 {
    trace.lost().saturating_add(trace.lost_at_start())
}

/// Reports events that the runtime dropped.
pub(crate) fn report_lost<R: Read>(trace: &TraceReader<R>, globals: &Globals) {
    if let lost @ 1.. = lost(trace) {
        globals
            .note(&format!("{lost} events were lost when the trace was recorded: the event buffer was full"));
    }
}

/// Reports events that could not be sorted.
pub(crate) fn report_late<R: Read>(trace: &TraceReader<R>, globals: &Globals) {
    if let late @ 1.. = trace.late() {
        globals.note(&format!("{late} events are out of order: sorting them needs too much memory"));
    }
}
