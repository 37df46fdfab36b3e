//! [`Hazard`]: a request that can end the target process; [`StopHazard`]: when a Stop can block its diagnostics
//! indefinitely.
use super::TraceConfig;
use super::runtime::{Flavour, Runtime, obstacle};
use crate::sentences::sentences;
use crate::{Continuation, GenerateCoreDump, GenerateCoreDump2, GenerateCoreDump3, Request, Text, Violation};

sentences! {
    /// A request that can end the target process. Its `Display` is a sentence that warns the user before the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Hazard {
        /// EnablePerfMap while the runtime is suspended at startup.
        PerfMapWhileSuspended = "EnablePerfMap ends a .NET 8 or 9 that is suspended at startup; resume it first",
        /// SetEnvironmentVariable without a value.
        UnsetVariable = "removing a variable ends a program compiled by NativeAOT",
        /// A startup hook whose file is missing or may be missing, or that cannot be loaded.
        StartupHook = "a startup hook that cannot be loaded ends a running .NET 9 or 10, and a suspended runtime \
            of any version when it is resumed",
        /// A dump whose name is null.
        DumpWithoutName = "a dump whose name is null ends every CoreCLR; an empty one does not",
        /// A session of `user_events` that has an event id twice, in a filter or in the sets of a provider.
        DuplicateEventId = "an event id that occurs twice in a session of user_events ends .NET 10 and 11",
        /// A session of `user_events` with a tracepoint whose name is too long.
        TracepointNameLength = "a tracepoint whose format is longer than 512 bytes ends .NET 10 and 11",
    }
}

/// Returns how the request can end the process.
///
/// `file_exists` is for a startup hook: whether its file exists in the target's file system; `None` if unknown.
///
/// ```
/// use ipc_proto::{Request, SetEnvironmentVariable, Text, plan::{self, Flavour, Hazard, Runtime}};
///
/// let unset = SetEnvironmentVariable { name: "A".into(), value: Text::NULL };
/// let unset = Request::SetEnvironmentVariable(unset);
/// assert_eq!(plan::hazard(&unset, &Runtime::default(), None), Some(Hazard::UnsetVariable));
/// let usual = Runtime { flavour: Some(Flavour::CoreClr), ..Runtime::default() };
/// assert_eq!(plan::hazard(&unset, &usual, None), None);
/// ```
#[must_use]
pub fn hazard(request: &Request<'_>, runtime: &Runtime, file_exists: Option<bool>) -> Option<Hazard> {
    let Runtime { version, flavour, suspended, .. } = *runtime;
    if obstacle(request.code(), runtime).is_some() {
        return None;
    }
    let coreclr = runtime.may_be_coreclr();
    match request {
        Request::GenerateCoreDump(GenerateCoreDump { dump_name, .. })
        | Request::GenerateCoreDump2(GenerateCoreDump2 { dump_name, .. })
        | Request::GenerateCoreDump3(GenerateCoreDump3 { dump_name, .. }) => {
            (coreclr && dump_name.is_null()).then_some(Hazard::DumpWithoutName)
        }
        Request::EnablePerfMap(_) => {
            let kills = coreclr && suspended != Some(false) && matches!(version, None | Some(8 | 9));
            kills.then_some(Hazard::PerfMapWhileSuspended)
        }
        Request::SetEnvironmentVariable(set) => {
            let kills = matches!(flavour, None | Some(Flavour::NativeAot)) && set.value.is_null();
            kills.then_some(Hazard::UnsetVariable)
        }
        Request::ApplyStartupHook(_) => {
            // These refuse a hook that they cannot load. A suspended runtime loads it only when it is resumed.
            let refuses = suspended == Some(false) && matches!(version, Some(8 | 11..));
            let kills = coreclr && file_exists != Some(true) && !refuses;
            kills.then_some(Hazard::StartupHook)
        }
        _ if request.continuation() == Continuation::UserEvents => match request.check().err()?.violation {
            Violation::DuplicateEventId => Some(Hazard::DuplicateEventId),
            Violation::TracepointNameLength => Some(Hazard::TracepointNameLength),
            _ => None,
        },
        _ => None,
    }
}

