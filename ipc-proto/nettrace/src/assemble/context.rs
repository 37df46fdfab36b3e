//! What the events of a stream refer to: descriptions, stacks, labels and threads, in limited memory.
use alloc::boxed::Box;
use alloc::vec::Vec;

use ipc_proto::wire::{steps, to_u32};

use crate::assemble::metadata_buf::MetadataBuf;
use crate::describe::field::Fields;
use crate::join::byte_range::ByteRange;
use crate::join::id_map::{IdMap, Slot};
use crate::join::label_digest::LabelDigest;
use crate::parse::event::Event;
use crate::parse::label::{LabelList, Labels};
use crate::parse::parser::Record;
use crate::parse::sequence_point::SequencePoint;
use crate::parse::stack::Stack;
use crate::parse::thread::{Thread, ThreadEntries};
use crate::parse::trace::{Pairs, Trace, Version};
use crate::parse::trace_clock::TraceClock;

/// The most bytes that stacks and label lists take together. Descriptions have the same limit for themselves, and so
/// have threads.
const MAX_BYTES: usize = 32 << 20;

/// The state of a stream that its events refer to: descriptions, stacks, threads, label lists, and the clock.
///
/// Stacks and label lists are valid up to the next sequence point. If they would take more than [`MAX_BYTES`], all
/// stored ones are removed, and events that refer to them have no stack or labels. A description or a thread that
/// exceeds its limit is not stored.
#[derive(Debug, Default)]
pub(crate) struct StreamContext {
    trace: Option<Trace<'static>>,
    /// The pairs of the trace.
    pairs: Box<[u8]>,
    clock: TraceClock,
    omits_stacks: bool,
    metadata: Arena<MetadataBuf>,
    metadata_ids: GrowingMap<u32>,
    /// The threads of V6 by index.
    threads: Arena<ThreadBuf>,
    thread_indexes: GrowingMap<u32>,
    stacks: GrowingMap<StoredStack>,
    /// The number of stacks that were stored; it wraps.
    stored_stacks: u32,
    label_lists: GrowingMap<LabelDigest>,
    /// The bytes of stacks and label lists.
    bytes: Vec<u8>,
}

/// The indexes of the entries that an event referred to when it was read.
///
/// An id can be assigned again while an event waits for older events; an index keeps its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct References {
    metadata: u32,
    thread: u32,
}

/// Values by id in memory that grows.
type GrowingMap<V> = IdMap<Vec<Slot<V>>>;

/// The most bytes of memory that a map or a buffer retains when it is cleared.
const KEPT: usize = 1 << 20;

/// The index that stands for no entry.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, Default)]
struct StoredStack {
    place: ByteRange,
    /// The value of [`StreamContext::stored_stacks`] for this stack.
    number: u32,
}

/// A [`Thread`] that owns its entries.
#[derive(Debug)]
pub(crate) struct ThreadBuf {
    index: u64,
    thread_id: Option<u64>,
    process_id: Option<u64>,
    entries: Box<[u8]>,
}

impl ThreadBuf {
    fn new(thread: &Thread<'_>) -> Self {
        let entries = thread.entries.as_bytes().into();
        steps::count(thread.entries.as_bytes().len());
        let (thread_id, process_id) = (thread.thread_id(), thread.process_id());
        Self { index: thread.index, thread_id, process_id, entries }
    }

    pub(crate) const fn thread_id(&self) -> Option<u64> {
        self.thread_id
    }

    pub(crate) const fn process_id(&self) -> Option<u64> {
        self.process_id
    }

    pub(crate) fn get(&self) -> Thread<'_> {
        Thread { index: self.index, entries: ThreadEntries::from_bytes(&self.entries) }
    }
}

impl StreamContext {
    /// Stores no stacks from now on.
    pub(crate) const fn omit_stacks(&mut self) {
        self.omits_stacks = true;
    }

