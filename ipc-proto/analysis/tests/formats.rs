//! Files that other tools show, against the analyses that they come from.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod runtime_events;

use std::collections::BTreeMap;
use std::fs;

use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::call_tree::{CallTree, Order, ThreadTree};
use nettrace_analysis::formats::{Profile, TimeProfile, Timeline};
use nettrace_analysis::names::FrameId;
use nettrace_analysis::samples::{Clock, Samples, ThreadNumber, Weight};
use serde_json::{Value, json};

use crate::runtime_events::{Written, each_event, path};

/// The name of a trace whose samples have stacks of zero to three frames.
const FEW_FRAMES: &str = "few frames";

fn bytes(name: &str) -> Vec<u8> {
    if name != FEW_FRAMES {
        return fs::read(path(name)).unwrap();
    }
    let mut trace = Written::new();
    for n in 1..200 {
        let depth = usize::try_from(n * n % 4).unwrap();
        let sample = trace.event_of(
            "Microsoft-DotNETCore-SampleProfiler",
            n * 100_000,
            1 + n % 3,
            (0, 0),
            &[2, 0, 0, 0],
        );
        if depth > 0 {
            sample.stack(&[1 + n % 5, 10, 20][..depth]);
        }
    }
    trace.bytes()
}

/// Returns what the samples of a trace weigh.
fn samples(name: &str, clock: &Clock) -> Samples {
    let mut samples = Samples::new([clock.clone()]);
    each_event(&bytes(name), |event| samples.event(event));
    samples
}

/// Exclusive and inclusive weights by name.
type Weights = BTreeMap<String, (u64, u64)>;

fn expected(samples: &mut Samples, clock: &Clock) -> Weights {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let top = tree.top(Order::Exclusive);
    top.iter()
        .map(|entry| (samples.names().text(entry.frame).to_owned(), (entry.exclusive, entry.inclusive)))
        .collect()
}

