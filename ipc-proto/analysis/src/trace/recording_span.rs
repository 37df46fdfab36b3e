//! How long a recording lasts.
use nettrace::{TraceClock, TraceEvent};

use super::durations::elapsed;
use super::part::Part;
use crate::event::{EventKind, EventKinds};

/// The end of a recording: the time of the last event, of the first event of a rundown after it, or of the last sequence
/// point. A runtime sends the rundown after the recording, so its length does not count.
///
/// ```
/// use nettrace_analysis::nettrace::{Trace, Version};
/// use nettrace_analysis::{RecordingEnd, TraceClock};
///
/// let clock = TraceClock::new(&Trace { frequency: 1_000_000_000, ..Trace::new(Version::V4) });
/// let mut end = RecordingEnd::default();
/// for (ticks, is_rundown) in [(50, true), (100, false), (300, true), (200, true)] {
///     end.event(&clock, ticks, is_rundown);
/// }
/// assert_eq!(end.nanoseconds(), 200);
/// ```
#[derive(Debug, Default)]
pub struct RecordingEnd {
    clock: Option<TraceClock>,
    /// The time of the last event that is not part of the rundown, and of the first one of the rundown after it.
    last: u64,
    rundown: Option<u64>,
    point: Option<i64>,
}

impl RecordingEnd {
    /// Takes the time of an event, in any order. `is_rundown` states whether it is part of the rundown, or describes the
    /// session.
    #[inline]
    pub fn event(&mut self, clock: &TraceClock, ticks: u64, is_rundown: bool) {
        if ticks < self.last {
            return;
        }
        self.clock.get_or_insert(*clock);
        if is_rundown {
            self.rundown = Some(self.rundown.map_or(ticks, |first| first.min(ticks)));
        } else {
            self.last = ticks;
            self.rundown = self.rundown.filter(|first| *first > ticks);
        }
    }

    /// Takes the time of the last sequence point, in nanoseconds from the start of the trace. After a rundown, it is not one
    /// of the recording.
    pub const fn extend_to(&mut self, nanoseconds: i64) {
        if self.rundown.is_none() {
            self.point = Some(nanoseconds);
        }
    }

    /// Returns the nanoseconds from the start of the trace.
    #[must_use]
    pub fn nanoseconds(&self) -> i64 {
        let last = self.last.max(self.rundown.unwrap_or_default());
        let last = self.clock.map_or(0, |clock| clock.nanoseconds(last));
        self.point.map_or(last, |point| point.max(last))
    }
}

/// The time of a recording: from the start of the trace, or the first event before it, to its end; and of this, only the
/// part that counts.
#[derive(Debug, Default)]
pub(crate) struct RecordingSpan {
    part: Part,
    kinds: EventKinds,
    first: i64,
    end: RecordingEnd,
    /// Whether the time and the thread of the last event are in the part.
    is_inside: bool,
}

impl RecordingSpan {
    pub(crate) fn new(part: Part) -> Self {
        Self { part, ..Self::default() }
    }

    /// Takes the next event of the trace, and returns its kind.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>) -> Option<EventKind> {
        let kind = self.kinds.of(event);
        self.first = self.first.min(event.nanoseconds());
        self.end.event(event.clock(), event.timestamp(), kind.is_some_and(|kind| kind.is_rundown()));
        self.is_inside = self.part.includes(event);
        kind
    }

    pub(crate) const fn is_inside(&self) -> bool {
        self.is_inside
    }

    pub(crate) const fn part(&self) -> &Part {
        &self.part
    }

    pub(crate) fn extend_to(&mut self, nanoseconds: i64) {
        self.end.extend_to(nanoseconds);
    }

    /// Returns the start and the end in nanoseconds from the start of the trace.
    pub(crate) fn times(&self) -> (i64, i64) {
        let end = self.end.nanoseconds();
        self.part.overlap(self.first, end).unwrap_or((end, end))
    }

    /// Returns the length in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        let (start, end) = self.times();
        elapsed(start, end)
    }
}
