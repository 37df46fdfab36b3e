//! Tests of the tool with real runtimes. They compare its output with the bytes of the runtime, decoded by other code,
//! and with the operating system's data about the process.
//!
//! The variable `DOTNET_IPC_RUNTIMES` lists the runtimes: `NAME=COMMAND LINE`, separated by `;`, with blanks between
//! the words of a command line. Each command must run until it is killed, and must not set the variables `LAB_…`, which
//! the tests set. `real_pipes.rs` tests commands that end in `.exe`, on Windows. Without the variable the tests do
//! nothing.
#![cfg(target_os = "linux")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

mod analyses;
mod examples;
mod mutations;
mod net_11;
mod ports;
mod runtime;
mod sessions;
#[path = "../strace/mod.rs"]
mod strace;
mod syscalls;
#[path = "../tool/mod.rs"]
mod tool;
mod traces;
mod user_events;

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::{Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::runtime::{Runtime, each_runtime, with_runtimes};

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Decodes the next string of an answer.
fn string(bytes: &mut &[u8]) -> String {
    let (count, rest) = bytes.split_first_chunk::<4>().unwrap();
    let (units, rest) = rest.split_at(u32::from_le_bytes(*count) as usize * 2);
    *bytes = rest;
    let units: Vec<u16> = units.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    String::from_utf16_lossy(&units[..units.len() - 1])
}

/// Formats a cookie as .NET does.
fn guid(bytes: &[u8]) -> String {
    let order = [3, 2, 1, 0, 99, 5, 4, 99, 7, 6, 99, 8, 9, 99, 10, 11, 12, 13, 14, 15];
    order.iter().map(|i| bytes.get(*i).map_or_else(|| "-".to_owned(), |byte| format!("{byte:02x}"))).collect()
}

#[test]
fn info_prints_the_bytes_of_the_answer() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        if !runtime.knows(4, 0) {
            // .NET Core 3.1 knows none of the three commands for process information.
            let output = runtime.run(&["info", &pid, "--json"], 5);
            let error: Value = serde_json::from_slice(&output.stderr).unwrap();
            assert_eq!(error["kind"], "unsupported");
            assert_eq!(error["hresult"], "0x80131385");
            let output = runtime.run(&["info", &pid], 5);
            assert!(String::from_utf8_lossy(&output.stderr).contains("older than .NET 5"));
            return;
        }
        let (id, versioned) = if runtime.knows(4, 8) { (8, 4) } else { (4, 0) };
        // The response changes during startup. So the test compares only if it was the same before and after the
        // command.
        let by_pid = ["info", &pid, "--json"];
        let by_socket = ["info", "--socket", runtime.socket.to_str().unwrap(), "--json"];
        let once = || {
            let before = runtime.raw(4, id);
            let [info, again] = [by_pid.as_slice(), &by_socket].map(|args| json(&runtime.run(args, 0)));
            let stable = runtime.raw(4, id) == before;
            stable.then(|| assert_eq!(info, again)).map(|()| (before, info))
        };
        let (answer, info) = (0..100).find_map(|_| once()).expect("the answer stays the same after startup");
        let bytes = &answer[20 + versioned..];
        assert_eq!(info["process_id"], u64::from_le_bytes(bytes[..8].try_into().unwrap()));
        assert_eq!(info["runtime_cookie"], guid(&bytes[8..24]));
        let mut rest = &bytes[24..];
        for key in ["command_line", "os", "arch", "managed_entrypoint_assembly_name", "clr_product_version"] {
            assert_eq!(info[key], string(&mut rest), "{}: {key}", runtime.name);
        }
        if versioned > 0 {
            assert_eq!(info["runtime_identifier"], string(&mut rest));
        }
    });
}

#[test]
fn env_prints_the_environment_of_the_process() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        if !runtime.knows(4, 2) {
            runtime.run(&["env", &pid], 5);
            return;
        }
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let expected: BTreeMap<String, Value> = environ
            .split(|byte| *byte == 0)
            .filter_map(|entry| {
                String::from_utf8_lossy(entry).split_once('=').map(|(n, v)| (n.to_owned(), v.into()))
            })
            .collect();
        let env = json(&runtime.run(&["env", &pid, "--json"], 0));
        let actual: BTreeMap<String, Value> =
            env["environment"].as_object().unwrap().iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        assert_eq!(actual["LAB_ODD_NAME"], "a=b=c and a ü");
        assert_eq!(
            actual["TMPDIR"].as_str().unwrap().as_bytes(),
            runtime.directory.path().as_os_str().as_bytes()
        );
        assert_eq!(actual, expected, "{}", runtime.name);
        assert_eq!(env["other"], Value::Array(Vec::new()));
    });
}

