//! The reports of a session.
use ipc_std::CounterStream;
use nettrace::End;
use nettrace_analysis::counters::CounterEvent;

use super::report::Report;
use crate::input::{source, trace_file};
use crate::recording::session_failure::{exited, is_suspended, read_failure, suspended};
use crate::run::Failure;

/// Reads a session until it ends, or until no reports are wanted. Reports come with the process ID of the trace.
pub(super) fn read_session(
    stream: &mut CounterStream,
    mut report: impl FnMut(Option<u64>, Report) -> bool,
) -> Result<(), Failure> {
    let (mut has_lost, mut has_samples) = (false, false);
    loop {
        let id = stream.trace().summary().trace.and_then(|trace| trace.process_id).map(u64::from);
        if !has_lost && trace_file::lost(stream.trace()) > 0 {
            has_lost = true;
            let losses = trace_file::loss_report(stream.trace());
            let problem = format!("events are lost, so samples are missing: {} {losses}", losses.losses.lost);
            if !report(id, Report::Problem(problem)) {
                return Ok(());
            }
        }
        let wanted = match stream.next_event() {
            Ok(Some(event)) => {
                has_samples |= matches!(event, CounterEvent::Sample(_));
                Report::of(&event).is_none_or(|event| report(id, event))
            }
            Ok(None) => {
                if let Some(problem) = Report::of_losses(stream.trace()) {
                    report(id, problem);
                }
                return end(stream, has_samples);
            }
            Err(e) => {
                read_failure(stream.session(), e)?;
                true
            }
        };
        if !wanted {
            return Ok(());
        }
    }
}

fn end(stream: &CounterStream, has_samples: bool) -> Result<(), Failure> {
    let session = stream.session();
    if session.is_stopping() {
        let process_id = stream.trace().summary().trace.and_then(|trace| trace.process_id);
        return match !has_samples && session.stop_error().is_none() && is_suspended(session, process_id) {
            true => Err(suspended("reports no counters")),
            false => Ok(()),
        };
    }
    match stream.trace().summary().end {
        // A runtime that exits ends its sessions, so the trace is complete. If the runtime is killed, the trace is
        // truncated.
        Some(End::Complete | End::Truncated { .. }) | None => Err(exited()),
        Some(end) => source::check(end, "the runtime"),
    }
}
