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
use super::finding::{Finding, Severity};

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
    let causes: Vec<_> = findings.iter().map(|of| (of.kind, of.method.clone())).collect();
    findings.retain(|of| {
        let is_effect = |(kind, method): &(&str, Option<String>)| {
            let is_same = method.is_some() && *method == of.method;
            match of.kind {
                // A method runs because it throws, allocates or contends for a lock.
                "processor" => is_same && *kind != "processor",
                "blocked_threads" => is_same && *kind == "contention",
                // A queue that no wait of the pool explains, except for one for a lock.
                "thread_pool" => of.severity != Severity::High && matches!(*kind, "contention" | "deadlock"),
                _ => false,
            }
        };
        !causes.iter().any(is_effect)
    });
    findings.sort_by_key(|finding| finding.severity);
    findings
}
