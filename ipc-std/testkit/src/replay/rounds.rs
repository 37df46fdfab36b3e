//! The repetition of a recording, with new times.
use super::recording::{Recorded, Recording};

/// The position in a recording that is replayed again and again. Times are in nanoseconds.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// The start of this round.
    start: u64,
    /// The number of events of this round that were returned.
    done: usize,
}

/// The events to send now.
pub(crate) struct Due<'r> {
    /// The events, whose times are relative to `start`.
    pub(crate) events: &'r [Recorded<'r>],
    /// The start of the round of these events.
    pub(crate) start: u64,
    /// The end of the round, if these are its last events. Events of the next round can then be due, too.
    pub(crate) end: Option<u64>,
}

impl Rounds {
    /// The length of the shortest round: 100 ms.
    const SHORTEST: u64 = 100_000_000;
    /// If a round ended longer ago than this, no client reads, and the next round begins at the next read: 1 s.
    const LATE: u64 = 1_000_000_000;

    pub(crate) const fn new(now: u64) -> Self {
        Self { start: now, done: 0 }
    }

    /// Returns the next events of one round, up to the time `now`. If `most` returns fewer than these events, the
    /// program waits after so many: the remaining events happen from now on, with their distances.
    pub(crate) fn due<'r>(
        &mut self,
        recording: &'r Recording<'r>,
        now: u64,
        most: impl FnOnce(&[Recorded<'r>]) -> usize,
    ) -> Due<'r> {
        let since = now.saturating_sub(self.start);
        let left = recording.events.get(self.done..).unwrap_or_default();
        let due = left.partition_point(|recorded| recorded.at <= since);
        let (events, left) = left.split_at_checked(due).unwrap_or_default();
        let (events, waiting) = events.split_at_checked(most(events)).unwrap_or((events, &[]));
        self.done = self.done.saturating_add(events.len());
        if let Some(first) = waiting.first() {
            let start = core::mem::replace(&mut self.start, now.saturating_sub(first.at));
            return Due { events, start, end: None };
        }
        let length = recording.length.saturating_add(1).max(Self::SHORTEST);
        let start = self.start;
        if !left.is_empty() || since < length {
            return Due { events, start, end: None };
        }
        let end = start.saturating_add(length);
        self.start = if now.saturating_sub(end) > Self::LATE { now } else { end };
        self.done = 0;
        Due { events, start, end: Some(end) }
    }
}
