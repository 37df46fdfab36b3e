//! The buffer of the writer, and its method for each record.
use core::ops::Range;

use ipc_proto::{Encode, wire};

use crate::describe::Metadata;
use crate::encoding::{Str, Varint64};
use crate::parse::{
    BlockKind, Event, Label, SequencePoint, Stack, ThreadEntry, ThreadSequence, Trace, Version,
};
use crate::write::error::WriteError;
use crate::write::trace_writer::blob::BlobWriter;
use crate::write::trace_writer::layout::{
    self, END_OBJECT, LAST_LABEL, V6_HEADER, common, counted, label, object_type, pairs, thread_entry,
    v6_header,
};
use crate::write::trace_writer::record::{Payload, V4Record, V6Row, expressible, sized};
use core::ops::Deref;

/// A writer of streams, record by record, into a buffer of the caller.
///
/// The writer collects events in a block, and the records that events refer to (metadata, stacks, threads, label lists)
/// in blocks before it. The caller must write a record before the first event that refers to it. Blocks are output when
/// they are full, on [`flush`](Self::flush), and where the order of records requires it.
///
/// Each method takes its record and returns the [`TraceBytes`] that the caller must output before the next record. Most
/// calls return no bytes. An error leaves the record out, and the stream remains valid.
///
/// ```text
/// out.write_all(&writer.event(&event)?)?;        // or .await
/// ```
///
/// In V3 and V4, the writer writes the same bytes as a runtime: from the records of a runtime's block it makes the same
/// block. V3 has no stacks, sequence points and threads as records: each event has its [`stack`](Event::stack).
/// Events of V3 should be in the order of time, as those of an `EventAssembler` that sorts, because readers of V3 do
/// not sort.
///
/// The example `write_trace` writes 1,000 events; Microsoft's reader accepts the result in both versions:
///
#[doc = concat!("```\n", include_str!("../../../examples/write_trace.rs"), "```")]
///
/// Nothing can be written after the end:
///
/// ```compile_fail,E0382
/// use nettrace::{Event, Trace, TraceWriter, Version};
///
/// let mut buf = [0; 4096];
/// let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
/// let end = writer.finish();
/// let more = writer.event(&Event::default());
/// ```
#[derive(Debug)]
pub struct TraceWriter<'b> {
    pub(super) version: Version,
    /// Two halves: the caller outputs the bytes of one while the other receives records.
    ///
    /// ```text
    /// half   | records … | room for more | block of events … | room for more | end |
    /// ```
    pub(super) buf: &'b mut [u8],
    /// The start of the half that receives records.
    pub(super) base: usize,
    /// The offset at which the last block in this half must end.
    pub(super) end: usize,
    /// The length of the records other than events in this half, and the offset at which they must end.
    pub(super) len: usize,
    pub(super) room_end: usize,
    /// The unfinished block after the other records (not of events).
    pub(super) open: Option<Open>,
    /// The state of the open block, if it has metadata records of V4.
    pub(super) blobs: BlobWriter,
    /// The block of events, the earliest offset at which it can start, and the length of its body. The length of its
    /// header is known only when the block ends.
    pub(super) events: BlobWriter,
    pub(super) events_at: usize,
    pub(super) events_len: usize,
    /// The range of the buffer that the caller must output before the next record.
    pub(super) lent: Range<usize>,
    /// The stream offset of the first byte of this half.
    pub(super) offset: u64,
    /// The timestamp of the last record that has one: the timestamp of metadata from a description.
    pub(super) now: u64,
}

/// An unfinished block of records other than events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) kind: BlockKind,
    /// V4: the offset of the size of the block.
    pub(super) size: usize,
    /// The offset of the body of the block.
    pub(super) body: usize,
    /// The number of records in the block.
    pub(super) count: u32,
    /// The id that the next record must have, in a block of stacks or label lists.
    pub(super) next_id: u32,
}

