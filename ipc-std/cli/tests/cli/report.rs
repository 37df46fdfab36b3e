//! Tests of `dotnet-ipc report`, on recorded traces.

use std::fs;

use serde_json::Value;

use crate::tool::{run, run_with};
use crate::traces::{analysed, lossy, path};

fn startup() -> String {
    analysed("net10-startup.nettrace")
}

fn names(report: &Value) -> Vec<&str> {
    report["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect()
}

#[test]
fn cpu_is_the_default() {
    let text = run(&["report", &startup(), "--top", "2"]).well().into_text();
    assert_eq!(run(&["report", &startup(), "--top", "2", "--cpu"]).well().into_text(), text);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "CPU: samples of threads in managed code");
    assert!(lines[1].starts_with("16 of 2,122 samples, 0 events lost, "), "{text}");
    assert_eq!(lines[3], "EXCLUSIVE INCLUSIVE  FUNCTION");
    // Two functions, and how many are missing.
    assert!(lines[4].contains(" % ") && lines[5].contains('!'), "{text}");
    assert!(lines[6].ends_with("shows all"), "{text}");
    assert_eq!(lines.len(), 7, "{text}");

    let text = run(&["report", &analysed("net31-sampled.nettrace")]).well().into_text();
    assert!(text.contains("2 of 5,478 samples"), "{text}");
    let last = "1 thread only waits or runs native code (1,826 samples); --wall shows where";
    assert_eq!(text.lines().last(), Some(last));
}

/// The functions have the order and the shares of dotnet-trace.
#[test]
fn thread_time() {
    let report = run(&["report", &startup(), "--thread-time", "--json"]).well().json();
    assert_eq!((&report["clock"], &report["unit"]), (&"thread-time".into(), &"nanoseconds".into()));
    assert_eq!(report["lost"], 0);
    let expected = fs::read_to_string(analysed("net10-startup.topn.txt")).unwrap();
    let shares = |line: &str| -> Vec<f64> {
        line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect()
    };
    let expected: Vec<_> = expected.lines().map(shares).filter(|shares| shares.len() == 2).collect();
    let frames = report["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 20);
    for (frame, expected) in frames.iter().zip(expected) {
        assert!((frame["exclusive"].as_f64().unwrap() - expected[1]).abs() < 0.0151, "{frame} {expected:?}");
    }
}

#[test]
fn orders_and_clocks() {
    let by = |args: &[&str]| {
        let trace = startup();
        let args = [&["report", &trace, "--json"], args].concat();
        run(&args).well().json()
    };
    let wall = by(&["--wall", "--by", "inclusive", "--top", "1000"]);
    assert_eq!((&wall["samples"], &wall["total"]), (&2122.into(), &2122.into()));
    let inclusive = |frame: &Value| frame["inclusive"].as_f64().unwrap();
    assert!(wall["frames"].as_array().unwrap().is_sorted_by(|a, b| inclusive(a) >= inclusive(b)));
    let exclusive: f64 =
        wall["frames"].as_array().unwrap().iter().map(|frame| frame["exclusive"].as_f64().unwrap()).sum();
    assert!((exclusive - 100.0).abs() < 1e-6);
    assert!(wall["unnamed_frames"].as_f64().unwrap() < 2.0);

    let sampler = "Microsoft-DotNETCore-SampleProfiler";
    for event in [sampler.to_owned(), format!("{sampler}/0")] {
        let events = by(&["--event", &event, "--by", "inclusive", "--top", "1000"]);
        assert_eq!(names(&events), names(&wall));
        assert_eq!(events["unit"], "events");
    }
    assert_eq!(by(&["--event", "all"])["total"], 2250);
}

#[test]
fn threads_and_tree() {
    let text = run(&["report", &startup(), "--wall", "--threads", "--tree"]).well().into_text();
    assert!(text.contains("THREAD  NAME, TOP FUNCTION") && text.contains("INCLUSIVE EXCLUSIVE  CALLS"));
    let report = run(&["report", &startup(), "--wall", "--threads", "--tree", "--json"]).well().json();
    let threads = report["threads"].as_array().unwrap();
    let sum: f64 = threads.iter().map(|thread| thread["share"].as_f64().unwrap()).sum();
    assert!((sum - 100.0).abs() < 1e-6 && threads.len() > 1);
    assert!(threads[0]["top"].as_str().unwrap().contains('!'));
    let tree = report["tree"].as_array().unwrap();
    let depth = |node: &Value| node["depth"].as_u64().unwrap();
    assert_eq!(depth(&tree[0]), 0);
    for pair in tree.windows(2) {
        assert!(depth(&pair[1]) <= depth(&pair[0]) + 1);
        if depth(&pair[1]) > depth(&pair[0]) {
            assert!(pair[1]["inclusive"].as_f64().unwrap() <= pair[0]["inclusive"].as_f64().unwrap());
        }
    }
}

#[test]
fn what_is_missing() {
    let collections = analysed("net10-collections.nettrace");
    for (args, what, how) in [
        (&[][..], "no samples of threads", "--profile dotnet-sampled-thread-time"),
        (&["--wall"], "no samples of threads", "compiled ahead of time sends them since .NET 10"),
        (&["--thread-time"], "no samples of threads", "--profile dotnet-sampled-thread-time"),
        (&["--allocations"], "no allocations", "--profile gc-verbose"),
        (&["--exceptions"], "no exceptions", "--clr-events exception"),
        (&["--contention"], "no contended locks", "--clr-events contention"),
        (&["--event", "System.Runtime"], "no such events", "dotnet-ipc stats"),
    ] {
        let args = [&["report", &collections], args].concat();
        run(&args).fails(1, what).fails(1, how);
    }
    run(&["report", &collections, "--event", "A/x"]).fails(2, "not a number");
    run(&["report", &collections, "--cpu", "--wall"]).fails(2, "cannot be used with");
    run(&["report", &path("no-such-file")]).fails(1, "cannot read");
}

#[test]
fn events_without_stacks() {
    let args = ["report", "-", "--event", "Demo"];
    let ran = run_with(&args, lossy());
    assert!(ran.text().starts_with("Events of Demo\n3 events, 6 events lost"), "{ran:?}");
    assert!(ran.text().contains("\nno event has a stack: ") && !ran.text().contains("FUNCTION"), "{ran:?}");
    let ran = run_with(&[&args[..], &["--json"]].concat(), lossy());
    assert_eq!(ran.json()["frames"], Value::Array(Vec::new()));
    // All three events have the same time, so no time passes.
    let ran = run_with(&["report", "-", "--thread-time"], lossy());
    assert!(ran.text().contains("\nno time is known: ") && !ran.text().contains("FUNCTION"), "{ran:?}");
}

/// A trace that was cut is reported as far as it goes, and standard input is a trace too.
#[test]
fn truncated_and_from_standard_input() {
    let bytes = fs::read(startup()).unwrap();
    let whole = run_with(&["report", "-", "--wall", "--json"], bytes.clone()).well().json();
    let cut = run_with(&["report", "-", "--wall", "--json"], &bytes[..bytes.len() / 8]);
    let report: Value = serde_json::from_str(cut.text().lines().next().unwrap()).unwrap();
    cut.fails(6, "truncated");
    assert!(report["samples"].as_u64().unwrap() < whole["samples"].as_u64().unwrap());
    // The names come last in the trace, so the cut trace lacks some.
    assert!(report["unnamed_frames"].as_f64().unwrap() > whole["unnamed_frames"].as_f64().unwrap());
    run_with(&["report", "-"], *b"no trace").fails(6, "corrupt");
}
