//! Finds the garbage collections of one process.
use alloc::collections::VecDeque;

use ipc_proto::DecodeError;
use ipc_proto::wire::{Reader, to_u64};
use nettrace::TraceEvent;

use super::{Collection, CollectionType, HeapSizes, Reason};
use crate::RuntimeEvent;
use crate::trace::elapsed;

/// Finds the garbage collections of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessCollections {
    /// Collections that were not returned yet, in the order of their start.
    waiting: VecDeque<WaitingCollection>,
    /// The number of collections that were returned.
    returned: u64,
    /// The index of the running background collection among all collections.
    background: Option<u64>,
    /// The number of the last GCStart.
    last_number: Option<u32>,
    /// The number of the last collection that has ended.
    last_ended: Option<u32>,
    suspension: Suspension,
    /// Whether a complete collection was returned.
    pub(super) has_complete: bool,
}

#[derive(Debug, Clone, Copy)]
struct WaitingCollection {
    collection: Collection,
    /// The times of the first and of the last of its events, and of the pause before them.
    times: (i64, i64),
    /// Whether the program was restarted before GCEnd. The collection then ends when its heap statistics arrive.
    is_restarted: bool,
    /// Whether later events belong to other collections.
    has_ended: bool,
}

/// The threads that have suspended the program, until they restart it.
#[derive(Debug, Clone, Copy, Default)]
struct Suspension {
    for_collection: Option<u64>,
    for_background: Option<u64>,
    for_others: Option<u64>,
    /// The start of the suspension for a collection; `None` if the program runs.
    begin: Option<i64>,
    /// The end of the last suspension, which can belong to an earlier collection.
    end: Option<i64>,
}

impl Suspension {
    fn is_for_collector(&self, thread: u64) -> bool {
        self.for_collection == Some(thread) || self.for_background == Some(thread)
    }

    /// Returns the time from the start of the suspension until all threads were suspended.
    fn duration(&self) -> Option<u64> {
        let (begin, end) = (self.begin?, self.end?);
        (end >= begin).then(|| elapsed(begin, end))
    }
}

impl ProcessCollections {
    /// Returns whether an event belongs to a collection.
    pub(super) const fn is_needed(event: RuntimeEvent) -> bool {
        use RuntimeEvent as Is;

        matches!(
            event,
            Is::GCStart
                | Is::GCEnd
                | Is::GCRestartEEEnd
                | Is::GCHeapStats
                | Is::GCSuspendEEEnd
                | Is::GCSuspendEEBegin
        )
    }

    /// Takes an event of the runtime.
    pub(super) fn event(&mut self, event: &TraceEvent<'_>, of_runtime: RuntimeEvent) {
        let now = event.nanoseconds();
        match of_runtime {
            RuntimeEvent::GCSuspendEEBegin => self.suspend_begin(event, now),
            RuntimeEvent::GCSuspendEEEnd => self.suspend_end(event.thread_id(), now),
            RuntimeEvent::GCStart => self.start(event, now),
            RuntimeEvent::GCEnd => self.end(event, now),
            RuntimeEvent::GCHeapStats => self.heap_stats(event),
            RuntimeEvent::GCRestartEEEnd => self.restart_end(event.thread_id(), now),
            _ => {}
        }
    }

    /// Returns the number of collections that were not returned yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the start of the suspension if the program is suspended for a collection.
    pub(super) const fn suspended_since(&self) -> Option<i64> {
        self.suspension.begin
    }

    /// Returns the next collection that no later event can change, in the order of their start; with `is_forced`, the
    /// next one in any case. The times are those of its first and its last event; a collection without an end lasts
    /// to the end of the trace.
    pub(super) fn pop(&mut self, is_forced: bool) -> Option<(Collection, (i64, i64))> {
        let front = self.waiting.front()?;
        let is_background = self.background == Some(self.returned);
        let is_last = self.waiting.len() == 1;
        let is_final = !is_background && (front.has_ended || !is_last);
        if !is_final && !is_forced {
            return None;
        }
        if is_background {
            self.background = None;
        }
        self.returned = self.returned.saturating_add(1);
        let WaitingCollection { collection, times: (first, last), has_ended, .. } =
            self.waiting.pop_front()?;
        let is_open = !has_ended && collection.duration.is_none();
        Some((collection, (first, if is_open { i64::MAX } else { last })))
    }

