//! Finds the garbage collections in events.
use alloc::collections::VecDeque;

use ipc_proto::wire::to_u64;
use nettrace::TraceEvent;

use super::{Collection, CollectionType, GcStatistics, HeapSizes, Reason};
use crate::durations::elapsed;
use crate::event_fields::{number, runtime_event_id};

/// Finds the garbage collections of a process in its events, which must come in the order of time: see
/// [`EventAssembler::in_order`](nettrace::EventAssembler::in_order).
///
/// Take collections with [`pop`](Self::pop) after each event. Then at most 16,384 collections wait for the end of one
/// that began before them, in about 3 MB. The work for each event is constant.
///
/// ```
/// use nettrace::{EventAssembler, Limits, AssemblerStep};
/// use nettrace_analysis::gc::Collections;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-mixed.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::new(Limits::default()).in_order(EventAssembler::ORDER_LIMIT);
/// assembler.push(&bytes);
/// let mut collections = Collections::default();
/// while let AssemblerStep::Event = assembler.step() {
///     let Some(event) = assembler.event() else { break };
///     collections.event(&event);
///     while let Some(collection) = collections.pop() {
///         println!("{}: paused for {} ns by {}", collection.number, collection.pause, collection.reason);
///     }
/// }
/// collections.finish();
/// assert_eq!(collections.pop(), None); // there is no incomplete one
/// assert_eq!((collections.statistics().all.count, collections.statistics().all.pauses.longest()), (2, 20_599_334));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Collections {
    /// Collections that were not returned yet, in the order of their start.
    waiting: VecDeque<WaitingCollection>,
    /// The number of collections that were returned.
    returned: u64,
    /// The index of the running background collection among all collections.
    background: Option<u64>,
    last_number: Option<u32>,
    suspension: Suspension,
    is_finished: bool,
    /// The time of the first event of the trace.
    first_time: Option<i64>,
    statistics: GcStatistics,
}

#[derive(Debug, Clone, Copy)]
struct WaitingCollection {
    collection: Collection,
    /// Whether the program was restarted before GCEnd. The collection is then complete when its heap statistics arrive.
    is_restarted: bool,
}

/// The threads that have suspended the program, until they restart it.
#[derive(Debug, Clone, Copy, Default)]
struct Suspension {
    for_collection: Option<u64>,
    for_background: Option<u64>,
    for_others: Option<u64>,
    begin: i64,
    /// The end of the last suspension, which can belong to an earlier collection.
    end: Option<i64>,
}

impl Suspension {
    fn is_for_collector(&self, thread: u64) -> bool {
        self.for_collection == Some(thread) || self.for_background == Some(thread)
    }
}

/// The number of collections that wait at most.
const MAX_WAITING: usize = 16_384;

mod id {
    pub(super) const START: u32 = 1;
    pub(super) const END: u32 = 2;
    pub(super) const RESTART_END: u32 = 3;
    pub(super) const HEAP_STATS: u32 = 4;
    pub(super) const SUSPEND_END: u32 = 8;
    pub(super) const SUSPEND_BEGIN: u32 = 9;
}

impl Collections {
    /// Takes an event of any kind.
    pub fn event(&mut self, event: &TraceEvent<'_>) {
        let now = event.nanoseconds();
        let first = *self.first_time.get_or_insert(now);
        self.statistics.span = self.statistics.span.max(elapsed(first, now));
        if let Some(id) = runtime_event_id(event) {
            self.runtime_event(event, id);
        }
    }

    /// Takes an event of the runtime's provider. The time of the event does not extend the span of the statistics.
    pub(crate) fn runtime_event(&mut self, event: &TraceEvent<'_>, id: u32) {
        let now = event.nanoseconds();
        match id {
            id::SUSPEND_BEGIN => self.suspend_begin(event, now),
            id::SUSPEND_END => self.suspend_end(event.thread_id(), now),
            id::START => _ = self.start(event, now),
            id::END => {
                if let Some(current) = self.current() {
                    current.collection.duration = Some(elapsed(current.collection.start, now));
                }
            }
            id::HEAP_STATS => self.heap_stats(event),
            id::RESTART_END => self.restart_end(event.thread_id(), now),
            _ => {}
        }
    }

    /// Returns the next collection that no later event can change, in the order of their start.
    pub fn pop(&mut self) -> Option<Collection> {
        let front = self.waiting.front()?;
        let is_background = self.background == Some(self.returned);
        let is_last = self.waiting.len() == 1;
        let is_final = !is_background && (front.collection.is_complete || !is_last);
        if !is_final && !self.is_finished && self.waiting.len() <= MAX_WAITING {
            return None;
        }
        if is_background {
            self.background = None;
        }
        self.returned = self.returned.saturating_add(1);
        self.waiting.pop_front().map(|started| started.collection)
    }

    /// Ends the trace: [`pop`](Self::pop) returns all remaining collections, complete or not.
    pub const fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the statistics of the complete collections so far.
    #[must_use]
    pub const fn statistics(&self) -> &GcStatistics {
        &self.statistics
    }

