//! Profiles: providers under a name, as in dotnet-trace.
use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;

use clap::ValueEnum;
use dotnet_ipc_sans_io::syntax::keywords::{
    ALLOCATION_SAMPLING, ASSEMBLY_LOADER, COMPILATION, CONTENTION, EXCEPTION, GC, GC_HANDLE, JIT,
    JITTED_METHOD_IL_TO_NATIVE_MAP, LOADER, PRIVATE_PROVIDER, RUNTIME_PROVIDER, THREADING, WAIT_HANDLE,
};
use dotnet_ipc_sans_io::syntax::provider::{self, ProviderSpec};
use ipc_proto::Guid;
use ipc_proto::types::EventLevel;

use super::rundown;

/// Profiles of dotnet-trace, with the same names and providers, and one of this tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceProfile {
    /// Garbage collections, loading, compilation, exceptions, threads; low cost
    DotnetCommon,
    /// Samples of every managed thread's stack, at the interval of the runtime
    DotnetSampledThreadTime,
    /// Garbage collections and a sample of the allocations
    GcVerbose,
    /// Garbage collections only, at the lowest cost
    GcCollect,
    /// Commands of ADO.NET and Entity Framework
    Database,
    /// What every analysis reads, for a sick service; 1 to 7 MB a second
    Sick,
}

/// The keywords of the profile dotnet-common.
const COMMON: u64 = GC
    | ASSEMBLY_LOADER
    | LOADER
    | JIT
    | EXCEPTION
    | THREADING
    | JITTED_METHOD_IL_TO_NATIVE_MAP
    | COMPILATION;

/// The sampler of the runtime.
const SAMPLER: ProviderSpec =
    ProviderSpec::new("Microsoft-DotNETCore-SampleProfiler", 0xf000_0000_0000, EventLevel::INFORMATIONAL, "");

/// Argument of the bridge from `DiagnosticSource` to EventPipe: the database commands and their properties.
const DATABASE: &str = "FilterAndPayloadSpecs=\"\
    SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:\
    -Command;Command.CommandText;ConnectionId;Operation;Command.Connection.ServerVersion;\
    Command.CommandTimeout;Command.CommandType;Command.Connection.ConnectionString;\
    Command.Connection.Database;Command.Connection.DataSource;Command.Connection.PacketSize\r\n\
    SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:\r\n\
    Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:\
    -Command.CommandText;Command;ConnectionId;IsAsync;Command.Connection.ClientConnectionId;\
    Command.Connection.ServerVersion;Command.CommandTimeout;Command.CommandType;\
    Command.Connection.ConnectionString;Command.Connection.Database;Command.Connection.DataSource;\
    Command.Connection.PacketSize\r\n\
    Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:\"";

/// The keywords of the profile sick. Level verbose is that of the starts of compilations, and of allocations before
/// .NET 10, and of waits on WaitHandles.
const SICK: u64 = GC | LOADER | JIT | CONTENTION | EXCEPTION | THREADING | ALLOCATION_SAMPLING | WAIT_HANDLE;

/// The meters of the profile sick, in the session that all clients of a process share.
const METERS: &str = "SessionId=SHARED;Metrics=System.Runtime,Microsoft.AspNetCore.Hosting,\
    Microsoft.AspNetCore.Server.Kestrel,System.Net.Http;RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=10;\
    ClientId=00000000-0000-0000-0000-000000000000";

/// The client of [`METERS`]. Each recording has another one: the session of meters ends with its last client.
const ANY_CLIENT: &str = "00000000-0000-0000-0000-000000000000";

impl TraceProfile {
    /// The profiles of a recording by default.
    pub(crate) const DEFAULT: [Self; 2] = [Self::DotnetCommon, Self::DotnetSampledThreadTime];

