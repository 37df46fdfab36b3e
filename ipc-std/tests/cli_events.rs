//! `dotnet-ipc events`, `stats` and `rewrite`: every recorded trace, broken ones, and runtimes that record.
#![cfg(feature = "cli")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]
#![cfg_attr(windows, allow(dead_code, unused_imports, reason = "signals, and what else only Unix has"))]

mod tool;

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use ipc_proto::Code;
use ipc_proto::nettrace::{self, Event, Metadata, SequencePoint, Stack, ThreadSequence, Version, Writer};
use ipc_std::fake::{FakeRuntime, Fault, Profile, Response};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::tool::{HANGS, finish, run, run_with, tool};

const COLLECT_TRACING_2: Code = Code(0x0203);
const STOP_TRACING: Code = Code(0x0201);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nettrace")
}

/// The path of a recorded trace.
fn path(name: &str) -> String {
    folder().join(name).to_str().unwrap().to_owned()
}

/// Path and expectations of each recorded trace.
fn traces() -> Vec<(String, Value)> {
    let parsed = |trace: ipc_fuzz::RecordedTrace| {
        (trace.path.to_str().unwrap().to_owned(), serde_json::from_str(&trace.expected).unwrap())
    };
    ipc_fuzz::traces().into_iter().map(parsed).collect()
}

/// How the recorded trace ends, and what the tool makes of it.
fn expected_end(expected: &Value) -> (&'static str, i32) {
    match (expected["end"].as_str().unwrap(), expected["error"].is_null()) {
        ("null tag" | "EndOfStream", true) => ("complete", 0),
        ("null tag" | "EndOfStream", false) => ("corrupt", 6),
        _ => ("truncated", 7),
    }
}

#[test]
fn help_has_examples() {
    for command in ["events", "stats", "rewrite"] {
        let help = run(&[command, "--help"]).well().into_text();
        assert!(help.contains("Examples:\n  dotnet-ipc "), "{help}");
    }
}

#[test]
fn stats_of_every_trace() {
    for (path, expected) in traces() {
        let ran = run(&["stats", &path, "--json"]);
        let stats = ran.json();
        let (end, status) = expected_end(&expected);
        assert_eq!((ran.status, &stats["end"]), (Some(status), &json!(end)), "{path}");
        assert_eq!(stats["offset"].is_null() && stats["reason"].is_null(), end == "complete", "{path}");
        let keys: Vec<&String> = stats.as_object().unwrap().keys().collect();
        let all = "version blocks events by_event metadata stacks sequence_points lost first_timestamp \
                   last_timestamp end offset reason digest";
        assert_eq!(keys, all.split_whitespace().collect::<Vec<_>>());
        for (key, of) in [
            ("version", "version"),
            ("blocks", "blocks"),
            ("events", "events"),
            ("metadata", "metadata_rows"),
            ("stacks", "stacks"),
            ("sequence_points", "seqpoints"),
            ("lost", "dropped_strict"),
            ("digest", "digest_sha256"),
        ] {
            assert_eq!(stats[key], expected[of], "{path}: {key}");
        }
        assert_eq!(
            json!([stats["first_timestamp"], stats["last_timestamp"]]),
            expected["ts_range"],
            "{path}"
        );
        assert_eq!(kinds(&stats), kinds(&expected), "{path}");
        let counts: Vec<u64> = stats["by_event"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind["count"].as_u64().unwrap())
            .collect();
        assert!(counts.is_sorted_by(|a, b| a >= b));
    }
}

type Kinds = BTreeMap<(String, u64, u64), u64>;

fn kinds(stats: &Value) -> Kinds {
    let by_event = stats["by_event"].as_array().unwrap();
    let kinds = by_event.iter().map(|kind| (identity(kind), kind["count"].as_u64().unwrap()));
    let kinds: Kinds = kinds.collect();
    assert_eq!(kinds.len(), by_event.len());
    kinds
}

/// Provider, id, version.
fn identity(of: &Value) -> (String, u64, u64) {
    let number = |key: &str| of[key].as_u64().unwrap();
    (of["provider"].as_str().unwrap().to_owned(), number("id"), number("version"))
}

