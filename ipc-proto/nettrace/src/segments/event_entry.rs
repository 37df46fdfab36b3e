//! An event in 32 bytes, and the parts of its header that rarely change.
use ipc_proto::wire::to_u32;

use crate::join::ByteRange;

/// An event of a batch: places and indexes, so that nothing is copied and nothing is borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventEntry {
    pub(crate) timestamp: u64,
    /// From the first byte of the segment.
    pub(crate) payload: ByteRange,
    /// The kind in the catalog; or the index of the metadata id in the batch, and [`UNDESCRIBED`](Self::UNDESCRIBED).
    pub(crate) kind: u32,
    /// The index of the stack in the batch.
    pub(crate) stack: u32,
    pub(crate) sequence: u32,
    /// The index of the origin in the batch, and [`SORTED`](Self::SORTED).
    pub(crate) origin: u32,
}

impl EventEntry {
    /// The bit of [`origin`](Self::origin) of an event that is marked as sorted.
    pub(crate) const SORTED: u32 = 1 << 31;

    /// The bit of [`kind`](Self::kind) of an event that is not described.
    pub(crate) const UNDESCRIBED: u32 = 1 << 31;

    pub(crate) const fn is_described(&self) -> bool {
        self.kind & Self::UNDESCRIBED == 0
    }

    /// Returns the place in the segment of the payload, with that of the stack that follows it in V3.
    pub(crate) fn place(&self, segment: &[u8], has_own_stack: bool) -> ByteRange {
        let ByteRange { start, len } = self.payload;
        if !has_own_stack {
            return self.payload;
        }
        let stack = to_u32(self.own_stack(segment).len()).saturating_add(4);
        ByteRange { start, len: len.saturating_add(stack) }
    }

    /// Returns the stack that follows the payload in V3.
    #[cold]
    pub(crate) fn own_stack<'a>(&self, segment: &'a [u8]) -> &'a [u8] {
        let rest = segment.get(self.payload.range().end..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk() else { return &[] };
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        rest.get(..len).unwrap_or_default()
    }

    pub(crate) const fn is_sorted(&self) -> bool {
        self.origin & Self::SORTED != 0
    }

    /// Returns the index of the origin.
    pub(crate) const fn origin(&self) -> u32 {
        self.origin & !Self::SORTED
    }
}

/// The thread of an event, which a sampler changes with each event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) thread: u64,
    /// The index of the thread in the catalog; [`NOWHERE`](crate::catalog::catalog::NOWHERE) if it is not known.
    pub(crate) known_thread: u32,
    /// The index of the capture in the batch.
    pub(crate) capture: u32,
}

/// The parts of a header that change least: a sampler captures the events of all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capture {
    pub(crate) thread: u64,
    pub(crate) processor: u32,
    pub(crate) label_list: u32,
    /// The index of the label list in the batch; [`NOWHERE`](crate::catalog::catalog::NOWHERE) if it is not known.
    pub(crate) labels: u32,
    /// The index of the activities in the batch; 0 is none.
    pub(crate) activities: u32,
}
