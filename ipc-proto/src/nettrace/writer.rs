mod blob;
mod layout;
mod record;

use core::fmt;
use core::ops::Range;

use self::blob::Blobs;
use self::layout::{
    END_OBJECT, LAST_LABEL, NULL_REFERENCE, V6_HEADER, common, counted, label, narrow, object_header,
    object_type, pairs, thread_entry, v6_header, widen,
};
use self::record::{Record, Row, expressible, sized};
use super::{
    BlockKind, Event, Label, Metadata, Pairs, SequencePoint, Stack, SystemTime, ThreadEntry, ThreadSequence,
    Trace, Varint64, Version,
};
use crate::{Encode, wire};

/// What every method that writes gives: bytes of the stream that have to go out before the call is made once more, with
/// the same record; `None` once the record is taken.
///
/// ```text
/// while let Some(bytes) = writer.event(&event)? {
///     out.write_all(bytes)?;
/// }
/// ```
pub type Written<'w> = Result<Option<&'w [u8]>, WriteError>;

/// The same, for one that goes on writing: where in the buffer they are.
pub(super) type Put = Result<Option<Range<usize>>, WriteError>;

/// A record that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer would have to be this long; nothing else is in it.
    BufferTooSmall {
        /// Bytes needed in all.
        needed: usize,
    },
    /// The layout has too few bits for its length.
    TooLong {
        /// Bytes that it has.
        len: usize,
    },
    /// The version has no such records, or no way to say what this one says.
    Version(Version),
    /// What the stream says of itself, but not in front; or what a thread has counted to, but not behind a sequence
    /// point.
    Misplaced,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed } => {
                write!(f, "the buffer is too small: {needed} bytes are needed")
            }
            Self::TooLong { len } => write!(f, "a record of {len} bytes is too long for the format"),
            Self::Version(version) => write!(f, "{version} has no way to say this"),
            Self::Misplaced => f.write_str("a record that cannot stand here"),
        }
    }
}
impl core::error::Error for WriteError {}

/// Writes a stream, record by record, into a buffer that the caller owns and empties.
///
/// V4 comes out as a runtime writes it, to the byte: given the records of a runtime's block, it makes the same block.
/// V6 says the same with less around it.
///
/// A block of events is in the making all the time. What events point to (metadata, stacks, threads, lists of labels)
/// may be given between them; it is gathered in front of the block, so what an event points to must be given before it,
/// and nothing else need be cared for. Blocks go out when they are full, at [`flush`](Self::flush), and where the order
/// of things wants it.
///
/// Every method but [`flush`](Self::flush) and [`finish`](Self::finish) gives [`Written`]: bytes that have to go out
/// first.
///
/// ```
/// use ipc_proto::nettrace::{Event, Fields, Metadata, Scalar, Trace, Version, WriteError, Writer};
///
/// fn write(out: &mut Vec<u8>) -> Result<(), WriteError> {
///     let mut buf = [0; 4096];
///     let mut writer = Writer::new(Version::V4, &mut buf)?;
///     let trace = Trace { process_id: Some(4711), ..Trace::new(Version::V4) };
///     while let Some(bytes) = writer.trace(&trace)? {
///         out.extend(bytes);
///     }
///     let mut space = [0; 32];
///     let mut tick = Metadata::default();
///     (tick.id, tick.provider, tick.event_id, tick.name) = (1, "Demo".into(), 7, "Tick".into());
///     tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space).unwrap_or_default();
///     while let Some(bytes) = writer.describe(&tick)? {
///         out.extend(bytes);
///     }
///     for count in 0..1000u32 {
///         let payload = count.to_le_bytes();
///         let event = Event {
///             metadata_id: 1,
///             sequence: count + 1,
///             timestamp: u64::from(count) * 1_000_000,
///             payload: &payload,
///             ..Event::default()
///         };
///         while let Some(bytes) = writer.event(&event)? {
///             out.extend(bytes);
///         }
///     }
///     while let Some(bytes) = writer.finish() {
///         out.extend(bytes);
///     }
///     Ok(())
/// }
/// # let mut out = Vec::new();
/// # write(&mut out).unwrap();
/// # use ipc_proto::nettrace::{Limits, Parser, Step};
/// # let mut parser = Parser::new(Limits::default());
/// # let mut events = 0;
/// # while !matches!(parser.next(&out), Step::End(_)) { events += 1 }
/// # assert!(events > 1000 && out.len() < 10_000);
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    version: Version,
    /// The first half is for everything but events.
    buf: &'b mut [u8],
    half: usize,
    /// Bytes of the first half that are in use.
    len: usize,
    /// The block at the end of these.
    open: Option<Open>,
    /// The block of events in the second half, and bytes of its body.
    events: Blobs,
    events_len: usize,
    /// What of the buffer has to go out next.
    flush: Flush,
    ended: bool,
    /// The stream offset of the buffer's first byte.
    offset: u64,
    /// The last timestamp seen.
    now: u64,
}

