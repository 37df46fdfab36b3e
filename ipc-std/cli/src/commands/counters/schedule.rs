//! The times at which `counters` acts without a report.
use core::time::Duration;
use std::time::Instant;

/// Every counter has reported once after this many intervals, and the time that the start of a session takes.
const FIRST_INTERVALS: u32 = 3;
const STARTING: Duration = Duration::from_secs(2);
/// The time that the samples of an interval take to arrive, at most.
const FOLLOWING: Duration = Duration::from_millis(200);

/// The times at which `counters` acts; `None` for an action that is never due, or not again.
pub(super) struct Schedule {
    /// The end of the sessions.
    pub(super) end: Option<Instant>,
    /// When every counter has reported once: a selected counter without a sample is then missing.
    pub(super) first: Option<Instant>,
    /// How long to wait for the first samples after the end; `None` after that wait has begun.
    patience: Option<Duration>,
    /// Whether the command has waited for samples after the end, and ends with the first ones.
    is_waiting: bool,
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
            patience: Some(interval.saturating_add(STARTING)),
            is_waiting: false,
            tick: began.checked_add(pace),
            pace,
        }
    }

    /// Returns the time until which to wait for the first samples after the end, once.
    pub(super) fn wait_for_samples(&mut self, now: Instant) -> Option<Instant> {
        let until = now.checked_add(self.patience.take()?);
        self.is_waiting = until.is_some();
        until
    }

    /// Ends the wait for the first samples. The others of the same interval follow immediately.
    pub(super) fn end_waiting(&mut self) {
        if core::mem::take(&mut self.is_waiting) {
            self.end = Instant::now().checked_add(FOLLOWING);
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
