//! Traces with changed bytes: nothing panics, and the counts are consistent.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::call_tree::{CallTree, NodeId, Order, ThreadTree};
use nettrace_analysis::formats::{Profile, TimeProfile, Timeline};
use nettrace_analysis::heap::Snapshots;
use nettrace_analysis::live::Live;
use nettrace_analysis::locks::Locks;
use nettrace_analysis::requests::Requests;
use nettrace_analysis::samples::{Clock, Samples, Unit};
use serde_json::Value;

use crate::runtime_events::{Written, each_event, path};

#[test]
fn changed_bytes() {
    let traces = [
        "analysis/net31-sampled.nettrace",
        "analysis/net10-locks.nettrace",
        "analysis/net10-requests.nettrace",
        "analysis/net10-outgoing-requests.nettrace",
        "heap/net10-linux.nettrace",
        "nettrace/gen-v6-onecollect-small.nettrace",
    ];
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
        Clock::SampledTime,
        Clock::Allocations,
        Clock::Exceptions,
        Clock::Contention,
        Clock::AllEvents,
    ];
    let mut samples = Samples::new(clocks.iter().cloned());
    let mut timelines: Vec<_> = clocks.iter().cloned().map(Timeline::new).collect();
    let (mut live, mut locks) = (Live::default(), Locks::default());
    let (mut requests, mut snapshots) = (Requests::default(), Snapshots::default());
    each_event(trace, |event| {
        live.event(event);
        locks.event(event);
        requests.event(event);
        snapshots.event(event);
        samples.event_with(event, &mut |clock, interval| {
            timelines.iter_mut().for_each(|timeline| timeline.add(clock, interval));
        });
    });
    let report = locks.finish();
    for lock in &report.locks {
        assert!(lock.waits.longest <= lock.waits.total && lock.waiting.len() as u64 <= lock.waits.count);
    }
    for snapshot in snapshots.finish() {
        let graph = &snapshot.graph;
        let references: usize = (0..graph.len()).map(|node| graph.references(node).count()).sum();
        assert!(references <= trace.len() && graph.len() as usize <= trace.len());
        assert_eq!(graph.rows().iter().map(|row| row.count).sum::<u64>(), u64::from(graph.len()));
        assert!(graph.reachable().is_none_or(|reachable| reachable.count <= u64::from(graph.len())));
    }
    for group in requests.finish().groups {
        assert!(group.in_flight > 0 || group.durations.count() > 0);
        assert_eq!(group.in_flight > 0, group.oldest.is_some());
        assert!(group.path.text.len() <= 256);
    }
    let (period, total) = (live.next_period(), live.total());
    assert_eq!((period.samples, period.functions.len()), (total.samples, total.functions.len()));
    assert!((0.0..=1.0).contains(&period.paused_share()));
    let of_threads = ThreadTree::new(&mut samples, &clocks);
    assert!((1..).zip(of_threads.calls()).all(|(node, (caller, _))| caller.number() < node));
    for (place, (clock, timeline)) in clocks.iter().zip(timelines).enumerate() {
        let tree = CallTree::new(&mut samples, clock, |_, weight| weight.total());
        let weights = of_threads.weights(place).iter();
        assert_eq!(weights.fold(0_u64, |sum, row| sum.saturating_add(row.exclusive)), tree.total());
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
        // The other clocks have the same kinds of points and intervals, so two clocks are enough.
        if matches!(clock, Clock::Wall | Clock::ThreadTime) {
            files(&mut samples, clock, timeline);
        }
    }
}

/// The text of a trace in each format of JSON.
struct Files {
    sampled: Value,
    evented: Value,
    chromium: Value,
    #[cfg(feature = "firefox")]
    firefox: Value,
}

/// Writes the files, and reads them: those of JSON are valid, and calls in the order of time are nested.
fn files(samples: &mut Samples, clock: &Clock, timeline: Timeline) -> Files {
    let mut text = String::new();
    let profile = Profile::new(samples, clock, |_, weight| weight.total());
    profile.write_speedscope("x", &mut text).unwrap();
    let sampled: Value = serde_json::from_str(&text).unwrap();
    #[cfg(feature = "pprof")]
    profile.write_pprof(None, |_| Ok::<(), ()>(())).unwrap();
    let profile = TimeProfile::new(samples, timeline);
    text.clear();
    profile.write_speedscope("x", &mut text).unwrap();
    let evented: Value = serde_json::from_str(&text).unwrap();
    let is_time = clock.unit() == Unit::Nanoseconds;
    for thread in evented["profiles"].as_array().unwrap() {
        assert!(is_time);
        let (mut open, mut last) = (Vec::new(), thread["startValue"].as_f64().unwrap());
        for event in thread["events"].as_array().unwrap() {
            let at = event["at"].as_f64().unwrap();
            assert!(at >= last);
            last = at;
            if event["type"] == "O" {
                open.push(&event["frame"]);
            } else {
                assert_eq!(open.pop().unwrap(), &event["frame"]);
            }
        }
        assert!(open.is_empty() && thread["endValue"].as_f64().unwrap() >= last);
    }
    text.clear();
    profile.write_chromium("x", 0, &mut text).unwrap();
    let chromium: Value = serde_json::from_str(&text).unwrap();
    let events = chromium["traceEvents"].as_array().unwrap();
    let count = |phase| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!(count("B"), count("E"));
    Files {
        sampled,
        evented,
        chromium,
        #[cfg(feature = "firefox")]
        firefox: serde_json::from_str(&profile.to_firefox("x", 0, Some(0)).to_string()).unwrap(),
    }
}

