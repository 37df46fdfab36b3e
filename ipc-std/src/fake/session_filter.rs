use std::collections::BTreeSet;

use ipc_proto::nettrace::Metadata;
use ipc_proto::plan::DEFAULT_RUNDOWN;
use ipc_proto::types::{
    EventFilter, EventLevel, Provider, SessionConfig, SessionConfig6, StreamingProvider, UserEventsProvider,
};
use ipc_proto::{Request, Text};

/// The events that a session includes.
#[derive(Debug, Default)]
pub(super) struct SessionFilter {
    providers: Vec<ProviderFilter>,
    rundown_keyword: u64,
    /// Whether events have stacks.
    pub(super) stackwalk: bool,
}

/// The events of a provider that a session includes.
#[derive(Debug)]
struct ProviderFilter {
    name: String,
    keywords: u64,
    level: EventLevel,
    /// Whether these event ids are included, or excluded.
    enable: bool,
    event_ids: BTreeSet<u32>,
}

impl SessionFilter {
    /// Returns the filter of a request that starts a session. For other requests it includes nothing.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let rundown = |wanted| if wanted { DEFAULT_RUNDOWN } else { 0 };
        let (providers, rundown_keyword, stackwalk) = match request {
            Request::CollectTracing(start) => (unfiltered(start.providers.iter()), DEFAULT_RUNDOWN, true),
            Request::CollectTracing2(start) => {
                (unfiltered(start.providers.iter()), rundown(start.rundown), true)
            }
            Request::CollectTracing3(start) => {
                (unfiltered(start.providers.iter()), rundown(start.rundown), start.stackwalk)
            }
            Request::CollectTracing4(start) => {
                (unfiltered(start.providers.iter()), start.rundown_keyword, start.stackwalk)
            }
            Request::CollectTracing5(start) => match start.session {
                SessionConfig::Streaming(session) => {
                    (filtered(session.providers.iter()), session.rundown_keyword, session.stackwalk)
                }
                SessionConfig::UserEvents(session) => (to_tracepoints(session.providers.iter()), 0, false),
                _ => return Self::default(),
            },
            Request::CollectTracing6(start) => match start.session {
                SessionConfig6::Streaming(session) => {
                    (filtered(session.providers.iter()), session.rundown_keyword, session.stackwalk)
                }
                SessionConfig6::UserEvents(session) => (to_tracepoints(session.providers.iter()), 0, false),
                _ => return Self::default(),
            },
            _ => return Self::default(),
        };
        Self { providers, rundown_keyword, stackwalk }
    }

    /// Returns whether events of this kind are included.
    pub(super) fn includes(&self, kind: &Metadata<'_>) -> bool {
        self.providers.iter().any(|provider| provider.includes(kind))
    }

    /// Returns whether rundown events of this kind are included.
    pub(super) fn includes_rundown(&self, kind: &Metadata<'_>) -> bool {
        self.rundown_keyword != 0 && matches(self.rundown_keyword, EventLevel::VERBOSE, kind)
    }
}

impl ProviderFilter {
    fn new(keywords: u64, level: EventLevel, name: Text<'_>, filter: EventFilter<'_>) -> Self {
        let name = name.chars().collect();
        Self { name, keywords, level, enable: filter.enable, event_ids: filter.event_ids.iter().collect() }
    }

    fn includes(&self, kind: &Metadata<'_>) -> bool {
        if self.name == "*" && self.keywords == u64::MAX && self.level == EventLevel::VERBOSE {
            // All events of all providers; the filter does not count.
            return true;
        }
        kind.provider == self.name.as_str()
            && matches(self.keywords, self.level, kind)
            && self.event_ids.contains(&kind.event_id) == self.enable
    }
}

fn matches(keywords: u64, level: EventLevel, kind: &Metadata<'_>) -> bool {
    let by_level = level == EventLevel::LOG_ALWAYS || kind.level <= level.0;
    by_level && (kind.keywords == 0 || kind.keywords & keywords != 0)
}

fn unfiltered<'a>(providers: impl Iterator<Item = Provider<'a>>) -> Vec<ProviderFilter> {
    providers.map(|p| ProviderFilter::new(p.keywords, p.level, p.name, EventFilter::ALL)).collect()
}

fn filtered<'a>(providers: impl Iterator<Item = StreamingProvider<'a>>) -> Vec<ProviderFilter> {
    providers.map(|p| ProviderFilter::new(p.keywords, p.level, p.name, p.filter)).collect()
}

fn to_tracepoints<'a>(providers: impl Iterator<Item = UserEventsProvider<'a>>) -> Vec<ProviderFilter> {
    providers.map(|p| ProviderFilter::new(p.keywords, p.level, p.name, p.filter)).collect()
}
