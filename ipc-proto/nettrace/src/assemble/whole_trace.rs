//! A reader of a trace that is in memory as a whole.
use crate::assemble::segment::Segment;
use crate::catalog::TraceSummary;
use crate::segments::{ReadOptions, Rest, SegmentCore};

/// Reads the events of a trace that is in memory as a whole, in the order of time, each with its description, its stack
/// and its thread. Events borrow from the bytes of the trace: nothing is copied.
///
/// The events come segment by segment, mostly the events between two sequence points. No event of a segment is older
/// than one of the segment before.
///
/// ```
/// use nettrace::{End, ReadOptions, WholeTrace};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
/// let mut bytes_of_kinds: Vec<usize> = Vec::new();
/// let mut events = 0;
/// while let Some(segment) = trace.next_segment() {
///     for event in segment.events() {
///         let kind = event.kind() as usize;
///         if kind >= bytes_of_kinds.len() {
///             bytes_of_kinds.resize(kind + 1, 0);
///             if let Some(description) = event.description() {
///                 println!("kind {kind} is {} {}", description.provider(), description.name());
///             }
///         }
///         bytes_of_kinds[kind] += event.payload().len();
///         events += 1;
///     }
/// }
/// let summary = trace.summary();
/// assert_eq!((events, summary.losses.lost, summary.end), (142, 0, Some(End::Complete)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The events, their order, the losses and the end are those of an [`EventAssembler`](crate::EventAssembler) with
/// [`EventOrder::Time`](crate::EventOrder::Time), which reads a trace in pieces. There is one difference: an event refers to the stack and the labels that were known when it was read, also if a damaged trace
/// assigns their ids again before the event is returned.
///
/// # Memory
/// An event of the largest segment takes 36 bytes, a change of its thread or processor 48 bytes more, one of its
/// activities 80, and a stack 36 bytes. The limits are high enough for the traces of runtimes:
/// * From 2^18 waiting events on, those that are followed by a sorted event are returned before the next sequence
///   point. From 2^20 on all are returned, and [`exceeded_limit`](TraceSummary::exceeded_limit) reports it.
/// * A segment also ends after 2^20 stacks, 2^18 label lists or 4 GiB. Later events that refer to its stacks and label
///   lists have none.
/// * Descriptions are copied, and take up to 32 MiB; so do threads. Others are skipped: their events have the earlier
///   description of their id, or none.
#[derive(Debug)]
pub struct WholeTrace<'a> {
    bytes: &'a [u8],
    core: SegmentCore,
}

impl<'a> WholeTrace<'a> {
    /// Creates a reader of all bytes of a trace.
    #[must_use]
    pub fn new(bytes: &'a [u8], options: ReadOptions) -> Self {
        let mut core = SegmentCore::new(options, true);
        core.reserve(bytes.len());
        Self { bytes, core }
    }

    /// Returns the next events; `None` at the end of the trace. A segment has one event at least.
    pub fn next_segment(&mut self) -> Option<Segment<'_>> {
        let is_found = self.core.find(self.bytes, Rest::Closed);
        is_found.then(|| Segment(self.core.view(self.bytes.get(self.core.base()..).unwrap_or_default())))
    }

    /// Returns what is known about the trace, as far as it was read.
    #[must_use]
    pub fn summary(&self) -> TraceSummary<'_> {
        self.core.summary()
    }
}
