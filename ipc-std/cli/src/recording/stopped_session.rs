//! The events of a session that is stopped.
use ipc_std::{TraceReader, TraceSession};
use nettrace::TraceEvent;

use super::session_failure::{check_stream, read_failure};
use crate::run::Failure;

/// Passes each event of a stopped session to `take`, up to its end. A suspended runtime sends none.
pub(crate) fn read(
    trace: &mut TraceReader<TraceSession>,
    mut take: impl FnMut(&TraceEvent<'_>),
) -> Result<(), Failure> {
    loop {
        match trace.next_event() {
            Ok(Some(event)) => take(&event),
            Ok(None) => break,
            Err(e) => read_failure(trace.get_ref(), e)?,
        }
    }
    check_stream(trace.summary().end, trace.get_ref(), Ok(()))
}
