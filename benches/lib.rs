//! What the benchmarks work on.
pub mod traces;

use ipc_proto::types::{EventLevel, Format, ProcessInfo3, Provider};
use ipc_proto::{Array, CollectTracing2, Guid, Text};

/// The providers of a rather large session.
pub const PROVIDERS: [&str; 8] = [
    "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-DotNETRuntimePrivate",
    "Microsoft-DotNETCore-SampleProfiler",
    "Microsoft-Diagnostics-DiagnosticSource",
    "Microsoft-Extensions-Logging",
    "Microsoft.AspNetCore.Hosting",
    "System.Net.Http",
    "System.Runtime",
];

/// Eight providers, some with arguments.
#[must_use]
pub fn providers() -> [Provider<'static>; 8] {
    PROVIDERS.map(|name| Provider {
        keywords: 0x14_c14f_ccbd,
        level: EventLevel::VERBOSE,
        name: Text::from(name),
        arguments: Text::from(if name.starts_with("System.") { "EventCounterIntervalSec=1" } else { "" }),
    })
}

/// Starts a session with these.
#[must_use]
pub fn collect_tracing<'a>(providers: &'a [Provider<'a>]) -> CollectTracing2<'a> {
    CollectTracing2 {
        buffer_mb: 256,
        format: Format::NET_TRACE,
        rundown: true,
        providers: Array::from(providers),
    }
}

/// What a process on Linux answers.
#[must_use]
pub fn process_info() -> ProcessInfo3<'static> {
    ProcessInfo3 {
        version: 1,
        process_id: 7217,
        runtime_cookie: Guid(*b"a random cookie "),
        command_line: Text::from("/usr/share/dotnet/dotnet /srv/shop/Shop.Web.dll --urls http://*:5000"),
        os: Text::from("Linux"),
        arch: Text::from("x64"),
        managed_entrypoint_assembly_name: Text::from("Shop.Web"),
        clr_product_version: Text::from("10.0.12"),
        portable_rid: Text::from("linux-x64"),
    }
}
