//! Why a session failed.
use std::io;

use ipc_std::{Error, Phase, TraceSession};
use nettrace::End;

use super::output::TraceOutput;
use crate::input::source;
use crate::process::system_threads;
use crate::run::{Failure, Kind};

/// Returns the failure for an error of a session. Silence is not a failure.
pub(crate) fn read_failure(session: &TraceSession, e: io::Error) -> Result<(), Failure> {
    match (e.downcast(), session.stop_error()) {
        (Ok(Error::Timeout { phase: Phase::ReadingTrace, .. }), _) => Ok(()),
        // The request to stop failed, so the end of the trace never arrives. The failure has both errors.
        (Ok(e @ Error::Timeout { phase: Phase::StoppingTrace { .. }, .. }), Some(stop)) => {
            Err(Failure::new(stop.kind().into(), format!("{e}; {stop}")))
        }
        (Ok(e), _) => Err(e.into()),
        (Err(e), _) => Err(Failure::io("cannot read the trace", &e)),
    }
}

/// Returns whether the runtime of a session without samples is suspended. The stream of a suspended runtime is empty
/// before .NET 11; since then, the threads of the process show it. `process_id` is the process, if it is known.
pub(crate) fn is_suspended(session: &TraceSession, process_id: Option<u32>) -> bool {
    session.received() == 0 || process_id.is_some_and(system_threads::show_suspension)
}

/// The failure of a process that ended during its session.
pub(crate) fn exited() -> Failure {
    Failure::new(Kind::Gone, "the process exited")
}

/// What a suspended runtime does not do: [`suspended`].
pub(crate) const NO_THREADS: &str = "has no threads";

/// The failure of a suspended runtime. `what` says what the runtime does not do before it is resumed.
pub(crate) fn suspended(what: &str) -> Failure {
    Failure::new(Kind::Other, format!("the runtime is suspended: it {what} yet"))
        .with_hint("start the program with `dotnet-ipc resume`")
}

/// Fails if the stream of a stopped session is not complete. The stream of a suspended runtime is empty: returns
/// `empty`.
pub(crate) fn check_stream(
    end: Option<End>,
    session: &TraceSession,
    empty: Result<(), Failure>,
) -> Result<(), Failure> {
    match end {
        Some(End::Truncated { offset: 0, .. }) if session.stop_error().is_none() => empty,
        Some(End::Truncated { .. }) => Err(exited()),
        end => source::check(end.unwrap_or(End::Complete), "the runtime"),
    }
}

/// Fails if the trace is empty because the runtime was suspended all the time. `process_id` is the process of the
/// command line, if it has one.
pub(super) fn check_resumed(
    session: &TraceSession,
    no_resume: bool,
    process_id: Option<u32>,
) -> Result<(), Failure> {
    if !no_resume || !session.is_stopping() || session.stop_error().is_some() {
        return Ok(());
    }
    if !is_suspended(session, process_id) {
        return Ok(());
    }
    let failure = Failure::new(Kind::Other, "the trace is empty: the runtime was suspended until its end");
    Err(failure.with_hint("resume it with `dotnet-ipc resume`, or record without --no-resume"))
}

/// Returns whether the trace has its end mark. The session is not complete if bytes follow it. A trace with the names of the
/// start is longer than the stream, and has an end mark of the tool.
pub(crate) fn is_complete(session: &TraceSession, output: &TraceOutput) -> bool {
    session.is_complete() || output.is_complete() && output.bytes() == session.received()
}

/// Fails if the trace has no end.
pub(crate) fn check_end(
    session: &TraceSession,
    no_resume: bool,
    process_id: Option<u32>,
    output: &TraceOutput,
) -> Result<(), Failure> {
    check_resumed(session, no_resume, process_id)?;
    if is_complete(session, output) {
        return Ok(());
    }
    let message = format!(
        "trace incomplete: the process exited while recording ({output} has the part that was received)"
    );
    Err(Failure::new(Kind::Gone, message))
}
