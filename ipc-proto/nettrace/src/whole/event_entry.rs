//! An event in 32 bytes, and the parts of its header that rarely change.
use crate::join::byte_range::ByteRange;

/// An event of a batch: places and indexes, so that nothing is copied and nothing is borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventEntry {
    pub(crate) timestamp: u64,
    /// From the first byte of the segment.
    pub(crate) payload: ByteRange,
    /// The index of the kind in the catalog.
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

    pub(crate) const fn is_sorted(&self) -> bool {
        self.origin & Self::SORTED != 0
    }

    /// Returns the index of the origin.
    pub(crate) const fn origin(&self) -> u32 {
        self.origin & !Self::SORTED
    }
}

/// The parts of a header that an event mostly has in common with the event before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) capture_thread: u64,
    pub(crate) thread: u64,
    /// The operating system's id of the thread, or else its index.
    pub(crate) thread_id: u64,
    pub(crate) processor: u32,
    pub(crate) label_list: u32,
    /// The index of the thread in the catalog; [`NOWHERE`] if it is not known.
    pub(crate) known_thread: u32,
    /// The index of the label list in the batch; [`NOWHERE`] if it is not known.
    pub(crate) labels: u32,
    /// The index of the activities in the batch; 0 is none.
    pub(crate) activities: u32,
}

/// The index that stands for no entry.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Returns the key of an id in an [`IdMap`](crate::IdMap): the id plus 1. The map is fastest for keys that count up from
/// 1, and the id 0 is stored first.
pub(crate) fn key(id: u32) -> u64 {
    u64::from(id).wrapping_add(1)
}
