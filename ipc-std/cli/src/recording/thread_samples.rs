//! Samples of the threads of a process, for a moment.
use core::time::Duration;
use std::thread;

use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceConfig, TraceReader, TraceSession};
use nettrace::TraceEvent;
use nettrace_analysis::KnownProvider;

use super::stopped_session;
use crate::run::Failure;

/// How long the runtime samples. Its interval depends on its version, its settings and the load of the machine.
const DURATION: Duration = Duration::from_millis(100);

/// Records samples of all threads of a process for a moment. The session is stopped when this returns, so its stream has
/// an end.
pub(crate) fn record(
    client: &Client,
    duration: Duration,
    rundown_keyword: u64,
) -> Result<TraceSession, Failure> {
    let provider = ProviderSpec::new(KnownProvider::SampleProfiler.name(), 0, EventLevel::INFORMATIONAL, "");
    let providers = [provider.to_provider()];
    let session = client.start_tracing(&TraceConfig { rundown_keyword, ..TraceConfig::new(&providers) })?;
    thread::sleep(duration);
    session.stop();
    Ok(session)
}

/// Passes samples of all threads of a process to `take`, without names of methods.
pub(crate) fn read(client: &Client, take: impl FnMut(&TraceEvent<'_>)) -> Result<(), Failure> {
    stopped_session::read(&mut TraceReader::new(record(client, DURATION, 0)?), take)
}
