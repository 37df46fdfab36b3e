//! `dotnet-ipc stats`: every recorded trace, and broken ones.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use nettrace::{Event, Metadata, SequencePoint, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{finish, run, run_with, tool};
use crate::traces::{expected_end, kinds, lossy, made, path, put, traces};

#[test]
fn stats_of_every_trace() {
    for (path, expected) in traces() {
        let ran = run(&["stats", &path, "--json", "--digest"]);
        let stats = ran.json();
        let (end, status) = expected_end(&expected);
        assert_eq!((ran.status, &stats["end"]), (Some(status), &json!(end)), "{path}");
        assert_eq!(stats["offset"].is_null() && stats["reason"].is_null(), end == "complete", "{path}");
        let keys: Vec<&String> = stats.as_object().unwrap().keys().collect();
        let all = "version recorded duration_ms blocks events by_event processes pairs metadata stacks sequence_points unresolved \
                   out_of_order lost lost_at_start lost_at_end first_timestamp last_timestamp end offset reason digest";
        assert_eq!(keys, all.split_whitespace().collect::<Vec<_>>());
        for (key, of) in [
            ("version", "version"),
            ("blocks", "blocks"),
            ("events", "events"),
            ("metadata", "metadata_rows"),
            ("stacks", "stacks"),
            ("sequence_points", "seqpoints"),
            ("digest", "digest_sha256"),
        ] {
            assert_eq!(stats[key], expected[of], "{path}: {key}");
        }
        let number = |key: &str| stats[key].as_u64().unwrap();
        assert_eq!(number("lost") - number("lost_at_start"), expected["dropped_strict"], "{path}");
        // The only trace with numbers that lead nowhere.
        let resolved =
            |table: &str| stats["unresolved"][table].as_object().unwrap().values().all(|n| *n == 0);
        let tables = ["metadata", "threads", "stacks", "label_lists"];
        assert!(tables.iter().all(|table| resolved(table)), "{path}: {}", stats["unresolved"]);
        let is_in_order = stats["out_of_order"].as_object().unwrap().values().all(|n| *n == 0);
        // Runtimes keep the order. The recording of another program has a point that is older than an event before it.
        assert_eq!(is_in_order, !path.contains("onecollect"), "{path}: {}", stats["out_of_order"]);
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

#[test]
fn stats_for_people() {
    let ran = run(&["stats", &path("gen-net10-small-mixed.nettrace")]).well();
    assert!(ran.text().contains("\nevents:          406\n"), "{}", ran.text());
    assert!(ran.text().contains("end:             complete\n"));
    let row = ran.text().lines().find(|line| line.contains(" GCStart")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..], ["Microsoft-Windows-DotNETRuntime", "1", "2", "GCStart"]);
}

/// The text says where and on which threads events were lost.
#[test]
fn losses_for_people() {
    let lost = |trace: Vec<u8>| run_with(&["stats", "-"], trace).well().into_text();
    let text = lost(lossy());
    let expected = "\nlost:            6 (at least; on 1 thread, at 0.000 s): the event buffer was full, or they were larger \
                    than 64 KiB, which no runtime records\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\nlost by thread:  5: 6\n"), "{text}");
    assert!(lost(made(&[])).contains("\nlost by thread:  (none)\n"));
}

#[test]
fn the_digest_is_computed_on_request_only() {
    let path = path("gen-net10-small-mixed.nettrace");
    assert_eq!(run(&["stats", &path, "--json"]).well().json()["digest"], Value::Null);
    assert!(!run(&["stats", &path]).well().text().contains("digest"));
    let digest = run(&["stats", &path, "--json", "--digest"]).well().json()["digest"].clone();
    let row = format!("\ndigest:          {}\n", digest.as_str().unwrap());
    let ran = run(&["stats", &path, "--digest"]).well();
    assert!(ran.text().contains(&row), "{row}{}", ran.text());
}

#[test]
fn stats_of_invalid_traces() {
    let ran = run_with(&["stats", "-", "--json"], Vec::new());
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(6), &json!("protocol")));
    let stats = ran.json();
    assert_eq!((&stats["version"], &stats["events"], &stats["offset"]), (&Value::Null, &json!(0), &json!(0)));
    let error = ran.last_error();
    assert_eq!(error["error"], "standard input: the trace is empty");
    // NetPerf of .NET Core 2.0: another name, and version 1.
    let mut netperf = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x01\0\0\0\0\0\0\0\x26\0\0\0".to_vec();
    netperf.extend(b"Microsoft.DotNet.Runtime.EventPipeFile\x06");
    netperf.extend([0; 32]);
    let ran = run_with(&["stats", "-", "--json"], netperf);
    assert_eq!((ran.status, &ran.json()["version"]), (Some(6), &json!(1)));
    // An object of an unknown kind, before the end.
    let mut stream = made(&[]);
    stream.pop();
    for _ in 0..2 {
        stream.extend(b"\x05\x05\x01\x02\0\0\0\0\0\0\0\x05\0\0\0Novel\x06\x0a\0\0\0\0\x06");
    }
    stream.push(1);
    let ran = run_with(&["stats", "-", "--json"], stream).well();
    assert_eq!(ran.json()["blocks"], json!({ "Trace": 1, "MetadataBlock": 1, "EventBlock": 1, "Novel": 2 }));
    let ran = run_with(&["stats", "-"], b"hello".to_vec());
    assert_eq!(ran.status, Some(6));
    assert!(ran.stderr.contains("standard input: the trace is corrupt at byte 0: this is no NetTrace"));
    let ran = run_with(&["stats", "-", "--json"], b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0".to_vec());
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.status, &error["kind"]), (Some(6), &"unsupported_version".into()));
    assert_eq!(error["error"], "standard input: version 7 of the format is not supported; 3 to 6 are");
    assert_eq!(ran.json()["end"], "unsupported_version");
    for args in [&["stats", "/nowhere/x"], &["stats", "/"], &["events", "/nowhere/x"], &["events", "/"]] {
        let ran = run(args);
        assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("cannot read {}", args[1])));
    }
}

/// The input may stay open after the end mark.
#[test]
fn bytes_after_the_end_are_not_read() {
    let mut child = tool(&["stats", "-", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&fs::read(path("gen-net10-lab-small.nettrace")).unwrap()).unwrap();
    assert_eq!(finish(child).well().json()["events"], 142);
    drop(stdin);
}

/// The times of sequence points increase, and those of the events between two of them lie between their times.
#[test]
fn what_is_out_of_order_is_counted() {
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&Metadata::new(1, "App", 1, "Tick")));
    for (event, point) in [(10, 20), (19, 30), (31, 25), (25, 25)] {
        let event = Event { metadata_id: 1, timestamp: event, sorted: true, ..Event::default() };
        put!(trace, writer.event(&event));
        put!(trace, writer.sequence_point(&SequencePoint { timestamp: point, ..SequencePoint::default() }));
    }
    trace.extend_from_slice(&writer.finish());
    let stats = run_with(&["stats", "-", "--json"], trace.clone()).well().json();
    let expected = json!({ "points_before_points": 1, "points_before_events": 1, "events_before_points": 1 });
    assert_eq!(stats["out_of_order"], expected);
    let text = run_with(&["stats", "-"], trace).well().into_text();
    assert!(text.contains("1 events are older than the sequence point before"), "{text}");
}
