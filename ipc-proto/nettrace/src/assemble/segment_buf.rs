//! Segments of a stream that arrives in pieces: one buffer holds the bytes of the current segment.
use alloc::vec::Vec;

use ipc_proto::wire::{copy, steps};

use crate::assemble::trace_event::TraceEvent;
use crate::assemble::whole_bytes::{WholeBytes, bytes_of};
use crate::catalog::TraceSummary;
use crate::parse::End;
use crate::segments::{ReadOptions, Rest, SegmentCore, SegmentEvent};

/// A [`SegmentCore`] with the bytes of its segment, or with those of the whole trace.
#[derive(Debug)]
pub(crate) struct SegmentBuf {
    core: SegmentCore,
    /// All bytes of the trace, if they are in memory already.
    whole: Option<WholeBytes>,
    /// The bytes of the segment, then those that follow, up to `end`; then space.
    buf: Vec<u8>,
    /// The start of the parser's window, which ends at `end`. The bytes of the segment can begin before it.
    window: usize,
    end: usize,
    is_closed: bool,
    /// The number of events of the segment that were returned.
    returned: usize,
    /// Whether the last one of them can be requested.
    has_event: bool,
    /// The length from which on the buffer does not grow before events are returned.
    limit: usize,
}

/// The most space for the next bytes of the stream, so that they are still in the processor's cache when they are read;
/// there is at least half of it.
const SPACE: usize = 256 << 10;

/// The bytes of a segment move to the start of the buffer if at least `RATIO` times as many precede them.
const RATIO: usize = 4;

/// The length of the first buffer. The operating system supplies its pages on first use, so a short trace touches few of
/// them.
const FIRST: usize = 4 << 20;

impl SegmentBuf {
    /// Creates a buffer of bytes that arrive.
    pub(crate) fn new(options: ReadOptions, sorts: bool, limit: usize) -> Self {
        Self {
            core: SegmentCore::new(options, sorts),
            whole: None,
            buf: Vec::new(),
            window: 0,
            end: 0,
            is_closed: false,
            returned: 0,
            has_event: false,
            limit,
        }
    }

    /// Creates a reader of these bytes, which are a whole trace.
    pub(crate) fn of_bytes(bytes: WholeBytes, options: ReadOptions, sorts: bool) -> Self {
        let mut segments = Self { end: bytes.len(), is_closed: true, ..Self::new(options, sorts, 0) };
        segments.core.reserve(bytes.len());
        segments.whole = Some(bytes);
        segments
    }

    #[cfg(feature = "std")]
    pub(crate) const fn has_whole_trace(&self) -> bool {
        self.whole.is_some()
    }

    /// Skips the blocks whose stated range is outside of these ticks.
    pub(crate) fn skip_outside(&mut self, from: u64, to: u64) {
        self.core.skip_outside(from, to);
    }