#[test]
fn stats_for_people() {
    let ran = run(&["stats", &path("gen-net10-small-mixed.nettrace")]).well();
    assert!(ran.text().contains("\nevents:          406\n"), "{}", ran.text());
    assert!(ran.text().contains("end:             complete\n"));
    let row = ran.text().lines().find(|line| line.contains(" GCStart")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..], ["Microsoft-Windows-DotNETRuntime", "1", "2", "GCStart"]);
}

#[test]
fn stats_of_what_is_no_trace() {
    const NOTHING: &str = "standard input: the trace is truncated: there is nothing in it";
    let ran = run_with(&["stats", "-", "--json"], Vec::new());
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(7), &json!("gone")));
    let stats = ran.json();
    assert_eq!((&stats["version"], &stats["events"], &stats["offset"]), (&Value::Null, &json!(0), &json!(0)));
    let error = ran.last_error();
    assert_eq!(error["error"], NOTHING);
    assert!(error["hint"].as_str().unwrap().contains("wrote nothing"), "{error}");
    // NetPerf of .NET Core 2.0: another name, and version 1.
    let mut netperf = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x01\0\0\0\0\0\0\0\x26\0\0\0".to_vec();
    netperf.extend(b"Microsoft.DotNet.Runtime.EventPipeFile\x06");
    netperf.extend([0; 32]);
    let ran = run_with(&["stats", "-", "--json"], netperf);
    assert_eq!((ran.status, &ran.json()["version"]), (Some(6), &json!(1)));
    // An object by a name of its own, in front of the end.
    let mut stream = made(&[]);
    stream.pop();
    for _ in 0..2 {
        stream.extend(b"\x05\x05\x01\x02\0\0\0\0\0\0\0\x05\0\0\0Novel\x06\0\0\0\0");
        stream.extend(vec![0; stream.len().next_multiple_of(4) - stream.len()]);
        stream.push(6);
    }
    stream.push(1);
    let ran = run_with(&["stats", "-", "--json"], stream).well();
    assert_eq!(ran.json()["blocks"], json!({ "Trace": 1, "MetadataBlock": 1, "EventBlock": 1, "Novel": 2 }));
    let ran = run_with(&["stats", "-"], b"hello".to_vec());
    assert_eq!(ran.status, Some(6));
    assert!(ran.stderr.contains("standard input: the trace is corrupt at byte 0: this is no NetTrace"));
    for args in [&["stats", "/nowhere/x"], &["stats", "/"], &["events", "/nowhere/x"], &["events", "/"]] {
        let ran = run(args);
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("cannot read {}", args[1])));
    }
}

