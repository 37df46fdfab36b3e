//! Why a session failed.
use std::io;

use ipc_std::{Error, Phase, TraceSession};

use super::output::TraceOutput;
use crate::output::failure::{Failure, Kind};

/// Returns the failure for an error of a session. Silence is not a failure.
pub(crate) fn read_failure(session: &TraceSession, e: io::Error) -> Result<(), Failure> {
    match (e.downcast(), session.stop_error()) {
        (Ok(Error::Timeout { phase: Phase::ReadingTrace, .. }), _) => Ok(()),
        // The end cannot come, because the stop failed.
        (Ok(e @ Error::Timeout { phase: Phase::StoppingTrace { .. }, .. }), Some(stop)) => {
            Err(Failure::new(stop.kind().into(), format!("{e}; {stop}")))
        }
        (Ok(e), _) => Err(e.into()),
        (Err(e), _) => Err(Failure::io("cannot read the trace", &e)),
    }
}

/// Fails if the trace is empty because the runtime was suspended for all of it.
pub(super) fn check_resumed(session: &TraceSession, no_resume: bool) -> Result<(), Failure> {
    if !no_resume || session.received() > 0 || !session.is_stopping() || session.stop_error().is_some() {
        return Ok(());
    }
    let failure = Failure::new(Kind::Other, "the trace is empty: the runtime was suspended until its end");
    Err(failure.with_hint("resume it with `dotnet-ipc resume`, or record without --no-resume"))
}

/// Fails if the trace has no end.
pub(crate) fn check_end(
    session: &TraceSession,
    no_resume: bool,
    output: &TraceOutput,
) -> Result<(), Failure> {
    if session.is_complete() {
        return Ok(());
    }
    check_resumed(session, no_resume)?;
    let message = format!(
        "trace incomplete: the process exited while recording ({output} has the part that was received)"
    );
    Err(Failure::new(Kind::Gone, message))
}
