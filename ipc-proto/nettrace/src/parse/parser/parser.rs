//! The state of the parser, and the loop that returns record after record.
use core::ops::ControlFlow;
#[cfg(feature = "alloc")]
use core::ops::Range;

use ipc_proto::wire::{Reader, steps, to_u32, to_u64};

use crate::error::DecodeErrorKind;
use crate::parse::block::{Block, BlockKind, TimeRange};
use crate::parse::end::{BadBlock, End, Truncation};
use crate::parse::event::{BlobReader, Event};
#[cfg(feature = "alloc")]
use crate::parse::event_block::EventBlock;
use crate::parse::label::LabelList;
use crate::parse::parser::stop::Stop;
use crate::parse::parser::tags::Tags;
use crate::parse::sequence_point::{SequencePoint, ThreadSequence};
use crate::parse::stack::Stack;
use crate::parse::thread::Thread;
use crate::parse::trace::{Trace, Version};

/// Limits on the lengths that a stream can claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest body of a block, and the most tagged values of an object, in bytes. More bytes end the stream as
    /// corrupt. Runtimes stay below 100 KiB, one_collect near 1 MiB; the layout of V6 allows 16 MiB. The parser does
    /// not store a block, so a high limit takes no memory.
    pub block: u32,
    /// The longest record (event, stack, …) that the window must hold, in bytes. A longer one makes its block bad.
    /// Runtimes drop events of more than 64 KiB.
    pub record: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { block: 0x100_0000, record: 0x100_0000 }
    }
}