/// Behind the end mark there may be anything, for ever.
#[test]
fn nothing_is_wanted_behind_the_end() {
    let mut child = tool(&["stats", "-", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&fs::read(path("gen-net10-lab-small.nettrace")).unwrap()).unwrap();
    assert_eq!(finish(child).well().json()["events"], 142);
    drop(stdin);
}

#[test]
fn events_of_every_trace() {
    for (path, expected) in traces() {
        let (_, status) = expected_end(&expected);
        let ran = run(&["events", &path, "--json"]);
        assert_eq!(ran.status, Some(status), "{path}: {}", ran.stderr);
        let lost = expected["dropped_strict"].as_u64().unwrap();
        assert_eq!(ran.stderr.contains(&format!("{lost} events were lost")), lost > 0, "{}", ran.stderr);
        let events = ran.lines();
        let mut found = Kinds::new();
        for event in &events {
            *found.entry(identity(event)).or_default() += 1;
            let mut keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
            keys.retain(|key| !["rest", "error"].contains(key));
            let (last, all) = keys.split_last().unwrap();
            assert_eq!(all, ["time_ns", "thread_id", "provider", "id", "version", "name", "activity_id"]);
            assert!(["fields", "payload"].contains(last), "{event}");
            assert!(event["time_ns"].is_i64() && event["thread_id"].is_u64(), "{event}");
        }
        // One has another version, by its own label.
        if let Some(one) = found.remove(&("Prov.A".to_owned(), 11, 2)) {
            *found.entry(("Prov.A".to_owned(), 11, 0)).or_default() += one;
        }
        assert_eq!(found, kinds(&expected), "{path}");

        let ordered = run(&["events", &path, "--json", "--ordered"]);
        assert_eq!(ordered.status, Some(status), "{path}");
        let mut sorted = events.clone();
        sorted.sort_by_key(|event| event["time_ns"].as_i64().unwrap());
        assert!(ordered.lines() == sorted, "{path}");

        let text = run(&["events", &path]);
        assert_eq!((text.status, text.text().lines().count()), (Some(status), events.len()), "{path}");
        for (line, event) in text.text().lines().zip(&events) {
            let begin =
                format!("[{}] {}/{}", event["thread_id"], event["provider"].as_str().unwrap(), event["id"]);
            assert!(line.split_once(' ').unwrap().1.starts_with(&begin), "{line}");
        }

        let piped = run_with(&["events", "-", "--json"], fs::read(&path).unwrap());
        assert!(piped.text() == ran.text(), "{path}");
    }
}

#[test]
fn fields() {
    let events = run(&["events", &path("synth-v6-all.nettrace"), "--json"]).lines();
    let all = events.iter().find(|event| event["name"] == "All").unwrap();
    assert_eq!(all["thread_id"], 1_099_511_627_776_u64);
    assert_eq!(all["activity_id"], "03020100-0504-0706-0809-0a0b0c0d0e0f");
    let fields = &all["fields"];
    for (name, value) in [
        ("b32", json!(true)),
        ("c16", json!("Q")),
        ("i8", json!(-5)),
        ("i64", json!(-5_000_000_000_000_i64)),
        ("u64", json!(9_223_372_036_854_775_813_u64)),
        ("vu", json!(u64::MAX)),
        ("f64", json!(-2.25)),
        ("dt", json!("2022-06-18T04:26:40.0000000Z")),
        ("s16", json!("zero\u{e9}")),
        ("arr", json!([1, -2, 3])),
        ("rel", json!([11, 22])),
        ("dat", json!("loc")),
        ("obj", json!({ "x": 300, "y": ["Hi", "Bye"] })),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }

    // A string with a NUL in it, half of it in `rest`; a lone surrogate; bytes that nothing describes.
    let events = run(&["events", &path("gen-net10-odd-payloads.nettrace"), "--json"]).lines();
    let odd = events.iter().find(|event| event["rest"].is_string()).unwrap();
    assert_eq!(odd["fields"], json!({ "a": "lone \u{fffd} surrogate", "b": "nul " }));
    assert_eq!(odd["rest"], "IABpAG4AcwBpAGQAZQAAAA==");
    assert!(odd.get("error").is_none());
    let bytes = events.iter().find(|event| event["name"] == "Bytes").unwrap();
    assert_eq!((&bytes["payload"], bytes.get("fields")), (&json!("AwAAAAECAA=="), None));
}

/// Codes and names of fields, and a payload.
type Made<'a> = (&'a [(u32, &'a str)], &'a [u8]);

/// A stream of V4 with one event after the other, each with these fields and this payload.
fn made(events: &[Made<'_>]) -> Vec<u8> {
    let len32 = |len: usize| u32::try_from(len).unwrap().to_le_bytes();
    let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let object = |stream: &mut Vec<u8>, name: &str, version: u32, body: &[u8]| {
        stream.extend([5, 5, 1]);
        stream.extend(version.to_le_bytes());
        stream.extend(version.to_le_bytes());
        stream.extend(len32(name.len()));
        stream.extend(name.as_bytes());
        stream.push(6);
        if name != "Trace" {
            stream.extend(len32(body.len()));
            while stream.len() % 4 != 0 {
                stream.push(0);
            }
        }
        stream.extend(body);
        stream.push(6);
    };
    // A header of 80 bytes, then the payload.
    let blob = |body: &mut Vec<u8>, metadata_id: u32, payload: &[u8]| {
        let len = 76 + payload.len();
        body.extend(len32(len));
        body.extend(metadata_id.to_le_bytes());
        body.extend([0; 68]);
        body.extend(len32(payload.len()));
        body.extend(payload);
    };
    let mut stream = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    let mut trace = [0; 48];
    trace[24..32].copy_from_slice(&1_000_000_000_u64.to_le_bytes());
    trace[32] = 8;
    object(&mut stream, "Trace", 4, &trace);
    let header = [&[20, 0, 0, 0][..], &[0; 16]].concat();
    let (mut records, mut blobs) = (header.clone(), header);
    for (id, (fields, payload)) in (1_u32..).zip(events) {
        let mut record =
            [&id.to_le_bytes()[..], &utf16("Made"), &id.to_le_bytes(), &utf16("It"), &[0; 16]].concat();
        record.extend(len32(fields.len()));
        for (code, name) in *fields {
            record.extend(code.to_le_bytes());
            record.extend(utf16(name));
        }
        blob(&mut records, 0, &record);
        blob(&mut blobs, id, payload);
    }
    object(&mut stream, "MetadataBlock", 2, &records);
    // Of what nothing describes.
    blob(&mut blobs, 99, b"?");
    object(&mut stream, "EventBlock", 2, &blobs);
    stream.push(1);
    stream
}

#[test]
fn fields_that_are_odd() {
    let infinities = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300].map(f64::to_le_bytes).concat();
    let control: Vec<u8> =
        "\"\\\n\u{1}\u{85}\u{7f}".encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let stream = made(&[
        (&[(6, "x"), (6, "x"), (6, "x#2"), (6, "x")], &[1, 2, 3, 4]),
        (&[(6, "n"), (9, "m")], &[7, 8]),
        (&[(14, "a"), (14, "b"), (14, "c"), (14, "d")], &infinities),
        (&[(18, "a\"b")], &control),
        (&[(12, "u")], &u64::MAX.to_le_bytes()),
        (&[], &[]),
    ]);
    let ran = run_with(&["events", "-", "--json"], stream.clone()).well();
    let events = ran.lines();
    assert_eq!(events.len(), 7);
    let names: Vec<&String> = events[0]["fields"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["x", "x#2", "x#2#2", "x#3"]);
    assert_eq!(events[0]["fields"]["x#3"], 4);
    assert_eq!((&events[1]["fields"], &events[1]["rest"]), (&json!({ "n": 7 }), &json!("CA==")));
    assert!(events[1]["error"].as_str().unwrap().contains("at byte 1"), "{}", events[1]);
    assert_eq!(events[2]["fields"], json!({ "a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1e300 }));
    assert_eq!(events[3]["fields"], json!({ "a\"b": "\"\\\n\u{1}\u{85}\u{7f}" }));
    assert_eq!(events[4]["fields"], json!({ "u": u64::MAX }));
    assert_eq!(events[5]["fields"], json!({}));
    let unknown = json!({
        "time_ns": 0, "thread_id": 0, "provider": null, "id": null, "version": null, "name": null,
        "activity_id": null, "payload": "Pw==",
    });
    assert_eq!(events[6], unknown);
    let text = run_with(&["events", "-"], stream.clone()).well().into_text();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    let stats = run_with(&["stats", "-", "--json"], stream).well().json();
    assert_eq!(stats["by_event"][0], json!({ "provider": null, "id": null, "version": null, "count": 1 }));
}

/// As many fields as a description can hold: it takes no longer for each than for few.
#[test]
fn fields_without_number() {
    const MANY: usize = 30_000;
    let names: Vec<String> = (0..MANY).map(|n| format!("n{n}")).collect();
    let distinct: Vec<(u32, &str)> = names.iter().map(|name| (6, name.as_str())).collect();
    let same = vec![(6, "x"); MANY];
    let payload = vec![7; MANY];
    let ran = run_with(&["events", "-", "--json"], made(&[(&same, &payload), (&distinct, &payload)])).well();
    let events = ran.lines();
    for (event, name) in [(&events[0], "x#30000"), (&events[1], "n29999")] {
        let fields = event["fields"].as_object().unwrap();
        assert_eq!((fields.len(), fields.keys().next_back().unwrap().as_str()), (MANY, name));
    }
    // From few to many.
    let names = ["x", "y", "x", "x#2", "y#3", "y", "y", "y"];
    let all: Vec<(u32, &str)> = names.iter().cycle().take(40).map(|name| (6, *name)).collect();
    let ran = run_with(&["events", "-", "--json"], made(&[(&all, &payload[..40])])).well();
    let events = ran.lines();
    let fields = events[0]["fields"].as_object().unwrap();
    assert_eq!(fields.len(), 40);
    let keys: Vec<&String> = fields.keys().take(8).collect();
    assert_eq!(keys, ["x", "y", "x#2", "x#2#2", "y#3", "y#2", "y#4", "y#5"]);
}

#[test]
fn only() {
    let file = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &file, "--json"]).well().lines();
    let runtime = "microsoft-windows-dotnetruntime";
    for (args, wanted) in [
        (&["--only", runtime][..], &[(runtime, None)][..]),
        (
            &["--only", "System.Runtime", "--only", "Microsoft-Windows-DotNETRuntime/1"],
            &[("system.runtime", None), (runtime, Some(1))],
        ),
        (&["--only", "Nobody"], &[]),
    ] {
        let shown = run(&[&["events", &file, "--json"], args].concat()).well().lines();
        let mut expected = all.clone();
        expected.retain(|event| {
            let (provider, id, _) = identity(event);
            wanted.iter().any(|(name, of)| provider.to_lowercase() == *name && of.is_none_or(|of| of == id))
        });
        assert!(shown == expected, "{args:?}");
        assert_eq!(expected.is_empty(), args == ["--only", "Nobody"]);
    }
    for (only, words) in [("A/GCStart", "not a number"), ("", "missing"), ("/1", "missing")] {
        let ran = run(&["events", &file, "--only", only]);
        assert_eq!(ran.status, Some(2));
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn a_number_is_a_process_unless_it_is_said_to_be_a_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(path("gen-net10-lab-small.nettrace"), directory.path().join("4294967")).unwrap();
    let run = |args: &[&str]| finish(tool(args).current_dir(directory.path()).spawn().unwrap());
    assert_eq!(run(&["events", "4294967"]).status, Some(3));
    assert_eq!(run(&["events", "99999999999"]).status, Some(3));
    assert_eq!(run(&["events", "4294967", "--file"]).well().text().lines().count(), 142);
    assert_eq!(run(&["events", "./4294967"]).well().text().lines().count(), 142);
    for args in [
        &["events"][..],
        &["events", "4294967", "--file", "--duration", "1s"],
        &["events", "./4294967", "--provider", "A"],
        &["events", "./4294967", "--wire-log", "log"],
        &["events", "./4294967", "--socket", "x"],
    ] {
        assert_eq!(run(args).status, Some(2), "{args:?}");
    }
}

#[test]
#[cfg(unix)]
fn whoever_has_seen_enough() {
    let file = path("gen-net10-odd-payloads.nettrace");
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    finish(tool(&["events", &file]).stdout(OwnedFd::from(theirs)).spawn().unwrap()).well();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = finish(tool(&["events", &file]).stdout(full).spawn().unwrap());
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
}

/// A runtime that sends this trace, all but its end until it is asked to stop.
fn traced(stream: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(stream.clone()));
    runtime
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

#[test]
fn live() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    let socket = runtime.path().to_str().unwrap();
    let ran = run(&["events", "--socket", socket, "--duration", "300ms", "--json"]).well();
    assert_eq!(ran.lines(), run(&["events", &path("gen-net10-lab-small.nettrace"), "--json"]).lines());
    assert!(asked(&runtime, STOP_TRACING));
    assert!(asked(&runtime, Code(0x0401)), "it may have been suspended");
}

/// What has come is shown while the runtime says nothing more, and a signal ends it well.
#[test]
#[cfg(unix)]
fn live_events_come_as_they_happen() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
        let socket = runtime.path().to_str().unwrap();
        let mut child = tool(&["events", "--socket", socket, "--only", "Lab-Workload/1"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains(" Lab-Workload/1 Ints i=0 "));
        assert_eq!(lines.by_ref().take(11).count(), 11);
        assert!(!asked(&runtime, STOP_TRACING));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(lines.next().is_none());
        finish(child).well();
        assert!(asked(&runtime, STOP_TRACING));
    }
}

#[test]
#[cfg(unix)]
fn live_without_a_reader() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    let socket = runtime.path().to_str().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let child = tool(&["events", "--socket", socket]).stdout(OwnedFd::from(theirs)).spawn().unwrap();
    finish(child).well();
    assert!(asked(&runtime, STOP_TRACING));
}

#[test]
fn a_runtime_that_goes_away() {
    const ANSWER: usize = 28;
    for len in [6000, 0] {
        let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
        runtime.set_fault(Fault::CloseAfter(ANSWER + len));
        let ran = run(&["events", "--socket", runtime.path().to_str().unwrap(), "--json"]);
        assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(7), &json!("gone")), "{ran:?}");
        assert_eq!(ran.text().lines().count() > 40, len > 0);
    }
}