/// A block in the making.
#[derive(Debug, Clone, Copy)]
struct Open {
    kind: BlockKind,
    /// V4: where its size stands.
    size: usize,
    /// Where its body begins.
    body: usize,
    /// Records in it.
    count: u32,
    /// What the next one's number has to be, where they are numbered.
    next_id: u32,
    /// Of a metadata block.
    blobs: Blobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// Nothing.
    No,
    /// Both halves, the first one first.
    Both,
    /// The second half.
    Events,
}

/// The longest body of a block that has several records: a runtime's buffer of 100 KiB, which it never fills to the last
/// byte, and the header of a block of blobs.
const BLOCK: usize = 102_419;
/// The longest body at all.
const V4_BLOCK: usize = 0xffff_ffff;
/// V6 has 24 bits for it.
const V6_BLOCK: usize = 0xff_ffff;
/// A row of V6 and its size, which has 16 bits.
const ROW: usize = 0x1_0001;
/// In front of the body of a block of events, at most: an object's type, size and padding.
const OBJECT_HEADER: usize = 33;

impl<'b> Writer<'b> {
    /// Enough of a buffer for what runtimes write: they drop events of more than 64 KiB. One half is for an event, the
    /// other for anything else, so a record of `n` bytes needs `2 * n + 400` at most. A sequence point is one record,
    /// and in V4 takes 12 bytes for each thread: this is enough for 10,000 of them.
    pub const BUFFER: usize = 0x4_0000;

    /// Begins a stream of this version.
    ///
    /// # Errors
    /// [`WriteError::Version`] if that is V3, which can only be read. If the buffer is too small for anything.
    pub fn new(version: Version, buf: &'b mut [u8]) -> Result<Self, WriteError> {
        if version == Version::V3 {
            return Err(WriteError::Version(version));
        }
        if buf.len() < V6_HEADER {
            return Err(WriteError::BufferTooSmall { needed: V6_HEADER });
        }
        Ok(Self {
            version,
            half: buf.len().wrapping_shr(1),
            buf,
            len: 0,
            open: None,
            events: Blobs::new(version == Version::V6),
            events_len: 0,
            flush: Flush::No,
            ended: false,
            offset: 0,
            now: 0,
        })
    }

    /// Which version is written.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Everything that was taken but not yet given out, piece by piece, then `None`. The blocks in the making end.
    pub fn flush(&mut self) -> Option<&[u8]> {
        let piece = self.put_flush();
        self.bytes(piece)
    }

    /// As [`flush`](Self::flush), with the end mark behind.
    pub fn finish(&mut self) -> Option<&[u8]> {
        let piece = self.put_finish();
        self.bytes(piece)
    }

