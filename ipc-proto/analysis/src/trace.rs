//! The trace as a whole: the trait of its analyses, the part that counts, the durations in it and its lost events.
mod durations;
mod loss_report;
mod part;
mod recording_span;

use nettrace::TraceEvent;

pub use self::durations::Durations;
pub(crate) use self::durations::elapsed;
pub use self::loss_report::{EventBuffer, LossReport};
pub use self::part::{Part, TraceTime};
pub use self::recording_span::RecordingEnd;
pub(crate) use self::recording_span::RecordingSpan;

/// An analysis takes the events of a trace, and makes a report of them.
///
/// All events must come from one assembler, in the order that the analysis states. The same event can be passed to
/// several analyses. An analysis that can state something before the end of the trace has methods of its own for it.
///
/// ```
/// use nettrace_analysis::nettrace::TraceEvent;
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::gc::{Collections, GcReport};
///
/// /// Any analysis is driven like this.
/// fn report_of<A: Analysis>(mut analysis: A, events: &[TraceEvent<'_>]) -> A::Report {
///     events.iter().for_each(|event| analysis.event(event));
///     analysis.finish()
/// }
///
/// let report: GcReport = report_of(Collections::default(), &[]);
/// assert!(report.collections.is_empty());
/// ```
pub trait Analysis {
    /// The result of the analysis.
    type Report;

    /// Takes the next event of the trace. Ignores the events that the analysis does not need.
    fn event(&mut self, event: &TraceEvent<'_>);

    /// Takes the time of the last sequence point ([`TraceSummary::last_point`](nettrace::TraceSummary::last_point)), in
    /// nanoseconds from the start of the trace, after the last event: the recording lasts up to it at least.
    fn extend_to(&mut self, _nanoseconds: i64) {}

    /// Ends the trace, and returns the report.
    #[must_use]
    fn finish(self) -> Self::Report;
}
