//! Sums and quantiles over garbage collections.
use super::{Collection, Reason};
use crate::Durations;
use crate::names::at_mut;

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
