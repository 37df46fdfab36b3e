//! Collections, allocations and the heap.
use nettrace_analysis::account::{Account, Gauge, Measure, Row};

use crate::diagnosis::fact::Wish;
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::{Bins, Stretch, seconds};
use crate::diagnosis::trend::Trend;

const MB: f64 = 1e6;

fn stretch(facts: &Facts<'_>, gauge: &Gauge, per_second: f64) -> Option<Stretch> {
    Bins::of_gauge(facts.account, gauge).stretch(per_second)
}

/// Returns whether a kind of collections is more than a half of all.
fn are_most(facts: &Facts<'_>, kind: &Gauge) -> bool {
    kind.count() > facts.of.gc.all.count() / 2
}

/// Collections of the whole heap that large objects cause.
pub(super) fn large_objects(facts: &Facts<'_>) -> Vec<Finding> {
    const PER_SECOND: f64 = 1.0;
    const COUNT: u64 = 5;
    let by_large = &facts.of.gc.by_large_objects;
    let Some(stretch) = stretch(facts, by_large, PER_SECOND).filter(|_| by_large.count() >= COUNT) else {
        return Vec::new();
    };
    let is_large = |row: &Row<'_>| row.label == Account::LARGE;
    let rows: Vec<_> = facts.rows(Measure::Allocations).filter(is_large).collect();
    let blame = facts.blame(&rows);
    let evidence = format!(
        "{} collections of generation 2 ({:.0} a second{}) because of large objects (85,000 bytes and more){}",
        by_large.count(),
        stretch.rate,
        stretch.when(),
        places(&blame, "; ", "of the bytes of large objects come from")
    );
    let finding =
        Finding::new("large_objects", Severity::high_if(stretch.rate >= 5.0 * PER_SECOND), evidence);
    vec![finding.blame(&blame).see("dotnet-ipc report TARGET --allocations --by-type")]
}

/// Collections that the program requests.
pub(super) fn induced_collections(facts: &Facts<'_>) -> Vec<Finding> {
    const PER_SECOND: f64 = 0.2;
    const COUNT: u64 = 3;
    let (induced, all) = (&facts.of.gc.induced, &facts.of.gc.all);
    let Some(stretch) = stretch(facts, induced, PER_SECOND).filter(|_| induced.count() >= COUNT) else {
        return Vec::new();
    };
    let rows: Vec<_> = facts.rows(Measure::Triggers).collect();
    let blame = facts.blame(&rows);
    let evidence = format!(
        "the program requests collections (GC.Collect): {} of {}, {:.1} a second{}{}",
        induced.count(),
        all.count(),
        stretch.rate,
        stretch.when(),
        places(&blame, "; ", "by")
    );
    let finding = Finding::new("induced_collections", Severity::high_if(stretch.rate >= 1.0), evidence);
    let next = "dotnet-ipc report TARGET --event Microsoft-Windows-DotNETRuntime/35";
    vec![finding.blame(&blame).see(next)]
}

