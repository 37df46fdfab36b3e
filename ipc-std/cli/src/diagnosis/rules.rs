//! What counts as a sickness. Each rule looks at the facts for one kind; the limits are in the rules.
mod code;
mod memory;
mod threads;

use super::facts::Facts;
use super::finding::Finding;

/// The rules, in the order of what hurts most among findings of the same severity.
const RULES: [fn(&Facts) -> Option<Finding>; 15] = [
    threads::deadlock,
    threads::starved_pool,
    threads::finalizer,
    code::contention,
    code::exceptions,
    memory::large_objects,
    memory::induced_collections,
    threads::many_threads,
    code::connections,
    memory::collections,
    code::processor,
    memory::growing_heap,
    code::start,
    code::compilation,
    threads::resources,
];

/// Returns what is wrong, the worst first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<_> = RULES.iter().filter_map(|rule| rule(facts)).collect();
    // Waits that never end are in the statistics of locks, too.
    let is_deadlock = |of: &Option<String>| {
        findings.iter().any(|finding| finding.kind == "deadlock" && finding.method == *of)
    };
    let repeated: Vec<_> =
        findings.iter().map(|of| of.kind == "contention" && is_deadlock(&of.method)).collect();
    let mut repeated = repeated.into_iter();
    findings.retain(|_| !repeated.next().unwrap_or_default());
    findings.sort_by_key(|finding| finding.severity);
    findings
}
