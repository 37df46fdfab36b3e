use crate::wire::Reader;
use crate::{DecodeError, DecodeErrorKind};

use super::event::{Blob, Blobs};
use super::label::Labels;
use super::{
    BadBlock, Block, BlockKind, Corruption, End, Event, LabelList, SequencePoint, Stack, Thread,
    ThreadSequence, Trace, Truncation, Varint32, Varint64, Version,
};

/// What a stream may ask of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest body of a block. A longer one ends the stream: its length is taken for damage. Runtimes stay below
    /// 100 KiB, one_collect near 1 MiB, the layout of V6 allows 16 MiB. Nothing is held for it.
    pub block: u32,
    /// The longest record (event, stack, …) that the window will be asked to hold. A longer one ends its block. Runtimes
    /// drop events of more than 64 KiB.
    pub record: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { block: 0x100_0000, record: 0x100_0000 }
    }
}

/// What comes next in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'w> {
    /// Nothing more can be said before there are more bytes. A window of `needed` bytes, without those that
    /// [`Parser::release`] gives back, is certainly enough; less may be.
    More {
        /// Bytes that the window must be able to hold.
        needed: usize,
    },
    /// A block begins. Its records follow.
    Block(Block),
    /// What the stream says of itself: the record of the first block.
    Trace(Trace<'w>),
    /// A record that describes events: V6 a row without its size, else the payload of a blob, which is here with its
    /// header. See [`Metadata`](super::Metadata).
    Metadata(Event<'w>),
    /// An event.
    Event(Event<'w>),
    /// A stack that events of the blocks behind this one point to.
    Stack(Stack<'w>),
    /// A sequence point.
    SequencePoint(SequencePoint),
    /// One of the threads that the sequence point tells of.
    ThreadSequence(ThreadSequence),
    /// V6: a thread begins.
    Thread(Thread<'w>),
    /// V6: a thread has ended.
    RemoveThread(ThreadSequence),
    /// V6: a list of labels.
    LabelList(LabelList<'w>),
    /// The rest of this block cannot be read. The blocks behind it can.
    BadBlock(BadBlock),
    /// The stream has ended, and that is all that comes from here on.
    End(End),
}

/// Cuts a stream into records: events, stacks, and whatever else it holds.
///
/// It reads nothing by itself. The caller keeps a window of the stream, and asks for the next record in it; records
/// borrow from the window. A window that can hold the largest record, for runtimes 66 KB, reads any stream. One that
/// holds the whole stream needs no care at all:
///
/// ```
/// use ipc_proto::nettrace::{End, Limits, Parser, Step};
///
/// let stream = b"Nettrace\x14\0\0\0!Fast";
/// let mut parser = Parser::new(Limits::default());
/// let mut events = 0;
/// let end = loop {
///     match parser.next(stream) {
///         Step::Event(_) => events += 1,
///         Step::More { .. } => break parser.finish(stream),
///         Step::End(end) => break end,
///         _ => {}
///     }
/// };
/// assert_eq!(events, 0);
/// assert!(matches!(end, End::Truncated { offset: 17, .. }));
/// ```
///
/// With a buffer: on [`Step::More`], take the bytes that [`release`](Self::release) says off the front of the window,
/// see to it that `needed` bytes have room, append what comes, even a single byte, and ask again. When nothing more
/// comes, ask for the [`finish`](Self::finish).
#[derive(Debug, Clone)]
pub struct Parser {
    limits: Limits,
    version: Version,
    minor: u32,
    state: State,
    body: Body,
    /// How many bytes of the body to take without a look.
    skip: usize,
    /// Bytes of the window that were taken.
    at: usize,
    /// Where the body of the block ends, seen from the start of the window.
    end: usize,
    /// Up to where in the window nothing stands in the way of [`Blobs::quick`]; 0 if nowhere.
    quick: usize,
    /// The stream offset of the window's first byte.
    start: u64,
    block: Block,
    blobs: Blobs,
    /// The first one.
    bad: Option<BadBlock>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// At the very first byte.
    Start,
    /// Before the first block.
    First,
    /// Between blocks.
    Between,
    /// In the body of a block.
    Body,
    /// Behind the body of an object.
    Tail,
    End(End),
}

/// What comes next in the body of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Trace,
    /// The header of a block of blobs, and what they are.
    Header {
        metadata: bool,
    },
    /// Behind that, and behind what is to be skipped.
    Blobs {
        metadata: bool,
    },
    Events,
    /// V3: both in one block.
    Mixed,
    Metadata,
    /// V6.
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
    },
    /// Nothing that anybody wants.
    Rest,
}

/// Why there is no record yet.
enum Stop {
    /// Before the window holds so many bytes.
    More(usize),
    /// Ever, of this block.
    Bad(DecodeErrorKind),
    /// Ever. So far behind what was taken is what is wrong.
    Fatal(usize, Corruption),
}

impl From<DecodeError> for Stop {
    fn from(e: DecodeError) -> Self {
        Self::Bad(e.kind)
    }
}

const MAGIC: &[u8; 8] = b"Nettrace";
const SERIALIZATION: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";

/// Tags of objects.
mod tag {
    pub(super) const NULL_REFERENCE: u8 = 1;
    pub(super) const BEGIN_OBJECT: u8 = 4;
    pub(super) const BEGIN_PRIVATE_OBJECT: u8 = 5;
    pub(super) const END_OBJECT: u8 = 6;
    pub(super) const BYTE: u8 = 8;
    pub(super) const INT16: u8 = 9;
    pub(super) const INT32: u8 = 10;
    pub(super) const INT64: u8 = 11;
    pub(super) const STRING: u8 = 13;
    pub(super) const BLOB: u8 = 14;
}

/// How much of a block of events is brought into the cache at once: not all of it, or its end drives out its beginning.
const AHEAD: usize = 8 << 10;

/// The longest name of an object; the longest known has 38 bytes.
const MAX_NAME: usize = 64;

impl Parser {
    /// Waits for the first byte.
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
            blobs: Blobs::new(Version::V4, true),
            bad: None,
        }
    }

    /// The next record, if it is in `window`, which begins with the first byte not yet
    /// [released](Self::release). Takes it from there.
    #[inline]
    pub fn next<'w>(&mut self, window: &'w [u8]) -> Step<'w> {
        match self.next_event(window) {
            Some(event) => Step::Event(event),
            None => self.next_slowly(window),
        }
    }

    /// The next record, if it is an event that is easy to read, as nearly all are; [`next`](Self::next) for all else.
    /// It is there for loops in which every nanosecond counts; on bare metal, where bytes count, no event is easy.
    ///
    /// ```
    /// # use ipc_proto::nettrace::{Limits, Parser, Step};
    /// # let (mut parser, window) = (Parser::new(Limits::default()), b"N");
    /// # let mut events = 0;
    /// loop {
    ///     let event = match parser.next_event(window) {
    ///         Some(event) => event,
    ///         None => match parser.next(window) {
    ///             Step::Event(event) => event,
    ///             Step::More { .. } | Step::End(_) => break,
    ///             _ => continue,
    ///         },
    ///     };
    ///     events += event.sequence;
    /// }
    /// ```
    #[inline(always)]
    pub fn next_event<'w>(&mut self, window: &'w [u8]) -> Option<Event<'w>> {
        // On bare metal two kilobytes weigh more than nanoseconds.
        if cfg!(target_os = "none") {
            return None;
        }
        match self.blobs.quick(window.get(self.at..self.quick)?) {
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

    /// How many bytes at the front of the window are done with. They are then no longer part of it.
    #[must_use = "the window does not begin where it did"]
    pub fn release(&mut self) -> usize {
        self.start = self.offset();
        self.quick = 0;
        self.end = self.end.saturating_sub(self.at);
        core::mem::take(&mut self.at)
    }

    /// The offset in the stream of what comes next.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.start.wrapping_add(widen(self.at))
    }

    /// The layout of the stream; V4 until the first block tells.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Leaves out what is left of this block.
    pub fn skip_block(&mut self) {
        if let State::Body = self.state {
            self.body = Body::Rest;
            self.skip = self.left();
            self.quick = 0;
        }
    }

    /// Takes what is left of this block's body as it is, if the window holds all of it: the whole body, right behind
    /// [`Step::Block`]. The end mark of V6 has none.
    pub fn take_block<'w>(&mut self, window: &'w [u8]) -> Option<&'w [u8]> {
        let State::Body = self.state else { return None };
        let body = window.get(self.at..self.end)?;
        self.skip_block();
        Some(body)
    }

    /// How the stream ended, where `window` holds the last of it and [`next`](Self::next) wants more.
    #[must_use]
    pub fn finish(&self, window: &[u8]) -> End {
        let offset = self.start.wrapping_add(widen(window.len()));
        let rest = self.rest_of_window(window).len();
        match (self.state, self.bad) {
            (State::End(end), _) => end,
            (_, Some(bad)) => bad.into(),
            (state, None) => {
                let reason = match state {
                    State::Body => {
                        let have = self.block.len.wrapping_sub(narrow(self.left().saturating_sub(rest)));
                        Truncation::Block { kind: self.block.kind, have, len: self.block.len }
                    }
                    State::Start => Truncation::Header,
                    State::First | State::Between if rest > 0 => Truncation::BlockHeader,
                    _ => Truncation::BetweenBlocks,
                };
                End::Truncated { offset, reason }
            }
        }
    }

    /// The name of the object that [`Step::Block`] was just given for, if `window` is still the one that it was in.
    /// V6 has none.
    #[must_use]
    pub fn object_name<'w>(&self, window: &'w [u8]) -> Option<&'w [u8]> {
        if self.version == Version::V6 {
            return None;
        }
        let start = usize::try_from(self.block.offset.checked_sub(self.start)?).ok()?;
        // Behind three tags and two versions.
        let (len, rest) = window.get(start..)?.get(11..)?.split_first_chunk()?;
        rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)
    }

    fn rest_of_window<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..).unwrap_or_default()
    }

    /// What the window holds of the block.
    fn rest<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..self.end).unwrap_or_else(|| self.rest_of_window(window))
    }

    /// Bytes of the body that were not taken yet.
    fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    #[cold]
    #[inline(never)]
    fn next_slowly<'w>(&mut self, window: &'w [u8]) -> Step<'w> {
        if let Some(stack) = self.stack(window) {
            return Step::Stack(stack);
        }
        loop {
            let result = match self.state {
                State::End(end) => return Step::End(end),
                State::Start => self.stream_header(self.rest_of_window(window)).map(|()| None),
                State::First | State::Between if self.version == Version::V6 => {
                    self.block_header(self.rest_of_window(window)).map(Some)
                }
                State::First | State::Between => self.object_header(self.rest_of_window(window)),
                State::Tail => self.object_tail(self.rest_of_window(window)).map(|()| None),
                State::Body => self.record(self.rest(window)),
            };
            if let Some(step) = self.settle(result) {
                return step;
            }
        }
    }

    /// What there is to say, if anything.
    fn settle<'w>(&mut self, result: Result<Option<Step<'w>>, Stop>) -> Option<Step<'w>> {
        match result {
            Ok(step) => step,
            Err(Stop::More(needed)) => Some(Step::More { needed }),
            Err(Stop::Bad(error)) => Some(self.bad(error)),
            Err(Stop::Fatal(at, reason)) => {
                let offset = self.offset().wrapping_add(widen(at));
                self.end(End::Corrupt { offset, reason });
                None
            }
        }
    }

    /// The stream ends like this, if no block was bad.
    fn end(&mut self, end: End) {
        self.state = State::End(self.bad.map_or(end, End::from));
        self.quick = 0;
    }

    fn bad<'w>(&mut self, error: DecodeErrorKind) -> Step<'w> {
        let bad = BadBlock { kind: self.block.kind, offset: self.block.offset, at: self.offset(), error };
        self.bad.get_or_insert(bad);
        self.skip_block();
        if self.block.kind == BlockKind::Trace {
            // Without it nothing that follows has a meaning.
            self.end(End::Complete);
        }
        Step::BadBlock(bad)
    }

    #[inline]
    fn take(&mut self, n: usize) {
        self.at = self.at.wrapping_add(n);
    }

    fn stream_header(&mut self, rest: &[u8]) -> Result<(), Stop> {
        let (version, used) = if rest.first() != MAGIC.first() {
            expect(rest, 0, SERIALIZATION)?;
            (Version::V3, SERIALIZATION.len())
        } else {
            expect(rest, 0, MAGIC)?;
            let mut r = Reader::at(rest.get(MAGIC.len()..).unwrap_or_default(), MAGIC.len());
            let object = r.rest();
            match r.read::<u32>() {
                Err(_) => return Err(Stop::More(12)),
                Ok(0) => {
                    let (Ok(major), Ok(minor)) = (r.read::<u32>(), r.read::<u32>()) else {
                        return Err(Stop::More(20));
                    };
                    if major != 6 {
                        return Err(Stop::Fatal(12, Corruption::Version(major)));
                    }
                    self.minor = minor;
                    (Version::V6, r.offset())
                }
                Ok(_) => {
                    expect(object, MAGIC.len(), SERIALIZATION)?;
                    (Version::V4, 32)
                }
            }
        };
        self.version = version;
        self.state = State::First;
        self.take(used);
        Ok(())
    }

    /// A block of V6.
    fn block_header<'w>(&mut self, rest: &'w [u8]) -> Result<Step<'w>, Stop> {
        let Some(bytes) = rest.first_chunk::<4>() else {
            return Err(Stop::More(4));
        };
        let [low, middle, high, kind] = *bytes;
        let len = u32::from_le_bytes([low, middle, high, 0]);
        let kind = BlockKind::from_number(kind);
        if matches!(self.state, State::First) && kind != BlockKind::Trace {
            return Err(Stop::Fatal(0, Corruption::Object));
        }
        self.begin(kind, 4, len)
    }

    /// An object of V3 or V4: its type, and what a block has before its body. Or the end.
    fn object_header<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Step<'w>>, Stop> {
        let begin = if self.version == Version::V3 { tag::BEGIN_OBJECT } else { tag::BEGIN_PRIVATE_OBJECT };
        let first = matches!(self.state, State::First);
        match rest.first() {
            None => return Err(Stop::More(1)),
            Some(&tag::NULL_REFERENCE) => {
                self.take(1);
                self.end(End::Complete);
                return Ok(None);
            }
            Some(_) => expect_tags(rest, 0, &[begin, begin, tag::NULL_REFERENCE])?,
        }
        let mut r = Reader::at(rest.get(3..).unwrap_or_default(), 3);
        let (Ok(version), Ok(minimum), Ok(name_len)) = (r.read::<u32>(), r.read::<u32>(), r.read::<u32>())
        else {
            return Err(Stop::More(15));
        };
        let name_len = usize::try_from(name_len).ok().filter(|len| *len <= MAX_NAME);
        let name_len = name_len.ok_or(Stop::Fatal(11, Corruption::Object))?;
        let Ok(name) = r.bytes(name_len) else {
            return Err(Stop::More(name_len.wrapping_add(16)));
        };
        expect_tags(r.rest(), r.offset(), &[tag::END_OBJECT])?;
        let _ = r.read::<u8>();
        let kind = BlockKind::from_name(name);
        // In V1 and V2 it has another name.
        if first && kind != BlockKind::Trace && (version > 2 || self.version != Version::V3) {
            return Err(Stop::Fatal(0, Corruption::Object));
        }
        let supported = if kind == BlockKind::Trace { self.version.number() } else { 2 };
        if minimum > supported {
            return Err(Stop::Fatal(7, Corruption::Minimum(minimum)));
        }
        if first && version < self.version.number() {
            return Err(Stop::Fatal(3, Corruption::Version(version)));
        }
        if kind == BlockKind::Trace {
            return self.begin(kind, r.offset(), narrow(Trace::OBJECT_LEN)).map(Some);
        }
        let Ok(len) = r.read::<u32>() else {
            return Err(Stop::More(r.offset().wrapping_add(4)));
        };
        // The body is aligned in the stream.
        let [low, ..] = self.offset().wrapping_add(widen(r.offset())).to_le_bytes();
        let body = r.offset().wrapping_add(usize::from(low.wrapping_neg() & 3));
        if rest.len() < body {
            return Err(Stop::More(body));
        }
        self.begin(kind, body, len).map(Some)
    }

    /// Behind the header, of `header` bytes, of a block.
    fn begin<'w>(&mut self, kind: BlockKind, header: usize, len: u32) -> Result<Step<'w>, Stop> {
        if len > self.limits.block {
            return Err(Stop::Fatal(0, Corruption::TooLong { len }));
        }
        let offset = self.offset();
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(header)?.checked_add(len));
        let end = end.ok_or(Stop::Fatal(0, Corruption::TooLong { len }))?;
        self.take(header);
        self.block = Block { kind, offset, body: self.offset(), len };
        self.end = end;
        self.state = State::Body;
        self.body = match kind {
            BlockKind::Trace => Body::Trace,
            BlockKind::Event if self.version == Version::V3 => {
                self.blobs = Blobs::new(self.version, false);
                Body::Mixed
            }
            BlockKind::Metadata if self.version == Version::V6 => Body::RowsHeader,
            BlockKind::Event | BlockKind::Metadata => Body::Header { metadata: kind == BlockKind::Metadata },
            BlockKind::Stack => Body::StacksHeader,
            BlockKind::SequencePoint => Body::SequencePoint,
            BlockKind::Thread => Body::Threads,
            BlockKind::RemoveThread => Body::RemovedThreads,
            BlockKind::LabelList => Body::LabelListsHeader,
            BlockKind::EndOfStream => {
                self.end(End::Complete);
                Body::Rest
            }
            BlockKind::Unknown(_) => Body::Rest,
        };
        Ok(Step::Block(self.block))
    }

    /// Tagged data that a later version may have put behind the body, and the end of the object.
    fn object_tail(&mut self, rest: &[u8]) -> Result<(), Stop> {
        let Some(tag) = rest.first() else {
            return Err(Stop::More(1));
        };
        let len = match *tag {
            tag::END_OBJECT => {
                self.state = State::Between;
                0
            }
            tag::BYTE => 1,
            tag::INT16 => 2,
            tag::INT32 => 4,
            tag::INT64 => 8,
            tag::STRING | tag::BLOB => {
                let Ok(len) = Reader::new(rest.get(1..).unwrap_or_default()).read::<u32>() else {
                    return Err(Stop::More(5));
                };
                if len > self.limits.record {
                    return Err(Stop::Fatal(1, Corruption::TooLong { len }));
                }
                usize::try_from(len).unwrap_or(usize::MAX).saturating_add(4)
            }
            tag => return Err(Stop::Fatal(0, Corruption::Tag(tag))),
        };
        let whole = len.saturating_add(1);
        if rest.len() < whole {
            return Err(Stop::More(whole));
        }
        self.take(whole);
        Ok(())
    }

    /// The next record of a block's body, of which `rest` is in the window.
    fn record<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Step<'w>>, Stop> {
        if self.skip > 0 {
            let n = self.skip.min(rest.len());
            self.take(n);
            self.skip = self.skip.wrapping_sub(n);
            return if self.skip > 0 { Err(Stop::More(1)) } else { Ok(None) };
        }
        let done = self.left() == 0;
        match self.body {
            Body::Rest if done => self.body_done(),
            Body::Events
            | Body::Mixed
            | Body::Metadata
            | Body::Rows
            | Body::Threads
            | Body::RemovedThreads
                if done =>
            {
                self.body_done();
            }
            Body::Stacks { count: 0, .. }
            | Body::ThreadSequences { count: 0 }
            | Body::LabelLists { count: 0, .. }
            | Body::Rest => self.skip_block(),
            Body::Events | Body::Mixed | Body::Metadata => {
                let ahead = rest.get(..AHEAD).unwrap_or(rest);
                let end = self.at.saturating_add(ahead.len());
                let blob = self.blobs.next(rest, self.left());
                let result = self.blob(blob);
                if self.body == Body::Events && self.blobs.is_quick() {
                    touch(ahead);
                    self.quick = end;
                }
                return result;
            }
            _ => return self.other(rest),
        }
        Ok(None)
    }

    fn body_done(&mut self) {
        self.body = Body::Rest;
        self.state = if self.version == Version::V6 { State::Between } else { State::Tail };
    }

    fn blob<'w>(&mut self, blob: Blob<'w>) -> Result<Option<Step<'w>>, Stop> {
        match blob {
            Blob::Whole(event, used) => {
                self.take(used);
                let metadata = match self.body {
                    Body::Mixed => event.metadata_id == 0,
                    body => body == Body::Metadata,
                };
                Ok(Some(if metadata { Step::Metadata(event) } else { Step::Event(event) }))
            }
            Blob::More { used, needed } => {
                self.take(used);
                if needed > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                Err(self.more(needed))
            }
            Blob::Bad(error) => Err(Stop::Bad(error)),
        }
    }

    /// `n` bytes of the block.
    fn want<'w>(&self, rest: &'w [u8], n: usize) -> Result<Reader<'w>, Stop> {
        if n > self.left() {
            return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
        }
        rest.get(..n).map(Reader::new).ok_or_else(|| self.more(n))
    }

    fn more(&self, needed: usize) -> Stop {
        if u32::try_from(needed).is_ok_and(|needed| needed <= self.limits.record) {
            return Stop::More(needed);
        }
        Stop::Bad(DecodeErrorKind::TooLong)
    }

    /// A record whose length only reading it tells, at most `len` bytes long.
    fn try_read<'w, T>(
        &self,
        rest: &'w [u8],
        len: usize,
        read: impl FnOnce(&mut Reader<'w>) -> Result<T, DecodeError>,
    ) -> Result<(T, usize), Stop> {
        let mut r = Reader::new(rest);
        match read(&mut r) {
            Ok(value) => Ok((value, r.offset())),
            Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, .. }) if rest.len() < self.left() => {
                Err(self.more(len.min(self.left())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A row behind its size.
    fn row<'w>(&self, rest: &'w [u8]) -> Result<&'w [u8], Stop> {
        let len: u16 = self.want(rest, 2)?.read()?;
        let mut r = self.want(rest, usize::from(len).wrapping_add(2))?;
        r.bytes(2)?;
        Ok(r.rest())
    }

    /// The next stack, if it is easy to read: there may be as many as events.
    fn stack<'w>(&mut self, window: &'w [u8]) -> Option<Stack<'w>> {
        let Body::Stacks { id, count } = self.body else { return None };
        let (len, rest) = self.rest(window).split_first_chunk()?;
        let bytes = rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
        self.body = Body::Stacks { id: id.wrapping_add(1), count: count.checked_sub(1)? };
        self.take(bytes.len().wrapping_add(4));
        Some(Stack { id, bytes })
    }

    /// Everything but blobs.
    fn other<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Step<'w>>, Stop> {
        let v6 = self.version == Version::V6;
        let (step, used, next) = match self.body {
            Body::Trace => {
                let body = self.want(rest, self.left())?.rest();
                let trace =
                    if v6 { Trace::block(self.minor, body) } else { Trace::object(self.version, body) }?;
                (Some(Step::Trace(trace)), body.len(), Body::Rest)
            }
            Body::Header { metadata } => {
                let mut r = self.want(rest, 20)?;
                let (size, flags): (u16, u16) = (r.read()?, r.read()?);
                let size = usize::from(size);
                let Some(more) = size.checked_sub(20) else {
                    return Err(Stop::Bad(DecodeErrorKind::BadSize));
                };
                if size > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                self.skip = more;
                self.blobs = Blobs::new(self.version, flags & 1 != 0);
                (None, 20, Body::Blobs { metadata })
            }
            Body::Blobs { metadata } => (None, 0, if metadata { Body::Metadata } else { Body::Events }),
            Body::RowsHeader => {
                let size: u16 = self.want(rest, 2)?.read()?;
                let size = usize::from(size);
                if size.wrapping_add(2) > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                self.skip = size;
                (None, 2, Body::Rows)
            }
            Body::Rows => {
                let payload = self.row(rest)?;
                let step = Step::Metadata(Event { payload, ..Event::default() });
                (Some(step), payload.len().wrapping_add(2), self.body)
            }
            Body::StacksHeader => {
                touch(rest);
                let mut r = self.want(rest, 8)?;
                (None, 8, Body::Stacks { id: r.read()?, count: r.read()? })
            }
            Body::Stacks { id, count } => {
                let len: u32 = self.want(rest, 4)?.read()?;
                let len = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(4);
                let mut r = self.want(rest, len)?;
                r.bytes(4)?;
                let next = Body::Stacks { id: id.wrapping_add(1), count: count.wrapping_sub(1) };
                (Some(Step::Stack(Stack { id, bytes: r.rest() })), len, next)
            }
            Body::SequencePoint => {
                let len = if v6 { 16 } else { 12 };
                let mut r = self.want(rest, len)?;
                let timestamp = r.read()?;
                let flags = if v6 { r.read()? } else { 0 };
                let threads = r.read()?;
                let point = SequencePoint { timestamp, flags, threads };
                (Some(Step::SequencePoint(point)), len, Body::ThreadSequences { count: threads })
            }
            Body::ThreadSequences { count } => {
                let next = Body::ThreadSequences { count: count.wrapping_sub(1) };
                let (row, used) = if v6 {
                    self.try_read(rest, 15, thread_sequence)?
                } else {
                    let mut r = self.want(rest, 12)?;
                    (ThreadSequence { thread: r.read()?, sequence: r.read()? }, 12)
                };
                (Some(Step::ThreadSequence(row)), used, next)
            }
            Body::Threads => {
                let row = self.row(rest)?;
                (Some(Step::Thread(Thread::row(row)?)), row.len().wrapping_add(2), self.body)
            }
            Body::RemovedThreads => {
                let (row, used) = self.try_read(rest, 15, thread_sequence)?;
                (Some(Step::RemoveThread(row)), used, self.body)
            }
            Body::LabelListsHeader => {
                let mut r = self.want(rest, 8)?;
                (None, 8, Body::LabelLists { id: r.read()?, count: r.read()? })
            }
            Body::LabelLists { id, count } => {
                // How long it is only its last label tells.
                let guess = rest.len().saturating_mul(2).max(64);
                let (labels, used) = self.try_read(rest, guess, Labels::list)?;
                let next = Body::LabelLists { id: id.wrapping_add(1), count: count.wrapping_sub(1) };
                (Some(Step::LabelList(LabelList { id, labels })), used, next)
            }
            Body::Events | Body::Mixed | Body::Metadata | Body::Rest => (None, 0, self.body),
        };
        self.take(used);
        self.body = next;
        Ok(step)
    }
}