    fn suspend_begin(&mut self, event: &TraceEvent<'_>, now: i64) {
        /// Reasons of GCSuspendEEBegin.
        const FOR_COLLECTION: u64 = 1;
        const FOR_BACKGROUND: u64 = 6;
        let thread = Some(event.thread_id());
        match number(event, "Reason") {
            Some(FOR_COLLECTION) => self.suspension.for_collection = thread,
            Some(FOR_BACKGROUND) => self.suspension.for_background = thread,
            _ => {
                self.suspension.for_others = thread;
                return;
            }
        }
        self.suspension.begin = now;
    }

    fn suspend_end(&mut self, thread: u64, now: i64) {
        if !self.suspension.is_for_collector(thread) {
            return;
        }
        let suspension = elapsed(self.suspension.begin, now);
        if let (Some(_), Some(background)) = (self.suspension.for_background, self.background()) {
            let sum = background.collection.suspension.saturating_add(suspension);
            background.collection.suspension = sum;
        }
        self.suspension.end = Some(now);
    }

    fn start(&mut self, event: &TraceEvent<'_>, now: i64) -> Option<()> {
        let u32_field = |name| number(event, name).and_then(|number| u32::try_from(number).ok());
        let (number, generation) = (u32_field("Count")?, u32_field("Depth")?);
        let (reason, collection_type) = (Reason(u32_field("Reason")?), CollectionType(u32_field("Type")?));
        let is_suspended = self.suspension.for_collection.is_some() || self.suspension.for_others.is_some();
        if !is_suspended || self.last_number == Some(number) {
            return None;
        }
        let is_in_background_start = collection_type == CollectionType::NON_CONCURRENT
            && self.waiting.back().is_some_and(|WaitingCollection { collection, .. }| {
                collection.collection_type == CollectionType::BACKGROUND && !collection.is_complete
            });
        if reason == Reason::PM_FULL {
            self.complete_current();
        }
        let mut collection = Collection {
            number,
            generation,
            collection_type,
            reason,
            start: now,
            pause_start: now,
            ..Collection::default()
        };
        if !is_in_background_start && reason != Reason::PM_FULL {
            collection.pause_start = self.suspension.begin;
            let end = *self.suspension.end.get_or_insert(now);
            collection.suspension = elapsed(self.suspension.begin, end);
        }
        if collection_type == CollectionType::BACKGROUND {
            // The rest of this pause can belong to a collection of a younger generation.
            collection.pause = collection.suspension;
            self.background = Some(self.returned.saturating_add(to_u64(self.waiting.len())));
        }
        self.last_number = Some(number);
        self.waiting.push_back(WaitingCollection { collection, is_restarted: false });
        Some(())
    }

    fn heap_stats(&mut self, event: &TraceEvent<'_>) {
        let Some(current) = self.current() else { return };
        current.collection.heap = Some(heap_sizes(event));
        let is_background = current.collection.collection_type == CollectionType::BACKGROUND;
        if is_background || current.is_restarted {
            self.complete_current();
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
        if let Some(current) = self.current() {
            let collection = &mut current.collection;
            let is_background = collection.collection_type == CollectionType::BACKGROUND;
            let is_running = !is_background && collection.duration.is_none();
            current.is_restarted |= is_running;
            if (is_background || is_running) && for_background.is_some() {
                collection.pause = collection.pause.saturating_add(elapsed(begin, now));
            } else {
                collection.pause = elapsed(collection.pause_start, now);
            }
            if !is_background && !is_running && collection.heap.is_some() {
                self.complete_current();
            }
        }
        self.suspension.for_background = None;
        self.suspension.for_collection = None;
    }

    /// Returns the collection to which events belong: the last one, or the background collection if the last one is
    /// complete.
    fn current(&mut self) -> Option<&mut WaitingCollection> {
        if self.waiting.back().is_some_and(|last| !last.collection.is_complete) {
            return self.waiting.back_mut();
        }
        self.background()
    }

    fn background(&mut self) -> Option<&mut WaitingCollection> {
        let place = self.background?.checked_sub(self.returned)?;
        self.waiting.get_mut(usize::try_from(place).ok()?)
    }

    fn complete_current(&mut self) {
        let Some(current) = self.current() else { return };
        let is_background = current.collection.collection_type == CollectionType::BACKGROUND;
        current.collection.is_complete = true;
        let collection = current.collection;
        self.statistics.add(&collection);
        if is_background {
            self.background = None;
        }
    }
}

fn heap_sizes(event: &TraceEvent<'_>) -> HeapSizes {
    let number = |field| number(event, field).unwrap_or_default();
    HeapSizes {
        after: [
            "GenerationSize0",
            "GenerationSize1",
            "GenerationSize2",
            "GenerationSize3",
            "GenerationSize4",
        ]
        .map(number),
        promoted: [
            "TotalPromotedSize0",
            "TotalPromotedSize1",
            "TotalPromotedSize2",
            "TotalPromotedSize3",
            "TotalPromotedSize4",
        ]
        .map(number),
        pinned_objects: number("PinnedObjectCount"),
        handles: number("GCHandleCount"),
    }
}
