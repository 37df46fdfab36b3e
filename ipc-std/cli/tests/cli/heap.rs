//! Tests of `dotnet-ipc heap`, on recorded snapshots and on a runtime that sends them.
use std::fs;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};
use serde_json::Value;

use crate::tool::{Ran, run};
use crate::traces::{path, put, utf16};

fn snapshot(name: &str) -> String {
    path(&format!("../heap/{name}.nettrace"))
}

/// Returns the counts of the program's own types, by the name after the namespace.
fn counts(output: &Value) -> Vec<(&str, u64)> {
    let types = output["types"].as_array().unwrap().iter().filter(|of| of["own"] == true);
    types.map(|of| (of["name"].as_str().unwrap(), of["count"].as_u64().unwrap())).collect()
}

#[test]
fn the_types_of_a_snapshot() {
    let output = run(&["heap", &snapshot("net10-linux"), "--json"]).well().json();
    let known: Value =
        serde_json::from_str(&fs::read_to_string(path("../heap/known-counts.json")).unwrap()).unwrap();
    let counts = counts(&output);
    for (name, count) in known.as_object().unwrap() {
        assert!(counts.contains(&(name, count.as_u64().unwrap())), "{name}");
    }
    assert_eq!((&output["complete"], &output["lost_events"]), (&true.into(), &0.into()));
    let sum = |key: &str| {
        output["types"].as_array().unwrap().iter().map(|of| of[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(
        (Some(sum("bytes")), Some(sum("count"))),
        (output["bytes"].as_u64(), output["objects"].as_u64())
    );
}

#[test]
fn the_table_has_the_program_first() {
    let text = run(&["heap", &snapshot("net11-linux"), "--top", "2"]).well().into_text();
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place("objects, ") < place("Types of the program:"));
    assert!(place("LabHeap.Tree") < place("All types:"));
    assert!(place("System.Byte[]  ") < place("System.Byte[]: buffers"));
    let text = run(&["heap", &snapshot("net11-linux"), "--type", "^LabHeap.(Node|Key)$", "--sort", "name"])
        .well()
        .into_text();
    assert!(
        !text.contains("System.Byte[]") && text.find("LabHeap.Key") < text.find("LabHeap.Node"),
        "{text}"
    );
    let none = run(&["heap", &snapshot("net11-linux"), "--type", "Nobody"]).well().into_text();
    assert!(none.ends_with("no type matches\n"), "{none}");
}

#[test]
fn what_is_missing_is_said() {
    let output = run(&["heap", &snapshot("net10-lossy")]);
    assert!(
        output.stderr.contains("the snapshot lost events, 145 of them with objects"),
        "{}",
        output.stderr
    );
    assert!(output.text().contains("which are reachable is not known"));
    let output = run(&["heap", &snapshot("net10-second-dump")]);
    assert!(
        output.stderr.contains("types without a name were described to an earlier session"),
        "{}",
        output.stderr
    );
    let none = run(&["heap", &path("gen-net10-small-mixed.nettrace")]);
    assert_eq!(none.status, Some(9));
    assert!(none.stderr.contains("has no heap snapshot"), "{}", none.stderr);
}

/// Runs the command for a runtime whose sessions have these streams: one for its counters, one for the snapshot.
fn heap_of(counters: &[u8], snapshot: &[u8], options: &[&str]) -> Ran {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let other = fs::read(path("gen-net10-small-mixed.nettrace")).unwrap();
    for code in 0x0202..=0x0206 {
        let streams = [counters, snapshot, &other].map(<[u8]>::to_vec);
        runtime.on(Code(code), move |request| {
            let request = format!("{request:?}");
            let [counters, snapshot, other] = &streams;
            Response::Trace(match () {
                () if request.contains("EventCounterIntervalSec") => counters.clone(),
                () if request.contains("Microsoft-Windows-DotNETRuntime") => snapshot.clone(),
                // The session that makes the runtime describe all types again.
                () => other.clone(),
            })
        });
    }
    run(&[&["heap", "--socket", runtime.path().to_str().unwrap()], options].concat())
}

#[test]
fn a_process_is_asked_for_a_snapshot() {
    let trace = fs::read(snapshot("net10-linux")).unwrap();
    let output = heap_of(&[], &trace, &["--json"]);
    assert!(output.stderr.contains("stops the program"), "{}", output.stderr);
    assert!(output.stderr.contains("takes up to 256 MB of the memory of the process"), "{}", output.stderr);
    let output = output.json();
    assert!(counts(&output).contains(&("LabHeap.Node", 1000)));
    let bytes = output["types"].as_array().unwrap().iter().find(|of| of["name"] == "System.Byte[]").unwrap();
    assert!(
        bytes["large"].as_u64() >= bytes["largest"].as_u64()
            && bytes["large"].as_u64() < bytes["bytes"].as_u64()
    );
}

#[test]
fn a_snapshot_that_lost_events_says_which_buffer_is_enough() {
    let output = heap_of(&[], &fs::read(snapshot("net10-lossy")).unwrap(), &["--buffer", "1"]);
    assert!(output.stderr.contains("takes up to 1 MB"), "{}", output.stderr);
    assert!(output.stderr.contains("--buffer 32 has room for all events"), "{}", output.stderr);
}

#[test]
fn a_process_that_ends_leaves_what_it_sent() {
    let trace = fs::read(snapshot("net10-linux")).unwrap();
    let output = heap_of(&[], &trace[..trace.len() / 2], &["--timeout", "1s"]);
    assert_eq!(output.status, Some(7), "{}", output.stderr);
    assert!(
        output.text().contains("All types:") && output.stderr.contains("the process exited"),
        "{output:?}"
    );
    let other = fs::read(path("gen-net10-small-mixed.nettrace")).unwrap();
    let output = heap_of(&[], &other, &["--timeout", "1s"]);
    assert_eq!(output.status, Some(9), "{}", output.stderr);
    assert!(output.stderr.contains("started no collection"), "{}", output.stderr);
}

#[test]
fn a_large_heap_needs_force() {
    let (mut buf, mut counters) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut space = [0; 256];
    let numbers = ["Mean", "StandardDeviation", "Min", "Max"].map(|name| (name, Scalar::Double));
    let fields = [&[("Name", Scalar::Utf16String)][..], &numbers].concat();
    let mut metadata = Metadata::new(1, "System.Runtime", 2, "EventCounters");
    metadata.fields = Fields::build(&fields, &mut space).unwrap();
    put!(counters, writer.describe(&metadata));
    let payload = [utf16("gc-heap-size"), [5000.0_f64; 4].map(f64::to_le_bytes).concat()].concat();
    put!(
        counters,
        writer.event(&Event { metadata_id: 1, sequence: 1, payload: &payload, ..Event::default() })
    );
    counters.extend_from_slice(&writer.finish());
    let trace = fs::read(snapshot("net10-linux")).unwrap();
    let refused = heap_of(&counters, &trace, &[]);
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("the heap has 5.0 GB"), "{}", refused.stderr);
    assert!(heap_of(&counters, &trace, &["--force"]).text().contains("LabHeap.Tree"));
}
