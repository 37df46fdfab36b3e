//! Tests of `dotnet-ipc gc`, on recorded traces.

use std::fs;

use nettrace::{Event, Metadata, ThreadEntry, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{run, run_with};
use crate::traces::{analysed, lossy, path, put};

/// The columns of TraceEvent, and those around them.
const COLUMNS: [&str; 18] = [
    "process_id",
    "number",
    "generation",
    "type",
    "reason",
    "start_ms",
    "pause_start_ms",
    "pause_ms",
    "suspend_ms",
    "duration_ms",
    "heap_after_mb",
    "promoted_mb",
    "complete",
    "gen0_mb",
    "gen1_mb",
    "gen2_mb",
    "large_mb",
    "pinned_mb",
];

fn expected() -> Vec<Value> {
    let lines = fs::read_to_string(analysed("net10-collections.gc.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_collection_is_that_of_traceevent() {
    let rows = run(&["gc", &analysed("net10-collections.nettrace"), "--json"]).well().lines();
    let expected = expected();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        let row = row.as_object().unwrap();
        assert_eq!(row.keys().map(String::as_str).collect::<Vec<_>>(), COLUMNS);
        for (key, expected) in expected.as_object().unwrap() {
            match (row[key].as_f64(), expected.as_f64()) {
                (Some(found), Some(expected)) => {
                    assert!((found - expected).abs() < 1e-6, "{key}: {found} {expected}");
                }
                _ => assert_eq!(&row[key], expected, "{key}"),
            }
        }
        let parts: f64 = COLUMNS[13..].iter().map(|part| row[*part].as_f64().unwrap()).sum();
        assert!((parts - row["heap_after_mb"].as_f64().unwrap()).abs() < 1e-6, "{row:?}");
    }
}

#[test]
fn collections_as_csv() {
    let text = run(&["gc", &analysed("net10-collections.nettrace"), "--csv"]).well().into_text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(COLUMNS.join(",").as_str()));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let expected = expected();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        assert_eq!(row[3..5], [expected["type"].as_str().unwrap(), expected["reason"].as_str().unwrap()]);
        assert_eq!(row[7], expected["pause_ms"].to_string());
    }
}

