//! Threads that wait for a lock from before a recording.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::StackId;
use crate::samples::{Clock, Samples, ThreadNumber};
use crate::stacks::ThreadState;

/// Returns the threads that wait for a lock from before the recording up to its end: all their samples are in the
/// runtime's code that acquires a lock, and no event has their wait.
///
/// The samples need [`Clock::Wall`] and [`Clock::Contention`], and must be [finished](crate::Analysis::finish). .NET 8
/// and 9 wait in native code, of which samples have no frames: their threads are not found.
#[must_use]
pub fn old_waits(samples: &mut Samples) -> Vec<ThreadNumber> {
    let known: BTreeSet<_> = samples.weights(&Clock::Contention).map(|(thread, _, _)| thread).collect();
    let rows: Vec<_> = samples.weights(&Clock::Wall).collect();
    let (names, stacks) = samples.names_and_stacks();
    let mut is_lock: BTreeMap<StackId, bool> = BTreeMap::new();
    let mut waits: BTreeMap<ThreadNumber, bool> = BTreeMap::new();
    for (thread, stack, weight) in rows {
        let is_lock = *is_lock.entry(stack).or_insert_with(|| {
            let of_stack: Vec<_> = stacks.addresses(stack).map(|address| names.frame(address)).collect();
            ThreadState::of_stack(&of_stack, names, false).0 == ThreadState::Lock
        });
        *waits.entry(thread).or_insert(true) &= is_lock && weight.running == 0;
    }
    let is_old =
        |(thread, is_lock): (ThreadNumber, bool)| (is_lock && !known.contains(&thread)).then_some(thread);
    waits.into_iter().filter_map(is_old).collect()
}
