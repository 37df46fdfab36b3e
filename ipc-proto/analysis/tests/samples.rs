//! Clocks that need events of several kinds, with traces that the tests write.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use nettrace_analysis::call_tree::CallTree;
use nettrace_analysis::samples::{Clock, Samples, Unit, Weight};

use crate::runtime_events::{Written, each_event};

fn read(trace: &[u8], clocks: &[Clock]) -> Samples {
    let mut samples = Samples::new(clocks.iter().cloned());
    each_event(trace, |event| samples.event(event));
    samples
}

fn weights(samples: &Samples, clock: &Clock) -> Vec<(u64, Weight)> {
    let threads = samples.threads();
    samples.weights(clock).map(|(thread, _, weight)| (threads[thread.number()].id, weight)).collect()
}

/// A lock that two threads wait for at the same time, and one whose end is not in the trace.
#[test]
fn contention() {
    let [start, stop] = [&[0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]];
    let mut trace = Written::new();
    trace.event(5, 3, (91, 1), stop);
    for (time, thread) in [(1000, 1), (1100, 2)] {
        trace.event(time, thread, (81, 1), start);
    }
    for (time, thread) in [(1500, 2), (3000, 1)] {
        trace.event(time, thread, (91, 1), stop);
    }
    trace.event(4000, 1, (81, 1), start);
    let mut samples = read(&trace.bytes(), &[Clock::Contention]);
    let waited = |waiting| Weight { running: 0, waiting };
    assert_eq!(weights(&samples, &Clock::Contention), [(1, waited(2000)), (2, waited(400))]);
    assert_eq!(samples.count(&Clock::Contention), 3);
    let tree = CallTree::new(&mut samples, &Clock::Contention, |_, weight| weight.total());
    assert_eq!((tree.total(), Clock::Contention.unit()), (2400, Unit::Nanoseconds));
    // The sample has no stack, so the tree has no frame.
    assert_eq!(tree.top(Default::default()), []);
}

#[test]
fn allocations_and_exceptions() {
    // AllocationTick: amount, kind, instance, the amount again in 64 bits.
    let tick = |amount: u64| {
        let mut payload = vec![0; 10];
        payload.extend_from_slice(&amount.to_le_bytes());
        payload.extend_from_slice(&[0; 32]);
        payload
    };
    let mut trace = Written::new();
    trace.event(1, 1, (10, 4), &tick(5 << 32)).event(2, 1, (10, 4), &tick(100_000)).event(
        3,
        2,
        (80, 1),
        &[0; 24],
    );
    let clocks = [Clock::Allocations, Clock::Exceptions, Clock::ThreadTime];
    let samples = read(&trace.bytes(), &clocks);
    let ran = |running| Weight { running, waiting: 0 };
    assert_eq!(weights(&samples, &clocks[0]), [(1, ran((5 << 32) + 100_000))]);
    assert_eq!(weights(&samples, &clocks[1]), [(2, ran(1))]);
    // An allocation shows that the thread runs.
    assert_eq!(weights(&samples, &clocks[2]), [(1, ran(1))]);
}

/// Events that show that a thread runs, that it is in a stack, or nothing. Each event is 10 ns after the event before.
#[test]
fn events_of_thread_time() {
    const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
    let runs = [Weight { running: 10, waiting: 0 }; 2];
    let waits = [Weight { running: 0, waiting: 10 }, Weight::default()];
    let none = [Weight::default(); 2];
    for (provider, id, payload, expected) in [
        (SAMPLER, 0, 2, runs),
        (SAMPLER, 0, 1, [waits[0]; 2]),
        // Another event of the sampler is no sample.
        (SAMPLER, 1, 2, none),
        // AllocationTick, and both kinds of sampled allocations.
        (RUNTIME, 10, 0, runs),
        (RUNTIME, 20, 0, runs),
        (RUNTIME, 32, 0, runs),
        (RUNTIME, 33, 0, none),
        // An event of an event source counts if its events show what a thread does. Sampled time ignores it.
        ("My-Source", 7, 0, waits),
        ("My-Source", 0xfffe, 0, none),
        (FRAMEWORK, 139, 0, none),
        (FRAMEWORK, 140, 0, waits),
        (FRAMEWORK, 143, 0, waits),
        (FRAMEWORK, 144, 0, none),
        ("System.Threading.Tasks.TplEventSource", 7, 0, none),
        ("Microsoft-Windows-DotNETRuntimePrivate", 10, 0, none),
    ] {
        let mut trace = Written::new();
        for time in [10, 20] {
            trace.event_of(provider, time, 1, (id, 0), &u32::to_le_bytes(payload)).stack(&[0x1000]);
        }
        let clocks = [Clock::ThreadTime, Clock::SampledTime];
        let samples = read(&trace.bytes(), &clocks);
        let found = clocks.map(|clock| {
            let weights = weights(&samples, &clock);
            weights.first().map_or_else(Weight::default, |(_, weight)| *weight)
        });
        assert_eq!(found, expected, "{provider}/{id}");
    }
}

#[test]
fn threads_have_the_names_of_their_use() {
    let created = |flags: u32, id: u32| {
        let mut payload = vec![0; 16];
        [flags, 0, id].iter().for_each(|number| payload.extend_from_slice(&number.to_le_bytes()));
        payload
    };
    let mut trace = Written::new();
    for (flags, id) in [(0, 1), (2, 2), (4, 3)] {
        trace.event(u64::from(id), 1, (85, 0), &created(flags, id));
    }
    // The finalizer thread writes GCFinalizersBegin.
    trace.event(8, 4, (14, 1), &[0; 2]).event(8, 3, (14, 1), &[0; 2]);
    trace.event(9, 1, (85, 0), &[0; 20]).event(10, 1, (80, 1), &[]);
    let samples = read(&trace.bytes(), &[Clock::Exceptions]);
    let names: Vec<_> = samples.threads().iter().map(|thread| (thread.id, thread.name.as_str())).collect();
    assert_eq!(names, [(2, ".NET Finalizer"), (3, ".NET ThreadPool"), (4, ".NET Finalizer"), (1, "")]);
}