#[test]
fn collections_for_people() {
    let file = analysed("net10-collections.nettrace");
    let text = run(&["gc", &file]).well().into_text();
    assert!(text.starts_with("29 collections (0 induced) in "), "{text}");
    for line in ["\nThe 10 longest pauses:\n", " GENERATION  COUNT  INDUCED ", " NUMBER  GEN "] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let rows = |text: &str| {
        let table = text.split_once("REASON\n").unwrap().1;
        table.lines().map(|row| row.split_whitespace().next().unwrap().parse().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!(rows(&text).len(), 10);
    assert!(rows(&text).is_sorted());
    let mut expected = expected();
    let text = run(&["gc", &file, "--top", "100"]).well().into_text();
    assert!(!text.contains("longest"), "{text}");
    assert_eq!(rows(&text), expected.iter().map(|row| row["number"].as_u64().unwrap()).collect::<Vec<_>>());
    let text = run(&["gc", &file, "--top", "1"]).well().into_text();
    expected.sort_by(|a, b| a["pause_ms"].as_f64().unwrap().total_cmp(&b["pause_ms"].as_f64().unwrap()));
    assert_eq!(json!(rows(&text)), json!([expected.last().unwrap()["number"]]));
    for args in [&["gc", &file, "--summary"][..], &["gc", &file, "--top", "0"]] {
        assert!(!run(args).well().text().contains("REASON"));
    }
}

#[test]
fn statistics_as_json() {
    let summary = run(&["gc", &analysed("net10-collections.nettrace"), "--summary", "--json"]).well().json();
    let sum = |key: &str| expected().iter().map(|row| row[key].as_f64().unwrap()).sum::<f64>();
    let all = &summary["all"];
    assert_eq!(
        (&all["collections"], &all["induced"], &summary["incomplete"]),
        (&json!(29), &json!(0), &json!(0))
    );
    assert!((all["pause_ms"].as_f64().unwrap() - sum("pause_ms")).abs() < 1e-6);
    assert!((all["promoted_mb"].as_f64().unwrap() - sum("promoted_mb")).abs() < 1e-6);
    let generations = summary["generations"].as_array().unwrap();
    let counts: Vec<u64> = generations.iter().map(|of| of["collections"].as_u64().unwrap()).collect();
    let count = |generation| expected().iter().filter(|row| row["generation"] == generation).count();
    assert_eq!(json!(counts), json!([count(0), count(1), count(2)]));
    assert!(all["p50_pause_ms"].as_f64() <= all["p99_pause_ms"].as_f64());
    assert!(all["p99_pause_ms"].as_f64() <= all["max_pause_ms"].as_f64());
    assert!(summary["span_ms"].as_f64() > all["pause_ms"].as_f64());
}

#[test]
fn a_trace_without_collections_says_how_to_record_them() {
    let file = path("gen-net10-lab-small.nettrace");
    for option in [None, Some("--json"), Some("--csv"), Some("--summary")] {
        let args: Vec<_> = ["gc", &file].into_iter().chain(option).collect();
        let ran = run(&args);
        assert_eq!(ran.status, Some(0));
        // A table without rows still has its columns.
        let is_csv = option == Some("--csv");
        assert!(if is_csv { ran.text().starts_with("process_id,number,") } else { ran.text().is_empty() });
        assert_eq!(ran.text().lines().count(), usize::from(is_csv));
        assert!(ran.stderr.contains("has no garbage collection; "), "{ran:?}");
        assert!(ran.stderr.contains("dotnet-ipc trace PID --profile gc-collect"), "{ran:?}");
    }
    let ran = run_with(&["gc", "-"], lossy());
    assert_eq!(ran.status, Some(0));
    assert!(
        ran.stderr.starts_with("note: 6 events were lost ")
            && ran.stderr.contains("\nnote: standard input has no garbage collection")
    );
    let ran = run(&["gc", &file, "--summary", "--json"]);
    assert_eq!((ran.status, &ran.json()["all"]["collections"]), (Some(0), &json!(0)));
    assert!(ran.json()["all"]["max_pause_ms"].is_null());
}

/// Events of the runtime, written as a trace: each with its time in nanoseconds, thread, id and payload.
fn written(processes: &[u64], events: &[(u64, u32, Vec<u8>)]) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let version = if processes.is_empty() { Version::V4 } else { Version::V6 };
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).unwrap();
    for (id, version) in [(1, 2), (2, 1), (3, 1), (4, 2), (8, 1), (9, 1)] {
        let mut metadata = Metadata::new(id, "Microsoft-Windows-DotNETRuntime", id, "");
        metadata.version = version;
        put!(trace, writer.describe(&metadata));
    }
    for (index, process) in (1..).zip(processes) {
        let entries = [ThreadEntry::ProcessId(*process), ThreadEntry::ThreadId(7)];
        trace.extend_from_slice(&writer.thread(index, entries).unwrap());
    }
    let mut sequence = 0;
    for (time, id, payload) in events {
        for thread in 1..=u64::try_from(processes.len().max(1)).unwrap() {
            sequence += 1;
            let event = Event {
                metadata_id: *id,
                sequence,
                thread,
                capture_thread: 1,
                timestamp: time * thread,
                payload,
                ..Event::default()
            };
            put!(trace, writer.event(&event));
        }
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn two_processes_have_their_own_collections() {
    let trace = written(
        &[100, 200],
        &[
            (1_000_000, 9, numbers(&[1, 1])),
            (1_100_000, 8, Vec::new()),
            (1_200_000, 1, numbers(&[1, 0, 0, 0])),
            (1_300_000, 2, numbers(&[1, 0])),
            (1_400_000, 4, vec![0; 94]),
            (1_500_000, 3, Vec::new()),
        ],
    );
    let rows = run_with(&["gc", "-", "--json"], trace.clone()).well().lines();
    let of = |row: &Value| [row["process_id"].clone(), row["number"].clone(), row["pause_ms"].clone()];
    let rows: Vec<_> = rows.iter().map(of).collect();
    assert_eq!(rows, [[json!(100), json!(1), json!(0.5)], [json!(200), json!(1), json!(1.0)]]);
    let text = run_with(&["gc", "-"], trace.clone()).well().into_text();
    assert!(text.contains("2 collections (0 induced) ") && text.contains(" of 2 processes; "), "{text}");
    assert!(text.contains("\n PROCESS  NUMBER "), "{text}");
    let ran = run_with(&["gc", "-", "--csv", "--process", "200"], trace);
    assert!(ran.text().lines().nth(1).unwrap().starts_with("200,1,0,"), "{ran:?}");
    assert_eq!(ran.text().lines().count(), 2);
}

/// A collection that has not ended is shown without the times that are not known.
#[test]
fn a_collection_without_an_end() {
    let trace = written(
        &[],
        &[
            (1_000_000, 9, numbers(&[1, 1])),
            (1_100_000, 8, Vec::new()),
            (1_200_000, 1, numbers(&[5, 2, 1, 0])),
            (3_000_000, 14, Vec::new()),
        ],
    );
    let ran = run_with(&["gc", "-", "--json"], trace.clone());
    let [row] = &ran.lines()[..] else { panic!("{ran:?}") };
    assert_eq!(
        (&row["number"], &row["suspend_ms"], &row["complete"]),
        (&json!(5), &json!(0.1), &json!(false))
    );
    assert!(["pause_ms", "duration_ms", "heap_after_mb"].iter().all(|key| row[*key].is_null()), "{row}");
    let open = "was still suspended for a collection at the end, for 2.000 ms";
    assert!(ran.stderr.contains(open), "{ran:?}");
    let ran = run_with(&["gc", "-"], trace);
    let text = "\n1 more collections are not complete in the trace\n\n NUMBER ";
    assert!(ran.text().contains(text) && ran.stderr.contains(open), "{ran:?}");
}

/// The valid part of a cut trace is shown.
#[test]
fn cut_traces() {
    let trace = fs::read(analysed("net10-collections.nettrace")).unwrap();
    let half = &trace[..trace.len() / 2];
    let ran = run_with(&["gc", "-", "--json"], half);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(6), &json!("protocol")));
    let rows = ran.lines();
    assert!(rows.len() > 5, "{rows:?}");
    assert_eq!(rows[0]["pause_ms"], expected()[0]["pause_ms"]);
    run_with(&["gc", "-"], Vec::new()).fails(6, "the trace is empty");
    run(&["gc", "/nowhere/x"]).fails(1, "cannot read /nowhere/x");
    run(&["gc", "x", "--csv", "--json"]).fails(2, "cannot be used with");
}
