//! What a reader notes about a trace besides its events.
use alloc::vec::Vec;

use crate::catalog::catalog::Catalog;
use crate::catalog::trace_summary::TraceSummary;
use crate::join::{Counter, LossCounter, Slot};
use crate::parse::{End, Event, Record, TimeFilter};

/// Counts losses, selects blocks by their times, and has the end of the trace.
#[derive(Debug, Default)]
pub(crate) struct TraceLog {
    pub(crate) loss: LossCounter<Vec<Slot<Counter>>>,
    /// The filter of blocks by their times, if there is one.
    pub(crate) times: Option<TimeFilter>,
    pub(crate) end: Option<End>,
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
            losses: self.loss.losses(),
            late,
            exceeded_limit,
            time_filter: self.times.as_ref(),
        }
    }
}