    fn suspend_begin(&mut self, event: &TraceEvent<'_>, now: i64) {
        /// Reasons of GCSuspendEEBegin.
        const FOR_COLLECTION: u32 = 1;
        const FOR_BACKGROUND: u32 = 6;
        let thread = Some(event.thread_id());
        // A thread begins no suspension while it suspends the program: the end of its earlier one was lost.
        for earlier in [&mut self.suspension.for_collection, &mut self.suspension.for_background] {
            if *earlier == thread {
                *earlier = None;
                self.suspension.begin = None;
            }
        }
        let reason = event.payload().first_chunk().map(|reason| u32::from_le_bytes(*reason));
        match reason {
            Some(FOR_COLLECTION) => self.suspension.for_collection = thread,
            Some(FOR_BACKGROUND) => self.suspension.for_background = thread,
            _ => {
                self.suspension.for_others = thread;
                return;
            }
        }
        self.suspension.begin = Some(now);
    }

    fn suspend_end(&mut self, thread: u64, now: i64) {
        if !self.suspension.is_for_collector(thread) {
            return;
        }
        self.suspension.end = Some(now);
        let suspension = self.suspension.duration();
        if let (Some(_), Some(background)) = (self.suspension.for_background, self.background()) {
            background.collection.suspension = sum(background.collection.suspension, suspension);
        }
    }

    /// Takes a GCStart: `u32 number, u32 generation, u32 reason, u32 type`.
    fn start(&mut self, event: &TraceEvent<'_>, now: i64) {
        let mut r = Reader::new(event.payload());
        let (Ok(number), Ok(generation), Ok(reason), Ok(kind)) = (r.read(), r.read(), r.read(), r.read())
        else {
            return;
        };
        let (reason, collection_type) = (Reason(reason), CollectionType(kind));
        if self.last_number == Some(number) {
            return;
        }
        let is_in_background_start = collection_type == CollectionType::NON_CONCURRENT
            && self.waiting.back().is_some_and(|last| last.collection.is_background() && !last.has_ended);
        if reason == Reason::PM_FULL {
            self.replace_current();
        }
        let is_suspended = self.suspension.begin.is_some();
        let mut collection = Collection {
            number,
            generation,
            collection_type: Some(collection_type),
            reason: Some(reason),
            start: Some(now),
            pause_start: is_suspended.then_some(now),
            suspension: is_suspended.then_some(0),
            ..Collection::default()
        };
        if !is_in_background_start && reason != Reason::PM_FULL {
            collection.pause_start = self.suspension.begin;
            collection.suspension = self.suspension.duration();
        }
        if collection_type == CollectionType::BACKGROUND {
            // The rest of this pause can belong to a collection of a younger generation.
            collection.pause = collection.suspension;
            self.background = Some(self.returned.saturating_add(to_u64(self.waiting.len())));
        }
        self.last_number = Some(number);
        self.add(collection, now);
    }

    fn end(&mut self, event: &TraceEvent<'_>, now: i64) {
        // The number and the generation.
        let mut r = Reader::new(event.payload());
        let (Ok(number), Ok(generation)) = (r.read(), r.read()) else { return };
        let is_of = |waiting: &&mut WaitingCollection| waiting.collection.number == number;
        if let Some(waiting) = self.current().filter(is_of) {
            waiting.set_end(now);
        } else if let Some(waiting) = self.background().filter(is_of) {
            waiting.set_end(now);
            return;
        } else if self.last_ended != Some(number) {
            // The trace does not have the start of the collection.
            self.last_number = self.last_number.max(Some(number));
            self.add(Collection { number, generation, ..Collection::default() }, now);
        }
        self.end_without_suspension();
    }

    fn heap_stats(&mut self, event: &TraceEvent<'_>) {
        let Ok(heap) = heap_sizes(event.payload()) else { return };
        let Some(current) = self.current() else { return };
        current.collection.heap = Some(heap);
        if current.collection.is_background() || current.is_restarted {
            self.end_current();
        } else {
            self.end_without_suspension();
        }
    }

