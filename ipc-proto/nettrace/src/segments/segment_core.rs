//! The reader of segments, which works on a window of the stream.
use alloc::vec::Vec;

use crate::catalog::{Catalog, TraceLog, TraceSummary};
use crate::parse::Limits;
use crate::parse::{End, Parser, Record, SequencePoint, Version};
use crate::segments::batch::{Batch, LONGEST_BLOCK};
use crate::segments::runs::Release;
use crate::segments::segment_view::SegmentView;

/// Joins the records of a window to events, segment by segment. The owner of the window decides where its bytes are.
///
/// The window keeps all bytes from the first one of the segment on, or the owner [moves](Self::move_to) the bytes that
/// are still needed.
#[derive(Debug)]
pub(crate) struct SegmentCore {
    parser: Parser,
    batch: Batch,
    catalog: Catalog,
    log: TraceLog,
    stores_stacks: bool,
    /// A sequence point that takes effect when its segment was read.
    passed: Option<SequencePoint>,
    /// Whether the parser is at the start of a block that is read as a whole.
    is_before_block: bool,
}

/// The state of the bytes that follow the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There are none.
    Closed,
    /// They are not in the window yet.
    Open,
    /// They are not in the window yet, and it has reached the limit of its length.
    OverLimit,
}

impl SegmentCore {
    /// Creates a reader of the first window. It returns events in the order of time if `sorts`.
    pub(crate) fn new(options: ReadOptions, sorts: bool) -> Self {
        Self {
            parser: Parser::new(options.limits),
            batch: Batch::new(sorts),
            catalog: Catalog::new(),
            log: TraceLog::default(),
            stores_stacks: options.stacks,
            passed: None,
            is_before_block: false,
        }
    }

    /// Makes space for the events of `len` bytes of the stream.
    pub(crate) fn reserve(&mut self, len: usize) {
        self.batch.reserve(len);
    }

    /// Skips the blocks whose stated range is outside of these ticks.
    pub(crate) fn skip_outside(&mut self, from: u64, to: u64) {
        self.log.times = Some(self.catalog.time_filter(from, to));
    }

    /// Drops the events that are ready, and reads the next ones from the window. Returns whether there are some.
    pub(crate) fn find(&mut self, window: &[u8], rest: Rest) -> bool {
        loop {
            self.remove_ready();
            if self.log.end.is_some() {
                return false;
            }
            let Some(release) = self.read(window, rest) else { return false };
            if self.batch.make_ready(release) {
                return true;
            }
        }
    }

    /// Drops the events that are ready, and begins the next segment if they were the last ones.
    pub(crate) fn remove_ready(&mut self) {
        self.batch.remove_ready();
        if let Some(point) = self.passed.take() {
            self.batch.begin_segment(self.parser.position());
            self.catalog.pass(&point);
        }
        if self.batch.is_empty() {
            self.catalog.drop_retired();
        }
    }

    /// Reads until events are released, and returns which are; `None` if that needs more bytes.
    fn read(&mut self, window: &[u8], rest: Rest) -> Option<Release> {
        loop {
            if let Some(release) = self.batch.due() {
                return Some(release);
            }
            // Between two blocks, the parser can be after the end of the last one, where a segment can begin.
            if self.batch.is_full(self.parser.end_of_block().max(self.parser.position())) {
                self.batch.release_early();
                self.passed = Some(SequencePoint::default());
                return Some(Release::ALL);
            }
            if self.is_before_block {
                let (start, end) = (self.parser.position(), self.parser.end_of_block());
                let is_cut = end > window.len() && end.saturating_sub(start) <= LONGEST_BLOCK;
                if is_cut && rest != Rest::Closed {
                    return self.batch.release_before_more(rest == Rest::OverLimit);
                }
                self.is_before_block = false;
                self.read_block(window);
            }
            let record = self.parser.next(window);
            let position = self.parser.position();
            if let Record::Event(event) = &record {
                self.log.event(event);
                let (payload, _) = self.parser.event_ranges(event.payload.len(), event.stack.len());
                self.batch.add_event(event, payload, &self.catalog);
                continue;
            }
            if self.log.skips(&record) {
                self.parser.skip_block();
                continue;
            }
            match record {
                // A filter needs the range that the block states, which follows.
                Record::Block(_) => {
                    self.is_before_block = self.log.times.is_none() && self.parser.is_before_events();
                    let released = self.batch.release_after_block();
                    if released.is_some() {
                        return released;
                    }
                }
                Record::Stack(stack) if self.stores_stacks => {
                    self.batch.store_stack(stack.id, stack.bytes.len(), position);
                }
                Record::LabelList(list) => self.batch.store_labels(&list, position),
                Record::SequencePoint(point) => {
                    self.passed = Some(point);
                    return Some(Release::ALL);
                }
                Record::More { .. } if rest != Rest::Closed => {
                    return self.batch.release_before_more(rest == Rest::OverLimit);
                }
                Record::More { .. } => {
                    self.log.end = Some(self.parser.finish(window));
                    return Some(Release::ALL);
                }
                Record::End(end) => {
                    self.log.end = Some(end);
                    return Some(Release::ALL);
                }
                record => self.catalog.store(&record),
            }
        }
    }

