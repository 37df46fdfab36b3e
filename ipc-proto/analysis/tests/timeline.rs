//! Files in the order of time, against those of `dotnet-trace` and against the analyses that they come from.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod runtime_events;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nettrace_analysis::call_tree::{CallTree, Order};
use nettrace_analysis::formats::{TimeProfile, Timeline};
use nettrace_analysis::samples::{Clock, Interval, Samples};
use serde_json::{Value, json};

use crate::runtime_events::{LARGE_ID, Written, each_event, numbers, path, two_processes};

fn read(trace: &[u8], clock: &Clock) -> (Samples, Timeline) {
    let (mut samples, mut timeline) = (Samples::new([clock.clone()]), Timeline::new(clock.clone()));
    each_event(trace, |event| {
        samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval));
    });
    (samples, timeline)
}

fn recorded(name: &str, clock: &Clock) -> (Samples, Timeline) {
    read(&fs::read(path(&format!("analysis/{name}.nettrace"))).unwrap(), clock)
}

fn speedscope(profile: &TimeProfile<'_>) -> Value {
    let mut file = String::new();
    profile.write_speedscope("a \"name\"\u{1}\\", &mut file).unwrap();
    serde_json::from_str(&file).unwrap()
}

fn chromium(profile: &TimeProfile<'_>) -> Value {
    let mut file = String::new();
    profile.write_chromium("a \"name\"\u{1}\\", 4711, &mut file).unwrap();
    serde_json::from_str(&file).unwrap()
}

/// A call with its time in milliseconds.
type Called = (String, f64);

/// Milliseconds by thread and frame: as the innermost frame, and in all stacks that have it.
type Times = BTreeMap<(String, String), (f64, f64)>;

/// Adds up calls of a thread, which must be nested.
struct Calls {
    thread: String,
    open: Vec<Called>,
    last: f64,
}

impl Calls {
    fn new(thread: &str) -> Self {
        // The name that dotnet-trace gives to the thread of finalizers.
        let thread = thread.replace(".NET Finalizer Thread", ".NET Finalizer");
        Self { thread, open: Vec::new(), last: f64::MIN }
    }

    fn advance(&mut self, at: f64, times: &mut Times) {
        assert!(at >= self.last, "{at} follows {}", self.last);
        let elapsed = if self.open.is_empty() { 0.0 } else { at - self.last };
        self.last = at;
        let Some((leaf, _)) = self.open.last() else { return };
        times.entry((self.thread.clone(), leaf.clone())).or_default().0 += elapsed;
    }

    fn open(&mut self, name: &str, at: f64, times: &mut Times) {
        self.advance(at, times);
        self.open.push((name.to_owned(), at));
    }

    fn close(&mut self, name: &str, at: f64, times: &mut Times) {
        self.advance(at, times);
        let (open, start) = self.open.pop().unwrap();
        assert_eq!(open, name);
        if !self.open.iter().any(|(outer, _)| outer == name) {
            times.entry((self.thread.clone(), open)).or_default().1 += at - start;
        }
    }
}

/// Returns what a file with profiles of the kind "evented" shows.
fn speedscope_times(file: &Value) -> Times {
    let frames = file["shared"]["frames"].as_array().unwrap();
    let mut times = Times::new();
    for profile in file["profiles"].as_array().unwrap() {
        assert_eq!((&profile["type"], &profile["unit"]), (&json!("evented"), &json!("milliseconds")));
        let mut calls = Calls::new(profile["name"].as_str().unwrap());
        let events = profile["events"].as_array().unwrap();
        assert_eq!(profile["startValue"], events[0]["at"]);
        assert_eq!(profile["endValue"], events.last().unwrap()["at"]);
        for event in events {
            let name = frames[usize::try_from(event["frame"].as_u64().unwrap()).unwrap()]["name"].as_str();
            let (name, at) = (name.unwrap(), event["at"].as_f64().unwrap());
            match event["type"].as_str().unwrap() {
                "O" => calls.open(name, at, &mut times),
                "C" => calls.close(name, at, &mut times),
                other => panic!("{other}"),
            }
        }
        assert_eq!(calls.open, []);
    }
    times
}

