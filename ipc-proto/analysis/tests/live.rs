//! The periods of `Live`, against analyses of the whole trace.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use std::collections::BTreeMap;

use nettrace::TraceEvent;
use nettrace_analysis::Analysis as _;
use nettrace_analysis::KnownProvider;
use nettrace_analysis::call_tree::{CallTree, Order};
use nettrace_analysis::gc::Collections;
use nettrace_analysis::live::{Activity, Live};
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples, Weight};

use crate::runtime_events::{Written, each_event, path};

/// Returns the exclusive and the inclusive weight of each function by name.
fn functions(activity: &Activity) -> BTreeMap<String, (Weight, Weight)> {
    let functions = activity.functions.iter();
    functions.map(|function| (function.name.to_string(), (function.exclusive, function.inclusive))).collect()
}

/// Returns a `Live` that has all names of the trace, as from a rundown before the session.
fn live(trace: &[u8]) -> Live {
    let mut live = Live::default();
    each_event(trace, |event| live.names_mut().event(event));
    live
}

#[test]
fn shares_are_those_of_the_call_tree() {
    for name in ["analysis/net31-sampled.nettrace", "analysis/net10-startup.nettrace"] {
        let trace = std::fs::read(path(name)).unwrap();
        let mut live = live(&trace);
        let mut samples = Samples::new([Clock::Wall]);
        each_event(&trace, |event| {
            live.event(event);
            samples.event(event);
        });
        samples.finish_with(&mut |_, _| {});
        let period = live.next_period();
        for is_running in [true, false] {
            let part = |weight: Weight| if is_running { weight.running } else { weight.waiting };
            let tree = CallTree::of_origins(&mut samples, &Clock::Wall, |_, weight| part(weight));
            let top = tree.top(Order::Exclusive);
            let mut expected = BTreeMap::new();
            for entry in top {
                let name = samples.names().text(entry.frame).to_owned();
                expected.insert(name, (entry.exclusive, entry.inclusive));
            }
            let mut found = BTreeMap::new();
            for (name, (exclusive, inclusive)) in functions(&period) {
                if part(inclusive) > 0 {
                    found.insert(name, (part(exclusive), part(inclusive)));
                }
            }
            assert_eq!(found, expected, "{name} {is_running}");
            assert_eq!(part(period.samples), tree.total(), "{name} {is_running}");
        }
        assert!(period.rounds > 10 && period.running_threads() <= period.threads.len() as f64);
        assert_eq!(period.samples.total(), samples.samples());
    }
}

/// Frames of the runtime between others can be one function, and code of the program is marked.
#[test]
fn folded_functions() {
    let trace = std::fs::read(path("analysis/net31-sampled.nettrace")).unwrap();
    let mut live = live(&trace);
    each_event(&trace, |event| live.event(event));
    for activity in [live.next_period(), live.total()] {
        let name = |is_own| {
            let functions = activity.functions.iter().filter(move |function| function.is_own == is_own);
            functions.map(|function| &*function.name).collect::<Vec<_>>()
        };
        assert!(name(false).contains(&"[threads and async]"));
        assert!(!name(false).iter().any(|name| name.contains("ExecutionContext")));
        assert!(name(true).contains(&"Workload!Work+<Loop>c__AnonStorey0.<>m__0()"), "{:?}", name(true));
        assert!(
            activity.threads.iter().any(|thread| thread.is_own && name(true).contains(&&*thread.function))
        );
    }
}

#[test]
fn periods_add_up_to_the_total() {
    let trace = std::fs::read(path("analysis/net10-startup.nettrace")).unwrap();
    let (mut whole, mut parts) = (live(&trace), live(&trace));
    let (mut count, mut periods) = (0, Vec::new());
    each_event(&trace, |event| {
        whole.event(event);
        parts.event(event);
        count += 1;
        if count % 500 == 0 {
            periods.push(parts.next_period());
        }
    });
    periods.push(parts.next_period());
    let (whole, total) = (whole.next_period(), parts.total());
    assert!(periods.len() > 5, "{}", periods.len());
    assert_eq!(functions(&total), functions(&whole));
    let sum = |number: fn(&Activity) -> u64| periods.iter().map(number).sum::<u64>();
    for number in [
        |activity: &Activity| activity.samples.running,
        |activity: &Activity| activity.samples.waiting,
        |activity: &Activity| activity.span,
        |activity: &Activity| activity.allocated,
        |activity: &Activity| activity.collections,
        |activity: &Activity| activity.exceptions,
    ] {
        assert_eq!((sum(number), number(&total)), (number(&whole), number(&whole)));
    }
    let of_threads = |activity: &Activity| -> BTreeMap<u64, Weight> {
        activity.threads.iter().map(|thread| (thread.id, thread.samples)).collect()
    };
    assert_eq!(of_threads(&total), of_threads(&whole));
    assert!(whole.threads.iter().all(|thread| whole.functions.iter().any(|f| f.name == thread.function)));
}

fn is_sample(event: &TraceEvent<'_>) -> bool {
    let provider = event.metadata().and_then(|metadata| KnownProvider::of(metadata.provider));
    provider == Some(KnownProvider::SampleProfiler)
}

