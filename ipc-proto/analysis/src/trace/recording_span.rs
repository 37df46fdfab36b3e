//! How long a recording lasts.
use nettrace::{TraceClock, TraceEvent};

use super::durations::elapsed;
use super::part::Part;
use crate::event::{EventKind, EventKinds};

/// The end of a recording: the time of the last event, of the first event of a rundown after it, or of the last sequence
/// point.
#[derive(Debug, Default)]
pub(crate) struct RecordingEnd {
    clock: Option<TraceClock>,
    ticks: u64,
    point: Option<i64>,
    /// Whether the last event belongs to a rundown, which a runtime sends after the recording.
    is_rundown: bool,
}

impl RecordingEnd {
    #[inline]
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>, is_rundown: bool) {
        if !(is_rundown && self.is_rundown) {
            self.clock.get_or_insert_with(|| *event.clock());
            self.ticks = self.ticks.max(event.timestamp());
        }
        self.is_rundown = is_rundown;
    }

    /// Takes the time of the last sequence point. After a rundown, it is not one of the recording.
    pub(crate) fn extend_to(&mut self, nanoseconds: i64) {
        if !self.is_rundown {
            self.point = Some(nanoseconds);
        }
    }

    /// Returns the nanoseconds from the start of the trace.
    pub(crate) fn nanoseconds(&self) -> i64 {
        let last = self.clock.map_or(0, |clock| clock.nanoseconds(self.ticks));
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
        self.end.event(event, kind.is_some_and(|kind| kind.is_rundown()));
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