/// Returns what a file with trace events shows.
fn chromium_times(file: &Value) -> Times {
    assert_eq!(file["displayTimeUnit"], "ms");
    let mut times = Times::new();
    let mut threads: BTreeMap<u64, Calls> = BTreeMap::new();
    // The order of the file must be kept: in another one, calls that end and begin at the same time are not nested.
    let mut ends = BTreeSet::new();
    for event in file["traceEvents"].as_array().unwrap() {
        assert_eq!(event["pid"], 4711);
        let (id, name) = (event["tid"].as_u64().unwrap(), event["name"].as_str().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" if name == "process_name" => assert_eq!(event["args"]["name"], "Workload"),
            "M" => {
                assert_eq!(name, "thread_name");
                let name = event["args"]["name"].as_str().unwrap();
                let plain = format!("Thread ({id})");
                let thread = if name == plain { plain } else { format!("{plain} ({name})") };
                assert!(threads.insert(id, Calls::new(&thread)).is_none());
            }
            phase => {
                let (calls, at) = (threads.get_mut(&id).unwrap(), event["ts"].as_f64().unwrap() / 1e3);
                let time = (id, event["ts"].to_string());
                match phase {
                    "B" => {
                        assert!(!ends.contains(&time), "{event}");
                        calls.open(name, at, &mut times);
                    }
                    "E" => {
                        ends.insert(time);
                        calls.close(name, at, &mut times);
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
    assert!(threads.values().all(|calls| calls.open.is_empty()));
    times
}

fn assert_close(times: &Times, expected: &Times, relative: f64, absolute: f64) {
    let is_close = |a: f64, b: f64| (a - b).abs() <= b * relative + absolute;
    for (key, (exclusive, inclusive)) in expected {
        let found = times.get(key).unwrap_or_else(|| panic!("{key:?} is missing in {:?}", times.keys()));
        assert!(is_close(found.0, *exclusive) && is_close(found.1, *inclusive), "{key:?}: {found:?}");
    }
    assert_eq!(times.len(), expected.len());
}

#[test]
fn threads_and_frames_have_the_times_of_dotnet_trace() {
    for (name, pairs) in [("net31-sampled", 14), ("net10-startup", 200)] {
        let (mut samples, timeline) = recorded(name, &Clock::SampledTime);
        let profile = TimeProfile::new(&mut samples, timeline);
        let times = speedscope_times(&speedscope(&profile));
        assert!(times.len() > pairs, "{name}: {}", times.len());
        let file = fs::read(path(&format!("analysis/{name}.speedscope.json"))).unwrap();
        let mut expected = speedscope_times(&serde_json::from_slice(&file).unwrap());
        // dotnet-trace adds these frames above the stack of a thread.
        expected.retain(|(_, frame), _| {
            !["Process64 ", "(Non-Activities)", "Threads", "Thread ("]
                .iter()
                .any(|start| frame.starts_with(start))
        });
        assert_close(&times, &expected, 0.001, 0.0005);
        // A call begins a nanosecond after the end of the one before it.
        assert_close(&chromium_times(&chromium(&profile)), &times, 1e-5, 1e-4);
    }
}

/// The times are those of the call tree, which adds them up.
#[test]
fn a_file_has_what_the_call_tree_has() {
    let clock = Clock::ThreadTime;
    let (mut samples, timeline) = recorded("net10-startup", &clock);
    let tree = CallTree::new(&mut samples, &clock, |_, weight| weight.total());
    let expected: BTreeMap<String, f64> = tree
        .top(Order::Inclusive)
        .iter()
        .map(|entry| (samples.names().text(entry.frame).to_owned(), entry.inclusive as f64 / 1e6))
        .collect();
    let file = speedscope(&TimeProfile::new(&mut samples, timeline));
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for ((_, frame), (_, inclusive)) in speedscope_times(&file) {
        *sums.entry(frame).or_default() += inclusive;
    }
    let states = ["CPU_TIME", "UNMANAGED_CODE_TIME"].map(|state| sums.remove(state).unwrap());
    assert!((states[0] + states[1] - tree.total() as f64 / 1e6).abs() < 1e-6 && states[0] > 0.0);
    assert!(expected.len() > 100 && sums.len() == expected.len());
    for (name, time) in expected {
        assert!((sums[&name] - time).abs() < 1e-6, "{name}: {} and {time}", sums[&name]);
    }
}

/// A trace in which threads wait for locks: between the waits they are in no stack.
fn waits(times: &[(u64, u64)]) -> Vec<u8> {
    let mut trace = Written::new();
    for (start, stop) in times {
        trace.event(*start, 7, (81, 1), &[0; 3]).event(*stop, 7, (91, 1), &[0; 11]);
    }
    trace.bytes()
}

#[test]
fn other_clocks_of_time_have_gaps() {
    let (mut samples, timeline) = read(&waits(&[(1_000, 3_000), (5_000_000, 7_000_000)]), &Clock::Contention);
    let profile = TimeProfile::new(&mut samples, timeline);
    let file = speedscope(&profile);
    let [thread] = &file["profiles"].as_array().unwrap()[..] else { panic!("{file}") };
    // The waits have no stacks: each is a call of the frame that stands for none.
    assert_eq!(thread["events"].as_array().unwrap().len(), 4);
    assert_eq!(file["shared"]["frames"], json!([{ "name": "(no frame)" }]));
    assert_eq!((&thread["startValue"], &thread["endValue"]), (&json!(0.001), &json!(7.0)));
    assert_eq!((&thread["name"], &file["name"]), (&json!("Thread (7)"), &json!("a \"name\"\u{1}\\")));
    assert_eq!(chromium(&profile)["traceEvents"].as_array().unwrap().len(), 2 + 4);
}

/// A process has its name from the trace, and ids of more than 32 bits survive.
#[test]
fn processes_have_names_and_threads_have_ids() {
    let (mut samples, timeline) = read(&two_processes(), &Clock::Contention);
    let profile = TimeProfile::new(&mut samples, timeline);
    let file = speedscope(&profile);
    let names: Vec<&str> =
        file["profiles"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    let unnamed = "a \"name\"\u{1}\\";
    let large = format!("Thread ({LARGE_ID})");
    let expected = [
        "Shop (100) Thread (7)".to_owned(),
        format!("{unnamed} (200) Thread (7)"),
        format!("Shop (100) {large}"),
    ];
    assert_eq!(names, expected);
    assert_eq!(file["name"], unnamed);

    let file = chromium(&profile);
    let of = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let mut names = BTreeMap::new();
    for event in file["traceEvents"].as_array().unwrap() {
        let kind = event["name"].as_str().unwrap();
        if event["ph"] == "M" {
            names.insert((kind, of(event)), event["args"]["name"].as_str().unwrap());
        }
        assert!(of(event).1 <= u32::MAX.into(), "{event}");
    }
    assert_eq!(names[&("process_name", (100, 7))], "Shop");
    assert_eq!(names[&("process_name", (200, 7))], unnamed);
    assert_eq!(names[&("thread_name", (100, 7))], "Thread (7)");
    // The id is the smallest one that no thread has.
    assert_eq!(names[&("thread_name", (100, 1))], large);
}

/// A clock that has points in time has no calls.
#[test]
fn points_have_no_duration() {
    let (mut samples, timeline) = recorded("net31-sampled", &Clock::Wall);
    let profile = TimeProfile::new(&mut samples, timeline);
    assert_eq!(speedscope(&profile)["profiles"], json!([]));
    assert_eq!(chromium(&profile)["traceEvents"], json!([]));
}

/// Intervals of two stacks of a thread, with frames that a test names.
struct Stacks {
    samples: Samples,
    timeline: Timeline,
    stacks: Vec<Interval>,
}

impl Stacks {
    /// Reads a trace in which two threads have one stack each. One of the stacks is empty.
    fn new() -> Self {
        let (samples, _) = recorded("net31-sampled", &Clock::ThreadTime);
        let weights = samples.weights(&Clock::ThreadTime);
        let stacks = weights
            .map(|(thread, stack, weight)| Interval { thread, stack, start: 0, weight, is_tick: false })
            .collect();
        Self { samples, timeline: Timeline::new(Clock::ThreadTime), stacks }
    }

    /// Adds an interval of the first thread.
    fn add(&mut self, stack: usize, start: i64, end: i64) -> &mut Self {
        let mut interval = Interval { start, ..self.stacks[stack] };
        interval.thread = self.stacks[0].thread;
        interval.weight.waiting = u64::try_from(end - start).unwrap();
        interval.weight.running = 0;
        self.timeline.add(&Clock::ThreadTime, &interval);
        self
    }

    /// Returns the depth of the deepest stack, and the events of the only thread: a letter and the time in nanoseconds.
    fn events(mut self) -> (usize, Vec<(char, f64)>) {
        let file = speedscope(&TimeProfile::new(&mut self.samples, self.timeline));
        speedscope_times(&file);
        let [thread] = &file["profiles"].as_array().unwrap()[..] else { panic!("{file}") };
        let events = thread["events"].as_array().unwrap();
        let mut depth = 0;
        let mut deepest = 0;
        let mut found: Vec<(char, f64)> = Vec::new();
        for event in events {
            let kind = event["type"].as_str().unwrap().chars().next().unwrap();
            depth = if kind == 'O' { depth + 1 } else { depth - 1 };
            deepest = deepest.max(depth);
            let at = (event["at"].as_f64().unwrap() * 1e6).round();
            // The innermost frame only states that the thread waits, so equal events that follow each other count once.
            if found.last() != Some(&(kind, at)) {
                found.push((kind, at));
            }
        }
        (deepest, found)
    }
}

/// Intervals of one stack that follow each other directly are one call. After a gap, a new call begins.
#[test]
fn intervals_that_continue_each_other_are_one() {
    let mut stacks = Stacks::new();
    stacks.add(0, 100, 200).add(0, 200, 300).add(0, 400, 500);
    let (_, events) = stacks.events();
    assert_eq!(events, [('O', 100.0), ('C', 300.0), ('O', 400.0), ('C', 500.0)]);
}

/// If times go back, the part of an interval that is also in an earlier interval counts once, and no time is negative.
#[test]
fn times_that_go_back_are_cut() {
    let mut stacks = Stacks::new();
    stacks.add(0, -50, 100).add(0, 20, 80).add(0, 50, 150).add(0, 10, 10).add(0, 40, 20_000);
    stacks.add(0, i64::MAX - 1, i64::MAX);
    let max = i64::MAX as f64;
    assert_eq!(stacks.events().1, [('O', 0.0), ('C', 20_000.0), ('O', max), ('C', max)]);
}

#[test]
fn other_clocks_are_ignored() {
    let mut stacks = Stacks::new();
    let interval = stacks.stacks[0];
    stacks.timeline.add(&Clock::Contention, &interval);
    assert_eq!(speedscope(&TimeProfile::new(&mut stacks.samples, stacks.timeline))["profiles"], json!([]));
}

#[test]
fn intervals_without_room_are_counted() {
    let mut stacks = Stacks::new();
    let limit = i64::try_from(Timeline::LIMIT).unwrap();
    for i in 0..limit + 3 {
        stacks.add(0, 10 * i, 10 * i + 5);
    }
    assert_eq!(stacks.timeline.dropped(), 3);
    // An interval that continues the last one needs no room.
    stacks.add(0, 10 * (limit - 1) + 5, 10 * limit + 7);
    assert_eq!(stacks.timeline.dropped(), 3);
}

#[cfg(feature = "firefox")]
mod firefox {
    use super::*;

    /// Returns the weights of a thread's frames by name, as the innermost frame and in all stacks, with its total.
    fn weights(thread: &Value) -> (BTreeMap<String, (f64, f64)>, f64) {
        let table = |table: &str, column: &str, row: &Value| {
            let row = usize::try_from(row.as_u64().unwrap()).unwrap();
            thread[table][column].as_array().unwrap()[row].clone()
        };
        let strings = thread["stringArray"].as_array().unwrap();
        let samples = &thread["samples"];
        let column = |name: &str| samples[name].as_array().unwrap();
        let length = usize::try_from(samples["length"].as_u64().unwrap()).unwrap();
        for name in ["stack", "weight", "timeDeltas", "threadCPUDelta"] {
            assert_eq!(column(name).len(), length, "{name}");
        }
        assert!(column("timeDeltas").iter().all(|delta| delta.as_f64().unwrap() >= 0.0));
        let (mut found, mut total) = (BTreeMap::<String, (f64, f64)>::new(), 0.0);
        for (stack, weight) in column("stack").iter().zip(column("weight")) {
            let weight = weight.as_f64().unwrap();
            total += weight;
            let (mut names, mut stack) = (Vec::new(), stack.clone());
            while !stack.is_null() {
                let function = table("frameTable", "func", &table("stackTable", "frame", &stack));
                let name = table("funcTable", "name", &function).as_u64().unwrap();
                names.push(strings[usize::try_from(name).unwrap()].as_str().unwrap().to_owned());
                stack = table("stackTable", "prefix", &stack);
            }
            let Some(leaf) = names.first() else { continue };
            found.entry(leaf.clone()).or_default().0 += weight;
            names.sort();
            names.dedup();
            names.into_iter().for_each(|name| found.entry(name).or_default().1 += weight);
        }
        (found, total)
    }

    #[test]
    fn threads_and_frames_have_the_times_of_dotnet_trace() {
        let (mut samples, timeline) = recorded("net10-startup", &Clock::ThreadTime);
        let ran: u64 = samples.weights(&Clock::ThreadTime).map(|(_, _, weight)| weight.running).sum();
        let profile = TimeProfile::new(&mut samples, timeline);
        let expected = speedscope_times(&speedscope(&profile));
        let file = profile.to_firefox("x", 25_430, Some(1_700_000_000_000_000_000));
        assert_eq!(file["meta"]["startTime"], 1.7e12);
        let mut times = Times::new();
        let mut cpu = 0;
        for thread in file["threads"].as_array().unwrap() {
            assert_eq!(
                (&thread["pid"], &thread["samples"]["weightType"]),
                (&json!("25430"), &json!("tracing-ms"))
            );
            let (id, name) = (thread["tid"].as_str().unwrap(), thread["name"].as_str().unwrap());
            let name = if name.starts_with('.') { format!(" ({name})") } else { String::new() };
            for (frame, time) in weights(thread).0 {
                times.insert((format!("Thread ({id}){name}"), frame), time);
            }
            let deltas = thread["samples"]["threadCPUDelta"].as_array().unwrap();
            cpu += deltas.iter().map(|delta| delta.as_u64().unwrap()).sum::<u64>();
        }
        assert_close(&times, &expected, 1e-9, 1e-6);
        // The format has microseconds, which are rounded down.
        assert!((ran / 1_000 - 2_000..=ran / 1_000).contains(&cpu), "{cpu} {ran}");
    }

    #[test]
    fn points_are_samples() {
        for (clock, kind) in
            [(Clock::Wall, "samples"), (Clock::Cpu, "samples"), (Clock::AllEvents, "samples")]
        {
            let (mut samples, timeline) = recorded("net10-startup", &clock);
            samples.finish_with(&mut |_, _| {});
            let tree = CallTree::new(&mut samples, &clock, |_, weight| weight.total());
            let expected: BTreeMap<String, f64> = tree
                .top(Order::Exclusive)
                .iter()
                .map(|entry| (samples.names().text(entry.frame).to_owned(), entry.exclusive as f64))
                .filter(|(_, weight)| *weight > 0.0)
                .collect();
            let file = TimeProfile::new(&mut samples, timeline).to_firefox("x", 1, None);
            let (mut sum, mut frames) = (0.0, BTreeMap::<String, f64>::new());
            for thread in file["threads"].as_array().unwrap() {
                assert_eq!(thread["samples"]["weightType"], kind);
                let (found, total) = weights(thread);
                sum += total;
                for (frame, (exclusive, _)) in found {
                    if exclusive > 0.0 {
                        *frames.entry(frame).or_default() += exclusive;
                    }
                }
            }
            assert_eq!(sum, tree.total() as f64);
            assert_eq!(frames, expected);
        }
    }

    /// A process has its name from the trace, and ids of more than 32 bits survive.
    #[test]
    fn names_and_ids() {
        let (mut samples, timeline) = read(&two_processes(), &Clock::Contention);
        let file = TimeProfile::new(&mut samples, timeline).to_firefox("x", 1, None);
        let text = |thread: &Value, key: &str| thread[key].as_str().unwrap().to_owned();
        let threads = file["threads"].as_array().unwrap().iter();
        let mut found: Vec<_> =
            threads.map(|thread| ["pid", "tid", "processName"].map(|key| text(thread, key))).collect();
        found.sort();
        let large = LARGE_ID.to_string();
        let expected = [["100", &large, "Shop"], ["100", "7", "Shop"], ["200", "7.1", "x"]];
        assert_eq!(found, expected.map(|row| row.map(str::to_owned)));
        assert_eq!(file["meta"]["product"], "x");
    }

    /// The numbers of a file have fewer bits than those of a trace.
    #[test]
    fn large_numbers() {
        let tick = |amount: u64| [&[0; 10][..], &amount.to_le_bytes(), &[0; 32]].concat();
        let mut trace = Written::new();
        trace.event(1, u64::MAX, (10, 4), &tick(5 << 40)).event(2, u64::MAX - 1, (10, 4), &tick(u64::MAX));
        let (mut samples, timeline) = read(&trace.bytes(), &Clock::Allocations);
        let file = TimeProfile::new(&mut samples, timeline).to_firefox("x", u32::MAX, Some(i128::MAX));
        let threads = file["threads"].as_array().unwrap();
        let weights: Vec<_> = threads.iter().map(|thread| &thread["samples"]["weight"]).collect();
        assert_eq!(weights, [&json!([5_u64 << 40]), &json!([u64::MAX])]);
        assert_eq!(threads[0]["samples"]["weightType"], "bytes");
        let [first, second] = [u64::MAX - 1, u64::MAX].map(|id| json!(id.to_string()));
        assert_eq!((&threads[1]["tid"], &threads[0]["tid"]), (&first, &second));
    }
}

/// In a Chromium file, each change of a stack repeats the names of its frames, so stacks and names are cut.
#[test]
fn long_stacks_and_names_are_cut() {
    const EVENTS: u64 = 20;
    let mut trace = Written::new();
    for (start, letter) in [(1_u64, "è"), (2, "é")] {
        let numbers = [[1, 1, start << 8].map(u64::to_le_bytes).concat(), numbers(&[256, 0, 0])].concat();
        let name = letter.encode_utf16().cycle().take(3_000).flat_map(u16::to_le_bytes);
        trace.event(0, 1, (143, 1), &[&numbers, &[0; 2][..], &name.collect::<Vec<_>>(), &[0; 4]].concat());
    }
    for time in 1..=EVENTS {
        trace.event(time, 1, (10, 4), &[0; 50]).stack(&[(1 + time % 2) << 8; 1_000]);
    }
    let (mut samples, timeline) = read(&trace.bytes(), &Clock::ThreadTime);
    let file = chromium(&TimeProfile::new(&mut samples, timeline));
    let events = file["traceEvents"].as_array().unwrap();
    let calls = events.iter().filter(|event| event["ph"] == "B");
    let names: Vec<&str> = calls.map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(u64::try_from(names.len()).unwrap(), (EVENTS - 1) * 257, "with the state of the thread");
    assert_eq!(names[0], format!("ManagedModule!{}…", "é".repeat(1_024 - 14)));
    assert_eq!(names[256], "CPU_TIME");
}
