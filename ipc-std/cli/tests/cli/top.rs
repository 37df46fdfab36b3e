//! Tests of `dotnet-ipc top`, as lines and on a terminal.

use std::fs;
use std::io::{BufRead, BufReader};

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use serde_json::{Value, json};

use crate::tool::{Ran, finish, run, tool};
use crate::traces::{analysed, lossy};

const STOP_TRACING: Code = Code(0x0201);
const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_4: Code = Code(0x0205);

/// Starts a runtime that sends this trace, and as its rundown another trace with names.
fn traced(trace: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(trace.clone()));
    let names = startup();
    runtime.on(COLLECT_TRACING_4, move |_| Response::Trace(names.clone()));
    runtime
}

fn startup() -> Vec<u8> {
    fs::read(analysed("net10-startup.nettrace")).unwrap()
}

fn top(runtime: &FakeRuntime, options: &[&str]) -> Ran {
    run(&[&["top", "--socket", runtime.path().to_str().unwrap()], options].concat())
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

#[test]
fn shares_are_those_of_a_report() {
    let runtime = traced(startup());
    for (clock, wall) in [("cpu", &[][..]), ("wall", &["--wall"])] {
        // A busy machine can divide the trace into several periods, and the last line counts all of them.
        let options = [&["--json", "--duration", "200ms", "--top", "100000", "--since-start"], wall].concat();
        let period = top(&runtime, &options).well().lines().pop().unwrap();
        let file = analysed("net10-startup.nettrace");
        let report = run(&[&["report", &file, "--json", "--top", "100000"], wall].concat()).well().json();
        let by_name = |list: &Value| {
            let mut list = list.as_array().unwrap().clone();
            list.sort_by_key(|function| function["name"].as_str().unwrap().to_owned());
            list
        };
        let (ours, theirs) = (by_name(&period["functions"]), by_name(&report["frames"]));
        assert_eq!((ours.len(), &period["clock"]), (theirs.len(), &json!(clock)));
        assert!(ours.len() > 20);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours["name"], theirs["name"]);
            for share in ["exclusive", "inclusive"] {
                let difference = ours[share].as_f64().unwrap() - theirs[share].as_f64().unwrap();
                assert!(difference.abs() < 0.001, "{ours} {theirs}");
            }
        }
        let threads = period["threads"].as_array().unwrap();
        // Threads of another process have no names here, except for those that the runtime states.
        let is_foreign =
            |thread: &Value| thread["thread_name"].as_str().is_none_or(|name| name.starts_with(".NET "));
        assert!(threads.len() > 3 && threads.iter().all(is_foreign));
        assert_eq!(period["lost"], 0);
    }
    assert!(asked(&runtime, STOP_TRACING) && asked(&runtime, COLLECT_TRACING_4));
}

#[test]
fn tables() {
    let runtime = traced(startup());
    let options = ["--duration", "0.2", "--top", "3", "--short", "--since-start"];
    let functions = top(&runtime, &options).well().into_text();
    let lines: Vec<&str> = functions.lines().collect();
    // A busy machine can divide the trace into several periods, and the last table counts all of them.
    let [.., rates, header, first, _, _, ""] = lines[..] else { panic!("{functions}") };
    assert!(
        rates.contains(" threads run, GC paused ") && rates.ends_with(" exceptions/s, 0 lost"),
        "{rates}"
    );
    assert_eq!(header, "  SELF %  TOTAL %  FUNCTION (samples in managed code, since the start)");
    // Of functions of equal weight, those of the program come first.
    assert!(first.contains(" *RichSource.") && !first.contains('!'), "{first}");
    let all = ["--duration", "0.2", "--wall", "--by", "total", "--since-start", "--top", "100"];
    let folded = top(&runtime, &all).well().into_text();
    assert!(
        folded.contains("  [threads and async]\n") && !folded.contains("Thread+StartHelper.Run("),
        "{folded}"
    );
    let raw = top(&runtime, &[&all[..], &["--raw", "--own", "RichSource"]].concat()).well().into_text();
    assert!(raw.contains("Thread+StartHelper.Run(") && !raw.contains("[threads and async]"), "{raw}");
    assert!(!raw.contains(" *Workload!Work."), "{raw}");
    let options = ["--duration", "0.2", "--threads", "--by", "total", "--wall", "--since-start"];
    let threads = top(&runtime, &options).well().into_text();
    assert!(threads.contains("   RUN %  SHARE %  THREAD (all samples, since the start)\n"), "{threads}");
    let last = top(&runtime, &["--duration", "0.2"]).well().into_text();
    assert!(last.contains("  SELF %  TOTAL %  FUNCTION (samples in managed code, last second)\n"), "{last}");
}

