//! The order of a trace: the times of sequence points increase, and those of the events between two of them lie between
//! their times.
use nettrace::{Event, SequencePoint};
use serde::Serialize;

/// Counts what is out of order. Runtimes write no such trace, but other programs do. A reader that sorts by sequence
/// points may return the events late.
#[derive(Debug, Default, Serialize)]
pub(super) struct PointOrder {
    /// The time of the last sequence point.
    #[serde(skip)]
    last: Option<u64>,
    /// The largest time of the events since then.
    #[serde(skip)]
    newest: u64,
    /// Sequence points that are older than the one before them.
    points_before_points: u64,
    /// Sequence points that are older than an event before them.
    points_before_events: u64,
    /// Events that are older than the last sequence point before them.
    events_before_points: u64,
}

impl PointOrder {
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.newest = self.newest.max(event.timestamp);
        let is_early = self.last.is_some_and(|last| event.timestamp < last);
        self.events_before_points = self.events_before_points.saturating_add(is_early.into());
    }

    pub(super) fn point(&mut self, point: &SequencePoint) {
        let is_early = self.last.is_some_and(|last| point.timestamp < last);
        self.points_before_points = self.points_before_points.saturating_add(is_early.into());
        let is_late = self.newest > point.timestamp;
        self.points_before_events = self.points_before_events.saturating_add(is_late.into());
        (self.last, self.newest) = (Some(point.timestamp), 0);
    }

    /// Returns what is out of order; `None` if nothing is.
    pub(super) fn text(&self) -> Option<String> {
        let found: Vec<String> = [
            (self.points_before_points, "sequence points are older than the one before"),
            (self.points_before_events, "sequence points are older than an event before"),
            (self.events_before_points, "events are older than the sequence point before"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        (!found.is_empty()).then(|| found.join(", "))
    }
}
