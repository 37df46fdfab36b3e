//! Ids of at most 32 bits for threads and processes, as some viewers need them.
use alloc::collections::{BTreeMap, BTreeSet};

/// Returns ids of 32 bits: an id that fits is itself, any other is the smallest number that is not an id of the trace.
#[derive(Debug)]
pub(super) struct SmallIds {
    used: BTreeSet<u64>,
    replaced: BTreeMap<u64, u32>,
    next: u32,
}

impl SmallIds {
    /// `used` are all ids of the trace.
    pub(super) fn new(used: impl Iterator<Item = u64>) -> Self {
        Self { used: used.collect(), replaced: BTreeMap::new(), next: 1 }
    }

    /// Returns the id of 32 bits.
    pub(super) fn of(&mut self, id: u64) -> u32 {
        if let Ok(id) = u32::try_from(id) {
            return id;
        }
        let Self { used, replaced, next } = self;
        *replaced.entry(id).or_insert_with(|| {
            while used.contains(&u64::from(*next)) {
                *next = next.saturating_add(1);
            }
            let small = *next;
            *next = next.saturating_add(1);
            small
        })
    }
}