/// The fake runtime ends its trace at the request to stop. Before that request, a second passes.
#[test]
#[cfg(unix)]
fn a_table_comes_each_second_until_a_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(startup());
        let socket = runtime.path().to_str().unwrap();
        let mut child = tool(&["top", "--json", "--socket", socket]).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // A busy machine reads the samples in several periods.
        let mut samples = lines.map(|line| {
            let period: Value = serde_json::from_str(&line.unwrap()).unwrap();
            period["samples"].as_u64().unwrap()
        });
        let mut total = 0;
        assert!(samples.any(|samples| {
            total += samples;
            total > 10
        }));
        let stops = || runtime.requests().iter().filter(|r| r.code() == Some(STOP_TRACING)).count();
        // So far, only the session of the rundown was stopped.
        assert_eq!(stops(), 1);
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child).well();
        assert_eq!(stops(), 2);
    }
}

#[test]
fn lost_events_are_counted() {
    let period = top(&traced(lossy()), &["--json", "--duration", "0.2"]).well().json();
    assert_eq!(period["lost"], 6);
    let text = top(&traced(lossy()), &["--duration", "0.2"]).well().into_text();
    assert!(text.lines().next().unwrap().ends_with(", 6 lost"), "{text}");
}

fn without_samples() -> FakeRuntime {
    traced(fs::read(analysed("net10-collections.nettrace")).unwrap())
}

#[test]
fn a_runtime_without_samples() {
    let ran = top(&without_samples(), &["--duration", "0.2"]);
    let note = "note: The runtime sends no samples of threads: a program that was compiled ahead of time sends \
                them since .NET 10\n";
    assert_eq!((ran.status, &*ran.stderr), (Some(0), note));
}

#[test]
fn a_runtime_that_ends_or_waits() {
    let runtime = traced(Vec::new());
    let suspended = top(&runtime, &["--duration", "0.2"]);
    suspended.fails(1, "error: the runtime is suspended: it has no threads yet");
    let runtime = traced(startup());
    // The rundown is complete.
    runtime.set_fault(Fault::CloseAfter(startup().len() + 28 - 1));
    top(&runtime, &[]).fails(7, "error: the process exited");
    let garbage = traced(b"garbage, and more of it".to_vec());
    assert_eq!(top(&garbage, &["--duration", "0.2"]).status, Some(6));
}

#[cfg(unix)]
mod terminal {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::tool::terminal::OnTerminal;

    #[test]
    fn keys() {
        let runtime = traced(startup());
        let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
        terminal.wait_for("\x1b[?1049h");
        terminal.wait_for("  SELF %  TOTAL %  FUNCTION");
        terminal.wait_for("System.");
        assert!(terminal.is_changed());
        terminal.press("t");
        terminal.wait_for("   RUN %  SHARE %  THREAD");
        terminal.press("fa");
        terminal.wait_for("samples in managed code, since the start");
        terminal.press("p");
        terminal.wait_for("PAUSED");
        terminal.press("q");
        terminal.ends_with(0);
        assert!(asked(&runtime, STOP_TRACING));
    }

    #[test]
    fn every_end_restores_the_terminal() {
        for (key, signal) in
            [("\x03", None), ("\x1b", None), ("", Some(Signal::TERM)), ("", Some(Signal::HUP))]
        {
            let runtime = traced(startup());
            let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
            terminal.wait_for("FUNCTION");
            terminal.press(key);
            if let Some(signal) = signal {
                kill_process(Pid::from_child(terminal.child.as_ref().unwrap()), signal).unwrap();
            }
            terminal.ends_with(0);
        }
        let runtime = traced(startup());
        runtime.set_fault(Fault::CloseAfter(startup().len() + 28 - 1));
        let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
        terminal.ends_with(7);
    }

    /// The key has requested the end, so the signal is the second request.
    #[test]
    fn a_signal_after_quitting_ends_the_tool() {
        let runtime = traced(startup());
        let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
        terminal.wait_for("FUNCTION");
        runtime.set_fault(Fault::Silent);
        terminal.press("q");
        terminal.wait_for("\x1b[?1049l");
        let child = terminal.child.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(finish(child).status, None);
    }

    /// The fake runtime ends its trace at the request to stop. Before that request, a second passes.
    #[test]
    fn a_lack_of_samples_is_explained() {
        let runtime = without_samples();
        let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
        terminal.wait_for("The runtime sends no samples of threads");
        terminal.press("q");
        terminal.ends_with(0);
    }

    #[test]
    fn a_suspended_runtime_is_explained() {
        let runtime = traced(Vec::new());
        let mut terminal = OnTerminal::start(&["top", "--socket", runtime.path().to_str().unwrap()], 100);
        terminal.wait_for("The runtime is suspended");
        terminal.press("q");
        terminal.ends_with(1);
    }
}
