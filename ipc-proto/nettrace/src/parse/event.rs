//! Events, and the blobs of V3, V4 and V6 that contain them, compressed or not.
#[cfg(feature = "alloc")]
use core::ops::Range;

use ipc_proto::Guid;
use ipc_proto::wire::{Reader, low_u32, steps, to_usize};

use crate::encoding::{Varint32, Varint64};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parse::trace::Version;

/// An event, as it is in its block: the names and fields are in the metadata record to which the event refers.
///
/// ```
/// use nettrace::Event;
///
/// let event = Event { metadata_id: 1, sequence: 7, payload: &[5, 0, 0, 0], ..Event::default() };
/// assert_eq!((event.stack_id, event.payload.len()), (0, 4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event<'a> {
    /// The id of the metadata record that describes the event.
    pub metadata_id: u32,
    /// The number of this event among those of its capture thread, from 1. A missing number is a lost event. V3: 0.
    pub sequence: u32,
    /// The thread that recorded the event; in V6 the index of the thread. It can differ from [`thread`](Self::thread),
    /// because a sampler records events about all other threads. V3: 0.
    pub capture_thread: u64,
    /// The processor, or [`UNKNOWN_PROCESSOR`](Self::UNKNOWN_PROCESSOR), which most runtimes write, and which V3 always has.
    pub processor: u32,
    /// The thread that the event is about, and whose stack the event has; in V6 the index of the thread.
    pub thread: u64,
    /// The id of the stack, valid since the last sequence point; 0 is none. V3: 0.
    pub stack_id: u32,
    /// The time in ticks of the trace, see [`TraceClock`](crate::TraceClock).
    pub timestamp: u64,
    /// The id of the activity; V6: nil, see [`label_list`](Self::label_list).
    pub activity_id: Guid,
    /// The id of the activity that started this activity; V6: nil.
    pub related_activity_id: Guid,
    /// V6: the id of the label list, valid since the last sequence point; 0 is none.
    pub label_list: u32,
    /// Whether no later event of the stream is older than this one.
    pub sorted: bool,
    /// The packed values of the fields.
    pub payload: &'a [u8],
    /// V3: the stack, as instruction pointers of the trace's pointer size, the innermost first.
    pub stack: &'a [u8],
}

impl Event<'_> {
    /// The value of [`processor`](Self::processor) if the processor was not recorded.
    pub const UNKNOWN_PROCESSOR: u32 = u32::MAX;

    /// V3, V4: the value of [`thread`](Self::thread) if the id of the thread is not known, as
    /// [`Rewrite`](crate::Rewrite) writes it. Microsoft's reader shows -1.
    pub const UNKNOWN_THREAD: u64 = u64::MAX;

    /// Returns a copy without payload and stack, which therefore borrows nothing.
    #[must_use]
    pub const fn without_payload(&self) -> Event<'static> {
        let Self { metadata_id, sequence, capture_thread, processor, thread, stack_id, timestamp, .. } =
            *self;
        let Self { activity_id, related_activity_id, label_list, sorted, .. } = *self;
        Event {
            metadata_id,
            sequence,
            capture_thread,
            processor,
            thread,
            stack_id,
            timestamp,
            activity_id,
            related_activity_id,
            label_list,
            sorted,
            payload: &[],
            stack: &[],
        }
    }
}

/// The layout of the blobs of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A header of 56 bytes, then payload and stack.
    V3,
    /// A header of 80 bytes (V6: 52 bytes), then the payload.
    Plain { labels: bool },
    /// A header of the changed parts, then the payload; V6 has label lists where V4 has activity ids.
    Compressed { labels: bool },
}

/// Reads the blobs of one block in order.
///
/// The compressed layout omits each part of a header that equals the same part of the blob before. So the header of the
/// last blob is the whole state within a block, and the reader stores no window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlobReader {
    layout: Layout,
    /// The header of the last blob or, if `headed`, of the blob whose payload follows.
    header: Header<'static>,
    /// Whether the header of the next blob was consumed, but not its payload.
    headed: bool,
    /// Bytes of the last blob after its payload; always 0 in the compressed layout.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "only owners of a window read it"))]
    after_payload: usize,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header<'w> {
    /// The event. In a [`BlobReader`] it has no payload.
    pub(crate) event: Event<'w>,
    pub(crate) payload_size: u32,
}