#[test]
fn a_runtime_that_sends_what_is_no_trace() {
    let runtime = traced(b"garbage, and more of it".to_vec());
    let ran = run(&["events", "--socket", runtime.path().to_str().unwrap(), "--json"]);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(6), &json!("protocol")), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

#[test]
fn a_runtime_that_does_not_end() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    runtime.set_fault(Fault::StallStream(6000));
    let socket = runtime.path().to_str().unwrap();
    let ran = run(&["events", "--socket", socket, "--json", "--duration", "0", "--timeout", "500ms"]);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(4), &json!("timeout")), "{ran:?}");
    assert!(ran.text().lines().count() > 40);
}

/// A directory, and a file in it.
fn output() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.nettrace").to_str().unwrap().to_owned();
    (directory, file)
}

#[track_caller]
fn only_file(directory: &tempfile::TempDir, name: Option<&str>) {
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, name.into_iter().collect::<Vec<_>>());
}

#[test]
fn every_trace_rewritten() {
    for (path, expected) in traces() {
        let (_, status) = expected_end(&expected);
        for format in ["4", "6"] {
            let (directory, file) = output();
            let ran = run(&["rewrite", &path, "-o", &file, "--format", format, "--json"]);
            assert_eq!(ran.status, Some(status), "{path}: {ran:?}");
            let summary = ran.json();
            assert_eq!((&summary["events"], &summary["kept"]), (&expected["events"], &expected["events"]));
            assert_eq!(summary["complete"], json!(status == 0));
            assert_eq!(summary["bytes"], fs::metadata(&file).unwrap().len());
            only_file(&directory, Some("out.nettrace"));
            let stats = run(&["stats", &file, "--json"]).well().json();
            assert_eq!(stats["version"].to_string(), format);
            assert_eq!(
                (&stats["events"], &stats["lost"]),
                (&expected["events"], &expected["dropped_strict"])
            );
            assert_eq!(kinds(&stats), kinds(&expected), "{path}");
        }
        // Of a runtime's stream nothing changes.
        if path.contains("/gen-") && expected["version"] == 4 {
            let (_directory, file) = output();
            let ran = run(&["rewrite", &path, "-o", &file]);
            assert_eq!(ran.status, Some(0));
            assert!(fs::read(&file).unwrap() == fs::read(&path).unwrap(), "{path}");
        }
    }
}

