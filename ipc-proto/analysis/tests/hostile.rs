//! Traces with changed bytes: nothing panics, and the counts are consistent.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use nettrace_analysis::call_tree::{CallTree, NodeId, Order};
use nettrace_analysis::samples::{Clock, Samples};

use crate::runtime_events::{each_event, path};

#[test]
fn changed_bytes() {
    let traces = ["analysis/net31-sampled.nettrace", "nettrace/gen-v6-onecollect-small.nettrace"];
    for trace in traces.map(|name| std::fs::read(path(name)).unwrap()) {
        // Any sequence of numbers will do, if it is the same each time.
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..24 {
            let mut trace = trace.clone();
            for _ in 0..1 << (round % 8) {
                let place = random(trace.len());
                trace[place] = random(256) as u8;
            }
            check(&trace);
        }
    }
}

fn check(trace: &[u8]) {
    let clocks = [
        Clock::Cpu,
        Clock::Wall,
        Clock::ThreadTime,
        Clock::Allocations,
        Clock::Exceptions,
        Clock::Contention,
        Clock::AllEvents,
    ];
    let mut samples = Samples::new(clocks.iter().cloned());
    each_event(trace, |event| samples.event(event));
    for clock in &clocks {
        let tree = CallTree::new(&mut samples, clock, |_, weight| weight.total());
        let top = tree.top(Order::Inclusive);
        assert!(
            top.iter().all(|entry| entry.exclusive <= entry.inclusive && entry.inclusive <= tree.total())
        );
        if let Some(first) = top.first() {
            let _ = (tree.callers(first.frame), tree.callees(first.frame), tree.children(NodeId::ROOT));
        }
        let mut folded = String::new();
        tree.write_folded(samples.names(), &mut folded).unwrap();
        let share = tree.unnamed_share(samples.names());
        assert!((0.0..=100.0).contains(&share));
    }
}
