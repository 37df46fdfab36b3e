//! Tests of `dotnet-ipc stack`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use ipc_proto::{Code, CollectTracing4};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use serde_json::Value;

use crate::tool::{Ran, finish, run, tool};
use crate::traces::analysed;

const STOP_TRACING: Code = Code(0x0201);
/// The commands that start a session: one without rundown, and one with a rundown.
const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_4: Code = Code(0x0205);

/// Starts a runtime that sends this trace.
fn traced(trace: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [COLLECT_TRACING_2, COLLECT_TRACING_4] {
        let trace = trace.clone();
        runtime.on(code, move |_| Response::Trace(trace.clone()));
    }
    runtime
}

fn startup() -> Vec<u8> {
    fs::read(analysed("net10-startup.nettrace")).unwrap()
}

fn stack(runtime: &FakeRuntime, options: &[&str]) -> Ran {
    run(&[&["stack", "--socket", runtime.path().to_str().unwrap()], options].concat())
}

#[test]
fn the_first_stack_of_each_thread_has_the_names_of_the_trace() {
    let runtime = traced(startup());
    let threads = stack(&runtime, &["--json"]).well().lines();
    let samples = run(&[
        "events",
        &analysed("net10-startup.nettrace"),
        "--only",
        "Microsoft-DotNETCore-SampleProfiler",
        "--json",
    ]);
    let samples = samples.well().lines();
    let ids: BTreeSet<u64> = samples.iter().map(|sample| sample["thread_id"].as_u64().unwrap()).collect();
    assert!(ids.len() > 3);
    assert!(threads.iter().map(|thread| thread["thread_id"].as_u64().unwrap()).eq(ids));
    let mut named = 0;
    for thread in &threads {
        let first = samples.iter().find(|sample| sample["thread_id"] == thread["thread_id"]).unwrap();
        let frames = thread["frames"].as_array().unwrap();
        assert_eq!(frames.len(), first["stack"].as_array().unwrap().len());
        named += frames.iter().filter(|frame| frame.as_str().unwrap().starts_with("System.")).count();
        assert!(thread["state"] == "managed" || thread["state"] == "external");
        assert!(thread["thread_name"].is_null());
    }
    assert!(named > 10, "{named}");

    let text = stack(&runtime, &[]).well().into_text();
    let short = stack(&runtime, &["--short"]).well().into_text();
    assert_eq!(text.lines().count(), short.lines().count());
    assert_eq!(text.matches("Thread ").count(), threads.len());
    let external = threads.iter().filter(|thread| thread["state"] == "external").count();
    assert_eq!(text.matches("    [outside managed code]\n").count(), external);
    assert!(external > 0 && external <= threads.len());
    assert!(
        text.contains("System.Private.CoreLib!System.") && !short.contains("System.Private.CoreLib!System.")
    );
}

#[test]
fn a_session_has_methods_and_modules_only() {
    let runtime = traced(startup());
    stack(&runtime, &[]).well();
    let requests = runtime.requests();
    let [request, ..] = &requests[..] else { panic!("{requests:?}") };
    let session: CollectTracing4<'_> = request.message().unwrap().decode().unwrap();
    assert_eq!((session.rundown_keyword, session.providers.iter().count()), (0x138, 1));
}

#[test]
fn watching_asks_for_names_once() {
    let runtime = traced(startup());
    let mut child = tool(&["stack", "--watch", "--json", "--socket", runtime.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut threads = BTreeMap::<u64, Vec<Value>>::new();
    for line in lines {
        let thread: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let shown = threads.entry(thread["thread_id"].as_u64().unwrap()).or_default();
        shown.push(thread);
        if shown.len() == 3 {
            break;
        }
    }
    // The reader wants no more stacks, so the tool ends instead of stopping the process again and again.
    finish(child).well();
    assert!(threads.len() > 3);
    for shown in threads.values() {
        assert!(shown.len() >= 2 && shown.iter().all(|thread| *thread == shown[0]), "{shown:?}");
    }
    let codes: Vec<_> = runtime.requests().iter().filter_map(|request| request.code()).collect();
    let sessions: Vec<_> = codes.into_iter().filter(|code| *code != STOP_TRACING).collect();
    assert_eq!(sessions[..3], [COLLECT_TRACING_4, COLLECT_TRACING_2, COLLECT_TRACING_2]);
}

#[test]
fn a_runtime_without_stacks_is_an_error() {
    let empty = fs::read(analysed("net10-collections.nettrace")).unwrap();
    stack(&traced(empty), &[]).fails(1, "error: the runtime sent no stacks");
    // A suspended runtime sends nothing at all.
    stack(&traced(Vec::new()), &[]).fails(1, "error: the runtime is suspended: it has no threads yet");
    let cut = startup();
    stack(&traced(cut[..cut.len() / 2].to_vec()), &[]).fails(7, "error: the process exited");
}

/// Starts `stack --watch`, and waits for its first line.
fn watched(runtime: &FakeRuntime) -> Child {
    let args = ["stack", "--watch", "--json", "--socket", runtime.path().to_str().unwrap()];
    let mut child = tool(&args).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

#[test]
fn watching_ends_with_the_process() {
    let runtime = traced(startup());
    let child = watched(&runtime);
    drop(runtime);
    finish(child).fails(7, "\"error\":\"the process exited\"");
    // The process ends during the next session, before its response.
    let runtime = traced(startup());
    let child = watched(&runtime);
    runtime.set_fault(Fault::CloseAfter(0));
    finish(child).fails(7, "\"error\":\"the process exited\"");
}

/// The command does not wait twice: for the process information, and for the session.
#[test]
fn a_silent_runtime_is_asked_once() {
    let runtime = traced(startup());
    runtime.set_fault(Fault::Silent);
    stack(&runtime, &["--timeout", "100ms"]).fails(4, "timed out");
    assert_eq!(runtime.requests().len(), 1);
}

#[test]
#[cfg(unix)]
fn a_signal_ends_watching() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(startup());
        let child = watched(&runtime);
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child).well();
    }
}