    /// Returns the record of the stream's first block, once it was read.
    pub(crate) fn trace(&self) -> Option<Trace<'_>> {
        let pairs = Pairs::from_bytes(&self.pairs);
        self.trace.map(|trace| Trace { pairs, ..trace })
    }

    /// Returns whether events refer to threads by their indexes, and not by their ids.
    #[inline]
    pub(crate) fn has_thread_indexes(&self) -> bool {
        self.trace.is_some_and(|trace| trace.version == Version::V6)
    }

    /// Returns the id of the process, as the stream's first block states it.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.trace.and_then(|trace| trace.process_id)
    }

    /// Returns the fields of an event that may have others than its description.
    ///
    /// This takes the parts of the event one by one: a reference to the event would keep it in memory for each caller.
    #[cfg(feature = "clr")]
    #[cold]
    pub(crate) fn fields<'a>(
        &'a self,
        described: &'a MetadataBuf,
        label_list: u32,
        payload: &[u8],
    ) -> Fields<'a> {
        let version = self.label_digest(label_list).and_then(|labels| labels.version);
        described.other_fields(version, self.pointer_size(), payload).unwrap_or_else(|| described.fields())
    }

    #[cfg(not(feature = "clr"))]
    pub(crate) fn fields<'a>(&'a self, described: &'a MetadataBuf, _: u32, _: &[u8]) -> Fields<'a> {
        described.fields()
    }

    pub(crate) const fn clock(&self) -> &TraceClock {
        &self.clock
    }

    /// Returns the size in bytes of an instruction pointer.
    #[inline]
    pub(crate) fn pointer_size(&self) -> u32 {
        self.trace.map_or(8, |trace| trace.pointer_size)
    }

    /// Stores a record that events refer to; other records change nothing.
    pub(crate) fn store(&mut self, record: &Record<'_>) {
        match record {
            Record::Trace(trace) => {
                self.pairs = trace.pairs.as_bytes().into();
                self.trace = Some(Trace { pairs: Pairs::default(), ..*trace });
                self.clock = TraceClock::new(trace);
            }
            Record::Metadata(record) => self.store_metadata(record.payload),
            Record::Stack(stack) if !self.omits_stacks => self.store_stack(stack),
            Record::LabelList(list) => self.store_label_list(list),
            Record::Thread(thread) => self.store_thread(thread),
            Record::RemoveThread(row) => {
                if let Some(place) = self.thread_indexes.remove(row.thread) {
                    self.threads.retire(place);
                }
            }
            _ => {}
        }
    }

    /// Stores a description. A description that cannot be decoded is skipped, as if the stream did not have it.
    fn store_metadata(&mut self, record: &[u8]) {
        let version = self.trace.map_or(Version::V4, |trace| trace.version);
        let Ok(metadata) = MetadataBuf::decode(version, record) else { return };
        #[cfg(feature = "clr")]
        let metadata = {
            let mut metadata = metadata;
            metadata.describe(self.pointer_size());
            metadata
        };
        let id = metadata.get().id.into();
        let old = self.metadata_ids.get(id).copied();
        if let Some(place) = self.metadata.replace(old, metadata, record.len()) {
            let _ = self.metadata_ids.insert(id, place);
        }
    }

    fn store_thread(&mut self, thread: &Thread<'_>) {
        let old = self.thread_indexes.get(thread.index).copied();
        let size = thread.entries.as_bytes().len();
        if let Some(place) = self.threads.replace(old, ThreadBuf::new(thread), size) {
            let _ = self.thread_indexes.insert(thread.index, place);
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
        if point.flushes_metadata() {
            self.metadata_ids.clear_and_shrink(KEPT);
            self.metadata.clear();
        }
        if point.flushes_threads() {
            self.thread_indexes.clear_and_shrink(KEPT);
            self.threads.clear();
        }
    }

    /// Returns the bytes of descriptions and threads that were replaced or removed, and are still stored.
    pub(crate) const fn retired(&self) -> usize {
        self.metadata.retired_size.saturating_add(self.threads.retired_size)
    }

    /// Drops the descriptions and threads that were replaced or removed. The caller must have no event left that refers
    /// to them.
    #[inline]
    pub(crate) fn drop_retired(&mut self) {
        if self.retired() > 0 {
            self.metadata.drop_retired();
            self.threads.drop_retired();
        }
    }

    /// Returns the indexes of the entries that an event refers to.
    #[inline]
    pub(crate) fn refer(&self, event: &Event<'_>) -> References {
        let metadata = self.metadata_ids.get(event.metadata_id.into()).copied().unwrap_or(NOWHERE);
        let thread = self.thread_indexes.get(event.thread).copied().unwrap_or(NOWHERE);
        References { metadata, thread }
    }

    #[inline]
    pub(crate) fn metadata(&self, references: References) -> Option<&MetadataBuf> {
        self.metadata.get(references.metadata).map(|entry| &entry.value)
    }

    #[inline]
    pub(crate) fn thread(&self, references: References) -> Option<&ThreadBuf> {
        self.threads.get(references.thread).map(|entry| &entry.value)
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

/// Values by index, of up to [`MAX_BYTES`] in all. A value that is replaced or removed stays until
/// [`drop_retired`](Self::drop_retired), because events that wait may refer to it.
#[derive(Debug)]
struct Arena<T> {
    entries: Vec<Option<Stored<T>>>,
    /// The indexes without an entry.
    vacant: Vec<u32>,
    /// The indexes of entries that were replaced or removed.
    retired: Vec<u32>,
    /// Bytes of all entries but the retired ones.
    size: usize,
    /// Bytes of the retired entries.
    retired_size: usize,
}

#[derive(Debug)]
struct Stored<T> {
    value: T,
    /// Bytes of memory.
    size: usize,
}

impl<T> Arena<T> {
    #[inline]
    fn get(&self, place: u32) -> Option<&Stored<T>> {
        self.entries.get(usize::try_from(place).ok()?)?.as_ref()
    }

    /// The bytes of memory that a value takes besides the bytes that it owns. Its entry counts twice, because the
    /// vector doubles when it is full. 64 bytes are for its slot in the map, its index in the list of retired ones, and
    /// the header of an allocation.
    const ENTRY: usize = size_of::<Option<Stored<T>>>().saturating_mul(2).saturating_add(64);

    /// Adds a value that owns `size` bytes, retires the value at `old`, and returns the new index. If there is no room
    /// for the value, changes nothing and returns `None`.
    fn replace(&mut self, old: Option<u32>, value: T, size: usize) -> Option<u32> {
        let size = Self::ENTRY.saturating_add(size);
        let old_size = old.and_then(|old| self.get(old)).map_or(0, |old| old.size);
        if self.size.saturating_sub(old_size).saturating_add(size) > MAX_BYTES {
            return None;
        }
        if let Some(old) = old {
            self.retire(old);
        }
        let place = self.vacant.pop().or_else(|| u32::try_from(self.entries.len()).ok())?;
        let entry = Some(Stored { value, size });
        match self.entries.get_mut(usize::try_from(place).ok()?) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
        self.size = self.size.saturating_add(size);
        Some(place)
    }

    /// Removes the value at the index `place` with the next [`drop_retired`](Self::drop_retired).
    fn retire(&mut self, place: u32) {
        let Some(entry) = self.get(place) else { return };
        let size = entry.size;
        self.size = self.size.saturating_sub(size);
        self.retired_size = self.retired_size.saturating_add(size);
        self.retired.push(place);
    }

    #[cold]
    fn drop_retired(&mut self) {
        steps::count(self.retired.len());
        for place in self.retired.drain(..) {
            if let Some(slot) = usize::try_from(place).ok().and_then(|place| self.entries.get_mut(place)) {
                *slot = None;
            }
            self.vacant.push(place);
        }
        self.retired_size = 0;
    }

    fn clear(&mut self) {
        steps::count(self.entries.len());
        *self = Self::default();
    }
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), retired: Vec::new(), size: 0, retired_size: 0 }
    }
}