/// The longest body of a block with several records, in bytes: the 102,399 bytes that a runtime uses of its buffer of
/// 100 KiB, and the 20 bytes of the header of a block of blobs.
pub(super) const BLOCK: usize = 102_419;
/// The longest body of a block of V4 in bytes: 32 bits state its length.
pub(super) const V4_BLOCK: usize = 0xffff_ffff;
/// The longest body of a block of V6 in bytes: 24 bits state its length.
pub(super) const V6_BLOCK: usize = 0xff_ffff;
/// The longest row of V6 in bytes: its size takes 2 bytes and states at most 65,535.
pub(super) const ROW: usize = 0x1_0001;
/// The most bytes before the body of a block of events: an object's type, size and padding.
pub(super) const OBJECT_HEADER: usize = 33;
/// The most bytes after the last block: its end tag and the end mark.
pub(super) const END: usize = 5;

impl<'b> TraceWriter<'b> {
    /// A length of the buffer in bytes that is enough for the streams of runtimes, which drop events of more than 64
    /// KiB.
    ///
    /// The caller outputs one half while the other receives records, so a record of `n` bytes needs at most
    /// `2 * n + 400`. A sequence point with its threads counts as one record. In V4 that record has 12 bytes for each
    /// thread, so `BUFFER` is enough for 20,000 threads. In a shorter buffer the blocks are shorter.
    pub const BUFFER: usize = 0x8_0000;

    /// The length of a buffer in bytes below which there is no room for any record.
    pub(crate) const SMALLEST_BUFFER: usize = 2 * (END + 1);

    /// Starts a stream with `trace` as its first record. The stream has the version of `trace`. [`Trace::check`]
    /// reports values that readers refuse; this function does not call `check`.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`] if the buffer has no room for this record.
    pub fn new(trace: &Trace<'_>, buf: &'b mut [u8]) -> Result<Self, WriteError> {
        let mut writer = Self::without_trace(trace.version, buf);
        writer.put_trace(trace, |_| true)?;
        Ok(writer)
    }

    /// Returns a writer that must receive a `Trace` before any other record.
    pub(crate) fn without_trace(version: Version, buf: &'b mut [u8]) -> Self {
        let end = (buf.len() / 2).saturating_sub(END);
        Self {
            version,
            buf,
            base: 0,
            end,
            len: 0,
            room_end: end,
            open: None,
            blobs: BlobWriter::new(version),
            events: BlobWriter::new(version),
            events_at: 0,
            events_len: 0,
            lent: 0..0,
            offset: 0,
            now: 0,
        }
    }

