//! `report`, `flame`, `gc` and `jit` of real runtimes.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

use crate::json;
use crate::runtime::{Runtime, each_runtime, with_runtimes};

/// Runs the tool. Returns `None` if the program has no samples or compilations because it was compiled ahead of time.
fn analysed(runtime: &Runtime, args: &[&str]) -> Option<Output> {
    let output = runtime.dotnet_ipc(args).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    // A report has nothing to show, and a list is empty.
    if matches!(output.status.code(), Some(0 | 9)) && error.contains("compiled ahead of time") {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}: {args:?}: {error}", runtime.name);
    Some(output)
}

/// Returns the inclusive shares of the program's own functions. Those of the framework change during a minute: methods
/// that are compiled again contain others.
fn shares(report: &Value) -> BTreeMap<String, f64> {
    let own = report["frames"].as_array().unwrap().iter().filter(|frame| frame["own"] == true);
    own.map(|f| (f["name"].as_str().unwrap().to_owned(), f["inclusive"].as_f64().unwrap())).collect()
}

/// All methods of a runtime that are between an event and the program are in the list, which `BLESS=1` completes.
#[test]
fn machinery() {
    const EVENTS: [u64; 12] = [70, 71, 80, 250, 251, 252, 253, 254, 255, 256, 301, 302];
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ipc-proto/analysis/src/call_tree/machinery.txt");
    with_runtimes(|runtime| {
        let text = fs::read_to_string(list).unwrap();
        let known: BTreeSet<(u64, String)> = text
            .lines()
            .map(|line| {
                let (event, name) = line.split_once(' ').unwrap();
                (event.parse().unwrap(), name.to_owned())
            })
            .collect();
        let file = runtime.directory.path().join("machinery.nettrace");
        let (file, pid) = (file.to_str().unwrap(), runtime.process_id.to_string());
        let provider = "Microsoft-Windows-DotNETRuntime:0x40000018001:5";
        runtime.run(&["trace", &pid, "-o", file, "--duration", "3s", "--provider", provider], 0);
        let events = runtime.run(&["events", file, "--json", "--stacks"], 0);
        let mut found = known.clone();
        for line in String::from_utf8(events.stdout).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let id = event["id"].as_u64().filter(|id| EVENTS.contains(id));
            let Some(id) = id.filter(|_| event["provider"] == "Microsoft-Windows-DotNETRuntime") else {
                continue;
            };
            let frames = event["stack"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap());
            let names: Vec<&str> = frames
                .map(|frame| frame.split_once('!').map_or(frame, |(_, name)| name))
                .map(|name| name.split('(').next().unwrap())
                .collect();
            let Some(program) = names.iter().position(|name| name.starts_with("Work.")) else { continue };
            if names[..program].iter().all(|name| name.starts_with("System.")) {
                found.extend(names[..program].iter().map(|name| (id, (*name).to_owned())));
            }
        }
        if env::var_os("BLESS").is_some() {
            let lines = found.iter().map(|(event, name)| format!("{event} {name}\n"));
            fs::write(list, lines.collect::<String>()).unwrap();
        } else {
            let new: Vec<_> = found.difference(&known).collect();
            assert!(new.is_empty(), "{}: BLESS=1 adds {new:?}", runtime.name);
        }
    });
}

/// A report of a process shows the same functions of the program as a report of its trace.
#[test]
fn a_report_of_a_process_is_that_of_its_trace() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        let options = ["--wall", "--json", "--top", "100000"];
        let live = ["report", &pid, "--duration", "3s"];
        let Some(live) = analysed(runtime, &[&live[..], &options].concat()) else { return };
        if runtime.is_native() {
            return;
        }
        let file = runtime.directory.path().join("report.nettrace");
        let file = file.to_str().unwrap();
        runtime.run(&["trace", &pid, "-o", file, "--duration", "3s"], 0);
        let recorded = runtime.run(&[&["report", file][..], &options].concat(), 0);
        let reports = [live, recorded].map(|output| json(&output));
        for report in &reports {
            assert!(report["samples"].as_u64().unwrap() > 0, "{}: {report}", runtime.name);
            assert!(report["unnamed_frames"].as_f64().unwrap() < 20.0, "{}", runtime.name);
        }
        let [live, recorded] = reports.each_ref().map(shares);
        for (one, other) in [(&live, &recorded), (&recorded, &live)] {
            let (top, share) = one.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
            let other = other.get(top).copied().unwrap_or_default();
            // The program does not do the same in each second.
            assert!((share - other).abs() < 40.0, "{}: {top}: {share} {other}", runtime.name);
        }
    });
}