/// A record of a stream, as [`Parser::next`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'w> {
    /// The parser needs more bytes. A window of `needed` bytes, not counting the bytes that [`Parser::release`]
    /// returns, is enough for the record. Only a label list, which states no length, can need `More` again. A shorter
    /// window can be enough.
    More {
        /// The length in bytes that the window must be able to hold.
        needed: usize,
    },
    /// The start of a block. Its records follow.
    Block(Block),
    /// The times of the events of the block that starts; V4 and V6. The record is missing if the block states an
    /// impossible range.
    TimeRange(TimeRange),
    /// The facts that the stream states about itself: the record of the first block.
    Trace(Trace<'w>),
    /// A record that describes events. In V6 the payload is a row without its size; before V6 it is the payload of a
    /// blob, and the other fields are the blob's header. See [`Metadata::decode`](crate::Metadata::decode).
    Metadata(Event<'w>),
    /// An event.
    Event(Event<'w>),
    /// A stack that events of the following blocks refer to.
    Stack(Stack<'w>),
    /// A sequence point.
    SequencePoint(SequencePoint),
    /// The state of one thread at the preceding sequence point.
    ThreadSequence(ThreadSequence),
    /// V6: the start of a thread.
    Thread(Thread<'w>),
    /// V6: the end of a thread.
    RemoveThread(ThreadSequence),
    /// V6: a list of labels.
    LabelList(LabelList<'w>),
    /// The rest of this block cannot be read. The parser continues with the next block.
    BadBlock(BadBlock),
    /// The end of the stream. The parser returns it for every further call.
    End(End),
}

/// A parser that splits a stream into [`Record`]s.
///
/// The parser does no I/O. The caller stores a window of the stream and calls [`next`](Self::next) with it; records
/// borrow from the window. A window as long as the longest record (66 KB for runtimes) can read any stream. With the
/// whole stream in the window, reading is a loop:
///
/// ```
/// use nettrace::{End, Limits, Parser, Record};
///
/// let stream = b"Nettrace\x14\0\0\0!Fast";
/// let mut parser = Parser::new(Limits::default());
/// let mut events = 0;
/// let end = loop {
///     match parser.next(stream) {
///         Record::Event(_) => events += 1,
///         Record::More { .. } => break parser.finish(stream),
///         Record::End(end) => break end,
///         _ => {}
///     }
/// };
/// assert_eq!(events, 0);
/// assert!(matches!(end, End::Truncated { offset: 17, .. }));
/// ```
///
/// With a buffer, on [`Record::More`]:
///
/// 1. Remove as many bytes from the front of the window as [`release`](Self::release) returns.
/// 2. Make room for `needed` bytes in the window.
/// 3. Append at least one byte of the stream, and call [`next`](Self::next) again. At the end of the input call
///    [`finish`](Self::finish) instead.
#[derive(Debug, Clone)]
pub struct Parser {
    pub(super) limits: Limits,
    pub(super) version: Version,
    pub(super) minor: u32,
    pub(super) state: State,
    pub(super) body: Body,
    /// Bytes of the body to skip.
    pub(super) skip: usize,
    /// The offset in the window of the next byte to parse.
    pub(super) at: usize,
    /// The offset of the end of the block's body from the start of the window.
    pub(super) end: usize,
    /// The end of the part of the window that is in the cache, where [`BlobReader::quick`] can begin; 0 if there is no
    /// such part.
    pub(super) quick: usize,
    /// The stream offset of the window's first byte.
    pub(super) start: u64,
    pub(super) block: Block,
    pub(super) blobs: BlobReader,
    /// The tagged values after the body of an object, or of an object of an unknown name.
    pub(super) tail: Tags,
    /// The first bad block.
    pub(super) bad: Option<BadBlock>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// At the first byte of the stream.
    Start,
    /// Before the first block.
    First,
    /// Between blocks.
    Between,
    /// In the body of a block.
    Body,
    /// After the body of an object, or after the type of an object of an unknown name.
    Tail,
    End(End),
}

/// The next part of a block's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Trace,
    /// The header of a block of blobs.
    Header {
        metadata: bool,
    },
    /// After the header of a block of blobs and the bytes to skip.
    Blobs {
        metadata: bool,
    },
    Events,
    /// V3: events and metadata records in one block.
    Mixed,
    Metadata,
    /// The header of a block of rows; V6.
    RowsHeader,
    Rows,
    StacksHeader,
    Stacks {
        id: u32,
        count: u32,
    },
    SequencePoint,
    ThreadSequences {
        count: u32,
    },
    Threads,
    RemovedThreads,
    LabelListsHeader,
    LabelLists {
        id: u32,
        count: u32,
        /// The bytes of the next list that were checked already, because the window did not hold the whole list.
        checked: usize,
    },
    /// Bytes that the parser skips.
    Rest,
}

impl Parser {
    /// Returns a parser at the first byte of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            version: Version::V4,
            minor: 0,
            state: State::Start,
            body: Body::Rest,
            skip: 0,
            at: 0,
            end: 0,
            quick: 0,
            start: 0,
            block: Block { kind: BlockKind::Trace, offset: 0, body: 0, len: 0 },
            blobs: BlobReader::new(Version::V4, true),
            tail: Tags::new(0, 0),
            bad: None,
        }
    }

    /// Returns the next record of the stream, or [`Record::More`] if `window` does not hold all of it.
    ///
    /// `window` must start with the first byte that is not [released](Self::release).
    #[inline(always)]
    pub fn next<'w>(&mut self, window: &'w [u8]) -> Record<'w> {
        match self.next_event(window) {
            Some(event) => Record::Event(event),
            None => self.next_slowly(window),
        }
    }

    /// Returns the next record if it is an event that the fast path can read, as it can nearly all events. On `None`,
    /// [`next`](Self::next) returns the record.
    ///
    /// On bare metal this method always returns `None`, which saves two kilobytes of code.
    #[inline(always)]
    pub(crate) fn next_event<'w>(&mut self, window: &'w [u8]) -> Option<Event<'w>> {
        if cfg!(target_os = "none") {
            return None;
        }
        if self.at >= self.quick {
            return None;
        }
        // The length of `rest`, without another check of the window for each event.
        let left = self.end.min(window.len()).wrapping_sub(self.at);
        match self.blobs.quick(window.get(self.at..)?, left) {
            Ok((event, used)) => {
                self.take(used);
                Some(event)
            }
            Err(used) => {
                self.take(used);
                self.quick = 0;
                None
            }
        }
    }

    /// Returns the next record if it is an event, of any layout. On `None`, [`next`](Self::next) returns a record that is
    /// not an event.
    #[cold]
    #[inline(never)]
    fn next_if_event<'w>(&mut self, window: &'w [u8]) -> Option<Event<'w>> {
        if !self.is_before_event(window) {
            return None;
        }
        if self.body == Body::Events && self.skip == 0 {
            // The next call finds a record that is not an event again.
            return match self.next_blob(self.rest(window)) {
                Ok(Some(Record::Event(event))) => Some(event),
                _ => None,
            };
        }
        // The next call must return a record that is not an event, so a copy reads it.
        let mut copy = self.clone();
        let Record::Event(event) = copy.next(window) else { return None };
        *self = copy;
        Some(event)
    }

    /// Passes the next events of the block to `take`, until it breaks. Also returns if the next record is not an event,
    /// or is not complete in the window; [`next`](Self::next) then returns it.
    ///
    /// This is the fastest way to read events, because the state of the parser is in registers between them. Call it
    /// wherever the next record can be an event:
    ///
    /// ```
    /// use core::ops::ControlFlow;
    /// use nettrace::{End, Limits, Parser, Record};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
    /// # let stream = std::fs::read(path)?;
    /// let mut parser = Parser::new(Limits::default());
    /// let (mut events, mut payload) = (0, 0);
    /// let end = loop {
    ///     let _ = parser.try_for_each_event(&stream, |event| {
    ///         (events, payload) = (events + 1, payload + event.payload.len());
    ///         ControlFlow::<()>::Continue(())
    ///     });
    ///     match parser.next(&stream) {
    ///         Record::More { .. } => break parser.finish(&stream),
    ///         Record::End(end) => break end,
    ///         _ => {}
    ///     }
    /// };
    /// assert_eq!((events, end), (142, End::Complete));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn try_for_each_event<'w, B>(
        &mut self,
        window: &'w [u8],
        mut take: impl FnMut(&Event<'w>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        loop {
            if self.begin_compressed_events() {
                self.quick = 0;
                let (end, is_cut) = (self.end.min(window.len()), self.end > window.len());
                self.blobs.decode(window, &mut self.at, end, is_cut, |event| take(event.event))?;
            }
            let Some(event) = self.next_if_event(window) else { return ControlFlow::Continue(()) };
            take(&event)?;
        }
    }

    /// Begins the events of a block whose header was read. Returns whether the next record is one that
    /// [`BlobReader::decode`] can read.
    ///
    /// On bare metal it always returns false, which saves two kilobytes of code.
    fn begin_compressed_events(&mut self) -> bool {
        if cfg!(target_os = "none") || self.skip > 0 || !matches!(self.state, State::Body) {
            return false;
        }
        if self.body == (Body::Blobs { metadata: false }) {
            self.body = Body::Events;
        }
        self.body == Body::Events && self.blobs.is_quick()
    }

    /// Returns whether the next record can be an event.
    #[must_use]
    #[inline]
    pub fn is_before_event(&self, window: &[u8]) -> bool {
        let is_of_events = match self.body {
            Body::Events | Body::Mixed => true,
            Body::Blobs { metadata } => !metadata,
            Body::Header { metadata } => !metadata && self.times(window).is_none(),
            _ => false,
        };
        is_of_events && self.left() > 0 && matches!(self.state, State::Body)
    }

    /// Returns the times in the header of a block of events, which begins here. They are a record of their own.
    fn times(&self, window: &[u8]) -> Option<TimeRange> {
        let mut r = Reader::new(self.rest(window));
        r.bytes(4).ok()?;
        TimeRange::new(r.read().ok()?, r.read().ok()?)
    }

    /// Returns the number of parsed bytes at the front of the window. The caller must remove these bytes: the next
    /// window starts after them.
    #[must_use = "the window does not begin where it did"]
    pub fn release(&mut self) -> usize {
        self.start = self.offset();
        self.quick = 0;
        self.end = self.end.saturating_sub(self.at);
        core::mem::take(&mut self.at)
    }

    /// Returns the ranges of the payload and of the stack in the window, for the event that [`next`](Self::next)
    /// returned last. `payload` and `stack` are the lengths of the two in bytes.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) const fn event_ranges(&self, payload: usize, stack: usize) -> (Range<usize>, Range<usize>) {
        self.blobs.ranges(self.at, payload, stack)
    }

    /// Returns the block of events whose [`Record::Block`] was the last record, with the offset of its body in the
    /// window. `None` if the window does not hold the whole block, or if the events are not compressed.
    #[cfg(feature = "alloc")]
    pub(crate) fn event_block<'w>(&self, window: &'w [u8]) -> Option<(EventBlock<'w>, usize)> {
        let Body::Header { metadata: false } = self.body else { return None };
        let block = EventBlock::new(window.get(self.at..)?, self.left(), self.version)?;
        Some((block, self.at))
    }

    /// Returns whether a block of events begins: its [`Record::Block`] was the last record.
    #[cfg(feature = "alloc")]
    pub(crate) const fn is_before_events(&self) -> bool {
        matches!(self.body, Body::Header { metadata: false })
    }

    /// Returns the offset in the window of the next byte to parse.
    #[cfg(feature = "alloc")]
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// Returns the offset in the window of the end of the block's body.
    #[cfg(feature = "alloc")]
    pub(crate) const fn end_of_block(&self) -> usize {
        self.end
    }

    /// Returns the offset in the stream of the next byte to parse.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.start.wrapping_add(to_u64(self.at))
    }

    /// Returns the layout of the stream; V4 before the stream header is parsed.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Skips the remaining records of this block. To process the block as a whole, take its body from the stream, by
    /// [`Block::body`](crate::Block::body) and [`Block::len`](crate::Block::len), and skip its records.
    pub fn skip_block(&mut self) {
        if let State::Body = self.state {
            self.body = Body::Rest;
            self.skip = self.left();
            self.quick = 0;
        }
    }

    /// Returns how the stream ended, if `window` holds its last bytes and [`next`](Self::next) returned
    /// [`Record::More`].
    #[must_use]
    pub fn finish(&self, window: &[u8]) -> End {
        let offset = self.start.wrapping_add(to_u64(window.len()));
        let rest = self.rest_of_window(window).len();
        match (self.state, self.bad) {
            (State::End(end), _) => end,
            (_, Some(bad)) => bad.into(),
            (state, None) => {
                let reason = match state {
                    State::Body => {
                        let have = self.block.len.wrapping_sub(to_u32(self.left().saturating_sub(rest)));
                        Truncation::Block { kind: self.block.kind, have, len: self.block.len }
                    }
                    State::Start => Truncation::Header,
                    State::Tail if matches!(self.block.kind, BlockKind::Unknown(_)) => Truncation::Object,
                    State::First | State::Between if rest > 0 => Truncation::BlockHeader,
                    _ => Truncation::BetweenBlocks,
                };
                End::Truncated { offset, reason }
            }
        }
    }

    /// Returns the name of the object whose [`Record::Block`] was the last record. `window` must be the same window. V6
    /// has no names.
    #[must_use]
    pub fn object_name<'w>(&self, window: &'w [u8]) -> Option<&'w [u8]> {
        if self.version == Version::V6 {
            return None;
        }
        let start = usize::try_from(self.block.offset.checked_sub(self.start)?).ok()?;
        // The length and the name follow three tags and two versions (11 bytes).
        let (len, rest) = window.get(start..)?.get(11..)?.split_first_chunk::<4>()?;
        rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)
    }

    pub(super) fn rest_of_window<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..).unwrap_or_default()
    }

    /// Returns the unparsed bytes of the block's body, as far as the window holds them.
    pub(super) fn rest<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..self.end).unwrap_or_else(|| self.rest_of_window(window))
    }

    /// Returns the number of unparsed bytes of the body.
    pub(super) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    #[cold]
    #[inline(never)]
    fn next_slowly<'w>(&mut self, window: &'w [u8]) -> Record<'w> {
        if let Some(stack) = self.stack(window) {
            return Record::Stack(stack);
        }
        loop {
            steps::count(1);
            let result = match self.state {
                State::End(end) => return Record::End(end),
                State::Start => self.stream_header(self.rest_of_window(window)).map(|()| None),
                State::First | State::Between if self.version == Version::V6 => {
                    self.block_header(self.rest_of_window(window)).map(Some)
                }
                State::First | State::Between => self.object_header(self.rest_of_window(window)),
                State::Tail => self.object_tail(window).map(|()| None),
                State::Body => self.record(self.rest(window)),
            };
            if let Some(record) = self.settle(result) {
                return record;
            }
        }
    }

    /// Turns a result into the record to return; `None` if the loop must continue. Ends the stream if it is corrupt.
    fn settle<'w>(&mut self, result: Result<Option<Record<'w>>, Stop>) -> Option<Record<'w>> {
        match result {
            Ok(record) => record,
            Err(Stop::More(needed)) => Some(Record::More { needed }),
            Err(Stop::Bad(error)) => Some(self.bad(error)),
            Err(Stop::Fatal(at, reason)) => {
                let offset = self.offset().wrapping_add(to_u64(at));
                self.end(End::Corrupt { offset, reason });
                None
            }
        }
    }

    /// Ends the stream. A bad block takes precedence over `end`.
    pub(super) fn end(&mut self, end: End) {
        self.state = State::End(self.bad.map_or(end, End::from));
        self.quick = 0;
    }

    fn bad<'w>(&mut self, error: DecodeErrorKind) -> Record<'w> {
        let bad = BadBlock { kind: self.block.kind, offset: self.block.offset, at: self.offset(), error };
        self.bad.get_or_insert(bad);
        self.skip_block();
        if self.block.kind == BlockKind::Trace {
            // Without the `Trace` record, the following records have no meaning: their clock and pointer size are
            // unknown.
            self.end(End::Complete);
        }
        Record::BadBlock(bad)
    }

    #[inline]
    pub(super) fn take(&mut self, n: usize) {
        self.at = self.at.wrapping_add(n);
    }
}