/// Pauses and allocations that take much of the time. Collections with another cause have findings of their own.
pub(super) fn collections(facts: &Facts<'_>) -> Vec<Finding> {
    const PAUSED: f64 = 0.1;
    const COLLECTIONS: f64 = 20.0;
    const ALLOCATED: f64 = 300.0 * MB;
    const COUNT: u64 = 5;
    let gc = &facts.of.gc;
    if are_most(facts, &gc.induced) || are_most(facts, &gc.by_large_objects) {
        return Vec::new();
    }
    let rows: Vec<_> = facts.rows(Measure::Allocations).collect();
    // A few collections in a short recording have no rate.
    let has_rate = |_: &Stretch| gc.all.count() >= COUNT || facts.seconds >= 2.0;
    let paused = stretch(facts, &gc.pauses, PAUSED).filter(has_rate);
    let collections = stretch(facts, &gc.all, COLLECTIONS).filter(has_rate);
    let allocated = facts.stretch(&rows, ALLOCATED);
    let Some(time) = paused.or(collections).or(allocated) else { return Vec::new() };
    let mut parts = Vec::new();
    let of_gauge = |gauge: &Gauge| {
        let inside = gauge.points().iter().filter(|point| time.has(point.first));
        inside.map(|point| point.sum).sum::<f64>() / time.length().max(1e-3)
    };
    let (rate, share) = (of_gauge(&gc.all), of_gauge(&gc.pauses));
    if facts.is_recorded(Wish::Collections) {
        let share = share * 100.0;
        parts.push(format!(
            "{rate:.0} collections a second pause the program for {share:.0} % of the time{}",
            time.when()
        ));
    }
    if let Some(rate) = allocation_rate(facts, &rows) {
        parts.push(format!("it allocates {rate:.0} MB/s"));
    }
    let blame = facts.blame(&rows);
    let places = places(&blame, "; ", "of the allocated bytes come from");
    let is_high = share >= 2.0 * PAUSED || rate >= 5.0 * COLLECTIONS;
    let finding =
        Finding::new("allocations", Severity::high_if(is_high), format!("{}{places}", parts.join("; ")));
    vec![finding.blame(&blame).see("dotnet-ipc report TARGET --allocations")]
}

fn allocation_rate(facts: &Facts<'_>, rows: &[Row<'_>]) -> Option<f64> {
    let bytes: u64 = rows.iter().map(|row| row.running).sum();
    facts.is_recorded(Wish::Allocations).then(|| facts.per_second(bytes as f64) / MB)
}

/// A heap that grows from collection to collection.
pub(super) fn growing_heap(facts: &Facts<'_>) -> Vec<Finding> {
    const GROWTH: f64 = 10.0 * MB;
    const FULL: u64 = 4;
    let gc = &facts.of.gc;
    let (heap, which) = match gc.full_heap.count() >= FULL {
        true => (&gc.full_heap, "of generation 2"),
        false => (&gc.heap, "of any generation"),
    };
    let sizes: Vec<_> = heap.points().iter().map(|point| point.mean()).collect();
    let is_growth = |from: f64, to: f64| to - from >= GROWTH && to >= from * 1.25;
    let (trend, severity) = match (Trend::of(&sizes), sizes.as_slice()) {
        (Some(trend), _) => (trend, Severity::Medium),
        // A few collections show no trend, so that only a large growth counts.
        (None, [from, .., to]) if sizes.len() < 4 && sizes.is_sorted() => {
            let is_large = *to >= from * 1.5 && to - from >= 2.0 * GROWTH;
            (
                Trend { from: *from, to: *to, start: 0 },
                if is_large { Severity::Medium } else { Severity::Info },
            )
        }
        _ => return Vec::new(),
    };
    if !is_growth(trend.from, trend.to) {
        return Vec::new();
    }
    let rows: Vec<_> = facts.rows(Measure::Allocations).collect();
    let blame = facts.blame(&rows);
    let start = heap.points().get(trend.start).filter(|_| trend.start > 0);
    let [_, end] = seconds(facts.account);
    let since = start.map(|point| Stretch::new(point.first as f64 / 1e9, end, 0.0, facts.account).when());
    let since = since.unwrap_or_default();
    let sense = match sizes.len() {
        0..4 => "which are too few to show whether it goes on: record for longer",
        _ => "and its lows rise to the end",
    };
    let evidence = format!(
        "the heap after a collection grew from {:.0} to {:.0} MB in {} collections {which}{since}, {sense}{}; which \
         objects these are is not in the events: two heap snapshots show it",
        trend.from / MB,
        trend.to / MB,
        heap.count(),
        places(&blame, "; ", "of the allocated bytes come from")
    );
    let finding = Finding::new("heap_growth", severity, evidence);
    vec![finding.blame(&blame).see("dotnet-ipc heap PID")]
}
