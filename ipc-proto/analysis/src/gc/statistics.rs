//! Sums and quantiles over garbage collections.
use super::Collection;
use crate::Durations;
use crate::place::at_mut;

/// Sums and quantiles over complete collections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GcStatistics {
    /// All collections.
    pub all: GenerationStatistics,
    /// The collections of generations 0, 1 and 2.
    pub generations: [GenerationStatistics; 3],
    /// The nanoseconds from the first to the last event of the trace, whatever their provider.
    pub span: u64,
}

impl GcStatistics {
    /// Returns the share of time in which the program was paused, between 0 and 1. Pauses can overlap: the pause of a
    /// younger generation at the start of a background collection is also a part of the pause of the background
    /// collection.
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        if self.span == 0 { 0.0 } else { (self.all.pauses.total() as f64 / self.span as f64).min(1.0) }
    }

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
        self.induced = self.induced.saturating_add(collection.reason.is_induced().into());
        self.pauses.add(collection.pause);
        self.suspensions.add(collection.suspension);
        if let Some(heap) = &collection.heap {
            self.promoted = self.promoted.saturating_add(heap.total_promoted());
            self.largest_heap = self.largest_heap.max(heap.total_after());
        }
    }
}
