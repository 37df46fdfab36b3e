//! A reader of a trace that is in memory as a whole.
use crate::assemble::segment::Segment;
use crate::join::loss::Losses;
use crate::parse::end::End;
use crate::parse::parser::Limits;
use crate::parse::trace::Trace;
use crate::segments::segment_core::{Rest, SegmentCore, SegmentStep};

/// Reads the events of a trace that is in memory as a whole, in the order of time, each with its description, its stack
/// and its thread. Events borrow from the bytes of the trace: nothing is copied.
///
/// The events come segment by segment, mostly the events between two sequence points. No event of a segment is older
/// than one of the segment before.
///
/// ```
/// use nettrace::{End, Limits, WholeTrace};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut trace = WholeTrace::new(&bytes, Limits::default());
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
/// assert_eq!((events, trace.lost(), trace.end()), (142, 0, Some(End::Complete)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The events, their order, the losses and the end are those of
/// [`EventAssembler::in_order`](crate::EventAssembler::in_order), which reads a trace in pieces. There is one
/// difference: an event refers to the stack and the labels that were known when it was read, also if a damaged trace
/// assigns their ids again before the event is returned.
///
/// # Memory
/// An event of the largest segment takes 36 bytes, a change of its thread or processor 48 bytes more, one of its
/// activities 80, and a stack 36 bytes. The limits are high enough for the traces of runtimes:
/// * From 2^18 waiting events on, those that are followed by a sorted event are returned before the next sequence
///   point. From 2^20 on all are returned, and [`exceeded_limit`](Self::exceeded_limit) reports it.
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
    pub fn new(bytes: &'a [u8], limits: Limits) -> Self {
        let mut core = SegmentCore::new(limits);
        core.reserve(bytes.len());
        Self { bytes, core }
    }

    /// Stores no stacks: events have none, and memory and time are saved.
    #[must_use]
    pub const fn without_stacks(mut self) -> Self {
        self.core.omit_stacks();
        self
    }

    /// Returns the next events; `None` at the end of the trace. A segment has one event at least.
    pub fn next_segment(&mut self) -> Option<Segment<'_>> {
        match self.core.step(self.bytes, Rest::Closed) {
            SegmentStep::Segment => {
                Some(Segment(self.core.view(self.bytes.get(self.core.base()..).unwrap_or_default())))
            }
            SegmentStep::More | SegmentStep::End(_) => None,
        }
    }

    /// Returns the record of the trace's first block, which is known with the first segment at the latest.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'_>> {
        self.core.catalog().trace()
    }

    /// Returns how the trace ended, once [`next_segment`](Self::next_segment) has returned the last events.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.core.end()
    }

    /// Returns how many events the runtime did not record, as [`LossCounter::lost`](crate::LossCounter::lost) counts
    /// them up to the last segment.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.core.loss().lost()
    }

    /// Returns all lost events, with those before the first event of their thread.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.core.loss().losses()
    }

    /// Returns how many events came after a younger one.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.core.late()
    }

    /// Returns whether so many events waited that some were returned before it was certain that no older one follows.
    #[must_use]
    pub const fn exceeded_limit(&self) -> bool {
        self.core.exceeded_limit()
    }
}
