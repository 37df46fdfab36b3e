//! One garbage collection: its times, sizes and reason.
use crate::event::named_number;

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