/// When a StopTracing must not arrive, in milliseconds after the session has started.
///
/// A .NET since 9 that receives it shortly before the first collection of `System.Diagnostics.Metrics` never answers
/// again: the thread that stops the session waits for the thread that collects, and the thread that collects waits for
/// the first one. Nothing but a restart of the process helps. The first event `CollectionStop` of the provider ends the
/// danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopHazard {
    /// Until this time a Stop is harmless.
    pub from_ms: u64,
    /// From this time on, a client sends the Stop although no collection was seen: a program that does not collect until
    /// then is stopped, suspended or ending.
    pub until_ms: u64,
}

impl StopHazard {
    /// The provider that collects the meters of a program.
    pub const PROVIDER: &'static str = "System.Diagnostics.Metrics";
    /// The name of its event after which a Stop is harmless.
    pub const COLLECTION_STOP: &'static str = "CollectionStop";
    /// How long before the first collection a Stop is dangerous, in milliseconds, with a margin for its way.
    const BEFORE_MS: u64 = 250;
    /// How long after the time of the first collection a client waits for it.
    const AFTER_MS: u64 = 2_000;
}

/// Returns when a session with this configuration must not be stopped.
///
/// ```
/// use ipc_proto::plan::{Runtime, StopHazard, TraceConfig, stop_hazard};
/// use ipc_proto::types::{EventLevel, Provider};
///
/// let providers = [Provider {
///     keywords: 2,
///     level: EventLevel::INFORMATIONAL,
///     name: "System.Diagnostics.Metrics".into(),
///     arguments: "SessionId=SHARED;RefreshInterval=1.5".into(),
/// }];
/// let config = TraceConfig::new(&providers);
/// let expected = StopHazard { from_ms: 1250, until_ms: 3500 };
/// assert_eq!(stop_hazard(&config, &Runtime::default()), Some(expected));
/// let net_8 = Runtime { version: Some(8), ..Runtime::default() };
/// assert_eq!(stop_hazard(&config, &net_8), None);
/// ```
#[must_use]
pub fn stop_hazard(config: &TraceConfig<'_>, runtime: &Runtime) -> Option<StopHazard> {
    if runtime.version.is_some_and(|version| version < 9) {
        return None;
    }
    // Several entries of one provider are one subscription, with the interval of the last.
    let provider = config.providers.iter().filter(|provider| provider.name == StopHazard::PROVIDER).last()?;
    let interval = refresh_interval(provider.arguments);
    Some(StopHazard {
        from_ms: interval.saturating_sub(StopHazard::BEFORE_MS),
        until_ms: interval.saturating_add(StopHazard::AFTER_MS),
    })
}

/// Returns the interval of collections in milliseconds: the seconds in `RefreshInterval`, by default 1.
fn refresh_interval(arguments: Text<'_>) -> u64 {
    const KEY: &str = "RefreshInterval";
    const DEFAULT_MS: u64 = 1_000;
    const SHORTEST_MS: u64 = 100;
    let mut chars = arguments.chars();
    loop {
        let mut pair = chars.by_ref().take_while(|c| *c != ';').peekable();
        if pair.peek().is_none() {
            return DEFAULT_MS;
        }
        let is_key = KEY.chars().all(|c| pair.next().is_some_and(|found| found.eq_ignore_ascii_case(&c)));
        if !is_key || pair.next() != Some('=') {
            // Consumes the rest of the pair.
            pair.for_each(drop);
            continue;
        }
        let (mut milliseconds, mut unit) = (0_u64, 1_000_u64);
        let mut fraction = false;
        for c in pair {
            match c.to_digit(10) {
                Some(digit) if !fraction => {
                    milliseconds = milliseconds
                        .saturating_mul(10)
                        .saturating_add(u64::from(digit).saturating_mul(1_000));
                }
                Some(digit) => {
                    unit /= 10;
                    milliseconds = milliseconds.saturating_add(u64::from(digit).saturating_mul(unit));
                }
                None if c == '.' => fraction = true,
                None => return DEFAULT_MS,
            }
        }
        return milliseconds.max(SHORTEST_MS);
    }
}