    /// What the stream says about itself; comes first.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] if anything was written before. If the buffer is too small.
    pub fn trace(&mut self, trace: &Trace<'_>) -> Written<'_> {
        let piece = self.put_trace(trace)?;
        Ok(self.bytes(piece))
    }

    /// A record that describes events, as a stream of the same version has it: in V4 the payload of a blob, whose header
    /// is the event's, in V6 a row without its size. See [`describe`](Self::describe) for one made up here.
    ///
    /// # Errors
    /// If the buffer is too small, or the row too long.
    pub fn metadata(&mut self, record: &Event<'_>) -> Written<'_> {
        let piece = self.put_metadata(record)?;
        Ok(self.bytes(piece))
    }

    /// Describes events, in the layout of this version.
    ///
    /// A description for another version says the same, but for this: V4 has no message template, description, provider
    /// GUID and attributes, and knows UTF-8 and one-byte booleans as bytes; V6 keeps the low byte of level and version.
    /// Bytes that were not understood are not there.
    ///
    /// # Errors
    /// If the buffer is too small, or the row too long. [`WriteError::Version`] if V4 is to say of what kind a field is
    /// that only V6 has; without fields it is taken.
    pub fn describe(&mut self, metadata: &Metadata<'_>) -> Written<'_> {
        let piece = self.put_describe(metadata)?;
        Ok(self.bytes(piece))
    }

    /// A stack. Ids begin anew behind a sequence point.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn stack(&mut self, stack: &Stack<'_>) -> Written<'_> {
        let piece = self.put_stack(stack)?;
        Ok(self.bytes(piece))
    }

    /// An event. Its [`stack`](Event::stack), which only V3 has there, is not written.
    ///
    /// Its capture thread should differ from the one before only where it is [sorted](Event::sorted); if it does anyway,
    /// another block begins, as Microsoft's reader would not see it otherwise.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn event(&mut self, event: &Event<'_>) -> Written<'_> {
        let piece = self.put_event(event, [event.payload, &[]])?;
        Ok(self.bytes(piece))
    }

    /// A sequence point: all that came before goes out, and ids of stacks and label lists begin anew. The
    /// [thread sequences](Self::thread_sequence) follow; how many is counted here.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn sequence_point(&mut self, point: &SequencePoint) -> Written<'_> {
        let piece = self.put_sequence_point(point)?;
        Ok(self.bytes(piece))
    }

