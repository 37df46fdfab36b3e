//! Tests of `dotnet-ipc stack`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use ipc_proto::{Code, CollectTracing4};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{Ran, finish, run, tool};
use crate::traces::{analysed, put};

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
    let threads = stack(&runtime, &["--json", "--raw"]).well().lines();
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

    let text = stack(&runtime, &["--raw"]).well().into_text();
    let short = stack(&runtime, &["--short", "--raw"]).well().into_text();
    assert_eq!(text.lines().count(), short.lines().count());
    assert_eq!(text.matches("Thread ").count(), threads.len());
    let external = threads.iter().filter(|thread| thread["state"] == "external").count();
    assert_eq!(text.matches("    [outside managed code]\n").count(), external);
    assert!(external > 0 && external <= threads.len());
    assert!(
        text.contains("System.Private.CoreLib!System.") && !short.contains("System.Private.CoreLib!System.")
    );
}

/// Methods that only carry threads and continuations become one, and those of the program are marked.
#[test]
fn own_methods_are_marked_and_others_folded() {
    let runtime = traced(startup());
    let text = stack(&runtime, &["--short"]).well().into_text();
    assert!(text.contains("\n   *Work.") && text.contains("\n    System.Threading."), "{text}");
    assert!(
        text.contains("\n    [threads and async]\n") && !text.contains("Thread+StartHelper.Run\n"),
        "{text}"
    );
    let raw = stack(&runtime, &["--short", "--raw", "--own", "System.Threading.Tasks"]).well().into_text();
    assert!(raw.contains("Thread+StartHelper.Run\n") && !raw.contains("[threads and async]"), "{raw}");
    assert!(!raw.contains("\n   *Work."), "{raw}");
    for (options, is_folded) in [(&["--json"][..], true), (&["--json", "--raw"], false)] {
        let threads = stack(&runtime, options).well().lines();
        let mut folded = 0;
        for thread in &threads {
            let [frames, own] = ["frames", "own"].map(|field| thread[field].as_array().unwrap());
            assert_eq!(frames.len(), own.len());
            for (frame, own) in frames.iter().zip(own) {
                let name = frame.as_str().unwrap();
                assert_eq!(own.as_bool().unwrap(), name.starts_with("Workload!"), "{name}");
                folded += usize::from(name == "[threads and async]");
            }
        }
        assert_eq!(folded > 0, is_folded);
    }
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

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Returns a trace with a sample of each thread, which is in these methods, the innermost first. `managed` decides by the
/// thread.
fn sampled(threads: &[(u64, &[&str])], managed: impl Fn(u64) -> bool) -> Vec<u8> {
    let mut methods: Vec<&str> = threads.iter().flat_map(|(_, stack)| stack.iter().copied()).collect();
    methods.sort_unstable();
    methods.dedup();
    let address = |method: &str| 0x1_0000 * (1 + methods.iter().position(|of| *of == method).unwrap() as u64);
    let utf16 = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut described = |id, provider, event_id| {
        put!(trace, writer.describe(&Metadata::new(id, provider, event_id, "")));
    };
    described(1, SAMPLER, 0);
    described(2, RUNDOWN, 154);
    described(3, RUNDOWN, 144);
    for (id, (_, stack)) in (1..).zip(threads) {
        let bytes: Vec<u8> = stack.iter().flat_map(|method| (address(method) + 1).to_le_bytes()).collect();
        put!(trace, writer.stack(&Stack { id, bytes: &bytes }));
    }
    let mut sequence = 0;
    let mut put_event = |metadata_id, thread, stack_id, payload: &[u8]| {
        sequence += 1;
        let event = Event {
            metadata_id,
            thread,
            stack_id,
            sequence,
            payload,
            timestamp: sequence.into(),
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    };
    for (id, (thread, _)) in (1..).zip(threads) {
        put_event(1, *thread, id, &u32::from(managed(*thread)).wrapping_add(1).to_le_bytes());
    }
    for (module, path) in [
        (1_u64, "/app/Shop.dll"),
        (2, "/dotnet/System.Private.CoreLib.dll"),
        (3, "/dotnet/shared/Microsoft.AspNetCore.App/10.0.0/Kestrel.dll"),
    ] {
        let row = [&module.to_le_bytes()[..], &[0; 16], &utf16(path), &utf16("")].concat();
        put_event(2, 1, 0, &row);
    }
    for method in &methods {
        let (name, rest) = method.rsplit_once('.').map(|(of, name)| (name, of)).unwrap();
        let module: u64 = match rest {
            _ if rest.starts_with("Shop.") => 1,
            _ if rest.starts_with("Microsoft.") => 3,
            _ => 2,
        };
        let numbers = [address(method), module, address(method)].map(u64::to_le_bytes).concat();
        let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
        put_event(3, 1, 0, &[numbers, sizes, utf16(rest), utf16(name), utf16("void ()")].concat());
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

const IDLE: &[&str] =
    &["System.Threading.LowLevelLifoSemaphore.Wait", "System.Threading.PortableThreadPool.Work"];
const STOCK: &[&str] = &[
    "System.Threading.Monitor.Wait",
    "System.Threading.Tasks.Task.Wait",
    "Shop.Stock.Get",
    "Shop.Program.Main",
];

/// Returns 40 threads: 30 of the runtime, 8 that wait in the program in two ways, and others.
fn many() -> Vec<u8> {
    let mut threads: Vec<(u64, &[&str])> = (100..130).map(|id| (id, IDLE)).collect();
    threads.extend((200..205).map(|id| (id, STOCK)));
    // These wait in another way, and are dispatched in another way.
    let others: &[&str] = &[
        "System.Threading.Thread.Yield",
        "System.Threading.Monitor.Wait",
        "System.Threading.Tasks.Task.Wait",
        "Shop.Stock.Get",
        "System.Threading.ExecutionContext.Run",
        "Shop.Program.Main",
        "System.Threading.PortableThreadPool.Work",
    ];
    threads.extend((205..208).map(|id| (id, others)));
    threads.push((300, &["Shop.Stock.Get", "Shop.Program.Main"]));
    threads.push((301, &["Microsoft.AspNetCore.Kestrel.Loop"]));
    sampled(&threads, |id| matches!(id, 207 | 300))
}

#[test]
fn threads_with_the_same_stack_are_one_entry() {
    let runtime = traced(many());
    let headings = |options: &[&str]| -> Vec<String> {
        let text = stack(&runtime, options).well().into_text();
        let lines = text.lines().filter(|line| line.contains(" thread"));
        lines.map(str::to_owned).collect()
    };
    let expected = [
        "8 threads: Monitor.Wait < … < Stock.Get",
        "1 thread: Stock.Get",
        "1 thread: Kestrel.Loop",
        "30 threads: LowLevelLifoSemaphore.Wait < PortableThreadPool.Work",
    ];
    // Text of more than 20 threads is grouped.
    assert_eq!(headings(&[]), expected);
    assert_eq!(headings(&["--group", "--short"]), expected);
    let text = stack(&runtime, &["--short"]).well().into_text();
    let entry = "8 threads: Monitor.Wait < … < Stock.Get\n    200, 201, 202 and 5 more\n    [outside managed code]\n    \
                 System.Threading.Monitor.Wait\n    System.Threading.Tasks.Task.Wait\n   *Shop.Stock.Get\n   \
                 *Shop.Program.Main\n\n1 thread: Stock.Get\n    300\n   *Shop.Stock.Get\n";
    assert!(text.starts_with(entry), "{text}");

    let text = stack(&runtime, &["--no-group"]).well().into_text();
    assert_eq!(text.matches("\nThread ").count(), 39, "{text}");
    stack(&runtime, &["--group", "--no-group"]).fails(2, "cannot be used with");
    let few = traced(sampled(&[(1, IDLE), (2, IDLE)], |_| false));
    assert!(stack(&few, &[]).well().into_text().starts_with("Thread 1\n"));
    let text = stack(&few, &["--group"]).well().into_text();
    assert!(text.starts_with("2 threads: LowLevelLifoSemaphore.Wait < "), "{text}");
}

#[test]
fn json_is_grouped_on_request() {
    let runtime = traced(many());
    assert_eq!(stack(&runtime, &["--json"]).well().lines().len(), 40);
    let groups = stack(&runtime, &["--json", "--group", "--short"]).well().lines();
    let counts: Vec<_> = groups.iter().map(|group| group["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [8, 1, 1, 30]);
    let expected = json!({ "threads": [200, 201, 202, 203, 204, 205, 206, 207], "count": 8, "state": "external", "frames": STOCK, "own": [false, false, true, true] });
    assert_eq!(groups[0], expected);
    assert_eq!((&groups[1]["state"], &groups[3]["state"]), (&"managed".into(), &"external".into()));
}