/// The parts that a compressed header has: the first byte of the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changes(u8);

impl Changes {
    pub(crate) const METADATA_ID: u8 = 0x01;
    /// Sequence number, capture thread and processor.
    pub(crate) const CAPTURE: u8 = 0x02;
    pub(crate) const THREAD: u8 = 0x04;
    pub(crate) const STACK_ID: u8 = 0x08;
    /// V6: the label list.
    pub(crate) const ACTIVITY_ID: u8 = 0x10;
    pub(crate) const RELATED_ACTIVITY_ID: u8 = 0x20;
    pub(crate) const SORTED: u8 = 0x40;
    pub(crate) const PAYLOAD_SIZE: u8 = 0x80;

    /// Returns whether the header has one of these parts.
    #[inline(always)]
    pub(crate) const fn has(self, parts: u8) -> bool {
        self.0 & parts != 0
    }
}

/// The result of reading a blob from the beginning of a window.
pub(crate) enum Blob<'w> {
    /// A blob, and its length.
    Whole(Event<'w>, usize),
    /// `used` bytes were consumed, and the rest of the blob needs a window of `needed` bytes. The block can have fewer
    /// bytes than `needed`.
    More { used: usize, needed: usize },
    /// Not a blob.
    Bad(DecodeErrorKind),
}

/// The longest compressed header in bytes, which is one of V4: flags, five `u32`, three `u64`, two activity ids.
const MAX_HEADER: usize = 88;
/// The length in bytes of a window that holds any compressed header.
///
/// Eight bytes follow the last index that [`Chunk::MASK`] allows, so that no word needs a check.
pub(crate) const CHUNK: usize = 136;

impl BlobReader {
    /// Starts a block: all parts of the header before its first blob are zero.
    pub(crate) fn new(version: Version, compressed: bool) -> Self {
        let layout = match (version, compressed) {
            (Version::V3, _) => Layout::V3,
            (_, true) => Layout::Compressed { labels: version == Version::V6 },
            (_, false) => Layout::Plain { labels: version == Version::V6 },
        };
        Self { layout, header: Header::default(), headed: false, after_payload: 0 }
    }

