//! Copying a session to a file or a pipe.
use std::io::Read;

use ipc_std::TraceSession;

use super::names_first::NamesFirst;
use super::output::TraceOutput;
use super::session_failure::read_failure;
use crate::output::failure::Failure;

/// Copies the session to the output until its end, by way of `names` if it was recorded with names first.
///
/// Calls `check` after each read, and at least every [`TICK`](crate::process::connection_args::TICK) if that is the client's
/// [`silence`](ipc_std::Timeouts::silence).
pub(crate) fn record(
    session: &mut TraceSession,
    output: &mut TraceOutput,
    mut names: Option<&mut NamesFirst<'_>>,
    mut check: impl FnMut(&TraceSession, &TraceOutput),
) -> Result<(), Failure> {
    let mut buf = vec![0; 64 << 10];
    let mut written = Ok(());
    loop {
        match session.read(&mut buf) {
            Ok(0) => return written,
            Ok(n) if written.is_ok() => {
                let bytes = buf.get(..n).unwrap_or_default();
                written = match &mut names {
                    Some(names) => names.write(bytes, output),
                    None => output.write(bytes),
                };
                if written.is_err() {
                    session.stop();
                }
            }
            // After a failed write, the rest is read and dropped, so that a full disk does not block the runtime.
            Ok(_) => {}
            Err(e) => {
                if let Err(failure) = read_failure(session, e) {
                    let rest = if output.bytes() > 0 {
                        format!("{output} has the part that was received; ")
                    } else {
                        String::new()
                    };
                    return written.and_then(|()| Err(failure.with_more(&rest)));
                }
            }
        }
        check(session, output);
    }
}
