//! A reader of a trace that is in memory as a whole.
use alloc::vec::Vec;

use crate::join::id_map::Slot;
use crate::join::loss::{Counter, LossCounter, Losses};
use crate::parse::end::End;
use crate::parse::parser::{Limits, Parser, Record};
use crate::parse::sequence_point::SequencePoint;
use crate::parse::trace::{Trace, Version};
use crate::whole::batch::Batch;
use crate::whole::catalog::Catalog;
use crate::whole::runs::Release;
use crate::whole::segment::Segment;
use crate::whole::segment_view::SegmentView;

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
///                 println!("kind {kind} is {} {}", description.provider, description.name);
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
/// activities 80, and a stack 36 bytes. A kind of events takes 32. The limits are high enough for the traces of runtimes:
/// * From 2^18 waiting events on, those that are followed by a sorted event are returned before the next sequence
///   point. From 2^20 on all are returned, and [`exceeded_limit`](Self::exceeded_limit) reports it.
/// * A segment also ends after 2^20 stacks, 2^18 label lists or 4 GiB. Later events that refer to its stacks and label
///   lists have none.
/// * 2^17 descriptions, and 2^18 threads at a time. Others are skipped: their events have the earlier description of
///   their id, or none.
///
/// The number of kinds has no other limit than the bytes: each id of a description that the trace lacks is one.
#[derive(Debug)]
pub struct WholeTrace<'a> {
    bytes: &'a [u8],
    parser: Parser,
    batch: Batch,
    catalog: Catalog<'a>,
    loss: LossCounter<Vec<Slot<Counter>>>,
    /// A sequence point that takes effect when its segment was read.
    passed: Option<SequencePoint>,
    end: Option<End>,
}

impl<'a> WholeTrace<'a> {
    /// Creates a reader of all bytes of a trace.
    #[must_use]
    pub fn new(bytes: &'a [u8], limits: Limits) -> Self {
        Self {
            bytes,
            parser: Parser::new(limits),
            batch: Batch::new(),
            catalog: Catalog::new(),
            loss: LossCounter::default(),
            passed: None,
            end: None,
        }
    }

    /// Returns the next events; `None` at the end of the trace. A segment has one event at least.
    pub fn next_segment(&mut self) -> Option<Segment<'_, 'a>> {
        loop {
            self.batch.remove_ready();
            if let Some(point) = self.passed.take() {
                self.batch.begin_segment(self.parser.position());
                self.catalog.pass(&point);
            }
            if self.end.is_some() {
                return None;
            }
            let release = self.read();
            if self.batch.make_ready(release) {
                return Some(Segment(SegmentView {
                    bytes: self.batch.segment(self.bytes),
                    has_own_stacks: self.parser.version() == Version::V3,
                    batch: &self.batch,
                    catalog: &self.catalog,
                }));
            }
        }
    }

    /// Reads until events are released, and returns which are.
    fn read(&mut self) -> Release {
        loop {
            if let Some(release) = self.batch.due() {
                return release;
            }
            if self.batch.is_full(self.parser.end_of_block()) {
                self.batch.release_early();
                self.passed = Some(SequencePoint::default());
                return Release::ALL;
            }
            let record = self.parser.next(self.bytes);
            let position = self.parser.position();
            if let Record::Event(event) = &record {
                self.loss.event(event);
                let (payload, _) = self.parser.event_ranges(event.payload.len(), event.stack.len());
                self.batch.add_event(event, payload, &mut self.catalog);
                continue;
            }
            self.loss.record(&record);
            match record {
                Record::Block(_) => self.read_block(),
                Record::Trace(trace) => self.catalog.set_trace(&trace),
                Record::Metadata(record) => self.catalog.store_metadata(record.payload),
                Record::Stack(stack) => self.batch.store_stack(stack.id, stack.bytes.len(), position),
                Record::LabelList(list) => self.batch.store_labels(&list, position),
                Record::Thread(thread) => self.catalog.store_thread(&thread),
                Record::RemoveThread(row) => self.catalog.remove_thread(row.thread),
                Record::SequencePoint(point) => {
                    self.passed = Some(point);
                    return Release::ALL;
                }
                Record::More { .. } => {
                    self.end = Some(self.parser.finish(self.bytes));
                    return Release::ALL;
                }
                Record::End(end) => {
                    self.end = Some(end);
                    return Release::ALL;
                }
                _ => {}
            }
        }
    }

    /// Reads the events of the block that starts, if it has nothing but complete events. Otherwise, the parser reads the
    /// block, so that all its complete events are returned.
    fn read_block(&mut self) {
        let Some((block, body)) = self.parser.event_block(self.bytes) else { return };
        let Some(numbers) = self.batch.add_block(block, body, &mut self.catalog) else { return };
        for numbers in numbers {
            self.loss.numbers(numbers.thread, numbers.first, numbers.count);
        }
        self.parser.skip_block();
    }

    /// Returns the record of the trace's first block, which is known with the first segment at the latest.
    #[must_use]
    pub const fn trace(&self) -> Option<Trace<'a>> {
        self.catalog.trace()
    }

    /// Returns how the trace ended, once [`next_segment`](Self::next_segment) has returned the last events.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns how many events the runtime did not record, as [`LossCounter::lost`] counts them up to the last segment.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.loss.lost()
    }

    /// Returns all lost events, with those before the first event of their thread.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.loss.losses()
    }

    /// Returns how many events came after a younger one.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.batch.late()
    }

    /// Returns whether so many events waited that some were returned before it was certain that no older one follows.
    #[must_use]
    pub const fn exceeded_limit(&self) -> bool {
        self.batch.exceeded_limit()
    }
}
