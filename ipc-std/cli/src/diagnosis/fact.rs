//! What a recording shows, or what it would have to record to show it.
use serde::{Serialize, Serializer};

/// A kind of events that a diagnosis reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    Samples,
    /// Since .NET 9 only, and so not in `ALL`.
    Handles,
    Locks,
    Exceptions,
    Collections,
    Allocations,
    Requests,
    Compilations,
    Counters,
}

impl Wish {
    pub(super) const ALL: [Self; 8] = [
        Self::Samples,
        Self::Locks,
        Self::Exceptions,
        Self::Collections,
        Self::Allocations,
        Self::Requests,
        Self::Compilations,
        Self::Counters,
    ];

    /// Returns the events in words.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Samples => "samples of threads",
            Self::Handles => "waits on handles",
            Self::Locks => "waits for locks",
            Self::Exceptions => "exceptions",
            Self::Collections => "collections",
            Self::Allocations => "allocations",
            Self::Requests => "requests",
            Self::Compilations => "compilations",
            Self::Counters => "counters of System.Runtime",
        }
    }

    /// Returns the counters of System.Runtime that show the same without methods.
    pub(super) const fn counters(self) -> &'static [&'static str] {
        match self {
            Self::Locks => &["monitor-lock-contention-count"],
            Self::Exceptions => &["exception-count"],
            Self::Collections => &["gen-0-gc-count", "gen-1-gc-count", "gen-2-gc-count"],
            Self::Allocations => &["alloc-rate"],
            Self::Compilations => &["methods-jitted-count"],
            Self::Samples | Self::Handles | Self::Requests | Self::Counters => &[],
        }
    }

    /// Returns the kind of an event by its provider and id.
    pub(super) fn of(provider: &str, event_id: u32) -> Option<Self> {
        Some(match (provider, event_id) {
            ("Microsoft-DotNETCore-SampleProfiler", _) => Self::Samples,
            ("Microsoft-Windows-DotNETRuntime", 10 | 303) => Self::Allocations,
            ("Microsoft-Windows-DotNETRuntime", 1..=39) => Self::Collections,
            ("Microsoft-Windows-DotNETRuntime", 80 | 250..=256) => Self::Exceptions,
            ("Microsoft-Windows-DotNETRuntime", 81 | 90 | 91) => Self::Locks,
            ("Microsoft-Windows-DotNETRuntime", 301 | 302) => Self::Handles,
            ("Microsoft-Windows-DotNETRuntime", 143 | 145) => Self::Compilations,
            ("Microsoft.AspNetCore.Hosting" | "System.Net.Http", _) => Self::Requests,
            ("System.Runtime", _) => Self::Counters,
            _ => return None,
        })
    }
}

/// What a recording shows, or the events that it would need to show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fact<T> {
    Known(T),
    NotRecorded(Wish),
}

impl<T> Fact<T> {
    pub(super) fn new(known: Option<T>, wish: Wish) -> Self {
        known.map_or(Self::NotRecorded(wish), Self::Known)
    }

    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::NotRecorded(_) => None,
        }
    }

    /// Returns the text of a known value, or that the events were not recorded.
    pub(super) fn text(self, of: impl FnOnce(T) -> String) -> String {
        self.known().map_or_else(|| "not recorded".to_owned(), of)
    }
}

/// What was not recorded is null.
impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(to),
            Self::NotRecorded(_) => to.serialize_none(),
        }
    }
}
