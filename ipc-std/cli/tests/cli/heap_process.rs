//! Tests of `dotnet-ipc heap` on runtimes that serve a made-up heap, and of its `.gcdump` files.
use std::fs;

use ipc_proto::{CollectTracing4, Command as _};
use ipc_testkit::{FakePort, FakeRuntime, Fault, LoggedRequest, Profile};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{Ran, finish, run, tool, until};
use crate::traces::path;

fn runtime(profile: Profile, heap: &str) -> FakeRuntime {
    FakeRuntime::start(Profile { heap: Some(heap.parse().unwrap()), ..profile }).unwrap()
}

fn heap(runtime: &FakeRuntime, args: &[&str]) -> Ran {
    run(&[&["heap", "--socket", runtime.path().to_str().unwrap()], args].concat())
}

/// Returns the counts by the name of the type.
fn counts(output: &Value) -> Value {
    let types = output["types"].as_array().unwrap().iter();
    types.map(|of| (of["name"].as_str().unwrap().to_owned(), of["count"].clone())).collect()
}

const ALL: &str = "list=3000,cycle=10,roots=30,weak=5,com=3,conditional=4,thread-static=2";

#[test]
fn a_heap_of_everything() {
    let kinds =
        [("", Profile::net10()), (",32-bit", Profile::net8()), (",no-collection", Profile::net11_aot())];
    for (part, profile) in kinds {
        let runtime = runtime(profile, &format!("{ALL}{part}"));
        let output = heap(&runtime, &["--json"]).json();
        let expected = json!({
            "Fake.Node": 3000, "Fake.Cycle": 10, "Fake.Rooted": 180, "Fake.Weak": 5, "Fake.Com": 3, "[RCW Fake.Rcw]": 3,
            "Fake.Key": 4, "Fake.Value": 4, "Fake.OfThread": 2,
        });
        assert_eq!(counts(&output), expected, "{part}");
        assert_eq!((&output["objects"], &output["bytes"]), (&3211.into(), &(3211 * 24).into()), "{part}");
        // The circle has no root, and weak roots keep nothing alive.
        assert_eq!(output["unreachable_objects"], 15, "{part}");
        assert_eq!(
            (&output["complete"], &output["process_id"]),
            (&true.into(), &runtime.process_id().into())
        );
        assert_eq!(output["types"][0]["module"], "Fake.dll");
    }
}

#[test]
fn a_heap_with_losses() {
    let runtime = runtime(Profile::net10(), "list=5000,lost=3");
    let output = heap(&runtime, &["--json"]);
    assert!(output.stderr.contains("the snapshot lost events"), "{}", output.stderr);
    let output = output.json();
    // Of five events with objects, the third one is lost.
    assert_eq!(counts(&output), json!({ "Fake.Node": 4000 }));
    assert_eq!((&output["complete"], &output["unreachable_objects"]), (&false.into(), &Value::Null));
}

#[test]
fn a_process_that_ends_in_the_middle() {
    let runtime = runtime(Profile::net11(), "list=20000");
    runtime.set_fault(Fault::CloseAfter(200_000));
    let output = heap(&runtime, &[]);
    assert!(output.stderr.contains("the end of the snapshot is missing"), "{}", output.stderr);
    assert!(output.text().contains("Fake.Node"), "{output:?}");
}

#[test]
fn ctrl_c_ends_a_snapshot_without_an_end() {
    let runtime = runtime(Profile::net11(), "list=2000,no-end");
    let child = tool(&["heap", "--socket", runtime.path().to_str().unwrap(), "--json"]).spawn().unwrap();
    // Process information, the session that forgets the types, its end, and the session of the snapshot.
    until("the snapshot begins", || runtime.requests().len() >= 4);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = finish(child);
    // A signal before the session has begun ends the tool.
    if output.status == Some(0) {
        assert!(output.stderr.contains("the end of the snapshot is missing"), "{output:?}");
        assert_eq!(output.json()["complete"], false);
    } else {
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn a_runtime_that_starts_no_collection() {
    let native = FakeRuntime::start(Profile::net9_aot()).unwrap();
    let output = heap(&native, &[]);
    assert_eq!(output.status, Some(9), "{output:?}");
    assert!(output.stderr.contains("started no collection"), "{}", output.stderr);
    assert!(output.stderr.contains("compile it with .NET 10"), "{}", output.stderr);
    // It has no rundown: after the session that forgets the types, no session begins that would wait for objects.
    let is_session = |request: &&LoggedRequest| request.code() == Some(CollectTracing4::CODE);
    assert_eq!(native.requests().iter().filter(is_session).count(), 1);

    let runtime = FakeRuntime::start(Profile::net9()).unwrap();
    let output = heap(&runtime, &["--timeout", "1s"]);
    assert_eq!(output.status, Some(9), "{output:?}");
    assert!(output.stderr.contains("started no collection") && output.stderr.contains("a longer --timeout"));
}

#[test]
fn a_suspended_runtime_has_no_objects() {
    let runtime = runtime(Profile { suspended: true, ..Profile::net10() }, "list=10");
    let output = heap(&runtime, &[]);
    assert_eq!(output.status, Some(1), "{output:?}");
    assert!(output.stderr.contains("is suspended: it has no objects yet"), "{output:?}");
}

/// Events that the runtime writes on the thread that serves requests: all objects, into a buffer that waits for the tool.
const SNAPSHOT: [&str; 4] =
    ["--provider", "Microsoft-Windows-DotNETRuntime:1980001:5", "--buffering", "block"];

#[test]
fn a_recording_reads_a_snapshot_before_the_runtime_answers() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.nettrace");
    let file = file.to_str().unwrap();
    for suspended in [false, true] {
        // More bytes than a socket buffers.
        let runtime = runtime(Profile { suspended, ..Profile::net11() }, "list=100000");
        let socket = runtime.path().to_str().unwrap();
        let args =
            ["trace", "--socket", socket, "-o", file, "--overwrite", "--json", "--timeout", "5s", "--until"];
        run(&[&args[..], &["Microsoft-Windows-DotNETRuntime/2"], &SNAPSHOT].concat()).well();
        let shown = run(&["heap", file, "--json"]).well().json();
        assert_eq!(counts(&shown), json!({ "Fake.Node": 100_000 }));
        assert_eq!(shown["complete"], true);
        let args = [
            "events",
            "--socket",
            socket,
            "--count-by",
            "provider",
            "--until",
            "Microsoft-Windows-DotNETRuntime/2",
        ];
        run(&[&args[..], &SNAPSHOT].concat()).well();
    }
}

/// A second session would wait for the end of the snapshot.
#[test]
fn a_runtime_that_writes_a_snapshot_is_not_asked_for_names() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.nettrace");
    for args in [&["trace", "--names-first", "-o", file.to_str().unwrap()][..], &["events", "--stacks"]] {
        let runtime = runtime(Profile::net11(), "list=100000");
        let target = ["--socket", runtime.path().to_str().unwrap(), "--until"];
        let end = ["Microsoft-Windows-DotNETRuntime/2", "--timeout", "5s"];
        let output = run(&[args, &target, &end, &SNAPSHOT].concat());
        assert_eq!(output.status, Some(0), "{output:?}");
        assert!(output.stderr.contains("no names at the start"), "{output:?}");
    }
}

