//! Collections, allocations and the heap.
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity};
use crate::diagnosis::own_shares::OwnShare;

const MB: f64 = 1e6;

/// Returns the text and the method of the largest allocations.
fn allocator(facts: &Facts) -> (String, Option<String>) {
    match facts.allocations.heaviest() {
        Some(OwnShare { method, percent, place, .. }) => {
            (format!("; {percent} of the allocated bytes come from {place}"), Some(method))
        }
        None => (String::new(), None),
    }
}

/// Collections of the whole heap that large objects cause.
pub(super) fn large_objects(facts: &Facts) -> Option<Finding> {
    const PER_SECOND: f64 = 1.0;
    let heap = &facts.evidence.heap;
    let rate = facts.per_second(heap.by_large_objects);
    if rate < PER_SECOND || heap.by_large_objects < 3 {
        return None;
    }
    let (allocator, method) = allocator(facts);
    let evidence = format!(
        "{} collections of generation 2 ({rate:.0} a second) because of large objects (85,000 bytes and \
         more){allocator}",
        heap.by_large_objects
    );
    let finding = Finding::new("large_objects", Severity::high_if(rate >= 5.0 * PER_SECOND), evidence);
    Some(finding.in_method(method).see("dotnet-ipc report TARGET --allocations --by-type"))
}

/// Collections that the program requests.
pub(super) fn induced_collections(facts: &Facts) -> Option<Finding> {
    let all = &facts.evidence.gc.all;
    let rate = facts.per_second(all.induced);
    if all.induced < 3 || rate < 0.2 {
        return None;
    }
    let caller = facts.triggers.heaviest();
    let by = caller.as_ref().map_or_else(String::new, |caller| format!(", by {}", caller.place));
    let evidence = format!(
        "the program requests collections (GC.Collect): {} of {}, {rate:.1} a second{by}",
        all.induced, all.count
    );
    let finding = Finding::new("induced_collections", Severity::high_if(rate >= 1.0), evidence);
    Some(
        finding
            .in_method(caller.map(|caller| caller.method))
            .see("dotnet-ipc report TARGET --event Microsoft-Windows-DotNETRuntime/35"),
    )
}

/// Pauses and allocations that take much of the time.
pub(super) fn collections(facts: &Facts) -> Option<Finding> {
    const PAUSED: f64 = 0.1;
    const COLLECTIONS: f64 = 20.0;
    const ALLOCATED: f64 = 300.0 * MB;
    let all = &facts.evidence.gc.all;
    let paused = facts.per_second(all.pauses.total()) / 1e9;
    let (rate, allocated) = (facts.per_second(all.count), facts.per_second(facts.allocations.total));
    if paused < PAUSED && rate < COLLECTIONS && allocated < ALLOCATED {
        return None;
    }
    let (allocator, method) = allocator(facts);
    let evidence = format!(
        "{rate:.0} collections a second pause the program for {:.0} % of the time; it allocates {:.0} \
         MB/s{allocator}",
        paused * 100.0,
        allocated / MB
    );
    let finding = Finding::new(
        "allocations",
        Severity::high_if(paused >= 2.0 * PAUSED || rate >= 5.0 * COLLECTIONS),
        evidence,
    );
    Some(finding.in_method(method).see("dotnet-ipc report TARGET --allocations"))
}

/// A heap that grows from collection to collection.
pub(super) fn growing_heap(facts: &Facts) -> Option<Finding> {
    const GROWTH: f64 = 10.0 * MB;
    let heap = &facts.evidence.heap;
    let (first, last) = (heap.first? as f64, heap.last? as f64);
    if heap.complete < 2 || last - first < GROWTH || last < first * 1.25 {
        return None;
    }
    let (allocator, method) = allocator(facts);
    let evidence = format!(
        "the heap after a collection grew from {:.0} to {:.0} MB in {} collections{allocator}; two heap \
         dumps show which objects stay",
        first / MB,
        last / MB,
        heap.complete
    );
    let finding = Finding::new("heap_growth", Severity::Medium, evidence);
    Some(finding.in_method(method).see("dotnet-gcdump collect -p PID"))
}