/// Returns the weights that speedscope shows for a file.
fn speedscope_weights(file: &Value) -> Weights {
    let frames = file["shared"]["frames"].as_array().unwrap();
    let mut weights = Weights::new();
    for profile in file["profiles"].as_array().unwrap() {
        assert_eq!((&profile["type"], &profile["startValue"]), (&json!("sampled"), &json!(0)));
        let (stacks, values) =
            (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        assert_eq!(stacks.len(), values.len());
        let total: u64 = values.iter().map(|value| value.as_u64().unwrap()).sum();
        assert_eq!(profile["endValue"], total);
        for (stack, weight) in stacks.iter().zip(values) {
            let name = |frame: &Value| {
                let frame = usize::try_from(frame.as_u64().unwrap()).unwrap();
                frames[frame]["name"].as_str().unwrap().to_owned()
            };
            let mut names: Vec<String> = stack.as_array().unwrap().iter().map(name).collect();
            let weight = weight.as_u64().unwrap();
            if let Some(leaf) = names.last() {
                weights.entry(leaf.clone()).or_default().0 += weight;
            }
            names.sort();
            names.dedup();
            names.into_iter().for_each(|name| weights.entry(name).or_default().1 += weight);
        }
    }
    weights
}

fn speedscope(profile: &Profile<'_>) -> Value {
    let mut file = String::new();
    profile.write_speedscope("a \"name\"\u{1}\\", &mut file).unwrap();
    serde_json::from_str(&file).unwrap()
}

#[test]
fn speedscope_files_weigh_what_the_call_tree_weighs() {
    for (name, clock, unit) in [
        ("analysis/net31-sampled.nettrace", Clock::Wall, "none"),
        ("analysis/net31-sampled.nettrace", Clock::ThreadTime, "nanoseconds"),
        ("analysis/net10-startup.nettrace", Clock::Wall, "none"),
        ("analysis/net10-startup.nettrace", Clock::AllEvents, "none"),
    ] {
        let mut samples = samples(name, &clock);
        let expected = expected(&mut samples, &clock);
        assert!(expected.len() > 3, "{expected:?}");
        let threads = samples.threads().len();
        let file = speedscope(&Profile::new(&mut samples, &clock, |_, weight| weight.total()));
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        // The traces state the command lines of their processes.
        assert_eq!(file["name"], "Workload");
        let profiles = file["profiles"].as_array().unwrap();
        assert!((1..=threads).contains(&profiles.len()));
        assert!(profiles.iter().all(|profile| profile["unit"] == unit));
        assert!(profiles.iter().all(|profile| profile["name"].as_str().unwrap().starts_with("Thread (")));
        assert_eq!(speedscope_weights(&file), expected, "{name} {clock:?}");
    }
}

/// Returns the nanoseconds for which each function is the innermost one in trace events.
fn chromium_weights(file: &Value) -> BTreeMap<String, f64> {
    let (mut weights, mut threads) = (BTreeMap::new(), BTreeMap::<_, (Vec<String>, f64)>::new());
    for event in file["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] != "M") {
        let (open, last) = threads.entry((event["pid"].as_u64(), event["tid"].as_u64())).or_default();
        let time = event["ts"].as_f64().unwrap() * 1000.0;
        // The innermost call is the state of the thread.
        let innermost =
            open.iter().rfind(|name| !["CPU_TIME", "UNMANAGED_CODE_TIME"].contains(&name.as_str()));
        if let Some(innermost) = innermost {
            *weights.entry(innermost.clone()).or_default() += time - *last;
        }
        *last = time;
        if event["ph"] == "B" {
            open.push(event["name"].as_str().unwrap().to_owned());
        } else {
            open.pop().unwrap();
        }
    }
    weights
}

/// A constructor of a call tree.
type Build = fn(&mut Samples, &Clock, fn(ThreadNumber, Weight) -> u64) -> CallTree;

/// Every writer shows the same weights of functions and the same total, also of samples without a frame.
#[test]
fn every_writer_has_the_same_shares() {
    let names = [FEW_FRAMES, "analysis/net31-sampled.nettrace", "analysis/net10-startup.nettrace"];
    for (name, clock) in names.into_iter().flat_map(|name| [(name, Clock::Wall), (name, Clock::ThreadTime)]) {
        let (mut samples, mut timeline) = (Samples::new([clock.clone()]), Timeline::new(clock.clone()));
        each_event(&bytes(name), |event| {
            samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval));
        });
        let mut tree = |new: Build| {
            let tree = new(&mut samples, &clock, |_, weight| weight.total());
            let mut folded = String::new();
            tree.write_folded(samples.names(), &mut folded).unwrap();
            let top = tree.top(Order::Exclusive).into_iter().filter(|entry| entry.exclusive > 0);
            let top = top.map(|entry| (samples.names().text(entry.frame).to_owned(), entry.exclusive));
            (tree.total(), top.collect::<BTreeMap<_, _>>(), folded)
        };
        let (total, expected, folded) = tree(CallTree::new);
        assert_eq!(expected.values().sum::<u64>(), total, "{name} {clock:?}");
        assert_eq!(expected.contains_key("(no frame)"), name == FEW_FRAMES, "{expected:?}");
        for (report_total, report, _) in [tree(CallTree::folded), tree(CallTree::of_origins)] {
            assert_eq!((report_total, report.values().sum::<u64>()), (total, total));
            assert_eq!(report.get("(no frame)"), expected.get("(no frame)"));
        }
        let mut found = BTreeMap::<String, u64>::new();
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            *found.entry(stack.rsplit(';').next().unwrap().to_owned()).or_default() +=
                weight.parse::<u64>().unwrap();
        }
        assert_eq!(found, expected, "{name} {clock:?}");
        let page = ThreadTree::new(&mut samples, core::slice::from_ref(&clock));
        assert!(page.weights(0).iter().all(|row| row.node.number() > 0), "{name} {clock:?}");
        assert_eq!(page.weights(0).iter().map(|row| row.exclusive).sum::<u64>(), total);
        let file = speedscope(&Profile::new(&mut samples, &clock, |_, weight| weight.total()));
        let mut weights = speedscope_weights(&file);
        weights.retain(|_, (exclusive, _)| *exclusive > 0);
        assert!(weights.iter().map(|(name, (own, _))| (name, own)).eq(&expected), "{name} {clock:?}");
        let profile = TimeProfile::new(&mut samples, timeline);
        if clock == Clock::ThreadTime {
            let mut file = String::new();
            profile.write_chromium("x", 1, &mut file).unwrap();
            let weights = chromium_weights(&serde_json::from_str(&file).unwrap());
            // A call that begins where another one ends begins a nanosecond later.
            let is_near = |shown: f64, weight: u64| (shown - weight as f64).abs() <= weight as f64 / 1e3;
            assert!(is_near(weights.values().sum(), total), "{name}: {weights:?}");
            assert!(expected.iter().all(|(name, weight)| is_near(weights[name], *weight)), "{name}");
        }
        #[cfg(feature = "firefox")]
        {
            let file = profile.to_firefox("x", 1, Some(0));
            let threads = file["threads"].as_array().unwrap().iter();
            let rows = threads.map(|thread| &thread["samples"]);
            let column = |name| rows.clone().flat_map(move |rows| rows[name].as_array().unwrap());
            let weights = column("weight").map(|weight| weight.as_f64().unwrap()).sum::<f64>();
            let unit = if clock == Clock::ThreadTime { 1e6 } else { 1.0 };
            assert!((weights * unit - total as f64).abs() <= total as f64 * 1e-9, "{name} {clock:?}");
            let is_empty =
                |(stack, weight): (&Value, &Value)| stack.is_null() && weight.as_f64() != Some(0.0);
            assert!(!column("stack").zip(column("weight")).any(is_empty), "{name} {clock:?}");
        }
    }
}

