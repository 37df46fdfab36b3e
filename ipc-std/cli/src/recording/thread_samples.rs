//! Samples of the threads of a process, for a moment.
use core::time::Duration;
use std::thread;

use dotnet_ipc_syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceConfig, TraceReader};
use nettrace::TraceEvent;
use nettrace_analysis::KnownProvider;

use super::session_failure::{check_stream, read_failure};
use crate::output::failure::Failure;

/// How long the runtime samples: it takes a sample each millisecond, on .NET 11 each 10 ms, and more on a busy machine.
const DURATION: Duration = Duration::from_millis(100);

/// Passes samples of all threads of a process to `take`, without names of methods.
pub(crate) fn read(client: &Client, mut take: impl FnMut(&TraceEvent<'_>)) -> Result<(), Failure> {
    let provider = ProviderSpec::new(KnownProvider::SampleProfiler.name(), 0, EventLevel::INFORMATIONAL, "");
    let providers = [provider.to_provider()];
    let session =
        client.start_tracing(&TraceConfig { rundown_keyword: 0, ..TraceConfig::new(&providers) })?;
    thread::sleep(DURATION);
    session.stop();
    let mut trace = TraceReader::new(session);
    loop {
        match trace.next_event() {
            Ok(Some(event)) => take(&event),
            Ok(None) => break,
            Err(e) => read_failure(trace.get_ref(), e)?,
        }
    }
    check_stream(trace.end(), trace.get_ref(), Ok(()))
}
