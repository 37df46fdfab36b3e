//! One garbage collection: its times, sizes and reason.
use crate::Durations;
use crate::event::named_number;
use crate::names::at_mut;

/// A garbage collection. Times are nanoseconds from the start of the trace, durations nanoseconds. What the trace does
/// not have is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Collection {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The number of the collection in the runtime: the first collection of a process is 1.
    pub number: u32,
    /// The oldest generation that is collected: 0, 1 or 2.
    pub generation: u32,
    /// Whether it blocks the program; `None` without GCStart.
    pub collection_type: Option<CollectionType>,
    /// The reason why the runtime started it; `None` without GCStart.
    pub reason: Option<Reason>,
    /// The time of GCStart, after the suspension.
    pub start: Option<i64>,
    /// The time at which the runtime began to suspend the program.
    pub pause_start: Option<i64>,
    /// The time that the program was paused, in all pauses together, suspension included. If the collection is not
    /// complete, only the pauses whose end the trace has.
    pub pause: Option<u64>,
    /// The part of the pause that it took to suspend all threads.
    pub suspension: Option<u64>,
    /// The time from GCStart to GCEnd, in which the program runs if this is a background collection.
    pub duration: Option<u64>,
    /// The sizes after the collection; `None` without GCHeapStats.
    pub heap: Option<HeapSizes>,
    /// Whether the trace has all events of the collection.
    pub is_complete: bool,
}

impl Collection {
    pub(super) fn is_background(&self) -> bool {
        self.collection_type == Some(CollectionType::BACKGROUND)
    }
}

named_number! {
    /// How a collection relates to the program: the type of GCStart.
    CollectionType(u32) {
        /// The program is paused from the start to the end.
        NON_CONCURRENT = 0 "NonConcurrentGC",
        /// The program runs for the most part: a collection of generation 2.
        BACKGROUND = 1 "BackgroundGC",
        /// Blocks the program while a background collection runs: a collection of generation 0 or 1.
        FOREGROUND = 2 "ForegroundGC",
    }
}

named_number! {
    /// The reason why the runtime started a collection. TraceEvent has the same names, but prints the last four as
    /// numbers.
    Reason(u32) {
        /// The budget of generation 0 was used up.
        ALLOC_SMALL = 0 "AllocSmall",
        /// The program requested the collection.
        INDUCED = 1 "Induced",
        /// The machine has little memory.
        LOW_MEMORY = 2 "LowMemory",
        /// The runtime states no reason.
        EMPTY = 3 "Empty",
        /// The budget for large objects was used up.
        ALLOC_LARGE = 4 "AllocLarge",
        /// The heap of small objects has no room.
        OUT_OF_SPACE_SOH = 5 "OutOfSpaceSOH",
        /// The heap of large objects has no room.
        OUT_OF_SPACE_LOH = 6 "OutOfSpaceLOH",
        /// The program requested the collection, and let the runtime decide whether it blocks.
        INDUCED_NOT_FORCED = 7 "InducedNotForced",
        /// A stress mode of the collector.
        INTERNAL = 8 "Internal",
        /// The machine has little memory, and the collection blocks.
        INDUCED_LOW_MEMORY = 9 "InducedLowMemory",
        /// The program requested the collection, with compaction.
        INDUCED_COMPACTING = 10 "InducedCompacting",
        /// The host reported that memory is low.
        LOW_MEMORY_HOST = 11 "LowMemoryHost",
        /// A full collection in provisional mode, which replaces a collection of generation 1 in the same pause.
        PM_FULL = 12 "PMFullGC",
        /// The host reported that memory is low, and the collection blocks.
        LOW_MEMORY_HOST_BLOCKING = 13 "LowMemoryHostBlocking",
        /// The tuning of background collections, for small objects.
        BGC_TUNING_SOH = 14 "BgcTuningSOH",
        /// The tuning of background collections, for large objects.
        BGC_TUNING_LOH = 15 "BgcTuningLOH",
        /// The stepping of background collections.
        BGC_STEPPING = 16 "BgcStepping",
        /// The program requested the collection, and that as much memory as possible be returned to the operating system.
        INDUCED_AGGRESSIVE = 17 "InducedAggressive",
    }
}

impl Reason {
    /// Returns whether the program requested the collection, by `GC.Collect` for example.
    #[must_use]
    pub const fn is_induced(self) -> bool {
        matches!(
            self,
            Self::INDUCED | Self::INDUCED_NOT_FORCED | Self::INDUCED_COMPACTING | Self::INDUCED_AGGRESSIVE
        )
    }
}

/// Sizes in bytes after a collection. The five parts of the heap are generations 0, 1 and 2, the heap of large objects,
/// and the heap of pinned objects (since .NET 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct HeapSizes {
    /// The size of each part, free space between objects included.
    pub after: [u64; 5],
    /// The bytes of each part that survived the collection.
    pub promoted: [u64; 5],
    /// The number of pinned objects.
    pub pinned_objects: u64,
    /// The number of handles.
    pub handles: u64,
}

impl HeapSizes {
    /// Returns the size of the heap after the collection.
    #[must_use]
    pub fn total_after(&self) -> u64 {
        self.after.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Returns the bytes that survived the collection.
    #[must_use]
    pub fn total_promoted(&self) -> u64 {
        self.promoted.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }
}

/// Sums and quantiles over complete collections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GcStatistics {
    /// All collections.
    pub all: GenerationStatistics,
    /// The collections of generations 0, 1 and 2.
    pub generations: [GenerationStatistics; 3],
    /// The nanoseconds from the first to the last event of the trace, of any provider. Only events in the part count.
    pub span: u64,
    /// The number of processes that have collections.
    pub processes: u64,
}

impl GcStatistics {
    /// Returns the share of time in which the program was paused, between 0 and 1; of several processes, the mean of
    /// their shares. Pauses can overlap: the pause of a younger generation at the start of a background collection is
    /// also a part of the pause of the background collection.
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        let time = self.span as f64 * self.processes.max(1) as f64;
        if time == 0.0 { 0.0 } else { (self.all.pauses.total() as f64 / time).min(1.0) }
    }

    /// Adds a complete collection.
    pub(super) fn add(&mut self, collection: &Collection) {
        self.all.add(collection);
        if let Some(generation) = at_mut(&mut self.generations, collection.generation) {
            generation.add(collection);
        }
    }
}

/// Sums and quantiles over the complete collections of a generation, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GenerationStatistics {
    /// The number of collections.
    pub count: u64,
    /// The number of collections that the program requested.
    pub induced: u64,
    /// The pause of each collection.
    pub pauses: Durations,
    /// The time that each collection took to suspend all threads.
    pub suspensions: Durations,
    /// The bytes that survived, of all collections together.
    pub promoted: u64,
    /// The largest size of the heap after a collection, in bytes.
    pub largest_heap: u64,
}

impl GenerationStatistics {
    fn add(&mut self, collection: &Collection) {
        self.count = self.count.saturating_add(1);
        let is_induced = collection.reason.is_some_and(Reason::is_induced);
        self.induced = self.induced.saturating_add(is_induced.into());
        collection.pause.into_iter().for_each(|pause| self.pauses.add(pause));
        collection.suspension.into_iter().for_each(|suspension| self.suspensions.add(suspension));
        if let Some(heap) = &collection.heap {
            self.promoted = self.promoted.saturating_add(heap.total_promoted());
            self.largest_heap = self.largest_heap.max(heap.total_after());
        }
    }
}
