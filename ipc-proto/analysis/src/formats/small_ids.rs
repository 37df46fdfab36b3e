//! Ids of at most 32 bits for threads and processes, as some viewers need them.
use alloc::collections::{BTreeMap, BTreeSet};

use crate::samples::SampledThread;

/// Returns ids of 32 bits: an id that fits is itself, any other is the smallest number that is not an id of the trace.
#[derive(Debug)]
pub(super) struct SmallIds {
    used: BTreeSet<u64>,
    replaced: BTreeMap<u64, u32>,
    /// The processes and ids of the threads that have an id of 32 bits.
    threads: BTreeSet<(u64, u64)>,
    next: u32,
}

impl SmallIds {
    /// `used` are all ids of the trace.
    pub(super) fn new(used: impl Iterator<Item = u64>) -> Self {
        Self { used: used.collect(), replaced: BTreeMap::new(), threads: BTreeSet::new(), next: 1 }
    }

    /// Returns the id of 32 bits.
    pub(super) fn of(&mut self, id: u64) -> u32 {
        if let Ok(id) = u32::try_from(id) {
            return id;
        }
        let Self { used, replaced, next, .. } = self;
        *replaced.entry(id).or_insert_with(|| unused(used, next))
    }

    /// Returns the id of the next thread. Threads of a process have different ones, also if they have the same id one
    /// after the other.
    pub(super) fn of_thread(&mut self, thread: &SampledThread) -> u32 {
        if self.threads.insert((thread.process, thread.id)) {
            return self.of(thread.id);
        }
        unused(&self.used, &mut self.next)
    }
}

/// Returns the smallest number that is neither the id of a thread nor was returned before.
fn unused(used: &BTreeSet<u64>, next: &mut u32) -> u32 {
    while used.contains(&u64::from(*next)) {
        *next = next.saturating_add(1);
    }
    let small = *next;
    *next = next.saturating_add(1);
    small
}