    fn restart_end(&mut self, thread: u64, now: i64) {
        if self.suspension.for_others == Some(thread) {
            self.suspension.for_others = None;
        }
        if !self.suspension.is_for_collector(thread) {
            return;
        }
        let Suspension { for_background, begin, .. } = self.suspension;
        let pause = begin.map(|begin| elapsed(begin, now));
        // A collection that was restarted before has no further pause.
        let is_over = for_background.is_some() && self.current().is_some_and(|current| current.is_restarted);
        if let Some(current) = if is_over { self.background() } else { self.current() } {
            current.times.1 = now;
            let collection = &mut current.collection;
            let is_background = collection.is_background();
            let is_running = !is_background && collection.duration.is_none();
            current.is_restarted |= is_running;
            if (is_background || is_running) && for_background.is_some() {
                collection.pause = sum(collection.pause, pause);
            } else {
                collection.pause = collection.pause_start.map(|start| elapsed(start, now));
            }
            if !is_background && !is_running && collection.heap.is_some() {
                self.end_current();
            }
        }
        self.suspension.for_background = None;
        self.suspension.for_collection = None;
        self.suspension.begin = None;
    }

    fn add(&mut self, collection: Collection, now: i64) {
        let times = (collection.pause_start.unwrap_or(now), now);
        self.waiting.push_back(WaitingCollection {
            collection,
            times,
            is_restarted: false,
            has_ended: false,
        });
    }

    /// Returns the collection to which events belong: the last one, or the background collection if the last one has
    /// ended.
    fn current(&mut self) -> Option<&mut WaitingCollection> {
        if self.waiting.back().is_some_and(|last| !last.has_ended) {
            return self.waiting.back_mut();
        }
        self.background()
    }

    fn background(&mut self) -> Option<&mut WaitingCollection> {
        let place = self.background?.checked_sub(self.returned)?;
        self.waiting.get_mut(usize::try_from(place).ok()?)
    }

    /// Ends a collection that does not end with a restart of the program, because its suspension is not in the trace.
    fn end_without_suspension(&mut self) {
        let is_over = self.current().is_some_and(|WaitingCollection { collection, .. }| {
            let has_end = collection.start.is_none() || collection.duration.is_some();
            collection.pause_start.is_none() && has_end && collection.heap.is_some()
        });
        if is_over {
            self.end_current();
        }
    }

    /// Ends a collection that another one replaces in the same pause, which belongs to the other one.
    fn replace_current(&mut self) {
        if let Some(current) = self.current() {
            current.collection.pause.get_or_insert(0);
            self.end_current();
        }
    }

    fn end_current(&mut self) {
        let Some(current) = self.current() else { return };
        current.has_ended = true;
        let Collection { number, start, pause, pause_start, .. } = current.collection;
        current.collection.is_complete = start.is_some() && pause_start.is_some() && pause.is_some();
        if current.collection.is_background() {
            self.background = None;
        }
        self.last_ended = Some(number);
    }
}

impl WaitingCollection {
    /// Sets the time of GCEnd.
    fn set_end(&mut self, now: i64) {
        self.times.1 = now;
        self.collection.duration = self.collection.start.map(|start| elapsed(start, now));
    }
}

/// Returns the sum of the known durations.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Decodes the sizes after a garbage collection: GCHeapStats. The heap of pinned objects came with version 2.
///
/// ```text
/// 4 x { u64 size, u64 promoted }, u64 finalized bytes, u64 finalized objects, u32 pinned objects, u32 sink blocks,
/// u32 handles, u16 runtime, u64 size, u64 promoted
/// ```
fn heap_sizes(payload: &[u8]) -> Result<HeapSizes, DecodeError> {
    let mut r = Reader::new(payload);
    let mut parts = [[0; 2]; 5];
    for part in parts.iter_mut().take(4) {
        *part = [r.read()?, r.read()?];
    }
    r.bytes(8 + 8)?;
    let [pinned_objects, _sink_blocks, handles]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
    if let (Ok(_), Some(pinned)) = (r.bytes(2), parts.last_mut()) {
        *pinned = [r.read().unwrap_or_default(), r.read().unwrap_or_default()];
    }
    let [after, promoted] = [parts.map(|[size, _]| size), parts.map(|[_, promoted]| promoted)];
    Ok(HeapSizes { after, promoted, pinned_objects: pinned_objects.into(), handles: handles.into() })
}