/// The file has only the weights that the function of the caller returns.
#[test]
fn threads_and_waiting_can_be_left_out() {
    let clock = Clock::Wall;
    let mut samples = samples("analysis/net31-sampled.nettrace", &clock);
    let first = samples.weights(&clock).next().unwrap().0;
    let weigh = |thread, weight: Weight| if thread == first { weight.total() } else { 0 };
    let id = samples.threads()[first.number()].id;
    let file = speedscope(&Profile::new(&mut samples, &clock, weigh));
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 1);
    assert!(profiles[0]["name"].as_str().unwrap().starts_with(&format!("Thread ({id})")));
    let file = speedscope(&Profile::new(&mut samples, &clock, |_, _| 0));
    assert_eq!((&file["profiles"], &file["shared"]["frames"]), (&json!([]), &json!([])));
    assert_eq!(samples.names().text(FrameId::UNKNOWN), "?!?");
}

/// Returns a trace in which events on many threads refer to one stack.
fn deep_trace(depth: u64, threads: u64) -> Vec<u8> {
    let mut buf = vec![0; 4 * TraceWriter::BUFFER];
    let (mut writer, mut trace) = (TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap(), Vec::new());
    trace.extend_from_slice(&writer.describe(&Metadata::new(1, "Deep", 1, "")).unwrap());
    let addresses: Vec<u8> = (1..=depth).flat_map(u64::to_le_bytes).collect();
    trace.extend_from_slice(&writer.stack(&Stack { id: 1, bytes: &addresses }).unwrap());
    for (thread, sequence) in (1..=threads).zip(1..) {
        let event =
            Event { metadata_id: 1, stack_id: 1, thread, capture_thread: 1, sequence, ..Event::default() };
        trace.extend_from_slice(&writer.event(&event).unwrap());
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

/// A stack that many threads have is written for each of them, so that its depth has a limit.
#[test]
fn the_length_of_a_file_is_proportional_to_that_of_the_trace() {
    let trace = deep_trace(5_000, 500);
    let mut samples = Samples::new([Clock::AllEvents]);
    each_event(&trace, |event| samples.event(event));
    let profile = Profile::new(&mut samples, &Clock::AllEvents, |_, weight| weight.total());
    let file = speedscope(&profile);
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 500);
    assert!(profiles.iter().all(|profile| profile["samples"][0].as_array().unwrap().len() == 256));
}

#[cfg(feature = "pprof")]
mod pprof {
    use prost::Message;

    use super::*;
    use crate::runtime_events::{LARGE_ID, two_processes};

    /// The parts of profile.proto that the writer uses, and the mapping, which the writer does not use.
    #[derive(Message)]
    struct File {
        #[prost(message, repeated, tag = "1")]
        sample_type: Vec<Two>,
        #[prost(message, repeated, tag = "2")]
        sample: Vec<Sample>,
        #[prost(bytes = "vec", repeated, tag = "3")]
        mapping: Vec<Vec<u8>>,
        #[prost(message, repeated, tag = "4")]
        location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        time_nanos: i64,
    }

    #[derive(Clone, Copy, Message)]
    struct Two {
        #[prost(int64, tag = "1")]
        first: i64,
        #[prost(int64, tag = "2")]
        second: i64,
    }

    #[derive(Message)]
    struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        label: Vec<Label>,
    }

    #[derive(Clone, Copy, Message)]
    struct Label {
        #[prost(int64, tag = "1")]
        key: i64,
        #[prost(int64, tag = "2")]
        str: i64,
        #[prost(int64, tag = "3")]
        num: i64,
    }

    #[derive(Message)]
    struct Location {
        #[prost(uint64, tag = "1")]
        id: u64,
        #[prost(message, repeated, tag = "4")]
        line: Vec<Two>,
    }

    #[derive(Clone, Copy, Message)]
    struct Function {
        #[prost(uint64, tag = "1")]
        id: u64,
        #[prost(int64, tag = "2")]
        name: i64,
        #[prost(int64, tag = "3")]
        system_name: i64,
        #[prost(int64, tag = "4")]
        filename: i64,
    }

    fn written(profile: &Profile<'_>) -> File {
        let mut bytes = Vec::new();
        let put = |piece: &[u8]| -> Result<(), ()> {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        profile.write_pprof(Some(1_000), put).unwrap();
        File::decode(bytes.as_slice()).unwrap()
    }

    #[test]
    fn pprof_files_weigh_what_the_call_tree_weighs() {
        for (name, clock, sample_type) in [
            ("analysis/net31-sampled.nettrace", Clock::ThreadTime, ["time", "nanoseconds"]),
            ("analysis/net10-startup.nettrace", Clock::Wall, ["samples", "count"]),
            (FEW_FRAMES, Clock::Wall, ["samples", "count"]),
        ] {
            let mut samples = samples(name, &clock);
            let expected = expected(&mut samples, &clock);
            let ids: Vec<u64> = samples.threads().iter().map(|thread| thread.id).collect();
            let file = written(&Profile::new(&mut samples, &clock, |_, weight| weight.total()));
            let text = |number: i64| file.string_table[usize::try_from(number).unwrap()].as_str();
            let [of] = file.sample_type[..] else { panic!("{:?}", file.sample_type) };
            assert_eq!([text(of.first), text(of.second)], sample_type);
            assert_eq!((text(0), file.time_nanos, file.mapping.len()), ("", 1_000, 0));
            let functions: BTreeMap<u64, &Function> =
                file.function.iter().map(|function| (function.id, function)).collect();
            let names: BTreeMap<u64, &str> = file
                .location
                .iter()
                .map(|location| {
                    (location.id, text(functions[&u64::try_from(location.line[0].first).unwrap()].name))
                })
                .collect();
            assert!(names.len() == file.location.len() && !names.contains_key(&0));
            for function in &file.function {
                let module = text(function.name).split_once('!').map_or("", |(module, _)| module);
                assert_eq!(text(function.filename), module);
                // If the two names were equal, pprof would take the name for a name of C++, and remove arguments.
                assert_ne!(function.system_name, function.name);
            }
            let mut weights = Weights::new();
            for sample in &file.sample {
                let weight = u64::try_from(sample.value[0]).unwrap();
                let id = sample.label.iter().find(|label| text(label.key) == "thread_id").unwrap().num;
                assert!(ids.contains(&u64::try_from(id).unwrap()));
                let mut frames: Vec<&str> = sample.location_id.iter().map(|id| names[id]).collect();
                if let Some(leaf) = frames.first() {
                    weights.entry((*leaf).to_owned()).or_default().0 += weight;
                }
                frames.sort_unstable();
                frames.dedup();
                frames.into_iter().for_each(|name| weights.entry(name.to_owned()).or_default().1 += weight);
            }
            assert_eq!(weights, expected, "{name}");
        }
    }

    /// In a trace of several processes, each sample has its process, and large ids survive.
    #[test]
    fn labels_of_processes() {
        let mut samples = Samples::new([Clock::Contention]);
        each_event(&two_processes(), |event| samples.event(event));
        let file = written(&Profile::new(&mut samples, &Clock::Contention, |_, weight| weight.total()));
        let text = |number: i64| file.string_table[usize::try_from(number).unwrap()].as_str();
        let labels = file.sample.iter().map(|sample| {
            let value = |label: &Label| {
                if label.num == 0 { text(label.str).to_owned() } else { label.num.to_string() }
            };
            sample
                .label
                .iter()
                .map(|label| format!("{}={}", text(label.key), value(label)))
                .collect::<Vec<_>>()
        });
        let expected = [
            vec!["thread_id=7".to_owned(), "process_id=100".to_owned(), "process=Shop".to_owned()],
            vec!["thread_id=7".to_owned(), "process_id=200".to_owned()],
            vec![format!("thread_id={LARGE_ID}"), "process_id=100".to_owned(), "process=Shop".to_owned()],
        ];
        assert!(labels.eq(expected));
    }

    #[test]
    fn an_error_of_the_output_ends_the_file() {
        let mut samples = samples("analysis/net31-sampled.nettrace", &Clock::Wall);
        let profile = Profile::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
        let mut pieces = 0;
        let put = |_: &[u8]| {
            pieces += 1;
            if pieces == 2 { Err("full") } else { Ok(()) }
        };
        assert_eq!(profile.write_pprof(None, put), Err("full"));
        assert_eq!(pieces, 2);
    }
}