#[test]
fn some_of_a_trace() {
    let source = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &source, "--json"]).well().lines();
    let time = |event: &Value| event["time_ns"].as_i64().unwrap();
    let mut times: Vec<i64> = all.iter().map(time).collect();
    times.sort_unstable();
    let (from, to) = (times[100], times[300]);
    let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    // The very nanosecond belongs to it.
    let (directory, file) = output();
    let provider = "Microsoft-Windows-DotNETRuntime";
    let args = ["--from", &seconds(from), "--to", &seconds(to), "--only", provider];
    let ran = run(&[&["rewrite", &source, "-o", &file], &args[..]].concat());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let expected: Vec<&Value> = all
        .iter()
        .filter(|event| (from..=to).contains(&time(event)) && event["provider"] == provider)
        .collect();
    assert!(expected.len() > 5 && expected.len() < 201, "{}", expected.len());
    let kept = run(&["events", &file, "--json"]).well().lines();
    assert_eq!(kept.iter().collect::<Vec<_>>(), expected);
    assert_eq!(run(&["stats", &file, "--json"]).well().json()["lost"], 0);

    // The same in times of the day: this one began at 22:15:25.571.
    let stats: Value = serde_json::from_slice(&fs::read(format!("{source}.json")).unwrap()).unwrap();
    let utc: Vec<u64> =
        stats["trace"]["sync_utc"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let at = |second: u64, nanosecond: u64| {
        format!(
            "{}-{:02}-{:02}T{:02}:{:02}:{second:02}.{nanosecond:09}Z",
            utc[0], utc[1], utc[3], utc[4], utc[5]
        )
    };
    let cut = 1_200_000_000_u64;
    let (second, nanosecond) =
        (utc[6] + (utc[7] * 1_000_000 + cut) / 1_000_000_000, (utc[7] * 1_000_000 + cut) % 1_000_000_000);
    assert!(second < 60);
    for (option, keeps) in
        [("--from", (|ns, cut| ns >= cut) as fn(i64, i64) -> bool), ("--to", |ns, cut| ns <= cut)]
    {
        let ran = run(&["rewrite", &source, "-o", &file, option, &at(second, nanosecond), "--json"]).well();
        let expected = times.iter().filter(|ns| keeps(**ns, i64::try_from(cut).unwrap())).count();
        assert!(expected > 0 && expected < times.len());
        assert_eq!(ran.json()["kept"], expected);
    }
    for option in ["--from", "--to"] {
        let kept = if option == "--to" { 0 } else { times.len() };
        let ran = run(&["rewrite", &source, "-o", &file, option, "1999-01-01T00:00:00Z", "--json"]).well();
        assert_eq!(ran.json()["kept"], kept);
    }
    only_file(&directory, Some("out.nettrace"));
}

