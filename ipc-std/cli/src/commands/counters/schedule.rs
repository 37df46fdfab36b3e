//! The times at which `counters` acts without a report.
use core::time::Duration;
use std::time::Instant;

/// Every counter has reported once after this many intervals, and the time that the start of a session takes.
const FIRST_INTERVALS: u32 = 3;
const STARTING: Duration = Duration::from_secs(2);

/// The times at which `counters` acts; `None` for an action that is never due, or not again.
pub(super) struct Schedule {
    /// The end of the sessions.
    pub(super) end: Option<Instant>,
    /// When every counter has reported once: a selected counter without a sample is then missing.
    pub(super) first: Option<Instant>,
    /// The next time to write, and the time between two writes.
    pub(super) tick: Option<Instant>,
    pub(super) pace: Duration,
}

impl Schedule {
    /// Returns the times for sessions that begin now, with a report each `interval`.
    pub(super) fn new(interval: Duration, pace: Duration, end: Option<Duration>) -> Self {
        let began = Instant::now();
        let first = interval.saturating_mul(FIRST_INTERVALS).saturating_add(STARTING);
        Self {
            end: end.and_then(|end| began.checked_add(end)),
            first: began.checked_add(first),
            tick: began.checked_add(pace),
            pace,
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        [self.end, self.first, self.tick].into_iter().flatten().min()
    }
}

/// Returns whether a time has come. The time is then cleared, so that it comes once.
pub(super) fn is_due(time: &mut Option<Instant>, now: Instant) -> bool {
    time.take_if(|time| now >= *time).is_some()
}
