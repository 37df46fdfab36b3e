//! One garbage collection: its times, sizes and reason.
use core::fmt;

use crate::names::place::at;

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

/// How a collection relates to the program: the type of GCStart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CollectionType(pub u32);

impl CollectionType {
    /// The program is paused from the start to the end.
    pub const NON_CONCURRENT: Self = Self(0);
    /// The program runs for the most part: a collection of generation 2.
    pub const BACKGROUND: Self = Self(1);
    /// Blocks the program while a background collection runs: a collection of generation 0 or 1.
    pub const FOREGROUND: Self = Self(2);

    /// Returns the name that TraceEvent uses, if the type is known.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NON_CONCURRENT => "NonConcurrentGC",
            Self::BACKGROUND => "BackgroundGC",
            Self::FOREGROUND => "ForegroundGC",
            _ => return None,
        })
    }
}

/// Writes the name of the type, or its number.
impl fmt::Display for CollectionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

/// The reason why the runtime started a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Reason(pub u32);

impl Reason {
    /// The names of the reasons. TraceEvent has the same names, but prints the last four as numbers.
    const NAMES: [&'static str; 18] = [
        "AllocSmall",
        "Induced",
        "LowMemory",
        "Empty",
        "AllocLarge",
        "OutOfSpaceSOH",
        "OutOfSpaceLOH",
        "InducedNotForced",
        "Internal",
        "InducedLowMemory",
        "InducedCompacting",
        "LowMemoryHost",
        "PMFullGC",
        "LowMemoryHostBlocking",
        "BgcTuningSOH",
        "BgcTuningLOH",
        "BgcStepping",
        "InducedAggressive",
    ];

    /// The budget of generation 0 was used up.
    pub const ALLOC_SMALL: Self = Self(0);
    /// The program requested the collection.
    pub const INDUCED: Self = Self(1);
    /// The machine has little memory.
    pub const LOW_MEMORY: Self = Self(2);
    /// The budget for large objects was used up.
    pub const ALLOC_LARGE: Self = Self(4);
    /// The program requested the collection, and let the runtime decide whether it blocks.
    pub const INDUCED_NOT_FORCED: Self = Self(7);
    /// The program requested the collection, with compaction.
    pub const INDUCED_COMPACTING: Self = Self(10);
    /// A full collection in provisional mode, which replaces a collection of generation 1 in the same pause.
    pub const PM_FULL: Self = Self(12);
    /// The program requested the collection, and that as much memory as possible be returned to the operating system.
    pub const INDUCED_AGGRESSIVE: Self = Self(17);

    /// Returns the name that TraceEvent uses, if the reason is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        at(&Self::NAMES, self.0).copied()
    }

    /// Returns whether the program requested the collection, by `GC.Collect` for example.
    #[must_use]
    pub const fn is_induced(self) -> bool {
        matches!(
            self,
            Self::INDUCED | Self::INDUCED_NOT_FORCED | Self::INDUCED_COMPACTING | Self::INDUCED_AGGRESSIVE
        )
    }
}

/// Writes the name of the reason, or its number.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
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