#[test]
fn command_lines_are_stripped() {
    let source = path("gen-net10-lab-small.nettrace");
    let command_line = |file: &str| {
        let events =
            run(&["events", file, "--json", "--only", "Microsoft-DotNETCore-EventPipe/1"]).well().lines();
        events[0]["fields"]["CommandLine"].as_str().unwrap().to_owned()
    };
    let secret = command_line(&source);
    assert!(!secret.is_empty());
    let (_directory, file) = output();
    let ran = run(&["rewrite", &source, "-o", &file, "--strip-command-line"]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stderr.contains("142 of 142 events, 1 without their command line, "), "{ran:?}");
    assert_eq!(command_line(&file), "");
    let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let holds = |file: &str| fs::read(file).unwrap().windows(utf16.len()).any(|bytes| bytes == utf16);
    assert!(holds(&source) && !holds(&file));
}

#[test]
fn rewritten_through_pipes() {
    let source = fs::read(path("gen-net10-lab-small.nettrace")).unwrap();
    let mut child = tool(&["rewrite", "-", "-o", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = source.clone();
    thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == source);
    assert!(String::from_utf8(output.stderr).unwrap().ends_with("10886 bytes, to standard output\n"));
}

#[test]
#[cfg(unix)]
fn what_cannot_be_written_leaves_what_was_there() {
    let source = path("gen-net10-lab-small.nettrace");
    let (directory, file) = output();
    fs::write(&file, "before").unwrap();
    let garbage = directory.path().join("garbage");
    fs::write(&garbage, "garbage").unwrap();
    for (input, output, status) in [
        ("/nowhere/x", file.as_str(), 1),
        (garbage.to_str().unwrap(), &file, 6),
        ("/dev/null", &file, 7),
        (&source, "/nowhere/x", 1),
        (&source, "/dev/full", 1),
    ] {
        let ran = run(&["rewrite", input, "-o", output]);
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(status), 1), "{input} {output}: {ran:?}");
    }
    fs::remove_file(&garbage).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"before");
    for args in [&["--format", "3"][..], &["--from", "yesterday"], &["--only", "A/b"]] {
        assert_eq!(run(&[&["rewrite", &source, "-o", &file], args].concat()).status, Some(2), "{args:?}");
    }
    only_file(&directory, Some("out.nettrace"));

    // Cut in the middle by a signal.
    let mut child = tool(&["rewrite", "-", "-o", &file]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&fs::read(&source).unwrap()[..6000]).unwrap();
    let begin = std::time::Instant::now();
    while fs::read_dir(directory.path()).unwrap().count() < 2 {
        assert!(begin.elapsed() < HANGS, "it never began");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = finish(child);
    drop(stdin);
    assert_eq!(ran.status, None);
    only_file(&directory, Some("out.nettrace"));
    assert_eq!(fs::read(&file).unwrap(), b"before");

    // In place, and through a link.
    fs::copy(&source, &file).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let ran = run(&["rewrite", &file, "-o", link.to_str().unwrap(), "--only", "Lab-Workload/1"]);
    assert_eq!(ran.status, Some(0));
    assert!(link.is_symlink());
    assert_eq!(run(&["stats", &file, "--json"]).well().json()["events"], 12);
}

