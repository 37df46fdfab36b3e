//! What a reader knows about a trace besides its events.
use crate::join::loss::Losses;
use crate::parse::end::End;
use crate::parse::time_filter::TimeFilter;
use crate::parse::trace::Trace;

/// What a reader knows about a trace besides its events, as far as it has read.
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
    /// How the trace ended, once its last event was returned.
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