/// Brings bytes into the cache, all at once: where a record lies only the one before it tells, so that each would have to
/// be waited for.
fn touch(block: &[u8]) {
    let lines = block.chunks(64).filter_map(|line| line.first());
    core::hint::black_box(lines.fold(0u8, |sum, byte| sum ^ byte));
}

fn thread_sequence(r: &mut Reader<'_>) -> Result<ThreadSequence, DecodeError> {
    Ok(ThreadSequence { thread: r.read::<Varint64>()?.0, sequence: r.read::<Varint32>()?.0 })
}

/// At `offset` of the stream, `rest` begins with `prefix`.
fn expect(rest: &[u8], offset: usize, prefix: &[u8]) -> Result<(), Stop> {
    if rest.starts_with(prefix) {
        return Ok(());
    }
    if prefix.starts_with(rest) {
        return Err(Stop::More(offset.saturating_add(prefix.len())));
    }
    Err(Stop::Fatal(0, Corruption::NotNetTrace))
}

/// These tags stand at the front of `rest`, which begins at `offset`.
fn expect_tags(rest: &[u8], offset: usize, tags: &[u8]) -> Result<(), Stop> {
    for (i, tag) in tags.iter().enumerate() {
        let at = offset.wrapping_add(i);
        match rest.get(i) {
            None => return Err(Stop::More(at.wrapping_add(1))),
            Some(found) if found != tag => return Err(Stop::Fatal(at, Corruption::Tag(*found))),
            Some(_) => {}
        }
    }
    Ok(())
}

fn widen(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
