//! The records to which the events of a stream refer: descriptions, stacks, labels and threads, in limited memory.
use alloc::vec::Vec;

use ipc_proto::wire::{steps, to_u32};

use crate::catalog::Catalog;
use crate::join::{ByteRange, IdMap, LabelDigest, Slot};
use crate::parse::{Event, LabelList, Labels, Record, SequencePoint, Stack};

/// The most bytes that stacks and label lists take together.
const MAX_BYTES: usize = 32 << 20;

/// The state of a stream that its events refer to: its catalog, stacks, and label lists.
///
/// Stacks and label lists are valid up to the next sequence point. If they would take more than [`MAX_BYTES`], all
/// stored ones are removed, and events that refer to them have no stack or labels.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub(crate) catalog: Catalog,
    stores_stacks: bool,
    stacks: GrowingMap<StoredStack>,
    /// The number of stacks that were stored; it wraps.
    stored_stacks: u32,
    label_lists: GrowingMap<LabelDigest>,
    /// The bytes of stacks and label lists.
    bytes: Vec<u8>,
}

/// The entries of the catalog to which an event referred when it was read.
///
/// An id can be assigned again while an event waits for older events; these numbers keep their entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct References {
    pub(crate) kind: u32,
    /// The index of the thread.
    pub(crate) thread: u32,
}

/// Values by id in memory that grows.
type GrowingMap<V> = IdMap<Vec<Slot<V>>>;

/// The most bytes of memory that a map or a buffer retains when it is cleared.
const KEPT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, Default)]
struct StoredStack {
    place: ByteRange,
    /// The value of [`StreamContext::stored_stacks`] for this stack.
    number: u32,
}

impl StreamContext {
    pub(crate) fn new(stores_stacks: bool) -> Self {
        Self {
            catalog: Catalog::new(),
            stores_stacks,
            stacks: GrowingMap::default(),
            stored_stacks: 0,
            label_lists: GrowingMap::default(),
            bytes: Vec::new(),
        }
    }

    /// Stores a record that events refer to; other records change nothing.
    pub(crate) fn store(&mut self, record: &Record<'_>) {
        match record {
            Record::Stack(stack) if self.stores_stacks => self.store_stack(stack),
            Record::LabelList(list) => self.store_label_list(list),
            record => self.catalog.store(record),
        }
    }

    fn store_stack(&mut self, stack: &Stack<'_>) {
        let id = stack.id.into();
        let place = self.store_bytes(self.stacks.get(id).map(|stack| stack.place), stack.bytes);
        self.stored_stacks = self.stored_stacks.wrapping_add(1);
        let _ = self.stacks.insert(id, StoredStack { place, number: self.stored_stacks });
    }

    fn store_label_list(&mut self, list: &LabelList<'_>) {
        let id = list.id.into();
        let old = self.label_lists.get(id).map(|digest| digest.place);
        let place = self.store_bytes(old, list.labels.as_bytes());
        let _ = self.label_lists.insert(id, LabelDigest::new(place, list.labels));
    }

    /// Stores a stack or a label list, in the bytes of `old`, which had the same id, if these bytes are enough.
    fn store_bytes(&mut self, old: Option<ByteRange>, bytes: &[u8]) -> ByteRange {
        let len = to_u32(bytes.len());
        if let Some(ByteRange { start, .. }) = old.filter(|old| old.len >= len) {
            let place = ByteRange { start, len };
            if let Some(room) = self.bytes.get_mut(place.range()) {
                steps::count(bytes.len());
                room.copy_from_slice(bytes);
                return place;
            }
        }
        // An empty stack or label list adds no bytes, but its table entry takes memory, so entries count.
        let entries = self.stacks.memory().saturating_add(self.label_lists.memory());
        let used = self.bytes.len().saturating_add(entries);
        if used.saturating_add(bytes.len()) > MAX_BYTES {
            self.clear_stacks_and_labels();
        }
        let start = self.bytes.len();
        if self.bytes.capacity().saturating_sub(start) < bytes.len() {
            // The buffer doubles, but not past the limit.
            let room = start.max(4096).min(MAX_BYTES.saturating_sub(used));
            self.bytes.reserve_exact(room.max(bytes.len()));
        }
        steps::count(bytes.len());
        self.bytes.extend_from_slice(bytes);
        ByteRange::new(start, bytes.len())
    }

    fn clear_stacks_and_labels(&mut self) {
        self.stacks.clear_and_shrink(KEPT);
        self.label_lists.clear_and_shrink(KEPT);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    /// Removes the records that are not valid after a sequence point. The caller must have no event left that refers to
    /// them.
    pub(crate) fn pass(&mut self, point: &SequencePoint) {
        self.clear_stacks_and_labels();
        self.catalog.pass(point);
    }

    /// Returns the entries of the catalog to which an event refers.
    #[inline]
    pub(crate) fn refer(&self, event: &Event<'_>) -> References {
        let thread = self.catalog.thread_index(event.thread);
        References { kind: self.catalog.kind(event.metadata_id), thread }
    }

    /// Returns the bytes of a stack; none for an unknown stack.
    #[inline]
    pub(crate) fn stack(&self, id: u32) -> &[u8] {
        self.stacks.get(id.into()).map_or(&[], |stack| self.bytes_at(stack.place))
    }

    /// Returns the number of a stack; `None` for an unknown stack.
    #[inline]
    pub(crate) fn stack_number(&self, id: u32) -> Option<u32> {
        self.stacks.get(id.into()).map(|stack| stack.number)
    }

    #[inline]
    pub(crate) fn label_digest(&self, list: u32) -> Option<&LabelDigest> {
        if list == 0 { None } else { self.label_lists.get(list.into()) }
    }

    /// Returns the labels of a list.
    pub(crate) fn labels(&self, digest: &LabelDigest) -> Labels<'_> {
        Labels::from_checked(self.bytes_at(digest.place))
    }

    #[inline]
    fn bytes_at(&self, place: ByteRange) -> &[u8] {
        place.of(&self.bytes)
    }
}
