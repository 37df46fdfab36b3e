//! The limits of the stored data.
use alloc::collections::BTreeMap;

pub(super) const THREADS: usize = 1 << 16;
pub(super) const LOCKS: usize = 1 << 16;
pub(super) const ENTRIES: usize = 1 << 18;

/// The sizes of the stored data of all processes together.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) threads: Store,
    pub(super) locks: Store,
    /// Pairs of a lock and a stack.
    pub(super) entries: Store,
    /// The number of events for which there was no room.
    pub(super) dropped: u64,
}

/// How much of one kind is stored, and how much can be.
#[derive(Debug)]
pub(super) struct Store {
    used: usize,
    limit: usize,
}

impl Default for Room {
    fn default() -> Self {
        let store = |limit| Store { used: 0, limit };
        Self { threads: store(THREADS), locks: store(LOCKS), entries: store(ENTRIES), dropped: 0 }
    }
}

impl Room {
    pub(super) const fn drop_event(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }
}

impl Store {
    /// Returns the value of a key, which is added if there is room. Otherwise, `dropped` counts the event.
    pub(super) fn entry<'m, K: Ord, V: Default>(
        &mut self,
        map: &'m mut BTreeMap<K, V>,
        key: K,
        dropped: &mut u64,
    ) -> Option<&'m mut V> {
        if !map.contains_key(&key) {
            if self.used >= self.limit {
                *dropped = dropped.saturating_add(1);
                return None;
            }
            self.used = self.used.saturating_add(1);
        }
        Some(map.entry(key).or_default())
    }
}