    /// Returns whether [`quick`](Self::quick) and [`decode`](Self::decode) can be called.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self.layout, Layout::Compressed { .. }) && !self.headed
    }

    /// Returns whether compressed events have label lists, and no activities.
    #[inline(always)]
    pub(crate) fn has_labels(&self) -> bool {
        self.layout == Layout::Compressed { labels: true }
    }

    /// Returns the header of the last blob.
    #[inline(always)]
    pub(crate) const fn header(&self) -> Header<'static> {
        self.header
    }

    /// Sets the header of the last blob.
    #[inline(always)]
    pub(crate) const fn set_header(&mut self, header: &Header<'_>) {
        let Header { event, payload_size } = header;
        self.header = Header { event: event.without_payload(), payload_size: *payload_size };
    }

    /// Continues with the payload of the blob whose header was read.
    #[inline(always)]
    pub(crate) const fn expect_payload(&mut self) {
        self.headed = true;
    }

    /// Reads the next blob, and returns it with its length. If the first `left` bytes of the window, which are those of
    /// the block, do not hold the blob, consumes the header or nothing. The error is the number of consumed bytes.
    ///
    /// Bytes after the block only make the chunk long enough. If the block ends with the header or before, but the blob
    /// does not, the block is invalid: [`next`](Self::next) then reads as many bytes of it, and reports the end.
    #[inline(always)]
    pub(crate) fn quick<'w>(&mut self, window: &'w [u8], left: usize) -> Result<(Event<'w>, usize), usize> {
        steps::count(1);
        let Some(bytes) = window.first_chunk() else { return Err(0) };
        let labels = self.has_labels();
        let mut chunk = Chunk { bytes, at: 0 };
        if self.header.read(&mut chunk, labels).is_err() {
            return Err(0);
        }
        let (at, end) = self.payload(chunk.at);
        if let Some(payload) = window.get(at..end).filter(|_| end <= left) {
            return Ok((Event { payload, ..self.header.event }, end));
        }
        if at >= left {
            return Err(0);
        }
        self.headed = true;
        Err(at)
    }

    /// Returns start and end of the payload after a header that ends at `at`.
    #[inline(always)]
    fn payload(&self, at: usize) -> (usize, usize) {
        (at, at.saturating_add(usize::try_from(self.header.payload_size).unwrap_or(usize::MAX)))
    }

    /// Returns the ranges of the payload and of the stack of the last blob, which ends at `end`. `payload` and `stack`
    /// are the lengths of the two in bytes.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) const fn ranges(
        &self,
        end: usize,
        payload: usize,
        stack: usize,
    ) -> (Range<usize>, Range<usize>) {
        let payload_end = end.wrapping_sub(self.after_payload);
        // V3 has the length of the stack between the payload and the stack.
        let stack_start = payload_end.wrapping_add(4);
        (payload_end.wrapping_sub(payload)..payload_end, stack_start..stack_start.wrapping_add(stack))
    }

    /// Reads the next blob. `window` holds bytes of this block only, of which `left` were not consumed.
    pub(crate) fn next<'w>(&mut self, window: &'w [u8], left: usize) -> Blob<'w> {
        let labels = match self.layout {
            Layout::V3 => return self.fixed(window, v3),
            Layout::Plain { labels: false } => return self.fixed(window, |r| plain(r, false)),
            Layout::Plain { labels: true } => return self.fixed(window, |r| plain(r, true)),
            Layout::Compressed { labels } => labels,
        };
        let mut r = Reader::new(window);
        if !self.headed {
            let mut header = self.header;
            match header.read(&mut r, labels) {
                Ok(_) => self.header = header,
                // The header continues after the window; the next call reads it again from the same state.
                Err(DecodeErrorKind::UnexpectedEnd) if window.len() < left => {
                    return Blob::More { used: 0, needed: left.min(MAX_HEADER) };
                }
                Err(error) => return Blob::Bad(error),
            }
        }
        let (at, end) = self.payload(r.offset());
        self.headed = end > window.len();
        match window.get(at..end) {
            Some(payload) => Blob::Whole(Event { payload, ..self.header.event }, end),
            None => Blob::More { used: at, needed: end.saturating_sub(at) },
        }
    }

    /// Reads a blob that begins with the size of its other bytes. `read` returns the event, and how many bytes follow
    /// its payload.
    fn fixed<'w>(
        &mut self,
        window: &'w [u8],
        read: impl Fn(&mut Reader<'w>) -> Result<(Event<'w>, usize), DecodeError>,
    ) -> Blob<'w> {
        let mut r = Reader::new(window);
        let Ok(size) = r.read::<u32>() else {
            return Blob::More { used: 0, needed: 4 };
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let whole = size.saturating_add(4);
        let Ok(blob) = r.bytes(size) else {
            return Blob::More { used: 0, needed: whole };
        };
        match read(&mut Reader::at(blob, 4)) {
            Ok((event, after_payload)) => {
                self.after_payload = after_payload;
                Blob::Whole(event, whole)
            }
            Err(error) => Blob::Bad(error.kind),
        }
    }
}

/// The source of a compressed header.
pub(crate) trait Source {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DecodeErrorKind>;
    fn varint32(&mut self) -> Result<u32, DecodeErrorKind>;
    fn varint64(&mut self) -> Result<u64, DecodeErrorKind>;
    /// Reads an integer of 64 bits whose length varies from event to event.
    fn difference(&mut self) -> Result<u64, DecodeErrorKind> {
        self.varint64()
    }
}

/// Checks for the end of the window at each byte.
impl Source for Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DecodeErrorKind> {
        self.array().map_err(|e| e.kind.into())
    }
    fn varint32(&mut self) -> Result<u32, DecodeErrorKind> {
        self.read().map(|Varint32(value)| value).map_err(|e| e.kind.into())
    }
    fn varint64(&mut self) -> Result<u64, DecodeErrorKind> {
        self.read().map(|Varint64(value)| value).map_err(|e| e.kind.into())
    }
}

