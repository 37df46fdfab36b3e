//! `CounterPlan` decides which providers a session of counters enables, from the wishes in a `CounterConfig`.
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;
use core::time::Duration;

use ipc_proto::Guid;
use ipc_proto::types::{EventLevel, Provider};

use super::selection::is_separator;
use super::{CounterReader, Selection, System};

/// The counters and instruments that a client requests from a runtime, with their interval and limits.
///
/// ```
/// use nettrace_analysis::counters::CounterConfig;
///
/// let config = CounterConfig { selections: vec!["System.Runtime".parse().unwrap()], ..CounterConfig::default() };
/// assert_eq!(config.interval.as_secs(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterConfig {
    /// The counters and instruments to read; at least one.
    pub selections: Vec<Selection>,
    /// The time between two samples. Meters allow no less than 100 ms.
    pub interval: Duration,
    /// The number of series of meters that the runtime reports at most.
    pub max_time_series: u32,
    /// The number of series of histograms that the runtime reports at most.
    pub max_histograms: u32,
    /// Requests histograms with buckets instead of quantiles; .NET 10.
    pub exponential_histograms: Option<ExponentialConfig>,
    /// A number that no other client of the runtime has.
    pub client_id: Guid,
    /// Requests a list of the instruments that exist, instead of samples.
    pub lists_instruments: bool,
}

/// The limits are those of dotnet-counters, because all clients of the shared session must have the same limits.
impl Default for CounterConfig {
    fn default() -> Self {
        Self {
            selections: Vec::new(),
            interval: Duration::from_secs(1),
            max_time_series: 1_000,
            max_histograms: 10,
            exponential_histograms: None,
            client_id: Guid::NIL,
            lists_instruments: false,
        }
    }
}

/// The histograms with buckets that a runtime reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExponentialConfig {
    /// The scale at the start, between -11 and 20. The runtime decreases the scale if there would be too many buckets.
    pub scale: i32,
    /// The most buckets of a histogram: 2 or more.
    pub max_buckets: u32,
    /// Whether each sample has only the measurements of its interval, instead of all since the start.
    pub reports_deltas: bool,
}

/// The defaults of the runtime.
impl Default for ExponentialConfig {
    fn default() -> Self {
        Self { scale: 20, max_buckets: 160, reports_deltas: false }
    }
}

/// The providers that a session of counters enables, and the reader of its events.
///
/// ```
/// use nettrace_analysis::counters::{CounterConfig, CounterPlan};
///
/// let selections = vec!["System.Runtime".parse().unwrap(), "My.App".parse().unwrap()];
/// let config = CounterConfig { selections, ..CounterConfig::default() };
/// // .NET 8 reports System.Runtime as event counters only, and My.App can be both.
/// let plan = CounterPlan::new(&config, Some(8)).unwrap();
/// let names: Vec<_> = plan.providers.iter().map(|provider| &*provider.name).collect();
/// assert_eq!(names, ["System.Runtime", "My.App", "System.Diagnostics.Metrics"]);
/// assert_eq!(plan.providers[0].arguments, "EventCounterIntervalSec=1");
/// assert!(plan.providers[2].arguments.starts_with("SessionId=SHARED;Metrics=My.App;RefreshInterval=1;"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterPlan {
    /// The providers.
    pub providers: Vec<PlannedProvider>,
    /// The id of the session of meters: `SHARED`, or the client's own.
    pub session_id: String,
    client_id: String,
    selections: Vec<Selection>,
}

/// A provider of a [`CounterPlan`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedProvider {
    /// The name of the provider.
    pub name: String,
    /// The keywords, which select groups of events.
    pub keywords: u64,
    /// The arguments.
    pub arguments: String,
    /// Why the plan has this provider with these arguments, as a sentence for people.
    pub reason: &'static str,
}

impl PlannedProvider {
    /// Returns the provider as a session enables it.
    #[must_use]
    pub fn provider(&self) -> Provider<'_> {
        Provider {
            keywords: self.keywords,
            level: EventLevel::INFORMATIONAL,
            name: (&*self.name).into(),
            arguments: (&*self.arguments).into(),
        }
    }
}

/// The event source and the meter of the runtime itself.
const RUNTIME: &str = "System.Runtime";
const METRICS: &str = "System.Diagnostics.Metrics";
const SHARED: &str = "SHARED";

impl CounterPlan {
    /// The major version of the first .NET with a meter `System.Runtime`.
    const RUNTIME_METER: u8 = 9;
    /// The major version of the first .NET with a shared session.
    const SHARED_SESSION: u8 = 8;
    /// The shortest interval of meters.
    const MIN_INTERVAL: Duration = Duration::from_millis(100);

