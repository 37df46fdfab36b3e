//! What a reader notes about a trace besides its events.
use alloc::vec::Vec;

use crate::catalog::catalog::Catalog;
use crate::catalog::trace_summary::TraceSummary;
use crate::join::id_map::Slot;
use crate::join::loss::{Counter, LossCounter};
use crate::parse::end::End;
use crate::parse::event::Event;
use crate::parse::parser::Record;
use crate::parse::time_filter::TimeFilter;

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