    /// Returns what is known about the trace.
    pub(crate) fn summary(&self) -> TraceSummary<'_> {
        self.core.summary()
    }

    #[inline]
    pub(crate) const fn end(&self) -> Option<End> {
        self.core.end()
    }

    /// Finds the next event in the bytes that have arrived. Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self) -> bool {
        if self.returned < self.core.ready_len() {
            self.returned = self.returned.wrapping_add(1);
            self.has_event = true;
            return true;
        }
        self.find_slowly()
    }

    #[cold]
    #[inline(never)]
    fn find_slowly(&mut self) -> bool {
        self.release();
        let rest = if self.is_closed { Rest::Closed } else { self.reduce() };
        let Self { core, whole, buf, window, end, .. } = self;
        self.has_event =
            core.find(bytes_of(whole.as_ref(), buf).get(*window..*end).unwrap_or_default(), rest);
        self.returned = usize::from(self.has_event);
        self.has_event
    }

    /// Returns the event that [`find`](Self::find) found last, if [`space`](Self::space) was not called since.
    #[inline]
    pub(crate) fn event(&self) -> Option<TraceEvent<'_>> {
        if !self.has_event {
            return None;
        }
        let bytes = bytes_of(self.whole.as_ref(), &self.buf);
        let bytes = bytes.get(self.first()..self.end).unwrap_or_default();
        SegmentEvent::ready(self.core.view(bytes), self.returned.checked_sub(1)?).map(TraceEvent::of_segment)
    }

    /// Returns the place in the buffer of the segment's first byte.
    #[inline]
    fn first(&self) -> usize {
        self.window.wrapping_add(self.core.base())
    }

    /// Drops the bytes that nothing refers to if the limit is reached. Returns whether it still is.
    fn reduce(&mut self) -> Rest {
        let segment = self.window.saturating_sub(self.first());
        if segment.saturating_add(SPACE) <= self.limit || self.move_segment() {
            return Rest::Open;
        }
        self.core.forget_segment();
        Rest::OverLimit
    }

    /// Drops the events that were returned, and the bytes that were read.
    fn release(&mut self) {
        if self.returned >= self.core.ready_len() {
            self.core.remove_ready();
            self.returned = 0;
        }
        self.window = self.window.saturating_add(self.core.release()).min(self.end);
    }

    /// Returns space for the next bytes of the stream, which is never empty.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.has_event = false;
        if self.whole.is_some() {
            self.buf.resize(SPACE, 0);
            return &mut self.buf;
        }
        self.release();
        let first = self.first();
        if first > 0 && self.end.saturating_sub(first) <= first / RATIO {
            self.drop_front(first);
        } else if !self.has_space() {
            self.lengthen();
            if !self.has_space() {
                self.make_space();
            }
        }
        let space = self.buf.get_mut(self.end..).unwrap_or_default();
        let len = space.len().min(SPACE);
        space.get_mut(..len).unwrap_or_default()
    }

    fn has_space(&self) -> bool {
        self.buf.len().saturating_sub(self.end) >= SPACE / 2
    }

    /// Reports that the first `n` bytes of [`space`](Self::space) were filled; 0 bytes are the end of the input.
    pub(crate) fn advance(&mut self, n: usize) {
        if self.whole.is_some() {
            return;
        }
        self.is_closed = n == 0;
        self.end = self.end.saturating_add(n).min(self.buf.len());
    }

    /// Makes space, in this order: without the bytes before the segment, without the records that no event refers to,
    /// or in a larger buffer. Each is done only if it frees as many bytes as it copies.
    #[cold]
    fn make_space(&mut self) {
        let first = self.first();
        if self.buf.is_empty() {
            self.buf = alloc::vec![0; FIRST];
            self.core.reserve(FIRST);
        } else if first > 0 && self.end.saturating_sub(first) <= first {
            self.drop_front(first);
        } else if self.move_segment() {
            self.drop_front(self.first());
        }
        // The steps above may have freed fewer bytes than the next ones need, or none.
        if !self.has_space() {
            steps::count(self.buf.len());
            self.buf.reserve(SPACE);
            self.lengthen();
        }
    }

    /// Lengthens the buffer within its allocation, by the space for the next bytes only: zeros that are written to a page
    /// make the operating system supply it.
    fn lengthen(&mut self) {
        let len = self.end.saturating_add(SPACE).min(self.buf.capacity()).max(self.buf.len());
        steps::count(len.saturating_sub(self.buf.len()));
        self.buf.resize(len, 0);
    }

    /// Removes the first `len` bytes.
    fn drop_front(&mut self, len: usize) {
        steps::count(self.end.saturating_sub(len));
        self.buf.copy_within(len..self.end, 0);
        self.window = self.window.saturating_sub(len);
        self.end = self.end.saturating_sub(len);
    }

    /// Moves the bytes of the segment that are still needed together, directly before the window, if at least half of the
    /// bytes of the segment are not needed. Returns whether it did.
    fn move_segment(&mut self) -> bool {
        let segment = self.first()..self.window;
        if segment.len() < self.buf.len().min(self.limit) / 2 || self.core.ready_len() > 0 {
            return false;
        }
        let mut needed = Vec::new();
        if !self.core.move_to(&mut needed, self.buf.get(segment).unwrap_or_default()) {
            return false;
        }
        if let Some(room) = self.buf.get_mut(self.window.saturating_sub(needed.len())..self.window) {
            copy(room, &needed);
        }
        true
    }
}
