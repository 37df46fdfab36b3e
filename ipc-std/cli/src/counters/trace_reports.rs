//! The reports of a trace.
use core::ops::ControlFlow;
use std::path::Path;

use nettrace::{End, Version};
use nettrace_analysis::Part;
#[cfg(test)]
use nettrace_analysis::counters::OwnedSample;
use nettrace_analysis::counters::{CounterEvent, CounterReader, Selection};

use super::report::{Process, Report};
use crate::args::process_arg::ProcessArg;
use crate::input::source::{self, Source};
use crate::input::trace_file;
use crate::run::Failure;

/// Passes the reports of a trace to `take`, until that breaks: those of the selected counters, or of all if none is
/// selected, of one process if the user named it, and the samples of a part of the trace.
pub(crate) fn read_file(
    file: &Path,
    selections: &[Selection],
    only_process: &ProcessArg,
    mut part: Part,
    mut take: impl FnMut(&Process, Report) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let mut trace = trace_file::without_stacks(Source::open(file)?);
    let mut counters = CounterReader::new().only(selections).preferring_meters();
    // What the trace has instead, if it has nothing that is selected.
    let mut others = (!selections.is_empty()).then(CounterReader::new);
    let mut process = Process { id: None, name: String::new() };
    let mut is_first = true;
    loop {
        let event = match trace.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(e) => return Err(trace.get_ref().failed(&e)),
        };
        if !only_process.includes(&event) {
            continue;
        }
        process.id = event.process_id();
        let has_many =
            event.trace().is_some_and(|trace| trace.version == Version::V6) && !only_process.is_given();
        if core::mem::take(&mut is_first) && has_many && take(&process, Report::SeveralProcesses).is_break() {
            return Ok(());
        }
        let is_inside = part.includes(&event);
        let report = counters.event(&event).and_then(|event| Report::of(&event));
        let report = report.filter(|report| is_inside || !matches!(report, Report::Sample(_)));
        if matches!(report, Some(Report::Sample(_))) {
            others = None;
        }
        let other = || match others.as_mut()?.event(&event)? {
            CounterEvent::Sample(sample) if is_inside => Some(Report::Unselected(Box::new((&sample).into()))),
            _ => None,
        };
        let report = report.or_else(other);
        if report.is_some_and(|report| take(&process, report).is_break()) {
            return Ok(());
        }
    }
    if let Some(problem) = Report::of_losses(&trace) {
        // No process is known to have lost them.
        process.id = None;
        // This report is the last one, so it does not matter whether more are wanted.
        let _ = take(&process, problem);
    }
    source::check(trace.summary().end.unwrap_or(End::Complete), trace.get_ref().name())?;
    only_process.check(trace.get_ref().name())
}

/// Returns the last sample of a counter in a recording of the test data.
#[cfg(test)]
pub(crate) fn last_recorded(file: &str, counter: &str) -> OwnedSample {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters");
    let mut last = None;
    read_file(
        &folder.join(file),
        &[counter.parse().unwrap()],
        &ProcessArg::default(),
        Part::default(),
        |_, report| {
            if let Report::Sample(sample) = report {
                last = Some(*sample);
            }
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    last.unwrap()
}