    /// How far a thread had counted at the sequence point that this follows.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] if anything else was written in between. If the buffer is too small for the whole
    /// of the sequence point: it has to be in one piece.
    pub fn thread_sequence(&mut self, row: &ThreadSequence) -> Written<'_> {
        let piece = self.put_thread_sequence(row)?;
        Ok(self.bytes(piece))
    }

    /// V6: a thread begins.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small, or what is known of the thread too long.
    pub fn thread<'t>(
        &mut self,
        index: u64,
        entries: impl IntoIterator<Item = ThreadEntry<'t>>,
    ) -> Written<'_> {
        let piece = self.put_thread(index, entries)?;
        Ok(self.bytes(piece))
    }

    /// V6: a thread has ended. The events before go out first.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small.
    pub fn remove_thread(&mut self, row: &ThreadSequence) -> Written<'_> {
        let piece = self.put_remove_thread(row)?;
        Ok(self.bytes(piece))
    }

    /// V6: a list of labels. Ids begin anew behind a sequence point. A list without labels cannot be written, and is left
    /// out.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small.
    pub fn label_list<'l>(&mut self, id: u32, labels: impl IntoIterator<Item = Label<'l>>) -> Written<'_> {
        let piece = self.put_label_list(id, labels)?;
        Ok(self.bytes(piece))
    }

    /// Everything has to go out; gives the first of it.
    pub(super) fn put_flush(&mut self) -> Option<Range<usize>> {
        self.flush = Flush::Both;
        self.piece()
    }

    pub(super) fn put_finish(&mut self) -> Option<Range<usize>> {
        if let Some(piece) = self.put_flush() {
            return Some(piece);
        }
        if core::mem::replace(&mut self.ended, true) {
            return None;
        }
        let mark: &[u8] = if self.version == Version::V6 { &[0; V6_HEADER] } else { &[NULL_REFERENCE] };
        self.patch(0, mark);
        Some(0..mark.len())
    }

    pub(super) fn put_trace(&mut self, trace: &Trace<'_>) -> Put {
        if self.offset != 0 || !self.is_empty() {
            return Err(WriteError::Misplaced);
        }
        self.now = trace.sync_ticks;
        let room = self.buf.get_mut(..self.half).unwrap_or_default();
        let mut w = wire::Writer::new(room);
        if self.version == Version::V6 {
            w.bytes(b"Nettrace\0\0\0\0");
            Version::V6.number().encode(&mut w);
            trace.minor.encode(&mut w);
            let header = w.len();
            w.bytes(&[0; 4]);
            let body = w.len();
            common(trace, &mut w);
            pairs(trace, &mut w);
            let len = w.len().wrapping_sub(body);
            w.patch(header, &v6_header(BlockKind::Trace, len));
        } else {
            w.bytes(b"Nettrace\x14\0\0\0!FastSerialization.1");
            object_type(&mut w, BlockKind::Trace, Version::V4.number());
            common(trace, &mut w);
            trace.process_id.unwrap_or_default().encode(&mut w);
            trace.processors.unwrap_or_default().encode(&mut w);
            trace.sampling_interval.unwrap_or_default().encode(&mut w);
            w.bytes(&[END_OBJECT]);
        }
        let len = w.len();
        if len > self.half {
            return Err(WriteError::BufferTooSmall { needed: len.saturating_mul(2) });
        }
        self.len = len;
        Ok(None)
    }

    pub(super) fn put_metadata(&mut self, record: &Event<'_>) -> Put {
        if self.version == Version::V6 {
            return self.define(BlockKind::Metadata, 0, |w, _| sized(w, |w| w.bytes(record.payload)));
        }
        let len = record.payload.len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        self.define(BlockKind::Metadata, 0, |w, blobs| {
            blobs.push(w, record, size, |w| w.bytes(record.payload));
        })
    }

    pub(super) fn put_describe(&mut self, metadata: &Metadata<'_>) -> Put {
        if !expressible(self.version, &metadata.fields) {
            return Err(WriteError::Version(self.version));
        }
        if self.version == Version::V6 {
            return self.define(BlockKind::Metadata, 0, |w, _| Row(metadata).encode(w));
        }
        let record = Record(metadata);
        let len = record.encoded_len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        let header = Event { timestamp: self.now, processor: Event::UNKNOWN_PROCESSOR, ..Event::default() };
        self.define(BlockKind::Metadata, 0, |w, blobs| {
            blobs.push(w, &header, size, |w| record.encode(w));
        })
    }

    pub(super) fn put_stack(&mut self, stack: &Stack<'_>) -> Put {
        let len = stack.bytes.len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        self.define(BlockKind::Stack, stack.id, |w, _| {
            size.encode(w);
            w.bytes(stack.bytes);
        })
    }

    pub(super) fn put_sequence_point(&mut self, point: &SequencePoint) -> Put {
        if let Some(piece) = self.put_flush() {
            return Ok(Some(piece));
        }
        self.now = point.timestamp;
        let v6 = self.version == Version::V6;
        // It is the only one in its block, and is not counted there.
        self.define(BlockKind::SequencePoint, 0, |w, _| {
            point.timestamp.encode(w);
            if v6 {
                point.flags.encode(w);
            }
            0u32.encode(w);
        })
    }

    pub(super) fn put_thread_sequence(&mut self, row: &ThreadSequence) -> Put {
        if self.open.is_none_or(|open| open.kind != BlockKind::SequencePoint) {
            return Err(WriteError::Misplaced);
        }
        let v6 = self.version == Version::V6;
        self.define(BlockKind::SequencePoint, 0, |w, _| {
            if v6 {
                counted(row, w);
            } else {
                row.thread.encode(w);
                row.sequence.encode(w);
            }
        })
    }

    pub(super) fn put_remove_thread(&mut self, row: &ThreadSequence) -> Put {
        self.only_v6()?;
        if !self.events.is_empty() {
            self.flush = Flush::Both;
        }
        self.define(BlockKind::RemoveThread, 0, |w, _| counted(row, w))
    }

    pub(super) fn put_thread<'t>(
        &mut self,
        index: u64,
        entries: impl IntoIterator<Item = ThreadEntry<'t>>,
    ) -> Put {
        self.only_v6()?;
        self.define(BlockKind::Thread, 0, |w, _| {
            sized(w, |w| {
                Varint64(index).encode(w);
                entries.into_iter().for_each(|entry| thread_entry(entry, w));
            });
        })
    }

    pub(super) fn put_label_list<'l>(&mut self, id: u32, labels: impl IntoIterator<Item = Label<'l>>) -> Put {
        self.only_v6()?;
        let mut labels = labels.into_iter();
        let Some(first) = labels.next() else { return Ok(None) };
        self.define(BlockKind::LabelList, id, |w, _| {
            let mut before = first;
            for next in labels {
                label(before, 0, w);
                before = next;
            }
            label(before, LAST_LABEL, w);
        })
    }

    /// An event whose payload is these.
    pub(super) fn put_event(&mut self, event: &Event<'_>, payload: [&[u8]; 2]) -> Put {
        if let Some(piece) = self.piece() {
            return Ok(Some(piece));
        }
        self.now = event.timestamp;
        let len = payload.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        if self.events.confused_by(event) {
            return Ok(self.put_flush());
        }
        let at = if self.events.is_empty() { blob::BLOCK_HEADER } else { self.events_len };
        let start = self.half.saturating_add(OBJECT_HEADER).saturating_add(at);
        // The last byte is for the tag behind the block.
        let end = self.buf.len().saturating_sub(1);
        let room = self.buf.get_mut(start..end).unwrap_or_default();
        let room_len = room.len();
        let mut w = wire::Writer::new(room);
        let before = self.events;
        self.events.push(&mut w, event, size, |w| payload.iter().for_each(|part| w.bytes(part)));
        let len = at.saturating_add(w.len());
        if w.len() <= room_len && len <= self.limit(at > blob::BLOCK_HEADER) {
            self.events_len = len;
            return Ok(None);
        }
        self.events = before;
        let half = OBJECT_HEADER.saturating_add(len).saturating_add(1);
        // Of an odd length, the larger half is for events.
        self.refuse(len, half.saturating_mul(2).saturating_sub(1))
    }

    /// Another version than the one begun with; nothing was written yet.
    pub(super) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.events = Blobs::new(version == Version::V6);
    }

    const fn only_v6(&self) -> Result<(), WriteError> {
        match self.version {
            Version::V6 => Ok(()),
            version => Err(WriteError::Version(version)),
        }
    }

    const fn is_empty(&self) -> bool {
        self.len == 0 && self.events.is_empty()
    }

    /// How long the body of a block may become by a record: as long as a runtime's, if others are in it already.
    const fn limit(&self, others: bool) -> usize {
        match (others, self.version) {
            (true, _) => BLOCK,
            (false, Version::V6) => V6_BLOCK,
            (false, _) => V4_BLOCK,
        }
    }

    /// A record does not fit, which would make its block `len` bytes long in a buffer of `needed`: room is made for it,
    /// if there is anything to go out.
    fn refuse(&mut self, len: usize, needed: usize) -> Put {
        if !self.is_empty() {
            return Ok(self.put_flush());
        }
        Err(if len > self.limit(false) {
            WriteError::TooLong { len }
        } else {
            WriteError::BufferTooSmall { needed }
        })
    }

    pub(super) fn bytes(&self, piece: Option<Range<usize>>) -> Option<&[u8]> {
        self.buf.get(piece?)
    }

    /// What has to go out next.
    fn piece(&mut self) -> Option<Range<usize>> {
        if self.flush == Flush::Both {
            self.close();
            self.flush = Flush::Events;
            let len = core::mem::take(&mut self.len);
            self.offset = self.offset.wrapping_add(widen(len));
            if len > 0 {
                return Some(0..len);
            }
        }
        if self.flush == Flush::Events {
            self.flush = Flush::No;
            if !self.events.is_empty() {
                return Some(self.close_events());
            }
        }
        None
    }

    /// Puts what belongs around the block of events, and says where it is.
    fn close_events(&mut self) -> Range<usize> {
        let body = self.half.saturating_add(OBJECT_HEADER);
        let end = body.saturating_add(self.events_len);
        self.patch(body, &self.events.block_header());
        let mut bytes = [0; OBJECT_HEADER];
        let mut w = wire::Writer::new(&mut bytes);
        let mut tag = 0;
        if self.version == Version::V6 {
            w.bytes(&v6_header(BlockKind::Event, self.events_len));
        } else {
            object_header(&mut w, BlockKind::Event, self.offset, self.events_len);
            self.patch(end, &[END_OBJECT]);
            tag = 1;
        }
        let len = w.len();
        let start = body.saturating_sub(len);
        self.patch(start, bytes.get(..len).unwrap_or_default());
        let piece = start..end.saturating_add(tag);
        self.offset = self.offset.wrapping_add(widen(piece.len()));
        self.events = Blobs::new(self.version == Version::V6);
        self.events_len = 0;
        piece
    }

    /// Writes a record of anything but events: into the block that is open, if it can go there, or into another.
    fn define(
        &mut self,
        kind: BlockKind,
        id: u32,
        record: impl FnOnce(&mut wire::Writer<'_>, &mut Blobs),
    ) -> Put {
        if let Some(piece) = self.piece() {
            return Ok(Some(piece));
        }
        let numbered = matches!(kind, BlockKind::Stack | BlockKind::LabelList);
        let fits = |open: &Open| open.kind == kind && (!numbered || open.next_id == id);
        let open = self.open.filter(fits);
        if open.is_none() {
            self.close();
        }
        let start = self.len;
        // The last byte is for the tag behind the block.
        let end = self.half.saturating_sub(1);
        let room = self.buf.get_mut(start..end).unwrap_or_default();
        let room_len = room.len();
        let mut w = wire::Writer::new(room);
        let mut open = open.unwrap_or_else(|| {
            let mut size = start;
            if self.version == Version::V6 {
                w.bytes(&v6_header(kind, 0));
            } else {
                object_header(&mut w, kind, self.offset.wrapping_add(widen(start)), 0);
                // Behind the name and a tag.
                size = start.saturating_add(kind.name(Version::V4).len()).saturating_add(16);
            }
            let body = start.saturating_add(w.len());
            match (kind, self.version) {
                (BlockKind::Metadata, Version::V6) => w.bytes(&[0; 2]),
                (BlockKind::Metadata, _) => w.bytes(&[0; blob::BLOCK_HEADER]),
                (BlockKind::Stack | BlockKind::LabelList, _) => {
                    id.encode(&mut w);
                    0u32.encode(&mut w);
                }
                _ => {}
            }
            Open { kind, size, body, count: 0, next_id: 0, blobs: Blobs::new(false) }
        });
        let before = w.len();
        record(&mut w, &mut open.blobs);
        let record_len = w.len().saturating_sub(before);
        let used = start.saturating_add(w.len());
        let len = used.saturating_sub(open.body);
        let is_row = kind == BlockKind::Thread || kind == BlockKind::Metadata && self.version == Version::V6;
        if is_row && record_len > ROW {
            return Err(WriteError::TooLong { len: record_len });
        }
        let alone = open.count == 0 || kind == BlockKind::SequencePoint;
        if w.len() <= room_len && len <= self.limit(!alone) {
            open.count = open.count.saturating_add(1);
            open.next_id = id.wrapping_add(1);
            self.open = Some(open);
            self.len = used;
            return Ok(None);
        }
        let needed = used.saturating_add(1).saturating_mul(2);
        if kind == BlockKind::SequencePoint {
            return Err(WriteError::BufferTooSmall { needed });
        }
        self.refuse(len, needed)
    }

    /// Ends the block at the end of the first half.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let len = self.len.saturating_sub(open.body);
        let v6 = self.version == Version::V6;
        let count = match open.kind {
            BlockKind::Metadata if !v6 => {
                self.patch(open.body, &open.blobs.block_header());
                None
            }
            BlockKind::Stack | BlockKind::LabelList => Some((4, open.count)),
            // The first record was the point itself.
            BlockKind::SequencePoint => Some((if v6 { 12 } else { 8 }, open.count.saturating_sub(1))),
            _ => None,
        };
        if let Some((at, count)) = count {
            self.patch(open.body.saturating_add(at), &count.to_le_bytes());
        }
        if v6 {
            self.patch(open.body.saturating_sub(V6_HEADER), &v6_header(open.kind, len));
        } else {
            self.patch(open.size, &narrow(len).to_le_bytes());
            self.patch(self.len, &[END_OBJECT]);
            self.len = self.len.saturating_add(1);
        }
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(to) = self.buf.get_mut(at..).and_then(|to| to.get_mut(..bytes.len())) {
            wire::copy(to, bytes);
        }
    }
}

impl Trace<'_> {
    /// A stream of this version on a 64-bit machine with ticks of a nanosecond, of which nothing else is known.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self {
            version,
            minor: 0,
            sync_time: SystemTime::default(),
            sync_ticks: 0,
            frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: None,
            processors: None,
            sampling_interval: None,
            pairs: Pairs::default(),
        }
    }
}