/// The beginning of a window, long enough for any compressed header, so that no byte needs a check.
pub(crate) struct Chunk<'w> {
    pub(crate) bytes: &'w [u8; CHUNK],
    pub(crate) at: usize,
}

impl Chunk<'_> {
    /// A mask that changes no index in a header, from which the compiler knows that the index is in the chunk.
    const MASK: usize = 127;

    /// Returns the next eight bytes.
    #[inline(always)]
    fn word(&self) -> u64 {
        let bytes = self.bytes.get(self.at & Self::MASK..).and_then(|rest| rest.first_chunk());
        bytes.map_or(u64::MAX, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
    }

    /// Reads an integer of one byte. `word` has the next eight bytes.
    #[inline(always)]
    fn one_byte(&mut self, word: u64) -> Option<u64> {
        if word & 0x80 != 0 {
            return None;
        }
        self.at = self.at.wrapping_add(1);
        Some(word & 0x7f)
    }

    /// Reads an integer of at most three bytes. `word` has the next eight bytes.
    ///
    /// Each length has a branch of its own. Ids mostly have as many bytes as the id before, so the processor predicts
    /// where the next part of the header begins, and reads it at the same time.
    #[inline(always)]
    fn short(&mut self, word: u64) -> Option<u64> {
        if let Some(value) = self.one_byte(word) {
            return Some(value);
        }
        let two = word & 0x7f | word.wrapping_shr(1) & 0x3f80;
        if word & 0x8000 == 0 {
            self.at = self.at.wrapping_add(2);
            return Some(two);
        }
        if word & 0x80_0000 == 0 {
            self.at = self.at.wrapping_add(3);
            return Some(two | word.wrapping_shr(2) & 0x1f_c000);
        }
        None
    }

    /// Reads an integer of at least two bytes. `word` has the next eight bytes.
    #[inline(always)]
    fn long(&mut self, word: u64) -> Result<u64, DecodeErrorKind> {
        let stops = !word & 0x8080_8080_8080_8080;
        if stops == 0 {
            let (value, used) = longest(self.bytes, self.at)?;
            self.at = self.at.wrapping_add(used);
            return Ok(value);
        }
        let last = usize::try_from(stops.trailing_zeros().wrapping_shr(3)).unwrap_or_default();
        self.at = self.at.wrapping_add(last).wrapping_add(1);
        // Clear the bits after the last byte of the number, then remove bit 7 of each byte.
        let mut value = word & (stops ^ stops.wrapping_sub(1));
        value = (value & 0x007f_007f_007f_007f) | (value & 0x7f00_7f00_7f00_7f00).wrapping_shr(1);
        value = (value & 0x0000_3fff_0000_3fff) | (value & 0x3fff_0000_3fff_0000).wrapping_shr(2);
        Ok((value & 0x0000_0000_0fff_ffff) | (value & 0x0fff_ffff_0000_0000).wrapping_shr(4))
    }
}

/// Reads an integer of nine or ten bytes, and returns it with its length. The function is separate and its parameters
/// are values, so that `at` of the caller can stay in a register.
#[cold]
#[inline(never)]
fn longest(bytes: &[u8; CHUNK], at: usize) -> Result<(u64, usize), DecodeErrorKind> {
    let mut r = Reader::new(bytes.get(at..).unwrap_or_default());
    match r.read() {
        Ok(Varint64(value)) => Ok((value, r.offset())),
        Err(error) => Err(error.kind.into()),
    }
}

impl Source for Chunk<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DecodeErrorKind> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        self.at = self.at.wrapping_add(N);
        bytes.copied().ok_or(DecodeErrorKind::UnexpectedEnd)
    }
    #[inline(always)]
    fn varint32(&mut self) -> Result<u32, DecodeErrorKind> {
        let word = self.word();
        if let Some(value) = self.short(word) {
            return Ok(low_u32(value));
        }
        let start = self.at;
        let value = self.long(word)?;
        if value >> 32 != 0 || self.at.wrapping_sub(start) > 5 {
            return Err(DecodeErrorKind::BadVarint);
        }
        Ok(low_u32(value))
    }
    #[inline(always)]
    fn varint64(&mut self) -> Result<u64, DecodeErrorKind> {
        let word = self.word();
        match self.short(word) {
            Some(value) => Ok(value),
            None => self.long(word),
        }
    }
    #[inline(always)]
    fn difference(&mut self) -> Result<u64, DecodeErrorKind> {
        let word = self.word();
        match self.one_byte(word) {
            Some(value) => Ok(value),
            None => self.long(word),
        }
    }
}

