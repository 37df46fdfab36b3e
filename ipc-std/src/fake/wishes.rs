use std::collections::BTreeSet;

use ipc_proto::nettrace::Metadata;
use ipc_proto::plan::DEFAULT_RUNDOWN;
use ipc_proto::types::{EventFilter, EventLevel, Provider, SessionConfig, SessionConfig6, StreamingProvider};
use ipc_proto::{Request, Text};

/// What a session is to be sent.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    providers: Vec<Wish>,
    rundown_keyword: u64,
    /// Whether events have stacks.
    pub(super) stackwalk: bool,
}

/// What is to be sent of a provider.
#[derive(Debug)]
struct Wish {
    name: String,
    keywords: u64,
    level: EventLevel,
    /// Whether these ids are the ones to send, or the ones not to.
    enable: bool,
    event_ids: BTreeSet<u32>,
}

impl Wishes {
    /// Those of a request that starts a stream; of any other one, none.
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
                _ => return Self::default(),
            },
            Request::CollectTracing6(start) => match start.session {
                SessionConfig6::Streaming(session) => {
                    (filtered(session.providers.iter()), session.rundown_keyword, session.stackwalk)
                }
                _ => return Self::default(),
            },
            _ => return Self::default(),
        };
        Self { providers, rundown_keyword, stackwalk }
    }

    /// Whether events of this kind are sent.
    pub(super) fn want(&self, kind: &Metadata<'_>) -> bool {
        self.providers.iter().any(|wish| wish.want(kind))
    }

    /// Whether they are, of the provider that tells of methods and modules at the end.
    pub(super) fn want_rundown(&self, kind: &Metadata<'_>) -> bool {
        self.rundown_keyword != 0 && lets_through(self.rundown_keyword, EventLevel::VERBOSE, kind)
    }
}

impl Wish {
    fn new(keywords: u64, level: EventLevel, name: Text<'_>, filter: EventFilter<'_>) -> Self {
        let name = name.chars().collect();
        Self { name, keywords, level, enable: filter.enable, event_ids: filter.event_ids.iter().collect() }
    }

    fn want(&self, kind: &Metadata<'_>) -> bool {
        if self.name == "*" && self.keywords == u64::MAX && self.level == EventLevel::VERBOSE {
            // Everything there is, and no filter.
            return true;
        }
        kind.provider == self.name.as_str()
            && lets_through(self.keywords, self.level, kind)
            && self.event_ids.contains(&kind.event_id) == self.enable
    }
}

fn lets_through(keywords: u64, level: EventLevel, kind: &Metadata<'_>) -> bool {
    let by_level = level == EventLevel::LOG_ALWAYS || kind.level <= level.0;
    by_level && (kind.keywords == 0 || kind.keywords & keywords != 0)
}

fn unfiltered<'a>(providers: impl Iterator<Item = Provider<'a>>) -> Vec<Wish> {
    providers.map(|p| Wish::new(p.keywords, p.level, p.name, EventFilter::ALL)).collect()
}

fn filtered<'a>(providers: impl Iterator<Item = StreamingProvider<'a>>) -> Vec<Wish> {
    providers.map(|p| Wish::new(p.keywords, p.level, p.name, p.filter)).collect()
}
