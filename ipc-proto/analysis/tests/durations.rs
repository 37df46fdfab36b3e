//! Quantiles of durations, against their definition.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

use nettrace_analysis::Durations;

/// The first quantile of two durations is the shorter one, or both share a bucket.
#[test]
fn buckets_are_in_order_and_narrow() {
    let mut values: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1 << bit) + 1]).collect();
    values.extend((0..5_000).chain([u64::MAX, u64::MAX - 1]));
    values.sort_unstable();
    for pair in values.windows(2) {
        let [low, high] = [pair[0], pair[1]];
        let mut durations = Durations::default();
        durations.add(high);
        durations.add(low);
        let median = durations.quantile(500);
        assert!(median == low || (median == high && high - low <= low / 128), "{low} {high}");
    }
}

/// The quantiles are those of the definition, on sorted durations.
#[test]
fn quantiles() {
    let mut state = 1_u64;
    for count in [1_usize, 2, 3, 10, 1_000] {
        let (mut all, mut durations) = (Vec::new(), Durations::default());
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let duration = state >> (state & 31) >> 20;
            all.push(duration);
            durations.add(duration);
        }
        all.sort_unstable();
        for per_mille in [0, 1, 10, 500, 900, 990, 999, 1_000] {
            let rank = (count * usize::from(per_mille)).div_ceil(1_000).max(1);
            let (exact, found) = (all[rank - 1], durations.quantile(per_mille));
            assert!(
                found >= exact && found - exact <= exact / 128,
                "{per_mille} of {count}: {exact} {found}"
            );
        }
        assert_eq!(durations.longest(), all[count - 1]);
        assert_eq!(durations.total(), all.iter().sum::<u64>());
    }
    let none = Durations::default();
    assert_eq!((none.quantile(500), none.mean(), none.longest(), none.count()), (0, 0, 0, 0));
}
