//! `stack`, `top`, `report --by own`, `locks` and `diagnose` agree on the states of threads.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};
use serde_json::Value;

use crate::diagnosis_services::{Form, IDLE, LOCK, POOL, Service, WORK};
use crate::tool::{run, run_with};

const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_4: Code = Code(0x0205);

/// The threads of a recording that run, by `stack`, after a check that all other commands have the same.
fn running(name: &str, trace: &[u8]) -> (BTreeSet<u64>, Value) {
    let report = run_with(&["report", "-", "--by", "own", "--json"], trace).well().json();
    let diagnosis = run_with(&["diagnose", "-", "--json"], trace).well().json();
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [COLLECT_TRACING_2, COLLECT_TRACING_4] {
        let trace = trace.to_vec();
        runtime.on(code, move |_| Response::Trace(trace.clone()));
    }
    let socket = runtime.path().to_str().unwrap();
    let top =
        ["top", "--socket", socket, "--json", "--duration", "200ms", "--top", "100000", "--since-start"];
    // A busy machine can divide the trace into several periods, and the last line counts all of them.
    let top = run(&top).well().lines().pop().unwrap();
    let stacks = run(&["stack", "--socket", socket, "--json", "--no-cache"]).well().lines();

    for key in ["samples", "running_samples"] {
        assert_eq!(top[key], diagnosis[key], "{name}");
    }
    assert_eq!(report["samples"], diagnosis["running_samples"], "{name}");
    let id = |row: &Value| row["thread_id"].as_u64().unwrap();
    let of_top: BTreeMap<u64, f64> = top["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| (id(thread), thread["running"].as_f64().unwrap()))
        .collect();
    assert!(stacks.iter().map(id).eq(of_top.keys().copied()), "{name}");
    let runs: BTreeSet<_> = stacks.iter().filter(|stack| stack["state"] == "managed").map(id).collect();
    for id in &runs {
        assert!(of_top[id] > 0.0, "{name}: thread {id}, {top}");
    }
    (runs, diagnosis)
}

/// Recordings of services whose threads run, wait for locks and tasks, sleep, and are idle.
#[test]
fn recorded_services() {
    let mut all = BTreeSet::new();
    for name in ["contention", "deadlock", "regex", "starve", "threads"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/sick/{name}.nettrace"));
        all.extend(running(name, &fs::read(file).unwrap()).0);
    }
    assert!(all.len() > 5, "{all:?}");
}

/// A thread that the runtime stops while it waits is no thread that runs, and one can wait for a lock without a method of
/// the program.
#[test]
fn states_that_one_sample_does_not_show() {
    const SLEEP: &[&str] = &["System.Threading.Thread.Sleep"];
    let mut service = Service::new(Form::plain(), 4);
    service.runs(10, &[WORK, &["Shop.Report.Build"], POOL], 0..4_000);
    service.runs(11, &[WORK, POOL], 0..4_000);
    service.runs(12, &[SLEEP, &["Shop.Timer.Loop"]], 0..4_000);
    service.runs(13, &[LOCK, &["Shop.Orders.Pay"], POOL], 0..4_000);
    service.waits(14, &[LOCK, &["System.Collections.Hashtable.Insert"], POOL], 0..4_000);
    service.waits(15, &[IDLE, POOL], 0..4_000);
    let trace = service.recorded();
    let (running, diagnosis) = running("made", &trace);
    assert_eq!(running, [10, 11].into());

    let locks = run_with(&["locks", "-", "--json"], &trace[..]).well().json();
    let waiting = locks["waiting_before"].as_array().unwrap();
    let waiting = waiting.iter().flat_map(|group| group["threads"].as_array().unwrap());
    let waiting: BTreeSet<_> = waiting.map(|thread| thread.as_u64().unwrap()).collect();
    assert_eq!(waiting, [13, 14].into(), "{locks}");
    let report = run_with(&["report", "-", "--contention"], &trace[..]);
    assert!(report.stderr.contains("2 threads wait for locks since before the recording"), "{report:?}");
    let deadlock = diagnosis["findings"].as_array().unwrap().iter().find(|of| of["kind"] == "deadlock");
    let evidence = deadlock.unwrap()["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("2 threads waited for locks during the whole recording"), "{evidence}");
}
