//! The rules that find problems. Each rule checks the facts for one kind of problem; the limits are in the rules.
mod code;
mod memory;
mod requests;
mod threads;

use super::facts::Facts;
use super::finding::Finding;

/// The rules. Among findings of the same severity, the finding of the earlier rule is the worse one.
const RULES: [fn(&Facts) -> Option<Finding>; 17] = [
    threads::deadlock,
    threads::starved_pool,
    threads::blocked_pool,
    threads::finalizer,
    code::contention,
    code::exceptions,
    memory::large_objects,
    memory::induced_collections,
    threads::many_threads,
    requests::connections,
    memory::collections,
    code::processor,
    requests::stuck,
    memory::growing_heap,
    code::start,
    code::compilation,
    threads::resources,
];

/// Returns what is wrong, the worst first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<_> = RULES.iter().filter_map(|rule| rule(facts)).collect();
    // Work that waits for blocked threads says more than the blocked threads.
    if findings.iter().any(|finding| finding.kind == "thread_pool") {
        findings.retain(|finding| finding.kind != "blocked_threads");
    }
    // Waits that never end are in the statistics of locks, too, and block the pool.
    let deadlock = findings.iter().find(|finding| finding.kind == "deadlock");
    if let Some(method) = deadlock.map(|deadlock| deadlock.method.clone()) {
        findings.retain(|of| !(["contention", "blocked_threads"].contains(&of.kind) && of.method == method));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}
