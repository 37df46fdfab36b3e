//! Blobs of events and metadata: each header is written as the difference to the header before; in V3 as it is.
use ipc_proto::wire::{to_u32, to_usize};
use ipc_proto::{Encode, wire};

use crate::encoding::{Varint32, Varint64};
use crate::parse::{Event, Version};
use crate::write::trace_writer::record::Payload;

/// The longest compressed header in bytes, which is one of V4: flags, five `u32`, three `u64`, two activity ids.
pub(super) const MAX_HEADER: usize = 88;

/// The length of the header of a V3 blob in bytes, with the size of the blob and that of its payload.
const V3_HEADER: usize = 56;

/// Writes the blobs of one block, each header as the difference to the header before. In V3 headers are independent,
/// and the stack follows the payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlobWriter {
    version: Version,
    /// The last event, without payload.
    last: Event<'static>,
    payload_size: u32,
    /// The smallest and the largest timestamp; none before the first blob.
    times: Option<(u64, u64)>,
}

/// The length of the header of a block of blobs; V3 has none.
pub(super) const BLOCK_HEADER: usize = 20;

impl BlobWriter {
    /// Creates a writer that has written no blob: the last event is all zeros.
    pub(super) fn new(version: Version) -> Self {
        Self { version, last: Event::default(), payload_size: 0, times: None }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.times.is_none()
    }

    /// Returns whether Microsoft's reader would assign the event to the capture thread of the event before. The reader
    /// accepts another capture thread only from a sorted event and at the beginning of a block.
    pub(super) fn confused_by(&self, event: &Event<'_>) -> bool {
        !self.is_empty()
            && !event.sorted
            && event.capture_thread != self.last.capture_thread
            && self.version != Version::V3
    }

    /// Returns the length of the header of the block.
    pub(super) fn block_header_len(&self) -> usize {
        if self.version == Version::V3 { 0 } else { BLOCK_HEADER }
    }

    /// Returns the header of the block, which V3 does not have.
    pub(super) fn block_header(&self) -> [u8; BLOCK_HEADER] {
        let mut header = [0; BLOCK_HEADER];
        let (min, max) = self.times.unwrap_or_default();
        let mut w = wire::Writer::new(&mut header);
        // The length of the header, and the flag for compressed headers of blobs.
        w.bytes(&[20, 0, 1, 0]);
        min.encode(&mut w);
        max.encode(&mut w);
        header
    }

    /// Returns the length of a body with this blob alone.
    pub(super) fn body_len(&self, event: &Event<'_>, payload_size: u32) -> usize {
        let payload = usize::try_from(payload_size).unwrap_or(usize::MAX);
        let header = if self.version == Version::V3 {
            V3_HEADER
        } else {
            let mut header = wire::Writer::new(&mut []);
            self.write_header(&mut header, event, payload_size);
            header.len()
        };
        self.block_header_len()
            .saturating_add(header)
            .saturating_add(payload)
            .saturating_add(self.tail_len(event, payload_size))
    }

    /// Returns how many bytes of a blob follow its payload. V3: the size of the stack, the stack, and zeros up to a
    /// multiple of 4.
    pub(super) fn tail_len(&self, event: &Event<'_>, payload_size: u32) -> usize {
        if self.version != Version::V3 {
            return 0;
        }
        let stack = event.stack.len().saturating_add(4);
        let unpadded = to_usize(payload_size).wrapping_add(stack);
        stack.saturating_add(unpadded.wrapping_neg() & 3)
    }

    /// Stores the header of a written blob: the next header is written as the difference to this one.
    pub(super) fn add(&mut self, event: &Event<'_>, payload_size: u32) {
        let (min, max) = self.times.unwrap_or((event.timestamp, event.timestamp));
        self.times = Some((min.min(event.timestamp), max.max(event.timestamp)));
        self.last = Event { payload: &[], stack: &[], ..*event };
        self.payload_size = payload_size;
    }

    /// V3: writes a blob: the size of its rest, each part of the header, the payload, and the stack.
    #[inline(never)]
    pub(super) fn write_v3(
        &self,
        w: &mut wire::Writer<'_>,
        event: &Event<'_>,
        payload_size: u32,
        payload: &Payload<'_>,
    ) {
        let tail = self.tail_len(event, payload_size);
        let rest = V3_HEADER.saturating_sub(4).saturating_add(to_usize(payload_size)).saturating_add(tail);
        to_u32(rest).encode(w);
        event.metadata_id.encode(w);
        u32::try_from(event.thread).unwrap_or(u32::MAX).encode(w);
        event.timestamp.encode(w);
        event.activity_id.encode(w);
        event.related_activity_id.encode(w);
        payload_size.encode(w);
        payload.encode(w);
        to_u32(event.stack.len()).encode(w);
        w.bytes(event.stack);
        let padding = tail.saturating_sub(event.stack.len()).saturating_sub(4);
        w.bytes([0; 3].get(..padding).unwrap_or_default());
    }

    /// Writes the header of the next blob: the flags, then each part that differs from the last event. A runtime sets
    /// the flags by the same rules. The caller then writes the payload and calls [`add`](Self::add).
    pub(super) fn write_header(&self, w: &mut wire::Writer<'_>, event: &Event<'_>, payload_size: u32) {
        let (last, at) = (&self.last, w.len());
        let mut flags = 0u8;
        flags.encode(w);
        if event.metadata_id != last.metadata_id {
            flags |= 0x01;
            Varint32(event.metadata_id).encode(w);
        }
        let next = last.sequence.wrapping_add(u32::from(event.metadata_id != 0));
        if event.sequence != next
            || event.capture_thread != last.capture_thread
            || event.processor != last.processor
        {
            flags |= 0x02;
            Varint32(event.sequence.wrapping_sub(last.sequence).wrapping_sub(1)).encode(w);
            Varint64(event.capture_thread).encode(w);
            Varint32(event.processor).encode(w);
        }
        if event.thread != last.thread {
            flags |= 0x04;
            Varint64(event.thread).encode(w);
        }
        if event.stack_id != last.stack_id {
            flags |= 0x08;
            Varint32(event.stack_id).encode(w);
        }
        Varint64(event.timestamp.wrapping_sub(last.timestamp)).encode(w);
        if self.version == Version::V6 {
            if event.label_list != last.label_list {
                flags |= 0x10;
                Varint32(event.label_list).encode(w);
            }
        } else {
            if event.activity_id != last.activity_id {
                flags |= 0x10;
                event.activity_id.encode(w);
            }
            if event.related_activity_id != last.related_activity_id {
                flags |= 0x20;
                event.related_activity_id.encode(w);
            }
        }
        if event.sorted {
            flags |= 0x40;
        }
        if payload_size != self.payload_size {
            flags |= 0x80;
            Varint32(payload_size).encode(w);
        }
        w.patch(at, &[flags]);
    }
}
