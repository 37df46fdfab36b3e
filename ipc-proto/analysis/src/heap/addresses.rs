//! Which node is at an address. Nodes arrive in runs of ascending addresses, so that no table of hashes is needed.
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};

/// Nodes by address.
#[derive(Debug, Clone)]
pub(super) enum AddressIndex {
    /// The index of the first node of each run, by address. No run begins within another.
    Runs(Vec<Run>),
    /// All nodes by address, if runs overlap.
    Sorted(Vec<u32>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    start: u64,
    first: u32,
    end: u32,
}

/// A larger distance of two nodes begins a run, because other parts of the heap can lie between them.
const MAX_DISTANCE: u64 = 1 << 20;

impl AddressIndex {
    pub(super) fn new(addresses: &[u64]) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut last = None;
        for (place, &address) in addresses.iter().enumerate() {
            let place = to_u32(place);
            let is_next = |last: u64| address > last && address.wrapping_sub(last) <= MAX_DISTANCE;
            match runs.last_mut() {
                Some(run) if last.is_some_and(is_next) => run.end = place.saturating_add(1),
                _ => runs.push(Run { start: address, first: place, end: place.saturating_add(1) }),
            }
            last = Some(address);
        }
        runs.sort_by_key(|run| (run.start, run.first));
        let last_of = |run: &Run| addresses.get(to_usize(run.end.saturating_sub(1))).copied();
        let overlaps = |pair: &[Run]| matches!(pair, [run, next] if last_of(run) >= Some(next.start));
        if runs.windows(2).any(overlaps) {
            let mut sorted: Vec<u32> = (0..to_u32(addresses.len())).collect();
            // A stable sort: of several nodes at an address, the first one is found.
            sorted.sort_by_key(|node| addresses.get(to_usize(*node)).copied());
            return Self::Sorted(sorted);
        }
        Self::Runs(runs)
    }

    /// Returns the node at an address. A reference mostly points to a node near the one before: `near` is searched first.
    pub(super) fn find(&self, addresses: &[u64], address: u64, near: u32) -> Option<u32> {
        let at = |node: u32| addresses.get(to_usize(node)).copied();
        match self {
            Self::Sorted(sorted) => {
                let place = sorted.partition_point(|node| at(*node) < Some(address));
                sorted.get(place).copied().filter(|node| at(*node) == Some(address))
            }
            Self::Runs(runs) => {
                let place = runs.partition_point(|run| run.start <= address);
                let run = runs.get(place.checked_sub(1)?)?;
                let (mut low, mut high) = (run.first, run.end);
                if (low..high).contains(&near) {
                    (low, high) = around(low, high, near, |node| at(node) < Some(address));
                }
                let nodes = addresses.get(to_usize(low)..to_usize(high))?;
                let found = low.saturating_add(to_u32(nodes.partition_point(|node| *node < address)));
                Some(found).filter(|node| *node < run.end && at(*node) == Some(address))
            }
        }
    }
}

/// Narrows `low..high` in steps that double from `near`; `is_before` states whether the wanted node comes later.
fn around(low: u32, high: u32, near: u32, is_before: impl Fn(u32) -> bool) -> (u32, u32) {
    let mut step = 1_u32;
    if is_before(near) {
        let mut from = near;
        loop {
            let next = near.saturating_add(step);
            if next >= high {
                return (from, high);
            }
            if !is_before(next) {
                return (from, next.saturating_add(1));
            }
            (from, step) = (next, step.saturating_mul(2));
        }
    }
    let mut to = near.saturating_add(1);
    loop {
        let next = near.saturating_sub(step);
        if step > near || next <= low {
            return (low, to);
        }
        if is_before(next) {
            return (next, to);
        }
        (to, step) = (next.saturating_add(1), step.saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use ipc_proto::wire::{to_u32, to_usize};

    use super::AddressIndex;

    fn check(addresses: &[u64]) -> AddressIndex {
        let index = AddressIndex::new(addresses);
        for address in addresses {
            for near in 0..to_u32(addresses.len()) {
                let first = addresses.iter().position(|known| known == address);
                assert_eq!(
                    index.find(addresses, *address, near).map(to_usize),
                    first,
                    "{address} near {near}"
                );
                let within = address.saturating_add(4);
                assert_eq!(index.find(addresses, within, near), None);
            }
        }
        assert_eq!(index.find(addresses, 0, 0), None);
        assert_eq!(index.find(addresses, u64::MAX - 3, 0), None);
        index
    }

    #[test]
    fn every_address_is_found_from_everywhere() {
        let young: Vec<u64> = (0..40).map(|n| 0x90_0000 + 24 * n).collect();
        let old: Vec<u64> = (0..30).map(|n| 0x10_0000 + 32 * n).collect();
        assert!(
            matches!(check(&[young.clone(), old.clone()].concat()), AddressIndex::Runs(runs) if runs.len() == 2)
        );
        // A run within another one, and one address twice.
        let within = [[0x10_0000, 0x10_8000, 0x10_F000].as_slice(), &old, &old[3..5]].concat();
        assert!(matches!(check(&within), AddressIndex::Sorted(_)));
        assert!(matches!(AddressIndex::new(&[]), AddressIndex::Runs(runs) if runs.is_empty()));
    }
}