#[test]
fn ps_lists_the_runtime() {
    with_runtimes(|runtime| {
        let output = runtime.run(&["ps", "--json", "--timeout", "60s"], 0);
        let rows = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        let row =
            rows.iter().find(|row| row["process_id"] == runtime.process_id).expect("a row for the runtime");
        assert_eq!(row["socket"], runtime.socket.to_str().unwrap());
        assert_eq!(row["status"], if runtime.knows(4, 0) { "ok" } else { "refused" });
    });
}

/// Returns whether the program begins in this function. For an asynchronous Main, the compiler makes `<Main>`, which
/// calls Main. Main returns when it first waits, and `<Main>` stays on the stack.
fn is_main(name: &Value) -> bool {
    let name = name.as_str().unwrap();
    name.contains(".Main(") || name.contains(".<Main>(")
}

/// Waits until the program is in Main, and returns that thread as `stack` writes it; `None` for a program that was
/// compiled ahead of time.
fn thread_in_main(runtime: &Runtime) -> Option<Value> {
    let pid = runtime.process_id.to_string();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = runtime.dotnet_ipc(&["stack", &pid, "--json", "--timeout", "60s"]).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let mut threads = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let main = threads.find(|thread| thread["thread_id"] == runtime.process_id);
        match main.as_ref().and_then(|main| main["frames"].as_array()) {
            Some(frames) if frames.iter().any(is_main) => return main,
            _ if runtime.is_native() => return None,
            // The program is still starting.
            _ => assert!(Instant::now() < deadline, "{}: {stdout}", runtime.name),
        }
    }
}

#[test]
fn stack_names_what_each_thread_does() {
    with_runtimes(|runtime| {
        if let Some(main) = thread_in_main(runtime) {
            assert!(main["thread_name"].is_string(), "{}: {main}", runtime.name);
        }
    });
}

#[test]
fn the_next_stack_needs_no_names() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        let folder = runtime.directory.path().join("dotnet-ipc");
        let cached = || {
            let files = std::fs::read_dir(&folder).into_iter().flatten();
            let inodes = files.map(|file| file.unwrap().metadata().unwrap().ino());
            inodes.collect::<Vec<_>>()
        };
        let stack = || runtime.dotnet_ipc(&["stack", &pid, "--json", "--timeout", "60s"]).output().unwrap();
        if !runtime.knows(4, 0) {
            // .NET Core 3.1 has no cookie, so nothing is stored in the cache.
            assert!(stack().status.success());
            assert!(cached().is_empty());
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let stdout = loop {
            let before = cached();
            let output = stack();
            if runtime.is_native() {
                return;
            }
            if !before.is_empty() && before == cached() {
                break String::from_utf8(output.stdout).unwrap();
            }
            // The rundown was taken again, because a thread ran code that was new.
            assert!(Instant::now() < deadline, "{}", runtime.name);
        };
        assert_eq!(cached().len(), 1);
        let threads = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let main = threads.into_iter().find(|thread| thread["thread_id"] == runtime.process_id).unwrap();
        let frames = main["frames"].as_array().unwrap();
        let is_main = |frame: &Value| frame.as_str().unwrap().contains("Main");
        assert!(frames.iter().any(is_main), "{frames:?}");
        assert!(main["thread_name"].is_string());
    });
}

#[test]
fn a_killed_process_keeps_its_names() {
    each_runtime(|start| {
        let mut runtime = start(&[]);
        runtime.wait_for_socket();
        let file = runtime.directory.path().join("killed.nettrace");
        // A program that has just started is still being compiled.
        let child = runtime.start_trace(&["--names-first", "--timeout", "60s"], &file, 10_000);
        runtime.kill();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(7), "{}: {error}", runtime.name);
        assert_complete(&runtime, &std::fs::read(&file).unwrap());
        let report = runtime
            .dotnet_ipc(&["report", file.to_str().unwrap(), "--wall", "--top", "9999", "--json"])
            .output()
            .unwrap();
        if runtime.is_native() {
            return;
        }
        let report = json(&report);
        let frames = report["frames"].as_array().unwrap();
        // On a busy machine the program is not yet in Main. A precompiled method has no name if the program called it
        // first after the start of the session. On .NET Core 3.1 that can be half of all frames, the innermost ones of
        // each thread.
        let is_named =
            |frame: &Value| frame["name"].as_str().unwrap().starts_with("System.Private.CoreLib!System.");
        assert!(frames.iter().any(is_named), "{}: {report}", runtime.name);
    });
}

#[test]
fn events_have_stacks_by_name() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        let options = ["--json", "--stacks", "--provider", "Microsoft-DotNETCore-SampleProfiler:0:4"];
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let args = [&["events", &pid, "--duration", "300ms", "--timeout", "60s"], &options[..]].concat();
            let output = runtime.run(&args, 0);
            let stdout = String::from_utf8(output.stdout).unwrap();
            let samples = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let mut stacks = samples.map(|sample| sample["stack"].as_array().unwrap().clone());
            if runtime.is_native() || stacks.any(|stack| stack.iter().any(is_main)) {
                break;
            }
            // The program is still starting.
            assert!(Instant::now() < deadline, "{}: {stdout}", runtime.name);
        }
    });
}

