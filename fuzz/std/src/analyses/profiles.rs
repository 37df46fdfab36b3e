//! The property of the files for other tools: they are valid, and have the weights of the trace.
use core::convert::Infallible;

use nettrace_analysis::formats::{Profile, TimeProfile, Timeline};
use nettrace_analysis::samples::Samples;
use prost::Message;
use serde_json::Value;

use super::traces::{clocks, each_event, trace_of};

/// Checks that the files of all formats are read by a parser of the format, and that they have the weights of the
/// trace. Calls begin and end in order, and each index in a file is that of an entry.
pub fn profiles(bytes: &[u8]) {
    let (trace, _) = trace_of(bytes);
    for clock in clocks() {
        let (mut samples, mut timeline) = (Samples::new([clock.clone()]), Timeline::new(clock.clone()));
        each_event(&trace, true, |event| {
            samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval));
        });
        samples.finish_with(&mut |clock, interval| timeline.add(clock, interval));
        assert_eq!(timeline.dropped(), 0);
        let total =
            samples.weights(&clock).fold(0_u128, |sum, (_, _, weight)| sum + u128::from(weight.total()));
        let profile = Profile::new(&mut samples, &clock, |_, weight| weight.total());
        check_sampled(&profile, total);
        check_pprof(&profile);
        let profile = TimeProfile::new(&mut samples, timeline);
        check_evented(&profile);
        check_chromium(&profile);
        check_firefox(&profile);
    }
}

fn parse(file: &str) -> Value {
    serde_json::from_str(file).unwrap_or_else(|error| panic!("{error}: {file}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> usize {
    let number = value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    usize::try_from(number).expect("a small number")
}

fn check_sampled(profile: &Profile<'_>, total: u128) {
    let mut file = String::new();
    profile.write_speedscope("a\"b", &mut file).expect("a string takes all");
    let file = parse(&file);
    let (mut sum, frames) = (0_u128, list(&file["shared"]["frames"]).len());
    for thread in list(&file["profiles"]) {
        let (samples, weights) = (list(&thread["samples"]), list(&thread["weights"]));
        assert_eq!(samples.len(), weights.len());
        assert!(samples.iter().flat_map(list).all(|frame| number(frame) < frames));
        let weight: u128 = weights.iter().map(|weight| number(weight) as u128).sum();
        assert_eq!(thread["endValue"], u64::try_from(weight).unwrap_or(u64::MAX));
        sum += weight;
    }
    assert_eq!(sum, total);
}

#[derive(Message)]
struct Pprof {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

#[derive(Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, Copy, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

fn check_pprof(profile: &Profile<'_>) {
    let mut file = Vec::new();
    let written = profile.write_pprof(Some(1), |bytes| {
        file.extend_from_slice(bytes);
        Ok::<(), Infallible>(())
    });
    assert_eq!(written, Ok(()));
    let file = Pprof::decode(&file[..]).expect("a message");
    assert_eq!(file.string_table.first().map(String::as_str), Some(""));
    let functions: Vec<u64> = file.function.iter().map(|function| function.id).collect();
    let locations: Vec<u64> = file.location.iter().map(|location| location.id).collect();
    assert!(functions.iter().chain(&locations).all(|id| *id > 0));
    for function in &file.function {
        let text = |place: i64| usize::try_from(place).ok().and_then(|place| file.string_table.get(place));
        assert!(text(function.name).is_some() && text(function.filename).is_some());
    }
    assert!(
        file.location
            .iter()
            .flat_map(|location| &location.line)
            .all(|line| functions.contains(&line.function_id))
    );
    for sample in &file.sample {
        assert!(sample.location_id.iter().all(|id| locations.contains(id)));
        assert!(matches!(sample.value[..], [value] if value > 0), "{sample:?}");
    }
}

fn check_evented(profile: &TimeProfile<'_>) {
    let mut file = String::new();
    profile.write_speedscope("a\"b", &mut file).expect("a string takes all");
    let file = parse(&file);
    let frames = list(&file["shared"]["frames"]).len();
    for thread in list(&file["profiles"]) {
        let (mut open, mut last) = (Vec::new(), thread["startValue"].as_f64());
        for event in list(&thread["events"]) {
            let (frame, at) = (number(&event["frame"]), event["at"].as_f64());
            assert!(frame < frames && at >= last && at <= thread["endValue"].as_f64(), "{thread}");
            last = at;
            match event["type"].as_str() {
                Some("O") => open.push(frame),
                Some("C") => assert_eq!(open.pop(), Some(frame), "{thread}"),
                _ => panic!("{event}"),
            }
        }
        assert!(open.is_empty(), "{thread}");
    }
}

fn check_chromium(profile: &TimeProfile<'_>) {
    let mut file = String::new();
    profile.write_chromium("a\"b", 7, &mut file).expect("a string takes all");
    let file = parse(&file);
    let mut threads: Vec<(String, Vec<String>, f64)> = Vec::new();
    for event in list(&file["traceEvents"]) {
        let thread = format!("{} {}", event["pid"], event["tid"]);
        let place = threads.iter().position(|(known, ..)| *known == thread).unwrap_or_else(|| {
            threads.push((thread, Vec::new(), 0.0));
            threads.len() - 1
        });
        let (_, open, last) = &mut threads[place];
        let name = event["name"].as_str().expect("a name").to_owned();
        if event["ph"] == "M" {
            continue;
        }
        let at = event["ts"].as_f64().expect("a time");
        assert!(at >= *last, "{event}");
        *last = at;
        match event["ph"].as_str() {
            Some("B") => open.push(name),
            Some("E") => assert_eq!(open.pop(), Some(name)),
            _ => panic!("{event}"),
        }
    }
    assert!(threads.iter().all(|(_, open, _)| open.is_empty()));
}

fn check_firefox(profile: &TimeProfile<'_>) {
    let file = profile.to_firefox("a\"b", 7, Some(1_000_000_000));
    for thread in list(&file["threads"]) {
        let (samples, stacks) = (&thread["samples"], &thread["stackTable"]);
        let length = number(&samples["length"]);
        assert_eq!([list(&samples["stack"]).len(), list(&samples["weight"]).len()], [length; 2]);
        let stack_count = number(&stacks["length"]);
        let is_stack = |stack: &Value| stack.is_null() || number(stack) < stack_count;
        assert!(list(&samples["stack"]).iter().chain(list(&stacks["prefix"])).all(is_stack));
        assert!(
            list(&samples["weight"]).iter().all(|weight| weight.as_f64().is_some_and(|weight| weight >= 0.0))
        );
    }
}
