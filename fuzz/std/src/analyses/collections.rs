//! The property of collections and compilations: each is returned once and does not change.
use std::collections::BTreeMap;

use nettrace_analysis::gc::{Collection, Collections, GcStatistics};
use nettrace_analysis::jit::{Compilation, Compilations, JitStatistics};
use nettrace_analysis::{Analysis, RuntimeEvent};

use super::traces::{each_event, trace_of};

/// Checks that no event changes a collection or a compilation that was returned before. None is returned twice, and the
/// statistics count the returned ones.
pub fn collections(bytes: &[u8]) {
    let (trace, _) = trace_of(bytes);
    // A collection has a start, or else an end.
    let ((collections, gc), events) =
        (collections_of(&trace, true), count(&trace, &[RuntimeEvent::GCStart, RuntimeEvent::GCEnd]));
    assert_eq!(collections_of(&trace, false), (collections.clone(), gc.clone()));
    assert!(collections.len() <= events, "{} of {events}", collections.len());
    let mut last = BTreeMap::new();
    for collection in collections.iter().filter(|collection| collection.start.is_some()) {
        assert!(last.insert(collection.process_id, collection.start) <= Some(collection.start));
    }
    let complete = collections.iter().filter(|collection| collection.is_complete);
    assert_eq!(gc.all.count, complete.clone().count() as u64);
    assert!(
        complete.into_iter().all(|of| of.start.is_some() && of.pause_start.is_some() && of.pause.is_some())
    );
    assert!((0.0..=1.0).contains(&gc.paused_share()), "{}", gc.paused_share());

    let (compilations, jit) = compilations_of(&trace, true);
    assert_eq!(compilations_of(&trace, false), (compilations.clone(), jit.clone()));
    let [load, verbose] = [RuntimeEvent::MethodLoad, RuntimeEvent::MethodLoadVerbose];
    assert!(compilations.len() <= count(&trace, &[load, verbose, RuntimeEvent::MethodJittingStarted]));
    assert!(compilations.windows(2).all(|pair| pair[0].start <= pair[1].start));
    let tiers: u64 = jit.tiers().map(|(_, tier)| tier.count).sum();
    assert_eq!(jit.all.count, tiers);
}

/// The number of these events of the runtime.
fn count(trace: &[u8], events: &[RuntimeEvent]) -> usize {
    let mut count = 0;
    each_event(trace, false, |event| {
        count += usize::from(RuntimeEvent::of(event).is_some_and(|event| events.contains(&event)));
    });
    count
}

/// Takes the complete collections after each event, or all at the end.
fn collections_of(trace: &[u8], early: bool) -> (Vec<Collection>, GcStatistics) {
    let (mut found, report) = taken(trace, Collections::default(), early, Collections::pop);
    found.extend(report.collections);
    (found, report.statistics)
}

fn compilations_of(trace: &[u8], early: bool) -> (Vec<Compilation>, JitStatistics) {
    let (mut found, report) = taken(trace, Compilations::default(), early, Compilations::pop);
    found.extend(report.compilations);
    (found, report.statistics)
}

/// Returns what `pop` returns after each event if `early`, and the report.
fn taken<A: Analysis, T>(
    trace: &[u8],
    mut analysis: A,
    early: bool,
    pop: fn(&mut A) -> Option<T>,
) -> (Vec<T>, A::Report) {
    let mut found = Vec::new();
    each_event(trace, true, |event| {
        analysis.event(event);
        found.extend(core::iter::from_fn(|| early.then(|| pop(&mut analysis)).flatten()));
    });
    (found, analysis.finish())
}