    /// Returns the version of the stream.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Ends the unfinished blocks, and returns all bytes in the buffer.
    pub fn flush(&mut self) -> TraceBytes<'_> {
        self.lend_nothing();
        // No bytes are lent, so `turn` cannot fail.
        let _ = self.turn(0);
        self.lent()
    }

    /// Ends the stream, and returns all bytes in the buffer with the end mark.
    pub fn finish(mut self) -> TraceBytes<'b> {
        self.put_end();
        let Self { buf, lent, .. } = self;
        TraceBytes(buf.get(lent).unwrap_or_default())
    }

    /// Writes the metadata record of a [`Record::Metadata`](crate::Record::Metadata) from a stream of the same version.
    /// [`describe`](Self::describe) writes the record of a [`Metadata`].
    ///
    /// # Errors
    /// If the buffer is too small or the row too long.
    pub fn metadata(&mut self, record: &Event<'_>) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_metadata(record))
    }

    /// Writes a description of events in the layout of this version.
    ///
    /// The versions differ: V3 and V4 have no message template, description, provider GUID and attributes, and store
    /// UTF-8 and one-byte booleans as bytes. V6 stores the low byte of level and version. Bytes of a record that its
    /// decoder did not understand are not in a [`Metadata`], so they are lost.
    ///
    /// # Errors
    /// If the buffer is too small or the row too long. [`WriteError::Version`] if the version cannot express the type
    /// of a field; it can express every description without fields.
    pub fn describe(&mut self, metadata: &Metadata<'_>) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_describe(metadata))
    }

    /// Writes a stack. Ids start again after a sequence point.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3. If the buffer is too small.
    pub fn stack(&mut self, stack: &Stack<'_>) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_stack(stack))
    }

    /// Writes an event. V3: with its [`stack`](Event::stack), which other versions have as a record, and with
    /// 4,294,967,295 for a thread that has more than 32 bits.
    ///
    /// The capture thread should differ from the capture thread of the event before only if the new event is
    /// [sorted](Event::sorted). Otherwise the writer starts another block, because Microsoft's reader would not see the
    /// change. In V6, readers refuse an event whose threads were not [written](Self::thread) before.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn event(&mut self, event: &Event<'_>) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_event(event, [event.payload, &[]]))
    }

    /// Writes a sequence point after all records before it. Ids of stacks and label lists start again.
    ///
    /// The [thread sequences](Self::thread_sequence) follow; the writer counts them.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3. If the buffer is too small.
    pub fn sequence_point(&mut self, point: &SequencePoint) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_sequence_point(point))
    }

    /// Writes the number of a thread's last event before the preceding sequence point.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3. [`WriteError::Misplaced`] after any other record. [`WriteError::BufferTooSmall`]
    /// if the buffer cannot hold the sequence point with all its threads.
    pub fn thread_sequence(&mut self, row: &ThreadSequence) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_thread_sequence(row))
    }

    /// Writes the start of a thread. V6 only.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3 and V4. If the buffer is too small or the entries too long.
    pub fn thread<'t>(
        &mut self,
        index: u64,
        entries: impl IntoIterator<Item = ThreadEntry<'t>> + Clone,
    ) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_thread(index, entries))
    }

    /// Writes the end of a thread after the events before it. V6 only.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3 and V4. If the buffer is too small.
    pub fn remove_thread(&mut self, row: &ThreadSequence) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_remove_thread(row))
    }

    /// Writes a list of labels. V6 only. Ids start again after a sequence point. The format has no list without labels,
    /// so the writer ignores an empty list.
    ///
    /// # Errors
    /// [`WriteError::Version`] in V3 and V4. If the buffer is too small.
    pub fn label_list<'l>(
        &mut self,
        id: u32,
        labels: impl IntoIterator<Item = Label<'l>> + Clone,
    ) -> Result<TraceBytes<'_>, WriteError> {
        self.lend(|writer| writer.put_label_list(id, labels))
    }

    /// Writes records, and returns the bytes that the caller must output because of them.
    fn lend(
        &mut self,
        put: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<TraceBytes<'_>, WriteError> {
        self.lend_nothing();
        put(self)?;
        Ok(self.lent())
    }

    /// Ends the loan of bytes: the caller has output them.
    pub(crate) fn lend_nothing(&mut self) {
        self.lent = 0..0;
    }

    /// Returns the bytes that the caller must output because of the records since [`lend_nothing`](Self::lend_nothing).
    pub(crate) fn lent(&self) -> TraceBytes<'_> {
        TraceBytes(self.buf.get(self.lent.clone()).unwrap_or_default())
    }

    /// Returns whether bytes are lent.
    pub(crate) fn lends(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Writes the end mark after all records. No record may follow.
    pub(crate) fn put_end(&mut self) {
        self.lent = self.end_blocks();
        let mark: &[u8] =
            if self.version == Version::V6 { &[0; V6_HEADER] } else { &[layout::NULL_REFERENCE] };
        self.patch(self.lent.end, mark);
        self.lent.end = self.lent.end.saturating_add(mark.len());
    }

    /// Writes the `Trace` record; V6: with the pairs whose keys are kept.
    pub(crate) fn put_trace(
        &mut self,
        trace: &Trace<'_>,
        keeps: impl Fn(Str<'_>) -> bool,
    ) -> Result<(), WriteError> {
        self.now = trace.sync_ticks;
        let room = self.buf.get_mut(..self.room_end).unwrap_or_default();
        let room_len = room.len();
        let mut w = wire::Writer::new(room);
        if self.version == Version::V6 {
            w.bytes(b"Nettrace\0\0\0\0");
            Version::V6.number().encode(&mut w);
            trace.minor.encode(&mut w);
            let header = w.len();
            w.bytes(&[0; 4]);
            let body = w.len();
            common(trace, &mut w);
            pairs(trace, keeps, &mut w);
            let len = w.len().wrapping_sub(body);
            w.patch(header, &v6_header(BlockKind::Trace, len));
        } else {
            if self.version != Version::V3 {
                w.bytes(b"Nettrace");
            }
            w.bytes(b"\x14\0\0\0!FastSerialization.1");
            object_type(&mut w, BlockKind::Trace, self.version);
            common(trace, &mut w);
            trace.process_id.unwrap_or_default().encode(&mut w);
            trace.processors.unwrap_or_default().encode(&mut w);
            trace.sampling_interval.unwrap_or_default().encode(&mut w);
            w.bytes(&[END_OBJECT]);
        }
        let len = w.len();
        if len > room_len {
            return Err(WriteError::BufferTooSmall { needed: len.saturating_add(END).saturating_mul(2) });
        }
        self.len = len;
        Ok(())
    }

    pub(crate) fn put_metadata(&mut self, record: &Event<'_>) -> Result<(), WriteError> {
        if self.version == Version::V6 {
            return self.define(BlockKind::Metadata, 0, &|w, _| sized(w, |w| w.bytes(record.payload)));
        }
        if self.version == Version::V3 {
            return self.put_event(&Event { metadata_id: 0, ..*record }, [record.payload, &[]]);
        }
        let len = record.payload.len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        self.define(BlockKind::Metadata, 0, &|w, blobs| {
            blobs.write_header(w, record, size);
            w.bytes(record.payload);
        })?;
        self.blobs.add(record, size);
        Ok(())
    }

    pub(crate) fn put_describe(&mut self, metadata: &Metadata<'_>) -> Result<(), WriteError> {
        if !expressible(self.version, metadata) {
            return Err(WriteError::Version(self.version));
        }
        if self.version == Version::V6 {
            return self.define(BlockKind::Metadata, 0, &|w, _| V6Row(metadata).encode(w));
        }
        let record = V4Record(metadata);
        let len = record.encoded_len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        let header = Event { timestamp: self.now, processor: Event::UNKNOWN_PROCESSOR, ..Event::default() };
        if self.version == Version::V3 {
            return self.put_blob(&header, size, &Payload::Description(record));
        }
        self.define(BlockKind::Metadata, 0, &|w, blobs| {
            blobs.write_header(w, &header, size);
            record.encode(w);
        })?;
        self.blobs.add(&header, size);
        Ok(())
    }

    pub(crate) fn put_stack(&mut self, stack: &Stack<'_>) -> Result<(), WriteError> {
        self.not_v3()?;
        let len = stack.bytes.len();
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        self.define(BlockKind::Stack, stack.id, &|w, _| {
            size.encode(w);
            w.bytes(stack.bytes);
        })
    }

    pub(crate) fn put_sequence_point(&mut self, point: &SequencePoint) -> Result<(), WriteError> {
        self.not_v3()?;
        self.turn(0)?;
        self.now = point.timestamp;
        let v6 = self.version == Version::V6;
        // A block has one sequence point. The count after it is the number of threads, which `close` fills in.
        self.define(BlockKind::SequencePoint, 0, &|w, _| {
            point.timestamp.encode(w);
            if v6 {
                point.flags.encode(w);
            }
            0u32.encode(w);
        })
    }

    pub(crate) fn put_thread_sequence(&mut self, row: &ThreadSequence) -> Result<(), WriteError> {
        self.not_v3()?;
        let is_point = |open: Open| open.kind == BlockKind::SequencePoint;
        if !self.events.is_empty() || !self.open.is_some_and(is_point) {
            return Err(WriteError::Misplaced);
        }
        let v6 = self.version == Version::V6;
        self.define(BlockKind::SequencePoint, 0, &|w, _| {
            if v6 {
                counted(row, w);
            } else {
                row.thread.encode(w);
                row.sequence.encode(w);
            }
        })
    }

    pub(crate) fn put_remove_thread(&mut self, row: &ThreadSequence) -> Result<(), WriteError> {
        self.only_v6()?;
        if !self.events.is_empty() {
            self.turn(0)?;
        }
        self.define(BlockKind::RemoveThread, 0, &|w, _| counted(row, w))
    }

    pub(crate) fn put_thread<'t>(
        &mut self,
        index: u64,
        entries: impl IntoIterator<Item = ThreadEntry<'t>> + Clone,
    ) -> Result<(), WriteError> {
        self.only_v6()?;
        self.define(BlockKind::Thread, 0, &|w, _| {
            sized(w, |w| {
                Varint64(index).encode(w);
                entries.clone().into_iter().for_each(|entry| thread_entry(entry, w));
            });
        })
    }

    pub(crate) fn put_label_list<'l>(
        &mut self,
        id: u32,
        labels: impl IntoIterator<Item = Label<'l>> + Clone,
    ) -> Result<(), WriteError> {
        self.only_v6()?;
        if labels.clone().into_iter().next().is_none() {
            return Ok(());
        }
        self.define(BlockKind::LabelList, id, &|w, _| {
            let mut labels = labels.clone().into_iter().peekable();
            while let Some(next) = labels.next() {
                label(next, if labels.peek().is_none() { LAST_LABEL } else { 0 }, w);
            }
        })
    }

    /// Writes an event with the concatenated parts of `payload`.
    #[inline]
    pub(crate) fn put_event(&mut self, event: &Event<'_>, payload: [&[u8]; 2]) -> Result<(), WriteError> {
        let len = payload.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        let size = u32::try_from(len).map_err(|_| WriteError::TooLong { len })?;
        self.put_blob(event, size, &Payload::Parts(payload))?;
        self.now = event.timestamp;
        Ok(())
    }

    /// Writes a blob to the block of events, with a payload of `size` bytes.
    fn put_blob(&mut self, event: &Event<'_>, size: u32, payload: &Payload<'_>) -> Result<(), WriteError> {
        if self.events.confused_by(event) || !self.append(event, size, payload) {
            self.append_anew(event, size, payload)?;
        }
        Ok(())
    }

    /// Changes the version before the first record.
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.events = BlobWriter::new(version);
    }

    const fn not_v3(&self) -> Result<(), WriteError> {
        match self.version {
            Version::V3 => Err(WriteError::Version(Version::V3)),
            _ => Ok(()),
        }
    }

    const fn only_v6(&self) -> Result<(), WriteError> {
        match self.version {
            Version::V6 => Ok(()),
            version => Err(WriteError::Version(version)),
        }
    }
}

/// Bytes of a stream that the caller of a [`TraceWriter`](crate::TraceWriter) or a [`Rewrite`](crate::Rewrite)
/// must output before it writes the next record.
///
/// Most calls return no bytes, because the writer collects records in its buffer. Many sinks accept an empty slice. A
/// caller for which an empty write is expensive can check for one:
///
/// ```
/// # use nettrace::{Event, TraceWriter, WriteError};
/// fn write(writer: &mut TraceWriter<'_>, event: &Event<'_>, packets: &mut Vec<Vec<u8>>) -> Result<(), WriteError> {
///     let bytes = writer.event(event)?;
///     if !bytes.is_empty() {
///         packets.push(bytes.to_vec());
///     }
///     Ok(())
/// }
/// ```
///
/// Without these bytes the stream is not valid, so the compiler warns if they are ignored:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use nettrace::{Event, TraceWriter, WriteError};
/// fn write(writer: &mut TraceWriter<'_>, event: &Event<'_>) -> Result<(), WriteError> {
///     writer.event(event)?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "these bytes are a part of the stream: output them before the next record"]
pub struct TraceBytes<'w>(pub(crate) &'w [u8]);

impl Deref for TraceBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl AsRef<[u8]> for TraceBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}
