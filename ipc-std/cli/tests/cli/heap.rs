//! Tests of `dotnet-ipc heap`, on recorded snapshots and on a runtime that sends them.
use std::fs;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};
use serde_json::Value;

use crate::tool::run;
use crate::traces::path;

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

#[test]
fn a_process_is_asked_for_a_snapshot() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let trace = fs::read(snapshot("net10-linux")).unwrap();
    for code in 0x0202..=0x0206 {
        let trace = trace.clone();
        runtime.on(Code(code), move |_| Response::Trace(trace.clone()));
    }
    let output = run(&["heap", "--socket", runtime.path().to_str().unwrap(), "--json"]);
    assert!(output.stderr.contains("stops the program"), "{}", output.stderr);
    assert!(counts(&output.json()).contains(&("LabHeap.Node", 1000)));
}