#[test]
fn top_shows_functions_and_threads_by_name() {
    with_runtimes(|runtime| {
        // While a program starts, .NET Core 3.1 sometimes has a method that is neither in the list of all methods nor
        // reported as compiled after it.
        thread_in_main(runtime);
        let pid = runtime.process_id.to_string();
        let mut command = runtime.dotnet_ipc(&["top", &pid, "--json", "--wall", "--top", "1000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let runs_main = |period: &Value| {
            let functions = period["functions"].as_array().unwrap();
            let main = functions.iter().find(|function| is_main(&function["name"]));
            main.is_some_and(|main| main["inclusive"].as_f64().unwrap() > 1.0)
        };
        let mut allocates = false;
        // A program that was compiled ahead of time has no names, and has samples since .NET 10 only.
        for (number, line) in (1..=20).zip(lines) {
            let period: Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(period["lost"], 0, "{}: {period}", runtime.name);
            allocates |= period["allocated_bytes_per_second"].as_f64().unwrap() > 0.0;
            let threads = period["threads"].as_array().unwrap();
            if number > 2 && runs_main(&period) {
                let main = threads.iter().find(|thread| thread["thread_id"] == runtime.process_id);
                assert!(main.unwrap()["thread_name"].is_string(), "{}: {period}", runtime.name);
                break;
            }
            if number > 4 && (threads.is_empty() || runtime.is_native()) {
                break;
            }
            assert!(number < 20, "{}: {period}", runtime.name);
        }
        eprintln!("{}: allocations: {allocates}", runtime.name);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{}", runtime.name);
    });
}

/// Asserts that the trace is a complete NetTrace file: magic, first object, end tag.
fn assert_complete(runtime: &Runtime, trace: &[u8]) {
    assert!(trace.starts_with(b"Nettrace\x14\0\0\0!FastSerialization.1"), "{}: not NetTrace", runtime.name);
    assert!(trace.ends_with(&[6, 1]), "{}: cut off", runtime.name);
}

#[test]
fn trace_by_duration_ends_complete() {
    with_runtimes(|runtime| {
        let file = runtime.directory.path().join("by duration.nettrace");
        let pid = runtime.process_id.to_string();
        runtime.run(&["trace", &pid, "-o", file.to_str().unwrap(), "--duration", "2s"], 0);
        assert_complete(runtime, &std::fs::read(file).unwrap());
        // The runtime answers the next command.
        if runtime.knows(4, 0) {
            runtime.run(&["info", &pid], 0);
        }
    });
}

#[test]
fn trace_by_signal_ends_complete() {
    with_runtimes(|runtime| {
        for signal in
            [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
        {
            let file = runtime.directory.path().join("by-signal.nettrace");
            let mut trace = runtime.start_trace(&[], &file, 1);
            rustix::process::kill_process(rustix::process::Pid::from_child(&trace), signal).unwrap();
            assert_eq!(trace.wait().unwrap().code(), Some(0), "{}: {signal:?}", runtime.name);
            assert_complete(runtime, &std::fs::read(&file).unwrap());
            std::fs::remove_file(&file).unwrap();
        }
    });
}

#[test]
fn trace_of_the_garbage_collector_uses_an_older_command_if_necessary() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        let output =
            runtime.run(&["trace", &pid, "-o", "-", "--profile", "gc-collect", "--duration", "1s"], 0);
        assert_complete(runtime, &output.stdout);
    });
}

/// Returns the kind of a runtime in the data of the conformance kit: `net11-aot` for the name `net11-aot-linux`.
fn kind(runtime: &Runtime) -> Option<&'static str> {
    let is_kind = |kind: &&&str| {
        runtime.name.strip_prefix(**kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    ipc_testkit::conformance::KINDS.iter().filter(is_kind).max_by_key(|kind| kind.len()).copied()
}

/// Compares the responses to the conformance requests with the recorded responses of the same kind of runtime. The
/// deadly requests are not sent, and none to a single-file program: dumps keep it busy for minutes.
#[test]
fn conformance_agrees_with_the_recorded_answers() {
    with_runtimes(|runtime| {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", runtime.process_id)).unwrap();
        let is_single_file = !runtime.is_native() && !maps.contains("/libcoreclr.so");
        let Some(kind) = kind(runtime).filter(|_| !is_single_file) else {
            eprintln!(
                "{}: skipped, a single-file program or of a kind without recorded answers",
                runtime.name
            );
            return;
        };
        let output = runtime.run(&["conformance", &runtime.process_id.to_string(), "--as", kind], 0);
        eprint!("{}: {}", runtime.name, String::from_utf8_lossy(&output.stdout));
    });
}
