//! The times at which `counters` acts without a report.
use core::time::Duration;
use std::time::Instant;

/// The intervals after which every counter has reported once, and the time that a session needs to start.
const FIRST_INTERVALS: u32 = 3;
const STARTING: Duration = Duration::from_secs(2);

/// When something is due; `None` if it never is, or not again.
pub(super) struct Schedule {
    /// The end of the sessions.
    pub(super) end: Option<Instant>,
    /// The time when every counter has reported once.
    pub(super) first: Option<Instant>,
    /// The next time to write, and the time between two.
    pub(super) tick: Option<Instant>,
    pub(super) pace: Duration,
}

impl Schedule {
    /// Returns the times of sessions that begin now and report each `interval`.
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

/// Returns whether a time has come, which then does not come again.
pub(super) fn is_due(time: &mut Option<Instant>, now: Instant) -> bool {
    time.take_if(|time| now >= *time).is_some()
}