/// The runtime states once what it uses a thread for.
#[test]
fn threads_have_their_names_in_later_periods() {
    let trace = std::fs::read(path("analysis/net10-startup.nettrace")).unwrap();
    let mut live = live(&trace);
    each_event(&trace, |event| live.event(event));
    let names = |period: Activity| -> BTreeMap<u64, String> {
        let threads = period.threads.into_iter().filter(|thread| !thread.name.is_empty());
        threads.map(|thread| (thread.id, thread.name)).collect()
    };
    let first = names(live.next_period());
    assert!(first.values().any(|name| name == ".NET Finalizer"), "{first:?}");
    for _ in 0..2 {
        each_event(&trace, |event| {
            if is_sample(event) {
                live.event(event);
            }
        });
        assert_eq!(names(live.next_period()), first);
    }
    // A thread also has its name if the name comes before the first sample, in a period without samples.
    let mut later = Live::default();
    each_event(&trace, |event| {
        if !is_sample(event) {
            later.event(event);
        }
    });
    assert!(later.next_period().threads.is_empty());
    each_event(&trace, |event| later.event(event));
    assert_eq!(names(later.next_period()), first);
}

#[test]
fn pauses_are_those_of_the_collections() {
    let trace = std::fs::read(path("analysis/net10-collections.nettrace")).unwrap();
    let mut live = Live::default();
    let (mut collections, mut count, mut paused) = (Collections::default(), 0, 0);
    each_event(&trace, |event| {
        live.event(event);
        collections.event(event);
        while let Some(collection) = collections.pop() {
            count += 1;
            paused += collection.pause.unwrap_or_default();
        }
    });
    let period = live.next_period();
    assert!(count > 3 && paused > 0);
    assert_eq!((period.collections, period.paused), (count, paused));
    assert_eq!(period.span, collections.finish().statistics.span);
    let share = paused as f64 / period.span as f64;
    assert!(share < 1.0 && (period.paused_share() - share).abs() < 1e-9);
    assert!((period.per_second(period.collections) - count as f64 * 1e9 / period.span as f64).abs() < 1e-6);
}

#[test]
fn allocations_and_exceptions_of_a_period() {
    // AllocationTick: amount, kind, instance, the amount again in 64 bits.
    let mut tick = vec![0; 10];
    tick.extend_from_slice(&100_000_u64.to_le_bytes());
    tick.extend_from_slice(&[0; 32]);
    let mut trace = Written::new();
    trace.event(1_000, 1, (10, 4), &tick).event(2_000, 1, (10, 4), &tick).event(3_000, 1, (80, 1), &[0; 20]);
    let mut live = Live::default();
    assert!(!live.has_events());
    each_event(&trace.bytes(), |event| live.event(event));
    assert!(live.has_events());
    let period = live.next_period();
    assert_eq!((period.allocated, period.exceptions), (200_000, 1));
    assert!(!live.has_events());
    // An empty period counts nothing again, and no share is divided by zero.
    let empty = live.next_period();
    assert_eq!((empty.allocated, empty.exceptions, empty.span), (0, 0, 0));
    assert_eq!((empty.per_second(1), empty.paused_share(), empty.running_threads()), (0.0, 0.0, 0.0));
    assert_eq!(live.total().allocated, 200_000);
}

/// A small number of addresses remains for the next period. A large number is removed, because the addresses of many
/// periods would exceed the limit of names.
#[test]
fn many_addresses_do_not_remain() {
    let mut live = Live::default();
    assert!(live.names_mut().perf_map_line(0, "1000 10 int32 [app] Shop.Cart::Total()"));
    let few = [1, 2, 3].map(|ip| live.names_mut().address(0, ip));
    live.next_period();
    assert_eq!([1, 2, 3].map(|ip| live.names_mut().address(0, ip)), few);
    for _ in 0..=Names::ADDRESSES >> 17 {
        for ip in 0..1 << 17 {
            live.names_mut().address(0, ip << 20);
        }
        live.next_period();
    }
    let names = live.names_mut();
    let address = names.address(0, 0x1008);
    let frame = names.frame(address);
    assert_eq!(names.text(frame), "app!Shop.Cart::Total()");
}

#[test]
fn the_sums_have_a_limit() {
    const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
    const FRAMES: u64 = 100;
    let (functions, threads) = (Live::FUNCTIONS as u64 + 16, Live::THREADS as u64 + 5);
    assert_eq!(functions % FRAMES, 0);
    let running = 2_u32.to_le_bytes();
    let mut trace = Written::new();
    for thread in 0..threads {
        trace.event_of(SAMPLER, thread, thread, (0, 0), &running);
        if thread < functions / FRAMES {
            let frames = (0..FRAMES).map(|frame| 0x1000 + 0x10 * (thread * FRAMES + frame));
            trace.stack(&frames.collect::<Vec<_>>());
        }
    }
    let (trace, mut live) = (trace.bytes(), Live::default());
    for function in 0..functions {
        let line = format!("{:x} 10 [app] function{function}", 0x1000 + 0x10 * function);
        assert!(live.names_mut().perf_map_line(0, &line));
    }
    for _ in 0..2 {
        each_event(&trace, |event| live.event(event));
        assert_eq!(live.next_period().omitted, 0);
    }
    let total = live.total();
    assert_eq!((total.functions.len(), total.threads.len()), (Live::FUNCTIONS, Live::THREADS));
    // The seventeenth function beyond the limit is `(no frame)`, of the threads without a stack.
    assert_eq!(total.omitted, 2 * (17 + 5));
    assert!(total.threads.iter().all(|thread| thread.samples.running == 2));
    assert!(total.functions.iter().all(|function| function.inclusive.running == 2));
}
