//! The notes of a reader about a trace besides its events.
use alloc::vec::Vec;

use crate::catalog::catalog::Catalog;
use crate::join::Losses;
use crate::join::{Counter, LossCounter, Slot};
use crate::parse::{End, Event, Record, TimeFilter, Trace};

/// Counts losses, selects blocks by their times, and has the end of the trace.
#[derive(Debug, Default)]
pub(crate) struct TraceLog {
    pub(crate) loss: LossCounter<Vec<Slot<Counter>>>,
    /// The filter of blocks by their times, if there is one.
    pub(crate) times: Option<TimeFilter>,
    pub(crate) end: Option<End>,
    /// The time of the last sequence point in ticks.
    last_point: Option<u64>,
}

impl TraceLog {
    /// Notes the next event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        self.loss.event(event);
        if let Some(times) = &mut self.times {
            times.event(event);
        }
    }

    /// Notes a record that is not an event. Returns whether the rest of its block must be skipped.
    pub(crate) fn skips(&mut self, record: &Record<'_>) -> bool {
        if let Record::SequencePoint(point) = record {
            self.last_point = Some(point.timestamp);
        }
        let skips = self.times.as_mut().is_some_and(|times| times.record(record));
        if skips {
            self.loss.resync();
        } else {
            self.loss.record(record);
        }
        skips
    }

    #[inline]
    pub(crate) fn summary<'a>(
        &'a self,
        catalog: &'a Catalog,
        late: u64,
        exceeded_limit: bool,
    ) -> TraceSummary<'a> {
        TraceSummary {
            trace: catalog.trace(),
            end: self.end,
            last_point: self.last_point.map(|ticks| catalog.clock().nanoseconds(ticks)),
            losses: self.loss.losses(),
            late,
            exceeded_limit,
            time_filter: self.times.as_ref(),
        }
    }
}

/// The known facts about a trace besides its events, as far as a reader has read.
///
/// ```
/// use nettrace::{End, Limits, ReadOptions, WholeTrace};
///
/// let mut trace = WholeTrace::new(b"Nettrace\x14\0\0\0!Fast", ReadOptions::default());
/// assert!(trace.next_segment().is_none());
/// let summary = trace.summary();
/// assert!(matches!(summary.end, Some(End::Truncated { offset: 17, .. })));
/// assert_eq!((summary.trace, summary.losses.lost, summary.late), (None, 0, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TraceSummary<'a> {
    /// The record of the trace's first block, which is known with the first event at the latest.
    pub trace: Option<Trace<'a>>,
    /// The end of the trace, once its last event was returned.
    pub end: Option<End>,
    /// The time of the last sequence point, in nanoseconds from the start of the trace. A runtime writes one from time to
    /// time, and after the last event, so that the recording lasted up to it at least.
    pub last_point: Option<i64>,
    /// The events that the runtime did not record, or that a bad block had. A loss is known with the next event of the
    /// same thread, or at a sequence point. The missing end of a truncated trace is not in this number, but in
    /// [`end`](Self::end). [`Losses`] has the details.
    pub losses: Losses,
    /// How many events came after a younger one although they should have come in the order of time.
    pub late: u64,
    /// Whether so many events waited that some were returned before it was certain that no older one follows. If not,
    /// events are late because their clock went back, or their writer marked them wrongly.
    pub exceeded_limit: bool,
    /// The filter of [`skip_outside`](crate::EventAssembler::skip_outside), which counts the blocks that were skipped.
    pub time_filter: Option<&'a TimeFilter>,
}
