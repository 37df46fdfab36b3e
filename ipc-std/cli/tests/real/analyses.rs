//! `report`, `flame`, `gc` and `jit` of real runtimes.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

use crate::json;
use crate::runtime::{Runtime, each_program, each_runtime, with_runtimes};

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

/// All that a runtime has between an event and the program is in the list, which `BLESS=1` completes. Without tiers and
/// precompiled code, nothing is inlined.
#[test]
fn machinery() {
    const LIST: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../ipc-proto/analysis/src/call_tree/machinery.txt");
    let in_tiers = [("DOTNET_DefaultDiagnosticPortSuspend", OsStr::new("1"))];
    let unoptimized = [
        in_tiers[0],
        ("DOTNET_ReadyToRun", OsStr::new("0")),
        ("DOTNET_TC_CallCountThreshold", OsStr::new("7fffffff")),
        ("DOTNET_TC_OnStackReplacement", OsStr::new("0")),
    ];
    for variables in [&in_tiers[..], &unoptimized] {
        each_program(
            |_| true,
            |start| {
                let mut runtime = start(variables);
                runtime.wait_for_socket();
                let text = fs::read_to_string(LIST).unwrap();
                let known: BTreeSet<&str> = text.lines().collect();
                let mut found: BTreeSet<String> = known.iter().map(|line| (*line).to_owned()).collect();
                for event in recorded_events(&runtime) {
                    found.extend(carriers(&event));
                }
                if env::var_os("BLESS").is_some() {
                    fs::write(LIST, found.iter().map(|line| format!("{line}\n")).collect::<String>())
                        .unwrap();
                } else {
                    let new: Vec<_> = found.iter().filter(|line| !known.contains(line.as_str())).collect();
                    assert!(new.is_empty(), "{}: BLESS=1 adds {new:?}", runtime.name);
                }
            },
        );
    }
}

/// Returns the events of the first seconds of a program, with their stacks.
fn recorded_events(runtime: &Runtime) -> Vec<Value> {
    let file = runtime.directory.path().join("machinery.nettrace");
    let (file, pid) = (file.to_str().unwrap(), runtime.process_id.to_string());
    let mut args = vec!["trace", &pid, "-o", file, "--duration", "4s"];
    for provider in [
        "Microsoft-Windows-DotNETRuntime:0xC000001C001:5",
        "Microsoft-DotNETCore-SampleProfiler",
        "System.Diagnostics.Eventing.FrameworkEventSource:2:5",
        "DotnetIpc-Calls::5",
        "Lab-Workload::5",
        "Microsoft-Diagnostics-DiagnosticSource:0xffff:5:FilterAndPayloadSpecs=\"[AS]*\nDotnetIpc-Calls/order\"",
        "System.Diagnostics.Metrics:7:5:SessionId=machinery;Metrics=DotnetIpc-Calls",
    ] {
        args.extend(["--provider", provider]);
    }
    runtime.run(&args, 0);
    let events = runtime.run(&["events", file, "--json", "--stacks"], 0);
    let text = String::from_utf8(events.stdout).unwrap();
    let is_needed = |line: &&str| {
        !line.contains("\"stack\":[]") && (!line.contains("SampleProfiler") || line.contains("PollGC"))
    };
    text.lines().filter(is_needed).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns what carried out the task of an event for the program: types that have one purpose, or else methods.
fn carriers(event: &Value) -> Vec<String> {
    let stack = event["stack"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap());
    let names: Vec<&str> = stack
        .map(|frame| frame.split_once('!').map_or(frame, |(_, name)| name))
        .map(|name| name.split(['(', '|']).next().unwrap())
        .collect();
    let is_of_framework =
        |name: &&str| ["System.", "Microsoft.", "Interop"].iter().any(|of| name.starts_with(of));
    let Some(own) = names.iter().position(|name| !is_of_framework(name)) else { return Vec::new() };
    let (above, program) = (&names[..own], names[own]);
    let is_program = ["Work.", "WorkSource.", "LabSource."].iter().any(|of| program.starts_with(of));
    // The initialization of a type runs at any place.
    if names[..=own].iter().any(|name| name.ends_with("..cctor")) {
        return Vec::new();
    }
    // Code of the framework locks, waits and allocates too.
    let run = |is_carrier: &dyn Fn(&str) -> bool| {
        &above[..above.iter().take_while(|name| is_carrier(name)).count()]
    };
    let threading = run(&|name| {
        name.starts_with("System.Threading.") || name.starts_with("System.Diagnostics.Tracing.NativeRuntime")
    });
    let (task, is_type, carriers) = match (event["provider"].as_str().unwrap(), event["id"].as_u64().unwrap())
    {
        // Asynchronous methods are in types of their own.
        ("Microsoft-Windows-DotNETRuntime", 80 | 250..=256) if is_program || program.starts_with("Work+") => {
            ("throw", true, above)
        }
        _ if !is_program => return Vec::new(),
        // The wait for a task locks seldom.
        ("Microsoft-Windows-DotNETRuntime", 81 | 90 | 91) if program != "Work.Throw" => {
            ("lock", true, threading)
        }
        ("Microsoft-Windows-DotNETRuntime", 301 | 302) => ("wait", true, threading),
        ("Microsoft-Windows-DotNETRuntime", 70) => ("start", false, above),
        ("Microsoft-Windows-DotNETRuntime", 10 | 303) if program == "Work.Allocate" => {
            ("allocate", false, above)
        }
        ("Microsoft-Windows-DotNETRuntime", 10 | 303) => {
            ("allocate", false, run(&|name| name.contains("Alloc") || name.ends_with(".Box")))
        }
        ("Microsoft-DotNETCore-SampleProfiler", _) => ("poll", false, run(&|name| name.contains("PollGC"))),
        ("Microsoft-Windows-DotNETRuntime", _) => return Vec::new(),
        _ => ("send", true, above),
    };
    let carrier = |name: &&str| match name.find(['`', '+']) {
        _ if !is_type => (*name).to_owned(),
        Some(end) => name[..end].to_owned(),
        None => name.rsplit_once('.').unwrap().0.trim_end_matches('.').to_owned(),
    };
    carriers.iter().map(|name| format!("{task} {}", carrier(name))).collect()
}

/// A report of a process shows the same functions of the program as a report of its trace.
#[test]
fn a_report_of_a_process_is_that_of_its_trace() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        // On a busy machine, a program comes to its first method after seconds.
        let _ = crate::thread_in_main(runtime);
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
