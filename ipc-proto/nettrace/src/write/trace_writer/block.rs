//! Blocks under construction in the half of the buffer that receives records.
use core::ops::Range;

use ipc_proto::wire::{to_u32, to_u64, to_usize};

use ipc_proto::{Encode, wire};

use crate::parse::{BlockKind, Event, Version};
use crate::write::error::WriteError;
use crate::write::trace_writer::blob::{self, BlobWriter};
use crate::write::trace_writer::layout::{
    END_OBJECT, V6_HEADER, max_object_header, object_header, v6_header,
};
use crate::write::trace_writer::record::Payload;
use crate::write::trace_writer::trace_writer::{
    BLOCK, END, OBJECT_HEADER, Open, ROW, TraceWriter, V4_BLOCK, V6_BLOCK,
};

/// Writes a record. A metadata record of V4 is a blob, so it needs the [`BlobWriter`] of its block.
type Encoder<'r> = &'r dyn Fn(&mut wire::Writer<'_>, &BlobWriter);

impl TraceWriter<'_> {
    /// Returns the longest body of a block in bytes. A block of several records (`others`) is at most as long as a
    /// runtime's. A block of one record can be as long as its length field can express.
    const fn limit(&self, others: bool) -> usize {
        match (others, self.version) {
            (true, _) => BLOCK,
            (false, Version::V6) => V6_BLOCK,
            (false, _) => V4_BLOCK,
        }
    }

    const fn half(&self) -> usize {
        self.buf.len() / 2
    }

    /// Makes room for a record that does not fit: lends all bytes to the caller. The record will be the only one of its
    /// block. The body of the block has `body` bytes, and the whole block takes `len` bytes of its half.
    ///
    /// On an error, nothing has changed.
    pub(super) fn make_room(&mut self, body: usize, len: usize) -> Result<(), WriteError> {
        if body > self.limit(false) {
            return Err(WriteError::TooLong { len: body });
        }
        let len = len.saturating_add(END);
        if len > self.half() {
            return Err(WriteError::BufferTooSmall { needed: len.saturating_mul(2) });
        }
        self.turn(len)
    }

    /// Ends the unfinished blocks, lends their bytes to the caller, and continues in the other half. An error adds
    /// `len`, the bytes of the next record, to the length that it reports.
    ///
    /// Fails, and changes nothing, if the bytes of the other half are lent. This happens only if a [`Rewrite`] makes
    /// several records of one.
    ///
    /// [`Rewrite`]: crate::Rewrite
    pub(crate) fn turn(&mut self, len: usize) -> Result<(), WriteError> {
        if self.len == 0 && self.events.is_empty() {
            return Ok(());
        }
        let half = self.half();
        if !self.lent.is_empty() {
            // A half with room for the lent bytes, these records and the next record would need no second turn.
            let events =
                if self.events.is_empty() { 0 } else { OBJECT_HEADER.saturating_add(self.events_len) };
            let needed =
                half.saturating_add(self.len).saturating_add(1).saturating_add(events).saturating_add(len);
            return Err(WriteError::BufferTooSmall { needed: needed.saturating_mul(2) });
        }
        self.lent = self.end_blocks();
        self.base = if self.base == 0 { half } else { 0 };
        // The last bytes are for the tag after the last block and for the end mark.
        self.end = self.base.saturating_add(half).saturating_sub(END);
        self.room_end = self.end;
        Ok(())
    }

    /// Ends the unfinished blocks, and returns the range of all blocks in the buffer.
    pub(super) fn end_blocks(&mut self) -> Range<usize> {
        self.close();
        let len = core::mem::take(&mut self.len);
        self.offset = self.offset.wrapping_add(to_u64(len));
        if self.events.is_empty() {
            return self.base..self.base.saturating_add(len);
        }
        let events = self.close_events();
        // The records move directly before the events, so that one range contains both.
        let room = self.buf.get_mut(self.base..events.start).unwrap_or_default();
        let gap = room.len().saturating_sub(len);
        if len <= room.len() {
            room.copy_within(..len, gap);
        }
        self.base.saturating_add(gap)..events.end
    }

    /// Appends an event to the block of events, and returns whether it fits.
    #[inline]
    pub(super) fn append(&mut self, event: &Event<'_>, size: u32, payload: &Payload<'_>) -> bool {
        let is_first = self.events.is_empty();
        let (place, at) = if is_first {
            let len = to_usize(size).saturating_add(self.events.tail_len(event, size));
            (self.place_of_events(len), self.events.block_header_len())
        } else {
            (self.events_at, self.events_len)
        };
        let start = place.saturating_add(OBJECT_HEADER).saturating_add(at);
        let room = self.buf.get_mut(start..self.end).unwrap_or_default();
        let room_len = room.len();
        let mut w = wire::Writer::new(room);
        if self.version == Version::V3 {
            self.events.write_v3(&mut w, event, size, payload);
        } else {
            self.events.write_header(&mut w, event, size);
            payload.encode(&mut w);
        }
        let len = at.saturating_add(w.len());
        if w.len() > room_len || len > self.limit(!is_first) {
            return false;
        }
        self.events.add(event, size);
        if is_first {
            self.events_at = place;
            // One byte stays free for the end tag of the open block (V4).
            self.room_end = place.saturating_sub(1);
        }
        self.events_len = len;
        true
    }

    /// Writes an event to a new block when it cannot be appended.
    #[cold]
    #[inline(never)]
    pub(super) fn append_anew(
        &mut self,
        event: &Event<'_>,
        size: u32,
        payload: &Payload<'_>,
    ) -> Result<(), WriteError> {
        let body = BlobWriter::new(self.version).body_len(event, size);
        self.make_room(body, OBJECT_HEADER.saturating_add(body))?;
        self.append(event, size, payload);
        Ok(())
    }

    /// Returns the offset of a block whose first event has `len` bytes after its header: the middle of the half if the
    /// event fits there, so that other records have room before the block.
    fn place_of_events(&self, len: usize) -> usize {
        let first = OBJECT_HEADER.saturating_add(blob::BLOCK_HEADER).saturating_add(blob::MAX_HEADER);
        let first = first.saturating_add(len);
        let middle = self.base.saturating_add(self.half() / 2);
        // One byte stays free for the end tag of the open block (V4).
        let records = self.base.saturating_add(self.len).saturating_add((self.len > 0).into());
        middle.min(self.end.saturating_sub(first)).max(records)
    }

    /// Writes the header and the end of the block of events, and returns its range in the buffer.
    fn close_events(&mut self) -> Range<usize> {
        let body = self.events_at.saturating_add(OBJECT_HEADER);
        let end = body.saturating_add(self.events_len);
        if self.version != Version::V3 {
            self.patch(body, &self.events.block_header());
        }
        let mut bytes = [0; OBJECT_HEADER];
        let mut w = wire::Writer::new(&mut bytes);
        let mut tag = 0;
        if self.version == Version::V6 {
            w.bytes(&v6_header(BlockKind::Event, self.events_len));
        } else {
            object_header(&mut w, BlockKind::Event, self.version, self.offset, self.events_len);
            self.patch(end, &[END_OBJECT]);
            tag = 1;
        }
        let len = w.len();
        let start = body.saturating_sub(len);
        self.patch(start, bytes.get(..len).unwrap_or_default());
        let range = start..end.saturating_add(tag);
        self.offset = self.offset.wrapping_add(to_u64(range.len()));
        self.events = BlobWriter::new(self.version);
        self.events_len = 0;
        range
    }

    /// Writes a record that is not an event, into the open block if the kind and the id fit, otherwise into a new
    /// block.
    pub(super) fn define(&mut self, kind: BlockKind, id: u32, record: Encoder<'_>) -> Result<(), WriteError> {
        if self.add(kind, id, record)? {
            return Ok(());
        }
        let mut w = wire::Writer::new(&mut []);
        begin_body(kind, self.version, id, &mut w);
        record(&mut w, &BlobWriter::new(self.version));
        let header = if self.version == Version::V6 { V6_HEADER } else { max_object_header(kind) };
        self.make_room(w.len(), header.saturating_add(w.len()))?;
        self.add(kind, id, record).map(|_| ())
    }

    /// Adds a record to the open block or to a new block, and returns whether the record fits.
    fn add(&mut self, kind: BlockKind, id: u32, record: Encoder<'_>) -> Result<bool, WriteError> {
        let numbered = matches!(kind, BlockKind::Stack | BlockKind::LabelList);
        let fits = |open: &Open| open.kind == kind && (!numbered || open.next_id == id);
        let open = self.open.filter(fits);
        if open.is_none() {
            self.close();
            self.blobs = BlobWriter::new(self.version);
        }
        let start = self.base.saturating_add(self.len);
        let room = self.buf.get_mut(start..self.room_end).unwrap_or_default();
        let room_len = room.len();
        let mut w = wire::Writer::new(room);
        let mut open = open.unwrap_or_else(|| {
            let mut size = start;
            if self.version == Version::V6 {
                w.bytes(&v6_header(kind, 0));
            } else {
                object_header(&mut w, kind, self.version, self.offset.wrapping_add(to_u64(self.len)), 0);
                // The size follows the type: 16 bytes and the name of the kind.
                size = start.saturating_add(kind.name(Version::V4).len()).saturating_add(16);
            }
            let body = start.saturating_add(w.len());
            begin_body(kind, self.version, id, &mut w);
            Open { kind, size, body, count: 0, next_id: 0 }
        });
        let before = w.len();
        record(&mut w, &self.blobs);
        let record_len = w.len().saturating_sub(before);
        let is_row = kind == BlockKind::Thread || kind == BlockKind::Metadata && self.version == Version::V6;
        if is_row && record_len > ROW {
            return Err(WriteError::TooLong { len: record_len });
        }
        let used = self.len.saturating_add(w.len());
        let len = start.saturating_add(w.len()).saturating_sub(open.body);
        let alone = open.count == 0 || kind == BlockKind::SequencePoint;
        if w.len() <= room_len && len <= self.limit(!alone) {
            open.count = open.count.saturating_add(1);
            open.next_id = id.wrapping_add(1);
            self.open = Some(open);
            self.len = used;
            return Ok(true);
        }
        if kind == BlockKind::SequencePoint {
            // A sequence point and its threads are one block, which cannot continue in the other half.
            let needed = used.saturating_add(END).saturating_mul(2);
            return Err(WriteError::BufferTooSmall { needed });
        }
        Ok(false)
    }

    /// Ends the open block.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let len = self.base.saturating_add(self.len).saturating_sub(open.body);
        let v6 = self.version == Version::V6;
        let count = match open.kind {
            BlockKind::Metadata if !v6 => {
                self.patch(open.body, &self.blobs.block_header());
                None
            }
            BlockKind::Stack | BlockKind::LabelList => Some((4, open.count)),
            // The first record is the sequence point itself; the count is the number of thread rows after it.
            BlockKind::SequencePoint => Some((if v6 { 12 } else { 8 }, open.count.saturating_sub(1))),
            _ => None,
        };
        if let Some((at, count)) = count {
            self.patch_u32(open.body.saturating_add(at), count);
        }
        if v6 {
            self.patch(open.body.saturating_sub(V6_HEADER), &v6_header(open.kind, len));
        } else {
            self.patch_u32(open.size, to_u32(len));
            self.patch(self.base.saturating_add(self.len), &[END_OBJECT]);
            self.len = self.len.saturating_add(1);
        }
    }

    fn patch_u32(&mut self, at: usize, number: u32) {
        self.patch(at, &number.to_le_bytes());
    }

    pub(super) fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(to) = self.buf.get_mut(at..).and_then(|to| to.get_mut(..bytes.len())) {
            wire::copy(to, bytes);
        }
    }
}

/// Writes the part of a body before its records. [`TraceWriter::close`] fills in the count or the header of blobs.
fn begin_body(kind: BlockKind, version: Version, id: u32, w: &mut wire::Writer<'_>) {
    match (kind, version) {
        (BlockKind::Metadata, Version::V6) => w.bytes(&[0; 2]),
        (BlockKind::Metadata, _) => w.bytes(&[0; blob::BLOCK_HEADER]),
        (BlockKind::Stack | BlockKind::LabelList, _) => {
            id.encode(w);
            0u32.encode(w);
        }
        _ => {}
    }
}
