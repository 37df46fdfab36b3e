//! The parts of a trace that outlive its segments: descriptions, threads, the trace's first block, and the clock.
use alloc::boxed::Box;
use alloc::vec::Vec;

use ipc_proto::wire::{steps, to_u32, to_usize};

use crate::catalog::metadata_buf::MetadataBuf;
use crate::catalog::thread_buf::ThreadBuf;
use crate::join::{IdMap, Slot};
use crate::parse::{Pairs, Record, SequencePoint, Thread, TimeFilter, Trace, TraceClock, Version};

/// The most bytes that the descriptions of a trace take together, and the most that its threads take.
const MAX_BYTES: usize = 32 << 20;

/// The bytes besides its own that an entry takes: its slot in a map, its index in a list, the headers of allocations,
/// and the room that a vector has in reserve.
const ENTRY: usize = 128;

/// The descriptions and threads of a stream, its first block, and its clock.
///
/// Each description has a number, its kind, and keeps it: a caller can store what it knows about a kind in a `Vec`. So
/// descriptions are never removed, and those beyond [`MAX_BYTES`] are not stored.
#[derive(Debug)]
pub(crate) struct Catalog {
    trace: Option<Trace<'static>>,
    /// The pairs of the trace.
    pairs: Box<[u8]>,
    clock: TraceClock,
    /// The descriptions of the kinds from 1 on.
    kinds: Vec<MetadataBuf>,
    kind_ids: IdMap<Vec<Slot<CurrentKind>>>,
    /// The number of times that metadata ids started again.
    generation: u32,
    /// The bytes of all kinds.
    kinds_size: usize,
    threads: Vec<Option<ThreadBuf>>,
    thread_indexes: IdMap<Vec<Slot<u32>>>,
    /// The bytes of all threads, those that were removed and are still stored among them.
    threads_size: usize,
    /// The threads that were replaced or removed. Events that wait can refer to them.
    retired: Vec<u32>,
    /// The indexes without a thread.
    vacant: Vec<u32>,
}

/// The kind of a metadata id, if the generation is the current one. An id that is described again with other content is
/// another kind.
#[derive(Debug, Clone, Copy, Default)]
struct CurrentKind {
    kind: u32,
    generation: u32,
}

/// The index that stands for no thread.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The kind of the events whose description the stream lacks.
pub(crate) const UNDESCRIBED: u32 = 0;

