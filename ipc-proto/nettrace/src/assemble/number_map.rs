use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ipc_proto::wire::steps;

/// Values by number, for numbers that count up from 1, as those of stacks and descriptions do.
///
/// Such numbers are places in a vector: a lookup reads one place, and clearing takes no time where values own nothing.
/// Other numbers are in an ordered map, so that no choice of numbers makes a lookup linear.
#[derive(Debug)]
pub(crate) struct NumberMap<V> {
    /// The values of 1, 2, ….
    dense: Vec<V>,
    /// The values of all other numbers.
    sparse: BTreeMap<u64, V>,
}

impl<V> NumberMap<V> {
    /// Bytes that an entry in the ordered map takes at most: its nodes are at least half full.
    const SPARSE_ENTRY: usize = size_of::<V>().saturating_add(16).saturating_mul(2);

    /// Returns the value of `number`.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&V> {
        match self.dense.get(place(number)) {
            Some(value) => Some(value),
            None if self.sparse.is_empty() => None,
            None => {
                steps::count(self.levels());
                self.sparse.get(&number)
            }
        }
    }

    /// Sets the value of `number`, and returns the one before.
    pub(crate) fn insert(&mut self, number: u64, value: V) -> Option<V> {
        let place = place(number);
        if let Some(slot) = self.dense.get_mut(place) {
            return Some(core::mem::replace(slot, value));
        }
        steps::count(self.levels());
        if place != self.dense.len() {
            return self.sparse.insert(number, value);
        }
        let before = self.sparse.remove(&number);
        self.dense.push(value);
        before
    }

    /// Returns the bytes of memory that the entries take at most.
    pub(crate) fn memory(&self) -> usize {
        // The vector doubles when it is full.
        let dense = self.dense.capacity().max(self.dense.len().saturating_mul(2));
        let dense = dense.saturating_mul(size_of::<V>());
        dense.saturating_add(self.sparse.len().saturating_mul(Self::SPARSE_ENTRY))
    }

    /// Returns the number of comparisons that a search in the ordered map makes at most, divided by a constant.
    fn levels(&self) -> usize {
        self.sparse.len().checked_ilog2().map_or(1, |log| usize::try_from(log).unwrap_or(usize::MAX))
    }

    /// Removes all values, and releases the memory of many.
    pub(crate) fn clear(&mut self) {
        steps::count(self.sparse.len());
        clear(&mut self.dense);
        self.sparse.clear();
    }
}

impl<V> Default for NumberMap<V> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: BTreeMap::new() }
    }
}

/// The bytes of memory that a cleared vector keeps for its next values.
const KEPT: usize = 1 << 20;

/// Removes all values of a vector, whose destructors take no time, and releases its memory if that is much.
pub(crate) fn clear<V>(values: &mut Vec<V>) {
    values.clear();
    if values.capacity().saturating_mul(size_of::<V>()) > KEPT {
        *values = Vec::new();
    }
}

/// Returns the place of a number in the vector; that of 0 is out of reach.
#[inline]
fn place(number: u64) -> usize {
    usize::try_from(number.wrapping_sub(1)).unwrap_or(usize::MAX)
}