/// The start of a program compiles, allocates and runs managed code.
#[test]
fn the_start_of_a_program() {
    for args in [
        &["report", "--allocations", "--json"][..],
        &["jit", "--json"],
        &["gc", "--json"],
        &["flame", "--json", "-o"],
    ] {
        each_runtime(|start| {
            let mut runtime = start(&[("DOTNET_DefaultDiagnosticPortSuspend", OsStr::new("1"))]);
            runtime.wait_for_socket();
            if !runtime.knows(4, 1) {
                return; // The runtime does not wait to be resumed.
            }
            let (pid, file) = (runtime.process_id.to_string(), runtime.directory.path().join("x.html"));
            let mut args = [args, &[&pid, "--duration", "3s"]].concat();
            if let Some(output) = args.iter().position(|arg| *arg == "-o") {
                args.insert(output + 1, file.to_str().unwrap());
            }
            // An idle program needs no collection.
            if args[0] == "gc" {
                let output = runtime.dotnet_ipc(&args).output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}: {error}", runtime.name);
                return;
            }
            let Some(output) = analysed(&runtime, &args) else { return };
            let text = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            match args[0] {
                "report" => {
                    assert!(lines[0]["total"].as_u64().unwrap() > 100_000, "{}: {text}", runtime.name);
                }
                "jit" => {
                    assert!(lines.len() > 10, "{}: {text}", runtime.name);
                    assert!(lines.iter().all(|row| row["method"].as_str().unwrap().contains('(')));
                }
                _ => {
                    let page = fs::read_to_string(&file).unwrap();
                    let named = page.contains("System.Private.CoreLib");
                    assert!(named || runtime.is_native(), "{}", runtime.name);
                }
            }
        });
    }
}

/// Each collection and each compilation is that of TraceEvent. `DOTNET_IPC_TRACE_EVENT` is a program that prints those
/// of a trace with TraceEvent, one object of JSON a line: `PROGRAM gc FILE` and `PROGRAM jit FILE`. Without the
/// variable the test does nothing.
#[test]
fn collections_and_compilations_are_those_of_traceevent() {
    let Some(program) = env::var_os("DOTNET_IPC_TRACE_EVENT") else { return };
    let compare = |name: &str, file: &str, ours: &dyn Fn(&str) -> Output| {
        for kind in ["gc", "jit"] {
            let theirs = Command::new(&program)
                .args([kind, file])
                .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
                .output()
                .unwrap();
            let [ours, theirs] = [ours(kind), theirs].map(|output| {
                assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
                let text = String::from_utf8(output.stdout).unwrap();
                text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(ours.len(), theirs.len(), "{kind} of {name}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                for (key, expected) in theirs.as_object().unwrap() {
                    assert!(is_same(&ours[key], expected), "{name}: {key} of {ours} is {expected}");
                }
            }
        }
    };
    with_runtimes(|runtime| {
        let file = runtime.directory.path().join("analysed.nettrace");
        let file = file.to_str().unwrap();
        let events = ["--clr-events", "gc+jit", "--clr-event-level", "verbose", "--duration", "3s"];
        let pid = runtime.process_id.to_string();
        runtime.run(&[&["trace", &pid, "-o", file][..], &events].concat(), 0);
        compare(&runtime.name, file, &|kind| runtime.run(&[kind, file, "--json"], 0));
    });
}

/// TraceEvent has 0 or "Unknown" where the trace has nothing, and the tool has null.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() < 1e-5,
        (None, Some(theirs)) => ours.is_null() && theirs <= 0.0,
        _ => ours == theirs || (ours.is_null() && theirs == "Unknown"),
    }
}