/// Returns the key of an id in an [`IdMap`]: the id plus 1. The map is fastest for keys that count up from 1, and the id
/// 0 is stored first.
pub(crate) fn key(id: u32) -> u64 {
    u64::from(id).wrapping_add(1)
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self {
            trace: None,
            pairs: Box::default(),
            clock: TraceClock::default(),
            kinds: Vec::new(),
            kind_ids: IdMap::new(Vec::new()),
            generation: 0,
            kinds_size: 0,
            threads: Vec::new(),
            thread_indexes: IdMap::new(Vec::new()),
            threads_size: 0,
            retired: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// Stores a record that outlives the segment; other records change nothing.
    pub(crate) fn store(&mut self, record: &Record<'_>) {
        match record {
            Record::Trace(trace) => self.set_trace(trace),
            Record::Metadata(record) => self.store_metadata(record.payload),
            Record::Thread(thread) => self.store_thread(thread),
            Record::RemoveThread(row) => self.remove_thread(row.thread),
            _ => {}
        }
    }

    fn set_trace(&mut self, trace: &Trace<'_>) {
        self.pairs = trace.pairs.as_bytes().into();
        self.trace = Some(Trace { pairs: Pairs::default(), ..*trace });
        self.clock = TraceClock::new(trace);
    }

    /// Returns the kind of the events with this metadata id.
    #[inline]
    pub(crate) fn kind(&self, metadata_id: u32) -> u32 {
        match self.kind_ids.get(key(metadata_id)) {
            Some(current) if current.generation == self.generation => current.kind,
            _ => UNDESCRIBED,
        }
    }

    /// Stores a description. A description that cannot be decoded is skipped, as if the stream did not have it.
    fn store_metadata(&mut self, record: &[u8]) {
        let version = self.trace.map_or(Version::V4, |trace| trace.version);
        let Ok(metadata) = MetadataBuf::decode(version, record) else { return };
        let id = key(metadata.id());
        let old = self.kind_ids.get(id).map(|current| current.kind);
        // A writer can describe its events again after each sequence point.
        let is_known = |kind: &u32| self.description(*kind).is_some_and(|old| old.is_from(record));
        let Some(kind) = old.filter(is_known).or_else(|| self.add_kind(metadata)) else { return };
        let _ = self.kind_ids.insert(id, CurrentKind { kind, generation: self.generation });
    }

    /// Adds a kind; `None` if there is no room.
    fn add_kind(&mut self, metadata: MetadataBuf) -> Option<u32> {
        #[cfg(feature = "clr")]
        let metadata = {
            let mut metadata = metadata;
            metadata.describe(self.pointer_size());
            metadata
        };
        let size = metadata.len().saturating_add(size_of::<MetadataBuf>()).saturating_add(ENTRY);
        let all = self.kinds_size.saturating_add(size);
        if all > MAX_BYTES {
            return None;
        }
        self.kinds_size = all;
        self.kinds.push(metadata);
        Some(to_u32(self.kinds.len()))
    }

    #[inline]
    pub(crate) fn description(&self, kind: u32) -> Option<&MetadataBuf> {
        self.kinds.get(to_usize(kind.wrapping_sub(1)))
    }

    fn store_thread(&mut self, thread: &Thread<'_>) {
        let known = ThreadBuf::new(thread);
        let size = known.memory().saturating_add(ENTRY);
        let all = self.threads_size.saturating_add(size);
        if all > MAX_BYTES {
            return;
        }
        self.threads_size = all;
        self.remove_thread(thread.index);
        let index = self.vacant.pop().unwrap_or_else(|| to_u32(self.threads.len()));
        match self.threads.get_mut(to_usize(index)) {
            Some(vacant) => *vacant = Some(known),
            None => self.threads.push(Some(known)),
        }
        let _ = self.thread_indexes.insert(thread.index, index);
    }

    fn remove_thread(&mut self, index: u64) {
        self.retired.extend(self.thread_indexes.remove(index));
    }

    /// Drops the threads that were replaced or removed. No event may wait.
    #[inline]
    pub(crate) fn drop_retired(&mut self) {
        if !self.retired.is_empty() {
            self.drop_threads();
        }
    }

    #[cold]
    fn drop_threads(&mut self) {
        steps::count(self.retired.len());
        for index in self.retired.drain(..) {
            let thread = self.threads.get_mut(to_usize(index)).and_then(Option::take);
            let size = thread.map_or(0, |thread| thread.memory().saturating_add(ENTRY));
            self.threads_size = self.threads_size.saturating_sub(size);
            self.vacant.push(index);
        }
    }

    /// Removes the records that are not valid after a sequence point. No event may wait.
    pub(crate) fn pass(&mut self, point: &SequencePoint) {
        if point.flushes_metadata() {
            self.generation = self.generation.wrapping_add(1);
        }
        if point.flushes_threads() {
            steps::count(self.threads.len());
            self.thread_indexes.clear();
            self.threads.clear();
            self.threads_size = 0;
            self.vacant.clear();
            self.retired.clear();
        }
        self.drop_retired();
    }

    /// Returns the index of a thread, or else [`NOWHERE`].
    #[inline(always)]
    pub(crate) fn thread_index(&self, thread: u64) -> u32 {
        if self.threads.is_empty() {
            return NOWHERE;
        }
        self.thread_indexes.get(thread).copied().unwrap_or(NOWHERE)
    }

    #[inline]
    pub(crate) fn thread(&self, index: u32) -> Option<&ThreadBuf> {
        self.threads.get(to_usize(index))?.as_ref()
    }

    /// Returns the record of the stream's first block, once it was read.
    pub(crate) fn trace(&self) -> Option<Trace<'_>> {
        let pairs = Pairs::from_bytes(&self.pairs);
        self.trace.map(|trace| Trace { pairs, ..trace })
    }

    /// Returns a filter of the blocks of this stream by their times.
    pub(crate) fn time_filter(&self, from: u64, to: u64) -> TimeFilter {
        let mut times = TimeFilter::new(from, to);
        if let Some(trace) = self.trace() {
            times.record(&Record::Trace(trace));
        }
        times
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

    pub(crate) const fn clock(&self) -> &TraceClock {
        &self.clock
    }

    /// Returns the size in bytes of an instruction pointer.
    #[inline]
    pub(crate) fn pointer_size(&self) -> u32 {
        self.trace.map_or(8, |trace| trace.pointer_size)
    }
}
