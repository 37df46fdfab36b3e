//! What outlives the segments of a trace: descriptions, threads, the trace's first block, and the clock.
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};

use crate::join::id_map::{IdMap, Slot};
use crate::parse::sequence_point::SequencePoint;
use crate::parse::thread::Thread;
use crate::parse::trace::{Trace, Version};
use crate::parse::trace_clock::TraceClock;
use crate::whole::description::Description;
use crate::whole::event_entry::{NOWHERE, key};

/// The most descriptions of a trace.
const MOST_DESCRIPTIONS: usize = 1 << 17;

/// The most threads at a time.
const MOST_THREADS: usize = 1 << 18;

/// Descriptions and threads, which borrow from the trace.
#[derive(Debug)]
pub(crate) struct Catalog<'a> {
    trace: Option<Trace<'a>>,
    clock: TraceClock,
    kinds: Vec<EventKind>,
    kind_ids: IdMap<Vec<Slot<CurrentKind>>>,
    /// The number of times that metadata ids started again.
    generation: u32,
    descriptions: Vec<Description<'a>>,
    threads: Vec<KnownThread<'a>>,
    thread_indexes: IdMap<Vec<Slot<u32>>>,
    /// The threads that were replaced or removed since the last sequence point. Events that wait can refer to them.
    retired: Vec<u32>,
    /// The threads without an entry.
    vacant: Vec<u32>,
}

/// A kind of event: a metadata id and its description. An id that is described again with other content is another kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventKind {
    pub(crate) metadata_id: u32,
    /// The index of the description; [`NOWHERE`] if there is none.
    description: u32,
}

/// The kind of a metadata id, if the generation is the current one.
#[derive(Debug, Clone, Copy, Default)]
struct CurrentKind {
    kind: u32,
    generation: u32,
}

/// A thread, with its ids, which are read once, because many events can refer to the thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownThread<'a> {
    pub(crate) thread: Thread<'a>,
    pub(crate) thread_id: Option<u64>,
    pub(crate) process_id: Option<u64>,
}

impl<'a> Catalog<'a> {
    pub(crate) fn new() -> Self {
        let mut catalog = Self {
            trace: None,
            clock: TraceClock::default(),
            kinds: Vec::new(),
            kind_ids: IdMap::new(Vec::new()),
            generation: 0,
            descriptions: Vec::new(),
            threads: Vec::new(),
            thread_indexes: IdMap::new(Vec::new()),
            retired: Vec::new(),
            vacant: Vec::new(),
        };
        catalog.add_kind(0, NOWHERE);
        catalog
    }

    pub(crate) fn set_trace(&mut self, trace: &Trace<'a>) {
        self.trace = Some(*trace);
        self.clock = TraceClock::new(trace);
    }

    /// Returns the kind of the events with this metadata id.
    #[inline]
    pub(crate) fn kind(&mut self, metadata_id: u32) -> u32 {
        match self.kind_ids.get(key(metadata_id)) {
            Some(current) if current.generation == self.generation => current.kind,
            _ => self.add_kind(metadata_id, NOWHERE),
        }
    }

    #[cold]
    fn add_kind(&mut self, metadata_id: u32, description: u32) -> u32 {
        let kind = to_u32(self.kinds.len());
        self.kinds.push(EventKind { metadata_id, description });
        self.set_kind(metadata_id, kind);
        kind
    }

    fn set_kind(&mut self, metadata_id: u32, kind: u32) {
        let _ = self.kind_ids.insert(key(metadata_id), CurrentKind { kind, generation: self.generation });
    }

    /// Stores a description. A description that cannot be decoded is skipped, as if the stream did not have it.
    pub(crate) fn store_metadata(&mut self, record: &'a [u8]) {
        let version = self.trace.map_or(Version::V4, |trace| trace.version);
        let Ok(description) = Description::decode(version, record, self.pointer_size()) else { return };
        let id = description.metadata.id;
        let old = self.kind_ids.get(key(id)).copied();
        if let Some(CurrentKind { kind, .. }) = old {
            // A writer can describe its events again after each sequence point.
            if self.description(kind).is_some_and(|old| old.record == record) {
                self.set_kind(id, kind);
                return;
            }
        }
        if self.descriptions.len() < MOST_DESCRIPTIONS {
            let index = to_u32(self.descriptions.len());
            self.descriptions.push(description);
            self.add_kind(id, index);
        }
    }

    pub(crate) fn store_thread(&mut self, thread: &Thread<'a>) {
        self.remove_thread(thread.index);
        let known =
            KnownThread { thread: *thread, thread_id: thread.thread_id(), process_id: thread.process_id() };
        let index = match self.vacant.pop() {
            Some(index) => index,
            None if self.threads.len() >= MOST_THREADS => return,
            None => to_u32(self.threads.len()),
        };
        match self.threads.get_mut(to_usize(index)) {
            Some(vacant) => *vacant = known,
            None => self.threads.push(known),
        }
        let _ = self.thread_indexes.insert(thread.index, index);
    }

    pub(crate) fn remove_thread(&mut self, index: u64) {
        self.retired.extend(self.thread_indexes.remove(index));
    }

    /// Removes the records that are not valid after a sequence point. No event may wait.
    pub(crate) fn pass(&mut self, point: &SequencePoint) {
        if point.flushes_metadata() {
            self.generation = self.generation.wrapping_add(1);
        }
        if point.flushes_threads() {
            self.thread_indexes.clear();
            self.threads.clear();
            self.vacant.clear();
            self.retired.clear();
        }
        self.vacant.append(&mut self.retired);
    }

    /// Returns the index of a thread that is known, or else [`NOWHERE`], and the id of the thread.
    #[inline(always)]
    pub(crate) fn find_thread(&self, thread: u64) -> (u32, u64) {
        if self.threads.is_empty() {
            return (NOWHERE, thread);
        }
        let index = self.thread_indexes.get(thread).copied().unwrap_or(NOWHERE);
        let id = self.thread(index).and_then(|known| known.thread_id);
        (index, id.unwrap_or(thread))
    }

    #[inline]
    pub(crate) fn thread(&self, index: u32) -> Option<&KnownThread<'a>> {
        self.threads.get(to_usize(index))
    }

    /// Returns the metadata id of a kind.
    #[inline]
    pub(crate) fn metadata_id(&self, kind: u32) -> u32 {
        self.kinds.get(to_usize(kind)).map_or(0, |kind| kind.metadata_id)
    }

    #[inline]
    pub(crate) fn description(&self, kind: u32) -> Option<&Description<'a>> {
        self.descriptions.get(to_usize(self.kinds.get(to_usize(kind))?.description))
    }

    pub(crate) const fn trace(&self) -> Option<Trace<'a>> {
        self.trace
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