impl Header<'_> {
    /// Reads a compressed header over the header of the last blob. Parts that the new header omits stay unchanged.
    #[inline(always)]
    pub(crate) fn read<S: Source>(&mut self, s: &mut S, labels: bool) -> Result<Changes, DecodeErrorKind> {
        let event = &mut self.event;
        let [flags] = s.bytes()?;
        let changes = Changes(flags);
        if changes.has(Changes::METADATA_ID) {
            event.metadata_id = s.varint32()?;
        }
        if changes.has(Changes::CAPTURE) {
            event.sequence = event.sequence.wrapping_add(s.varint32()?).wrapping_add(1);
            event.capture_thread = s.varint64()?;
            event.processor = s.varint32()?;
        } else if event.metadata_id != 0 {
            event.sequence = event.sequence.wrapping_add(1);
        }
        if changes.has(Changes::THREAD) {
            event.thread = s.varint64()?;
        }
        if changes.has(Changes::STACK_ID) {
            event.stack_id = s.varint32()?;
        }
        event.timestamp = event.timestamp.wrapping_add(s.difference()?);
        if changes.has(Changes::ACTIVITY_ID | Changes::RELATED_ACTIVITY_ID) {
            if !labels {
                if changes.has(Changes::ACTIVITY_ID) {
                    event.activity_id = Guid(s.bytes()?);
                }
                if changes.has(Changes::RELATED_ACTIVITY_ID) {
                    event.related_activity_id = Guid(s.bytes()?);
                }
            } else if changes.has(Changes::ACTIVITY_ID) {
                event.label_list = s.varint32()?;
            }
        }
        event.sorted = changes.has(Changes::SORTED);
        if changes.has(Changes::PAYLOAD_SIZE) {
            self.payload_size = s.varint32()?;
        }
        Ok(changes)
    }
}

fn sized<'w>(r: &mut Reader<'w>) -> Result<&'w [u8], DecodeError> {
    let size: u32 = r.read()?;
    Ok(r.bytes(to_usize(size))?)
}

fn v3<'w>(r: &mut Reader<'w>) -> Result<(Event<'w>, usize), DecodeError> {
    let event = Event {
        metadata_id: r.read()?,
        thread: r.read::<u32>()?.into(),
        timestamp: r.read()?,
        activity_id: r.read()?,
        related_activity_id: r.read()?,
        payload: sized(r)?,
        processor: Event::UNKNOWN_PROCESSOR,
        sorted: true,
        ..Event::default()
    };
    let after_payload = r.rest().len();
    Ok((Event { stack: sized(r)?, ..event }, after_payload))
}

fn plain<'w>(r: &mut Reader<'w>, labels: bool) -> Result<(Event<'w>, usize), DecodeError> {
    let id: u32 = r.read()?;
    let sequence = r.read()?;
    let thread = r.read()?;
    let capture_thread = r.read()?;
    let processor = r.read()?;
    let stack_id = r.read()?;
    let timestamp = r.read()?;
    let (mut activity_id, mut related_activity_id, mut label_list) = (Guid::NIL, Guid::NIL, 0);
    if labels {
        label_list = r.read()?;
    } else {
        (activity_id, related_activity_id) = (r.read()?, r.read()?);
    }
    let payload = sized(r)?;
    let event = Event {
        metadata_id: id & 0x7fff_ffff,
        sequence,
        capture_thread,
        processor,
        thread,
        stack_id,
        timestamp,
        activity_id,
        related_activity_id,
        label_list,
        // Erratum: the documents state that a set bit 31 means sorted; in streams it means not sorted.
        sorted: id & 0x8000_0000 == 0,
        payload,
        stack: &[],
    };
    Ok((event, r.rest().len()))
}
