//! Blocks under construction in the two halves of the buffer.
use core::ops::Range;

use byteorder::{ByteOrder, LittleEndian};

use super::blob::{self, Blobs};
use super::layout::{END_OBJECT, V6_HEADER, narrow, object_header, v6_header, widen};
use super::{BLOCK, Flush, OBJECT_HEADER, Open, Put, ROW, TraceWriter, V4_BLOCK, V6_BLOCK, WriteError};
use crate::nettrace::{BlockKind, Version};
use crate::{Encode, wire};

impl TraceWriter<'_> {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0 && self.events.is_empty()
    }

    /// Returns the longest body that a block can have after another record. A block with `others` stays as short as a
    /// runtime's.
    pub(super) const fn limit(&self, others: bool) -> usize {
        match (others, self.version) {
            (true, _) => BLOCK,
            (false, Version::V6) => V6_BLOCK,
            (false, _) => V4_BLOCK,
        }
    }

    /// Handles a record that does not fit: it would make its block `len` bytes long and needs a buffer of `needed`.
    /// Outputs the records in the buffer if there are any, and fails otherwise.
    pub(super) fn refuse(&mut self, len: usize, needed: usize) -> Put {
        if !self.is_empty() {
            return Ok(self.put_flush());
        }
        Err(if len > self.limit(false) {
            WriteError::TooLong { len }
        } else {
            WriteError::BufferTooSmall { needed }
        })
    }

    pub(in crate::nettrace) fn bytes(&self, piece: Option<Range<usize>>) -> Option<&[u8]> {
        self.buf.get(piece?)
    }

    /// Returns the next bytes to output.
    pub(super) fn piece(&mut self) -> Option<Range<usize>> {
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

    /// Writes the header and the end of the block of events, and returns its range in the buffer.
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

    /// Writes a record that is not an event, into the open block if its kind and id fit, otherwise into a new one.
    pub(super) fn define(
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
        // The last byte is for the tag after the block.
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
                // The size follows the name and a tag.
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
            // The first record is the sequence point itself.
            BlockKind::SequencePoint => Some((if v6 { 12 } else { 8 }, open.count.saturating_sub(1))),
            _ => None,
        };
        if let Some((at, count)) = count {
            self.patch_u32(open.body.saturating_add(at), count);
        }
        if v6 {
            self.patch(open.body.saturating_sub(V6_HEADER), &v6_header(open.kind, len));
        } else {
            self.patch_u32(open.size, narrow(len));
            self.patch(self.len, &[END_OBJECT]);
            self.len = self.len.saturating_add(1);
        }
    }

    fn patch_u32(&mut self, at: usize, number: u32) {
        let mut bytes = [0; 4];
        LittleEndian::write_u32(&mut bytes, number);
        self.patch(at, &bytes);
    }

    pub(super) fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(to) = self.buf.get_mut(at..).and_then(|to| to.get_mut(..bytes.len())) {
            wire::copy(to, bytes);
        }
    }
}