    /// Reads the events of the block that starts, if it has nothing but complete events. Otherwise, the parser reads the
    /// block, so that all its complete events are returned.
    fn read_block(&mut self, window: &[u8]) {
        let Some((block, body)) = self.parser.event_block(window) else { return };
        let Some(numbers) = self.batch.add_block(block, body, &self.catalog) else { return };
        for numbers in numbers {
            self.log.loss.numbers(numbers.thread, numbers.first, numbers.count, numbers.time);
        }
        self.parser.skip_block();
    }

    /// Reports that the window lost the bytes that were read, and returns how many they are. The events that are ready
    /// still need the bytes of their segment.
    pub(crate) fn release(&mut self) -> usize {
        let len = self.parser.release();
        self.batch.release(len);
        len
    }

    /// Returns the offset in the window of the segment's first byte. It wraps, because the window can begin later.
    #[inline]
    pub(crate) const fn base(&self) -> usize {
        self.batch.base()
    }

    /// Copies the bytes of the segment that are still needed to the empty `to`, if they are at most half of the segment's
    /// bytes. Returns whether it did. The caller must put them directly before the window.
    pub(crate) fn move_to(&mut self, to: &mut Vec<u8>, segment: &[u8]) -> bool {
        let has_own_stacks = self.has_own_stacks();
        let referred = self.batch.referred(segment, has_own_stacks);
        let is_worth = referred <= segment.len() / 2;
        if is_worth {
            self.batch.move_to(to, referred.wrapping_neg(), segment, has_own_stacks);
        }
        is_worth
    }

    /// Removes all stacks and label lists.
    pub(crate) fn forget_segment(&mut self) {
        if self.batch.is_empty() {
            self.batch.begin_segment(self.parser.position());
        }
    }

    fn has_own_stacks(&self) -> bool {
        self.parser.version() == Version::V3
    }

    /// Returns the number of events that are ready.
    #[inline]
    pub(crate) const fn ready_len(&self) -> usize {
        self.batch.ready_len()
    }

    /// Returns what the events that are ready refer to. `bytes` are those from the first one of the segment on.
    #[inline]
    pub(crate) fn view<'a>(&'a self, bytes: &'a [u8]) -> SegmentView<'a> {
        let has_own_stacks = self.has_own_stacks();
        SegmentView { bytes, batch: &self.batch, catalog: &self.catalog, has_own_stacks }
    }

    pub(crate) const fn end(&self) -> Option<End> {
        self.log.end
    }

    /// Returns what is known about the trace.
    pub(crate) fn summary(&self) -> TraceSummary<'_> {
        self.log.summary(&self.catalog, self.batch.late(), self.batch.exceeded_limit())
    }
}

/// The limits of a reader of events, and the parts of events that it stores. They do not depend on the order of the
/// events.
///
/// ```
/// use nettrace::{EventAssembler, EventOrder, ReadOptions};
///
/// let without_stacks = ReadOptions { stacks: false, ..ReadOptions::default() };
/// let assembler = EventAssembler::new(EventOrder::Stream, without_stacks);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The limits on the lengths that the stream can claim.
    pub limits: Limits,
    /// Whether stacks are stored. If not, events have none, and memory and time are saved. True by default.
    pub stacks: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), stacks: true }
    }
}
