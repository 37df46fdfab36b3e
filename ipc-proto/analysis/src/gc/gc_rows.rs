//! The rows of garbage collections.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;

/// The start of a garbage collection: GCStart.
///
/// ```text
/// u32 number, u32 generation, u32 reason, u32 type
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct GcStartRow {
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) reason: u32,
    pub(super) collection_type: u32,
}

impl GcStartRow {
    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [number, generation, reason, collection_type] = [r.read()?, r.read()?, r.read()?, r.read()?];
        Ok(Self { number, generation, reason, collection_type })
    }
}

/// The sizes after a garbage collection: GCHeapStats. The heap of pinned objects came with version 2.
///
/// ```text
/// 4 x { u64 size, u64 promoted }, u64 finalized bytes, u64 finalized objects, u32 pinned objects, u32 sink blocks,
/// u32 handles, u16 runtime, u64 size, u64 promoted
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct GcHeapRow {
    /// The size of each part of the heap, and the bytes of it that survived.
    pub(super) parts: [[u64; 2]; 5],
    pub(super) pinned_objects: u32,
    pub(super) handles: u32,
}

impl GcHeapRow {
    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let mut parts = [[0; 2]; 5];
        for part in parts.iter_mut().take(4) {
            *part = [r.read()?, r.read()?];
        }
        r.bytes(8 + 8)?;
        let [pinned_objects, _sink_blocks, handles] = [r.read()?, r.read()?, r.read()?];
        if let (Ok(_), Some(pinned)) = (r.bytes(2), parts.last_mut()) {
            *pinned = [r.read().unwrap_or_default(), r.read().unwrap_or_default()];
        }
        Ok(Self { parts, pinned_objects, handles })
    }
}
