//! `Deadline`: the begin and the end of a wait.
use core::time::Duration;
use std::time::Instant;

/// The begin and the end of a wait with a limit: of a search, of a call.
///
/// ```
/// use core::time::Duration;
/// use ipc_discover::Deadline;
///
/// let deadline = Deadline::after(Duration::from_secs(10));
/// assert_eq!(deadline.limited(deadline.begin).end, deadline.begin);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The begin of the wait.
    pub begin: Instant,
    /// The time at which the wait ends at the latest.
    pub end: Instant,
}

impl Deadline {
    /// Returns the deadline of a wait that begins now.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        /// The limit that replaces a longer limit, whose end would be beyond the range of the clock.
        const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let begin = Instant::now();
        let end = begin.checked_add(limit).or_else(|| begin.checked_add(LONGEST)).unwrap_or(begin);
        Self { begin, end }
    }

    /// Returns the deadline, which ends at `end` at the latest.
    #[must_use]
    pub fn limited(self, end: Instant) -> Self {
        Self { end: self.end.min(end), ..self }
    }
}
