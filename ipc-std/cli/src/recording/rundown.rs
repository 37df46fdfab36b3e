//! The rundown of a process: the names of its methods and modules, without other events.
use dotnet_ipc_sans_io::syntax::keywords;
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceConfig, TraceSession};
use nettrace::TraceEvent;

use super::stopped_session;
use crate::input::trace_file;
use crate::run::Failure;

/// The keywords of methods and modules, without the maps of their instructions. Runtimes before .NET 9 ignore keywords
/// and send the default rundown, which has the maps.
pub(crate) const KEYWORDS: u64 =
    keywords::LOADER | keywords::JIT | keywords::NGEN | keywords::FORCE_END_RUNDOWN;

/// The keywords of modules only. Runtimes before .NET 9 send the default rundown.
pub(crate) const MODULES: u64 = keywords::LOADER | keywords::FORCE_END_RUNDOWN;

/// Starts a session that records only the rundown of these keywords, and stops it.
pub(crate) fn start(client: &Client, keywords: u64) -> Result<TraceSession, Failure> {
    // A session needs a provider. This one adds nothing: every session has its events, which describe the process.
    let provider = ProviderSpec::new("Microsoft-DotNETCore-EventPipe", 0, EventLevel::CRITICAL, "");
    let providers = [provider.to_provider()];
    let config = TraceConfig { rundown_keyword: keywords, ..TraceConfig::new(&providers) };
    let session = client.start_tracing(&config)?;
    session.stop();
    Ok(session)
}

/// Passes each row of the rundown of a process to `take`. A suspended runtime sends none.
pub(crate) fn read(client: &Client, take: impl FnMut(&TraceEvent<'_>)) -> Result<(), Failure> {
    stopped_session::read(&mut trace_file::without_stacks(start(client, KEYWORDS)?), take)
}