/// The file of a link that leads nowhere yet comes to be where it leads; one that is there keeps its mode.
#[test]
#[cfg(unix)]
fn a_file_stays_what_it_was() {
    let source = path("gen-net10-lab-small.nettrace");
    let (directory, file) = output();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let (link, next) = (directory.path().join("link"), inner.join("next"));
    std::os::unix::fs::symlink("inner/next", &link).unwrap();
    std::os::unix::fs::symlink("../out.nettrace", &next).unwrap();
    let rewrite = || assert_eq!(run(&["rewrite", &source, "-o", link.to_str().unwrap()]).status, Some(0));
    rewrite();
    assert!(link.is_symlink() && next.is_symlink());
    assert!(fs::read(&file).unwrap() == fs::read(&source).unwrap());
    // The mask of whoever runs this takes the rights of others away from one of them, if from any.
    for mode in [0o666, 0o640] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        rewrite();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
    }
    // In a circle.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("link", &file).unwrap();
    assert_eq!(run(&["rewrite", &source, "-o", &file]).status, Some(1));
}

#[test]
#[cfg(unix)]
fn whoever_has_seen_enough_of_what_is_rewritten() {
    let source = path("gen-net10-lab-small.nettrace");
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    finish(tool(&["rewrite", &source, "-o", "-"]).stdout(OwnedFd::from(theirs)).spawn().unwrap()).well();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = finish(tool(&["rewrite", &source, "-o", "-"]).stdout(full).spawn().unwrap());
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
}