    /// Returns the providers of the profile.
    pub(crate) const fn providers(self) -> &'static [ProviderSpec] {
        const INFORMATIONAL: EventLevel = EventLevel::INFORMATIONAL;
        const VERBOSE: EventLevel = EventLevel::VERBOSE;
        const GC_VERBOSE: &[ProviderSpec] =
            &[ProviderSpec::new(RUNTIME_PROVIDER, GC | GC_HANDLE | EXCEPTION, VERBOSE, "")];
        const GC_COLLECT: &[ProviderSpec] = &[
            ProviderSpec::new(RUNTIME_PROVIDER, GC, INFORMATIONAL, ""),
            ProviderSpec::new(PRIVATE_PROVIDER, GC, INFORMATIONAL, ""),
        ];
        const DATABASE_PROVIDERS: &[ProviderSpec] = &[
            ProviderSpec::new("System.Threading.Tasks.TplEventSource", 0x80, INFORMATIONAL, ""),
            ProviderSpec::new("Microsoft-Diagnostics-DiagnosticSource", 3, VERBOSE, DATABASE),
        ];
        const SICK_PROVIDERS: &[ProviderSpec] = &[
            SAMPLER,
            ProviderSpec::new(RUNTIME_PROVIDER, SICK, VERBOSE, ""),
            ProviderSpec::new("Microsoft.AspNetCore.Hosting", u64::MAX, INFORMATIONAL, ""),
            ProviderSpec::new("System.Net.Http", u64::MAX, INFORMATIONAL, ""),
            // With these keywords, the events of requests have activity ids, and asynchronous methods that
            // wait have events.
            ProviderSpec::new("System.Threading.Tasks.TplEventSource", 0x88, INFORMATIONAL, ""),
            ProviderSpec::new("System.Runtime", u64::MAX, INFORMATIONAL, "EventCounterIntervalSec=1"),
            ProviderSpec::new("System.Diagnostics.Metrics", 2, INFORMATIONAL, METERS),
        ];
        match self {
            Self::DotnetCommon => const { &[ProviderSpec::new(RUNTIME_PROVIDER, COMMON, INFORMATIONAL, "")] },
            Self::DotnetSampledThreadTime => const { &[SAMPLER] },
            Self::GcVerbose => GC_VERBOSE,
            Self::GcCollect => GC_COLLECT,
            Self::Database => DATABASE_PROVIDERS,
            Self::Sick => SICK_PROVIDERS,
        }
    }

    /// Returns the keywords of the rundown that the profile needs.
    pub(crate) const fn rundown_keyword(self) -> u64 {
        match self {
            Self::GcCollect => GC,
            // The numbers of threads identify the owners of locks.
            Self::Sick => rundown::KEYWORDS | THREADING,
            _ => ipc_proto::plan::DEFAULT_RUNDOWN,
        }
    }
}

/// Returns whether the arguments of a provider have a separator of the variables of EventPipe.
pub(crate) fn has_separators(provider: &ProviderSpec) -> bool {
    provider.arguments.contains([',', ':'])
}

/// Returns the providers to record.
///
/// A provider in `named` replaces the provider of the same name in a profile. Providers of the same name are merged,
/// both within `named` and between profiles.
pub(crate) fn select(profiles: &[TraceProfile], named: &[ProviderSpec]) -> Result<Vec<ProviderSpec>, String> {
    let mut selected = Vec::new();
    for spec in named {
        provider::add(&mut selected, spec)?;
    }
    for spec in profiles.iter().flat_map(|profile| profile.providers()) {
        if !named.iter().any(|named| named.is_named(&spec.name)) {
            provider::add(&mut selected, spec)?;
        }
    }
    for spec in &mut selected {
        if spec.arguments.contains(ANY_CLIENT) {
            spec.arguments = spec.arguments.replace(ANY_CLIENT, &random().to_string()).into();
        }
    }
    Ok(selected)
}

/// Returns a random value that is not a secret.
fn random() -> Guid {
    let [a, b] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    Guid(((u128::from(a) << u64::BITS) | u128::from(b)).to_le_bytes())
}

/// Returns the keywords of the rundown for all these profiles.
pub(crate) fn rundown_keyword(profiles: &[TraceProfile]) -> u64 {
    let keywords = profiles.iter().map(|profile| profile.rundown_keyword()).reduce(|all, one| all | one);
    keywords.unwrap_or(ipc_proto::plan::DEFAULT_RUNDOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_provider_replaces_that_of_a_profile() {
        let named = [ProviderSpec::new("microsoft-windows-dotnetruntime", 1, EventLevel::WARNING, "")];
        let profiles = [TraceProfile::DotnetCommon, TraceProfile::DotnetSampledThreadTime];
        let selected = select(&profiles, &named).unwrap();
        assert_eq!(selected[0], named[0]);
        assert_eq!(selected[1..], *TraceProfile::DotnetSampledThreadTime.providers());
        assert_eq!(rundown_keyword(&profiles), ipc_proto::plan::DEFAULT_RUNDOWN);
        assert_eq!(select(&[], &named).unwrap(), named);
    }

    #[test]
    fn each_recording_is_another_client_of_the_meters() {
        let arguments = || {
            let selected = select(&[TraceProfile::Sick], &[]).unwrap();
            let meters = selected.into_iter().find(|spec| spec.name == "System.Diagnostics.Metrics").unwrap();
            meters.arguments
        };
        let [first, second] = [arguments(), arguments()];
        assert!(first.starts_with("SessionId=SHARED;Metrics=System.Runtime,"), "{first}");
        assert!(first != second && !first.contains(ANY_CLIENT), "{first} {second}");
    }

    #[test]
    fn profiles_are_merged() {
        let profiles = [TraceProfile::GcCollect, TraceProfile::GcVerbose];
        let selected = select(&profiles, &[]).unwrap();
        assert_eq!(selected[0], ProviderSpec::new(RUNTIME_PROVIDER, 0x8003, EventLevel::VERBOSE, ""));
        assert_eq!(selected.len(), 2);
        assert_eq!(rundown_keyword(&profiles), ipc_proto::plan::DEFAULT_RUNDOWN | 1);
    }
}
