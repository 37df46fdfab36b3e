//! The two systems that measure: event counters and meters.
/// The system that a sample comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// An event counter of an event source.
    EventCounter,
    /// An instrument of a meter of System.Diagnostics.Metrics.
    Meter,
}

impl System {
    /// Returns the name in machine formats: `event_counter` or `meter`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventCounter => "event_counter",
            Self::Meter => "meter",
        }
    }
}
