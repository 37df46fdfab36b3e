//! How long a recording lasts.
use nettrace::TraceEvent;

use super::durations::elapsed;
use super::part::Part;
use crate::event::{EventKind, EventKinds};

/// The time of a recording: from the start of the trace, or the first event before it, to the last event, to the first
/// event of a rundown after it, or to the last sequence point; and of this, only the part that counts.
#[derive(Debug, Default)]
pub(crate) struct RecordingSpan {
    part: Part,
    kinds: EventKinds,
    first: i64,
    last: i64,
    /// Whether the last event belongs to a rundown, which a runtime sends after the recording.
    is_rundown: bool,
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
        let is_rundown = kind.is_some_and(|kind| kind.is_rundown());
        let time = event.nanoseconds();
        if !(is_rundown && self.is_rundown) {
            self.first = self.first.min(time);
            self.last = self.last.max(time);
        }
        self.is_rundown = is_rundown;
        self.is_inside = self.part.includes(event);
        kind
    }

    pub(crate) const fn is_inside(&self) -> bool {
        self.is_inside
    }

    pub(crate) const fn part(&self) -> &Part {
        &self.part
    }

    /// Takes the time of the last sequence point. After a rundown, it is not one of the recording.
    pub(crate) fn extend_to(&mut self, nanoseconds: i64) {
        if !self.is_rundown {
            self.last = self.last.max(nanoseconds);
        }
    }

    /// Returns the start and the end in nanoseconds from the start of the trace.
    pub(crate) fn times(&self) -> (i64, i64) {
        self.part.overlap(self.first, self.last).unwrap_or((self.last, self.last))
    }

    /// Returns the length in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        let (start, end) = self.times();
        elapsed(start, end)
    }
}
