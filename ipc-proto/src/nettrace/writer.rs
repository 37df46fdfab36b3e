mod blob;
mod block;
mod error;
mod layout;
mod record;

use core::ops::Range;

use self::blob::Blobs;
pub use self::error::WriteError;
use self::layout::{
    END_OBJECT, LAST_LABEL, NULL_REFERENCE, V6_HEADER, common, counted, label, object_type, pairs,
    thread_entry, v6_header,
};
use self::record::{Record, Row, expressible, sized};
use super::{
    BlockKind, Event, Label, Metadata, SequencePoint, Stack, ThreadEntry, ThreadSequence, Trace, Varint64,
    Version,
};
use crate::{Encode, wire};

/// The result of each method that writes a record: bytes of the stream that the caller must output before it repeats
/// the call with the same record, or `None` when the writer has taken the record.
///
/// ```text
/// while let Some(bytes) = writer.event(&event)? {
///     out.write_all(bytes)?;
/// }
/// ```
///
/// Ignored bytes are missing in the trace, so the compiler warns about them:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// use ipc_proto::nettrace::{Event, TraceWriter, WriteError};
///
/// fn write(writer: &mut TraceWriter<'_>, event: &Event<'_>) -> Result<(), WriteError> {
///     writer.event(event)?;
///     Ok(())
/// }
/// ```
pub type WriteOutput<'w> = Result<Option<&'w [u8]>, WriteError>;

/// The same as a range of the buffer, which does not borrow the writer.
pub(super) type Put = Result<Option<Range<usize>>, WriteError>;

/// A writer of streams, record by record, into a buffer of the caller.
///
/// V4 has the same bytes as a runtime's: from the records of a runtime's block the writer makes the same block.
///
/// The writer collects events in a block, and the records that events refer to (metadata, stacks, threads, label lists)
/// in blocks before it. The caller must write a record before the first event that refers to it. Blocks are output when
/// they are full, on [`flush`](Self::flush), and where the order of records requires it.
///
/// Each method that takes a record returns [`WriteOutput`].
///
/// The example `write_trace` writes 1,000 events; Microsoft's reader accepts the result in both versions:
///
#[doc = concat!("```\n", include_str!("../../examples/write_trace.rs"), "```")]
#[derive(Debug)]
pub struct TraceWriter<'b> {
    version: Version,
    /// The first half is for all records but events, the second for events.
    buf: &'b mut [u8],
    half: usize,
    /// Used bytes of the first half.
    len: usize,
    /// The unfinished block at the end of these bytes.
    open: Option<Open>,
    /// The block of events in the second half, and the length of its body.
    events: Blobs,
    events_len: usize,
    /// The halves of the buffer to output next.
    flush: Flush,
    ended: bool,
    /// The stream offset of the buffer's first byte.
    offset: u64,
    /// The last timestamp seen.
    now: u64,
}

/// An unfinished block.
#[derive(Debug, Clone, Copy)]
struct Open {
    kind: BlockKind,
    /// V4: the place of its size.
    size: usize,
    /// The start of its body.
    body: usize,
    /// Records in it.
    count: u32,
    /// The id that the next record must have, in a block of stacks or label lists.
    next_id: u32,
    /// The state of a metadata block of V4.
    blobs: Blobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// None.
    No,
    /// Both halves, the first one first.
    Both,
    /// The second half.
    Events,
}

/// The longest body of a block with several records: a runtime's buffer of 100 KiB, which it never fills completely,
/// and the header of a block of blobs.
const BLOCK: usize = 102_419;
/// The longest body of a block of V4.
const V4_BLOCK: usize = 0xffff_ffff;
/// The longest body of a block of V6, which has 24 bits for it.
const V6_BLOCK: usize = 0xff_ffff;
/// The longest row of V6 with its size, which has 16 bits.
const ROW: usize = 0x1_0001;
/// The most bytes before the body of a block of events: an object's type, size and padding.
const OBJECT_HEADER: usize = 33;

impl<'b> TraceWriter<'b> {
    /// A length of buffer that is enough for the streams of runtimes, which drop events of more than 64 KiB.
    ///
    /// One half is for events, the other for all other records, so a record of `n` bytes needs at most `2 * n + 400`. A
    /// sequence point with its threads counts as one record; in V4 it has 12 bytes for each thread, and this length is
    /// enough for 10,000 threads.
    pub const BUFFER: usize = 0x4_0000;

    /// Returns a writer of a stream of this version.
    ///
    /// # Errors
    /// [`WriteError::Version`] for V3, which can only be read. [`WriteError::BufferTooSmall`] if the buffer has no room
    /// for any record.
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

    /// Returns the version of the stream.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Ends the unfinished blocks and returns the bytes in the buffer, piece by piece, then `None`.
    pub fn flush(&mut self) -> Option<&[u8]> {
        let piece = self.put_flush();
        self.bytes(piece)
    }

