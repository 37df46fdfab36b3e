//! Copying a session to a file or a pipe.
use std::io::Read;

use ipc_std::TraceSession;

use super::names_first::{NamesFirst, Space};
use super::output::TraceOutput;
use super::session_failure::read_failure;
use crate::output::session_output::{Batches, PATIENCE, Refusal, SessionOutput, StalledOutput};
use crate::run::Failure;

/// Copies the session to the output until its end. With `names`, the names that a process had at its start, the file
/// also has them: see [`NamesFirst`].
///
/// A thread writes, so that an output that takes nothing does not delay the session. If too many bytes wait, the session
/// is stopped.
///
/// Calls `check` after each read. The client's [`silence`](ipc_std::Timeouts::silence) limits the time between two calls.
pub(crate) fn record(
    session: &mut TraceSession,
    output: &TraceOutput,
    names: Option<Vec<u8>>,
    mut check: impl FnMut(&TraceSession),
) -> Result<(), Failure> {
    let writer = SessionOutput::spawn("writer", {
        let output = output.clone();
        move |batches| write(batches, &output, names)
    })?;
    let mut buf = vec![0; 64 << 10];
    let mut refusal = None;
    let read = loop {
        let passed = match session.read(&mut buf) {
            Ok(0) => break Ok(()),
            Ok(n) if refusal.is_none() => writer.pass(buf.get(..n).unwrap_or_default()),
            // After a failed write, the rest is read and dropped, so that a full disk does not block the runtime.
            Ok(_) => Ok(()),
            Err(e) => match read_failure(session, e) {
                Ok(()) if refusal.is_none() => writer.check(),
                Ok(()) => Ok(()),
                Err(failure) => break Err(failure),
            },
        };
        if let Err(refused) = passed {
            refusal = Some(refused);
            session.stop();
        }
        check(session);
    };
    let written = match refusal {
        Some(Refusal::Stalled(stalled)) => Err(stalled),
        _ => writer.finish(Some(PATIENCE)),
    };
    written.unwrap_or_else(|stalled| Err(incomplete(output, stalled)))?;
    read.map_err(|failure| match output.bytes() {
        0 => failure.with_more(""),
        _ => failure.with_more(&format!("{output} has the part that was received; ")),
    })
}

/// Writes the bytes of a session, and after them the names.
fn write(batches: &mut Batches, output: &TraceOutput, names: Option<Vec<u8>>) -> Result<(), Failure> {
    let mut space = names.is_some().then(Space::new);
    let names = names.zip(space.as_mut()).map(|(names, space)| NamesFirst::new(names, space));
    let mut names = names.transpose()?;
    while let Some(bytes) = batches.next() {
        match &mut names {
            Some(names) => names.write(bytes, output)?,
            None => output.write(bytes)?,
        }
    }
    // Also if the session has failed.
    names.map_or(Ok(()), |names| names.finish(output))
}

/// The failure of an output that takes no more.
fn incomplete(output: &TraceOutput, stalled: StalledOutput) -> Failure {
    output.failed(&stalled.into()).with_hint("the session was stopped, and the rest of the trace is missing")
}
