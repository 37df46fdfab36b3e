//! Threads that wait for each other.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Returns the cycles of a graph in which each thread waits for one other thread at most. Each cycle begins with its
/// lowest thread. The work is linear, up to a logarithm.
pub(super) fn cycles(waits_for: &BTreeMap<u64, u64>) -> Vec<Vec<u64>> {
    let mut cycles = Vec::new();
    // The walk in which each thread was reached first, and its place there.
    let mut seen: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for start in waits_for.keys() {
        let (mut walk, mut next) = (Vec::new(), *start);
        while let (None, Some(owner)) = (seen.get(&next), waits_for.get(&next)) {
            seen.insert(next, (*start, walk.len()));
            walk.push(next);
            next = *owner;
        }
        if let Some((_, place)) = seen.get(&next).filter(|(of, _)| of == start) {
            let mut cycle = walk.split_off(*place);
            let lowest = (0..).zip(&cycle).min_by_key(|(_, id)| **id).map_or(0, |(place, _)| place);
            cycle.rotate_left(lowest);
            cycles.push(cycle);
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::cycles;

    #[test]
    fn cycles_of_graphs() {
        assert_eq!(cycles(&[(5, 4), (4, 5)].into()), vec![vec![4, 5]]);
        assert_eq!(cycles(&[(1, 3), (3, 2), (2, 3), (9, 1)].into()), vec![vec![2, 3]]);
        assert_eq!(
            cycles(&[(7, 8), (8, 9), (9, 7), (1, 2), (2, 1), (3, 7)].into()),
            vec![vec![1, 2], vec![7, 8, 9]]
        );
        assert!(cycles(&[(1, 2), (2, 3)].into()).is_empty());
    }
}