    /// Returns the bytes in the buffer as [`flush`](Self::flush) does, followed by the end mark.
    pub fn finish(&mut self) -> Option<&[u8]> {
        let piece = self.put_finish();
        self.bytes(piece)
    }

    /// Writes the first record of a stream. [`Trace::check`] reports values that readers refuse; this method does not
    /// call it.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] after another record. [`WriteError::BufferTooSmall`] if the buffer is too small.
    pub fn trace(&mut self, trace: &Trace<'_>) -> WriteOutput<'_> {
        let piece = self.put_trace(trace)?;
        Ok(self.bytes(piece))
    }

    /// Writes a metadata record from a stream of the same version, as [`Record::Metadata`](super::Record::Metadata) has
    /// it. [`describe`](Self::describe) writes one from a [`Metadata`].
    ///
    /// # Errors
    /// If the buffer is too small or the row too long.
    pub fn metadata(&mut self, record: &Event<'_>) -> WriteOutput<'_> {
        let piece = self.put_metadata(record)?;
        Ok(self.bytes(piece))
    }

    /// Writes a description of events in the layout of this version.
    ///
    /// The versions differ: V4 has no message template, description, provider GUID and attributes, and stores UTF-8 and
    /// one-byte booleans as bytes. V6 stores the low byte of level and version. Bytes that the decoder did not
    /// understand are lost.
    ///
    /// # Errors
    /// If the buffer is too small or the row too long. [`WriteError::Version`] if V4 cannot express the type of a
    /// field; V4 can express every description without fields.
    pub fn describe(&mut self, metadata: &Metadata<'_>) -> WriteOutput<'_> {
        let piece = self.put_describe(metadata)?;
        Ok(self.bytes(piece))
    }

    /// Writes a stack. Ids start again after a sequence point.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn stack(&mut self, stack: &Stack<'_>) -> WriteOutput<'_> {
        let piece = self.put_stack(stack)?;
        Ok(self.bytes(piece))
    }

    /// Writes an event without its [`stack`](Event::stack), which only V3 has.
    ///
    /// Its capture thread should differ from that of the event before only if it is [sorted](Event::sorted). Otherwise
    /// the writer starts another block, as Microsoft's reader would not see the change. In V6, readers refuse an event
    /// whose threads were not [written](Self::thread) before.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn event(&mut self, event: &Event<'_>) -> WriteOutput<'_> {
        let piece = self.put_event(event, [event.payload, &[]])?;
        Ok(self.bytes(piece))
    }

    /// Writes a sequence point after all records before it. Ids of stacks and label lists start again.
    ///
    /// The [thread sequences](Self::thread_sequence) follow; the writer counts them.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn sequence_point(&mut self, point: &SequencePoint) -> WriteOutput<'_> {
        let piece = self.put_sequence_point(point)?;
        Ok(self.bytes(piece))
    }

    /// Writes the number of a thread's last event before the preceding sequence point.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] after any other record. [`WriteError::BufferTooSmall`] if the buffer cannot hold the
    /// sequence point with all its threads.
    pub fn thread_sequence(&mut self, row: &ThreadSequence) -> WriteOutput<'_> {
        let piece = self.put_thread_sequence(row)?;
        Ok(self.bytes(piece))
    }

    /// Writes the start of a thread. V6 only.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small or the entries too long.
    pub fn thread<'t>(
        &mut self,
        index: u64,
        entries: impl IntoIterator<Item = ThreadEntry<'t>>,
    ) -> WriteOutput<'_> {
        let piece = self.put_thread(index, entries)?;
        Ok(self.bytes(piece))
    }

    /// Writes the end of a thread after the events before it. V6 only.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small.
    pub fn remove_thread(&mut self, row: &ThreadSequence) -> WriteOutput<'_> {
        let piece = self.put_remove_thread(row)?;
        Ok(self.bytes(piece))
    }

    /// Writes a list of labels. V6 only. Ids start again after a sequence point. The format has no list without labels,
    /// so the writer ignores one.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V4. If the buffer is too small.
    pub fn label_list<'l>(
        &mut self,
        id: u32,
        labels: impl IntoIterator<Item = Label<'l>>,
    ) -> WriteOutput<'_> {
        let piece = self.put_label_list(id, labels)?;
        Ok(self.bytes(piece))
    }

    /// Ends the unfinished blocks and returns the first bytes to output.
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
        // It is the only sequence point in its block, and the block does not count it.
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

    /// Writes an event with the concatenated parts of `payload`.
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
        // The last byte is for the tag after the block.
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
        // If the length is odd, the longer half is for events.
        self.refuse(len, half.saturating_mul(2).saturating_sub(1))
    }

    /// Changes the version before the first record.
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
}
