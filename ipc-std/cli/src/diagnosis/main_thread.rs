//! Where the main thread spends its time while a process starts.
use std::collections::BTreeMap;

use nettrace_analysis::samples::{Clock, Samples, ThreadNumber};

use super::blocked_threads::{Place, StackPlace};
use super::entry_point::is_entry_point;
use super::own_shares::OwnFrames;

/// The time of the main thread in each method of the program, the longest first. The entry point itself does not count:
/// most programs wait there.
#[derive(Debug, Default)]
pub(super) struct MainThread {
    /// What the thread did, and for how many seconds.
    pub(super) places: Vec<(Place, f64)>,
}

impl MainThread {
    pub(super) fn new(samples: &mut Samples, seconds: f64) -> Self {
        let rows: Vec<_> = samples.weights(&Clock::Wall).collect();
        let mut own = OwnFrames::default();
        let mut threads = BTreeMap::<ThreadNumber, (u64, bool)>::new();
        let mut places = BTreeMap::<(ThreadNumber, Place), u64>::new();
        for (thread, stack, weight) in rows {
            let place = StackPlace::new(samples, &mut own, stack);
            let (total, is_main) = threads.entry(thread).or_default();
            *total = total.saturating_add(weight.total());
            *is_main |= place.is_below_entry_point;
            let Some(wait) = place.wait.filter(|(_, method)| !is_entry_point(method)) else { continue };
            let sum = places.entry((thread, wait)).or_default();
            *sum = sum.saturating_add(weight.total());
        }
        let mut places: Vec<_> = places
            .into_iter()
            .filter_map(|((thread, place), samples)| {
                let (total, is_main) = threads.get(&thread)?;
                is_main.then_some((place, seconds * samples as f64 / (*total).max(1) as f64))
            })
            .collect();
        places.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Self { places }
    }
}