/// Returns the row of a method of 16 bytes of code.
fn method(start: u64, name: &[u16]) -> Vec<u8> {
    let mut payload: Vec<u8> = [1, 1, start].iter().flat_map(|number: &u64| number.to_le_bytes()).collect();
    payload.extend([16_u32, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
    // The type, the name and the signature.
    let texts = [&[0], name, &[0, 0]].concat();
    payload.extend(texts.iter().flat_map(|unit| unit.to_le_bytes()));
    payload
}

/// An allocation: it shows that its thread runs in its stack.
const ALLOCATION: (u32, u32) = (10, 4);

#[test]
fn names_with_any_characters() {
    let names = ["a\"b", "a\\b", "\u{1}\n\r\t\u{7f}\u{9f}", "\u{2028}</script>", "a;b", "\u{1f600}"];
    let mut trace = Written::new();
    for (start, name) in (1_u64..).zip(names) {
        trace.event(start, 1, (143, 1), &method(start << 8, &name.encode_utf16().collect::<Vec<_>>()));
    }
    trace.event(9, 1, (143, 1), &method(9 << 8, &[0x61, 0xd800, 0x62]));
    let addresses: Vec<u64> = [1, 2, 3, 4, 5, 6, 9].map(|start| (start << 8) + 1).into();
    trace.event(10, 1, ALLOCATION, &[0; 50]).stack(&addresses);
    trace.event(2_000_010, 1, ALLOCATION, &[0; 50]);
    let clock = Clock::ThreadTime;
    let (mut samples, mut timeline) = (Samples::new([clock.clone()]), Timeline::new(clock.clone()));
    each_event(&trace.bytes(), |event| samples.event_with(event, &mut |clock, it| timeline.add(clock, it)));
    let files = files(&mut samples, &clock, timeline);
    let mut expected: Vec<String> = names.map(|name| format!("ManagedModule!{name}")).into();
    expected.push("ManagedModule!a\u{fffd}b".to_owned());
    expected.reverse();
    let named = |file: &Value| -> Vec<String> {
        let frames = file["shared"]["frames"].as_array().unwrap();
        frames.iter().map(|frame| frame["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(&files.sampled), expected);
    // A line of folded stacks is one stack.
    let mut folded = String::new();
    let tree = CallTree::new(&mut samples, &clock, |_, weight| weight.total());
    tree.write_folded(samples.names(), &mut folded).unwrap();
    let frames: Vec<_> =
        expected.iter().map(|name| name.replace(';', ":").replace(['\n', '\r'], " ")).collect();
    assert_eq!(folded, format!("{} 2000000\n", frames.join(";")));
    expected.push("CPU_TIME".to_owned());
    assert_eq!(named(&files.evented), expected);
    let events = files.chromium["traceEvents"].as_array().unwrap();
    let opened = events.iter().filter(|event| event["ph"] == "B");
    assert!(opened.map(|event| event["name"].as_str().unwrap()).eq(&expected));
    #[cfg(feature = "firefox")]
    {
        let strings = files.firefox["threads"][0]["stringArray"].as_array().unwrap();
        assert!(expected.iter().all(|name| strings.iter().any(|string| string == name)));
    }
}

/// Returns the number of Chromium's events for a trace in which a thread is by turns in two stacks of 100 different
/// frames.
fn turns(count: u64) -> usize {
    let mut trace = Written::new();
    for (start, letter) in (0..200).zip((b'a'..=b'z').cycle()) {
        trace.event(0, 1, (143, 1), &method(start << 8, &[letter.into()]));
    }
    let stacks: [Vec<u64>; 2] = [0, 100].map(|first| (first..first + 100).map(|frame| frame << 8).collect());
    for time in 0..count {
        trace.event(time + 1, 1, ALLOCATION, &[0; 50]).stack(&stacks[usize::from(time % 2 == 0)]);
    }
    // A thread without samples, and one that has a single one.
    trace.event(1, 2, (85, 0), &[&[0; 16][..], &2_u32.to_le_bytes(), &[0; 4], &3_u32.to_le_bytes()].concat());
    trace.event(2, 4, ALLOCATION, &[0; 50]).stack(&stacks[0]);
    let clock = Clock::ThreadTime;
    let (mut samples, mut timeline) = (Samples::new([clock.clone()]), Timeline::new(clock.clone()));
    each_event(&trace.bytes(), |event| samples.event_with(event, &mut |clock, it| timeline.add(clock, it)));
    assert_eq!(samples.threads().len(), 3);
    let files = files(&mut samples, &clock, timeline);
    // Only the thread with a known time has a profile.
    let profiles = files.evented["profiles"].as_array().unwrap();
    assert_eq!((profiles.len(), &profiles[0]["name"]), (1, &"Thread (1)".into()));
    files.chromium["traceEvents"].as_array().unwrap().len()
}

#[test]
fn the_length_of_a_file_is_proportional_to_that_of_the_trace() {
    let [once, twice] = [250, 500].map(turns);
    assert!(once > 250 * 200 - 1_000 && twice < once * 21 / 10, "{once} {twice}");
}
