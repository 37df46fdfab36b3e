//! What counts as a sickness. Each rule judges totals, and then names the methods of the events that made its finding.
//! The limits are in the rules.
mod exceptions;
mod locks;
mod memory;
mod pool;
mod processor;
mod requests;
mod start;
mod threads;

use super::facts::Facts;
use super::finding::Finding;

/// The rules, in the order of what hurts most among findings of the same severity: causes before their effects.
const RULES: [fn(&Facts<'_>) -> Vec<Finding>; 17] = [
    locks::deadlocks,
    pool::blocked,
    threads::finalizer,
    locks::contention,
    locks::sampled_waits,
    exceptions::thrown,
    requests::failed,
    memory::induced_collections,
    memory::large_objects,
    threads::many,
    requests::connections,
    memory::collections,
    processor::busy,
    requests::stuck,
    memory::growing_heap,
    start::start,
    start::compilation,
];

/// Returns what is wrong, the worst first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(facts)).collect();
    findings.extend(threads::resources(facts));
    // A method that runs because it throws, allocates or contends for a lock is no second finding, and neither are the
    // blocked threads that wait for a semaphore.
    let causes: Vec<_> = findings.iter().map(|of| (of.kind, of.method.clone())).collect();
    findings.retain(|of| {
        let is_effect_of = |kind| match of.kind {
            "processor" => kind != "processor",
            "blocked_threads" => kind == "contention",
            _ => false,
        };
        let is_known = |(kind, method): &(_, _)| is_effect_of(*kind) && *method == of.method;
        of.method.is_none() || !causes.iter().any(is_known)
    });
    findings.sort_by_key(|finding| finding.severity);
    findings
}