#[test]
fn a_monitor_reads_a_snapshot_before_the_runtime_answers() {
    let directory = TempDir::new().unwrap();
    let [port, file] = ["port", "x.nettrace"].map(|name| directory.path().join(name));
    let (port_path, file) = (port.to_str().unwrap(), file.to_str().unwrap());
    let args = ["monitor", "--listen", port_path, "--trace", file, "--first-only", "--timeout", "5s"];
    let monitor = tool(&[&args[..], &SNAPSHOT].concat()).spawn().unwrap();
    until("the port does not listen", || port.exists());
    let ports = vec![FakePort { path: port, suspended: false }];
    let runtime = runtime(Profile { ports, ..Profile::net11() }, "list=100000");
    until("the runtime is not resumed", || runtime.requests().len() >= 2);
    until("the snapshot is not read", || fs::metadata(file).is_ok_and(|file| file.len() > 4_000_000));
    kill_process(Pid::from_child(&monitor), Signal::INT).unwrap();
    let output = finish(monitor);
    assert_eq!(output.status, Some(0), "{output:?}");
    let shown = run(&["heap", file, "--json"]).well().json();
    assert_eq!(counts(&shown), json!({ "Fake.Node": 100_000 }));
}

#[test]
fn a_gcdump_file_is_the_snapshot() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("app.gcdump");
    let file = file.to_str().unwrap();
    let runtime = runtime(Profile::net11(), ALL);
    let written = heap(&runtime, &["-o", file, "--json"]).json();
    assert_eq!((&written["objects"], &written["complete"]), (&3211.into(), &true.into()));
    assert_eq!(written["bytes"], fs::metadata(file).unwrap().len());
    let shown = heap(&runtime, &["--json"]).json();
    let mut read = run(&["heap", file, "--json"]).well().json();
    // The file does not have the keys of conditional weak tables.
    assert_eq!(read["unreachable_objects"], 15);
    read["unreachable_objects"] = shown["unreachable_objects"].clone();
    assert_eq!(read, shown);
    assert_eq!(run(&["--map", "heap", file, "--json"]).well().json(), shown);
    // A file is not replaced, and not asked for before the snapshot.
    let again = heap(&runtime, &["-o", file]);
    assert_eq!(again.status, Some(1));
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let other = run(&["heap", file, "--process", "1"]);
    assert_eq!(other.status, Some(9), "{other:?}");
    // A trace has the same table as the file that is made of it.
    let trace = path("../heap/net10-linux.nettrace");
    let written = run(&["heap", &trace, "-o", file, "--overwrite"]);
    assert!(written.stderr.contains("(12,534 objects)"), "{written:?}");
    let types = |args: &[&str]| run(args).well().json()["types"].clone();
    assert_eq!(types(&["heap", &trace, "--json"]), types(&["heap", file, "--json"]));
}

#[test]
fn damaged_gcdump_files() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("cut.gcdump");
    let mut bytes = fs::read(path("../heap/net10-linux.gcdump")).unwrap();
    fs::write(&file, &bytes[..100_000]).unwrap();
    let cut = run(&["heap", file.to_str().unwrap()]);
    assert_eq!(cut.status, Some(6));
    assert!(cut.stderr.contains("cut.gcdump: the file is truncated"), "{}", cut.stderr);
    // The version of the format.
    bytes[27] = 8;
    fs::write(&file, &bytes).unwrap();
    let old = run(&["heap", file.to_str().unwrap()]);
    assert!(old.stderr.contains("version 8 of the format .gcdump is not supported"), "{}", old.stderr);
}
