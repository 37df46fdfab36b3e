//! Reads whole traces in the order of time, and reports their lost and late events.
use core::ops::ControlFlow;
use std::io::Read;
use std::path::Path;

use nettrace::{
    BytesOrder, End, EventAssembler, EventOrder, ReadOptions, TraceClock, TraceEvent, TraceReader,
};
use nettrace_analysis::{Analysis, EventBuffer, LossReport};

use super::source::{self, Source};
use crate::run::{Failure, Globals};

/// Opens a trace, to be read in the order of time, with its stacks or without. A terminal shows the progress of reading.
pub(crate) fn open(file: &Path, stacks: bool, globals: &Globals) -> Result<TraceReader<Source>, Failure> {
    let source = Source::open(file)?;
    let options = ReadOptions { stacks, ..ReadOptions::default() };
    let assembler = match source.map(globals)? {
        Some(bytes) => EventAssembler::of_bytes(bytes, BytesOrder::Time, options),
        None => EventAssembler::new(EventOrder::BY_SEGMENT, options),
    };
    Ok(TraceReader::with_assembler(source.with_progress(), assembler))
}

/// Returns a reader of a trace in the order of the stream, without its stacks.
pub(crate) fn without_stacks<R: Read>(reader: R) -> TraceReader<R> {
    let options = ReadOptions { stacks: false, ..ReadOptions::default() };
    TraceReader::with_assembler(reader, EventAssembler::new(EventOrder::Stream, options))
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
    source::check(trace.summary().end.unwrap_or(End::Complete), trace.get_ref().name())
}

/// Reads a whole trace into an analysis, and returns its report.
pub(crate) fn analyse<A: Analysis>(
    file: &Path,
    mut analysis: A,
    globals: &Globals,
) -> Result<A::Report, Failure> {
    let mut trace = open(file, true, globals)?;
    read_all(&mut trace, globals, |event| {
        analysis.event(event);
        ControlFlow::Continue(())
    })?;
    trace.summary().last_point.into_iter().for_each(|time| analysis.extend_to(time));
    Ok(analysis.finish())
}

/// Returns how many events the runtime did not record, also before the first event of their thread.
pub(crate) fn lost<R: Read>(trace: &TraceReader<R>) -> u64 {
    trace.summary().losses.lost
}

/// Reports events that the runtime did not record.
pub(crate) fn report_lost<R: Read>(trace: &TraceReader<R>, globals: &Globals) {
    let report = loss_report(trace);
    if let lost @ 1.. = report.losses.lost {
        globals.note(&format!("{lost} events were lost when the trace was recorded {report}"));
    }
}

/// Returns what is known about the lost events.
pub(crate) fn loss_report<R: Read>(trace: &TraceReader<R>) -> LossReport {
    let summary = trace.summary();
    let clock = summary.trace.map(|trace| TraceClock::new(&trace));
    LossReport { losses: summary.losses, clock, buffer: EventBuffer::MayFill, end: summary.end }
}

/// Reports events that could not be sorted.
pub(crate) fn report_late<R: Read>(trace: &TraceReader<R>, globals: &Globals) {
    let summary = trace.summary();
    let why = match summary.exceeded_limit {
        true => "sorting them needs too much memory",
        false => "the trace has them after younger events, as if its clock went back",
    };
    if let late @ 1.. = summary.late {
        globals.note(&format!("{late} events are out of order: {why}"));
    }
}