    /// Decides what to request from a runtime by its major version of .NET; as from the oldest version if it is
    /// unknown.
    ///
    /// # Errors
    /// Fails if the configuration selects nothing, if a name has characters that arguments cannot have, or if the
    /// interval is below 100 ms.
    pub fn new(config: &CounterConfig, version: Option<u8>) -> Result<Self, PlanError> {
        let CounterConfig { selections, interval, .. } = config;
        if selections.is_empty() {
            return Err(PlanError::NothingSelected);
        }
        if *interval < Self::MIN_INTERVAL {
            return Err(PlanError::IntervalTooShort);
        }
        let names = selections.iter().flat_map(|one| [Some(&one.provider), one.name.as_ref()]).flatten();
        if names.into_iter().any(|name| name.is_empty() || name.contains(is_separator)) {
            return Err(PlanError::BadName);
        }
        let mut providers: Vec<PlannedProvider> = Vec::new();
        let mut metrics: Vec<String> = Vec::new();
        for selection in selections {
            let (event_counters, meters) = systems(selection, version);
            // A session enables a provider by its whole name only, so `Shop*` enables none.
            let is_new =
                || !providers.iter().any(|known| known.name.eq_ignore_ascii_case(&selection.provider));
            if let Some(reason) = event_counters {
                if !config.lists_instruments && !selection.provider.ends_with('*') && is_new() {
                    providers.push(PlannedProvider {
                        name: selection.provider.clone(),
                        // Event counters have no keywords, so 0 enables them without other events of the provider.
                        keywords: 0,
                        arguments: format!("EventCounterIntervalSec={}", interval.as_secs_f64()),
                        reason,
                    });
                }
            }
            if meters {
                let metric = match &selection.name {
                    Some(name) => format!("{}\\{name}", selection.provider),
                    None => selection.provider.clone(),
                };
                if !metrics.contains(&metric) {
                    metrics.push(metric);
                }
            }
        }
        let client_id = config.client_id.to_string();
        let is_shared = version.is_some_and(|version| version >= Self::SHARED_SESSION);
        // All clients of the shared session get the same kind of histograms, so that exponential ones need a session of
        // their own.
        let is_shared = is_shared && config.exponential_histograms.is_none();
        let session_id = if is_shared { SHARED.to_owned() } else { client_id.clone() };
        if !metrics.is_empty() {
            providers.push(PlannedProvider {
                name: METRICS.to_owned(),
                keywords: if config.lists_instruments { 0x4 } else { 0x2 },
                arguments: arguments(config, &metrics, &session_id, &client_id),
                reason: if is_shared {
                    "meters, in the session that all clients of the process share (.NET 8 and later)"
                } else {
                    "meters, in a session of its own: a second one in the same process fails"
                },
            });
        }
        Ok(Self { providers, session_id, client_id, selections: selections.clone() })
    }

    /// Returns the reader of the session's events, which ignores the events of other sessions.
    #[must_use]
    pub fn reader(&self) -> CounterReader {
        CounterReader::new()
            .for_session(&self.session_id, &self.client_id)
            .only(&self.selections)
            .preferring_meters()
    }
}

/// Returns the reason to request event counters (`None` to request none), and whether to request meters.
fn systems(selection: &Selection, version: Option<u8>) -> (Option<&'static str>, bool) {
    match selection.system {
        Some(System::EventCounter) => return (Some("only event counters were requested"), false),
        Some(System::Meter) => return (None, true),
        None => {}
    }
    if !selection.provider.eq_ignore_ascii_case(RUNTIME) {
        return (Some("the name can be that of an event source, of a meter, or of both"), true);
    }
    let has_meter = version.is_some_and(|version| version >= CounterPlan::RUNTIME_METER);
    match &selection.name {
        _ if !has_meter => (Some("before .NET 9, System.Runtime reports event counters only"), false),
        // The meter System.Runtime names its instruments by semantic conventions, with dots, as in
        // dotnet.gc.collections.
        Some(name) if name.contains('.') => (None, true),
        Some(_) => (Some("the name is that of an event counter"), false),
        None => (None, true),
    }
}

fn arguments(config: &CounterConfig, metrics: &[String], session_id: &str, client_id: &str) -> String {
    let mut metrics = metrics.join(",");
    if metrics.contains(' ') {
        metrics = format!("\"{metrics}\"");
    }
    let mut arguments = vec![
        format!("SessionId={session_id}"),
        format!("Metrics={metrics}"),
        format!("RefreshInterval={}", config.interval.as_secs_f64()),
        format!("MaxTimeSeries={}", config.max_time_series),
        format!("MaxHistograms={}", config.max_histograms),
    ];
    if session_id == SHARED {
        arguments.push(format!("ClientId={client_id}"));
    }
    if let Some(ExponentialConfig { scale, max_buckets, reports_deltas }) = config.exponential_histograms {
        arguments.push(format!(
            "Base2ExponentialHistogram=\"scale={scale};maxBuckets={max_buckets};reportDeltas={reports_deltas}\""
        ));
    }
    arguments.join(";")
}

/// Why a session cannot be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The configuration has no selection.
    NothingSelected,
    /// A name is empty, or has a character that ends a name in arguments: `,`, `;`, `=`, `"`, `\` or a control
    /// character.
    BadName,
    /// The interval is below 100 ms.
    IntervalTooShort,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingSelected => "no counters are selected",
            Self::BadName => {
                "the name of a provider or a counter has a comma, a semicolon, a quote or the like"
            }
            Self::IntervalTooShort => "the interval is below 100 ms",
        })
    }
}

impl core::error::Error for PlanError {}