/// What a reader takes is rewritten, however long it is and however much there is of it.
#[test]
fn what_no_runtime_writes() {
    const THREADS: u32 = 60_000;
    let (mut buf, mut trace) = (vec![0; 2_000_000], Vec::new());
    let mut writer = Writer::new(Version::V4, &mut buf).unwrap();
    macro_rules! put {
        ($method:ident($arg:expr)) => {
            while let Some(bytes) = writer.$method($arg).unwrap() {
                trace.extend_from_slice(bytes);
            }
        };
    }
    let (stack, payload) = ([1; 200_000], [2; 200_000]);
    let event = Event { metadata_id: 1, sequence: 1, stack_id: 1, sorted: true, ..Event::default() };
    put!(trace(&nettrace::Trace::new(Version::V4)));
    let mut metadata = Metadata::default();
    (metadata.id, metadata.provider, metadata.event_id) = (1, "Demo".into(), 7);
    put!(describe(&metadata));
    put!(stack(&Stack { id: 1, bytes: &stack }));
    put!(event(&Event { payload: &payload, ..event }));
    // All that is left of these is a loss each.
    for thread in 1..=THREADS {
        put!(event(&Event { capture_thread: thread.into(), metadata_id: 0, ..event }));
    }
    put!(sequence_point(&SequencePoint::default()));
    for thread in 1..=THREADS {
        put!(thread_sequence(&ThreadSequence { thread: thread.into(), sequence: 2 }));
    }
    while let Some(bytes) = writer.finish() {
        trace.extend_from_slice(bytes);
    }
    let (_directory, file) = output();
    for (args, kept) in
        [(&[][..], THREADS + 1), (&["--only", "Demo"], 1), (&["--only", "Demo", "--format", "6"], 1)]
    {
        let ran = run_with(&[&["rewrite", "-", "-o", &file], args].concat(), trace.clone());
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(0), 1), "{ran:?}");
        let stats = run(&["stats", &file, "--json"]).well().json();
        assert_eq!((&stats["events"], &stats["lost"]), (&json!(kept), &json!(THREADS)), "{args:?}");
        assert_eq!(stats["stacks"], 1);
    }
}
