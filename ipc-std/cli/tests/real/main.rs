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

mod mutations;
mod ports;
mod runtime;
mod sessions;
#[path = "../strace/mod.rs"]
mod strace;
mod syscalls;
mod traces;
mod user_events;

use core::time::Duration;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::runtime::{Runtime, with_runtimes};

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
            // .NET Core 3.1 knows none of the three commands.
            let output = runtime.run(&["info", &pid, "--json"], 5);
            let error: Value = serde_json::from_slice(&output.stderr).unwrap();
            assert_eq!(error["kind"], "unsupported");
            assert_eq!(error["hresult"], "0x80131385");
            let output = runtime.run(&["info", &pid], 5);
            assert!(String::from_utf8_lossy(&output.stderr).contains("older than .NET 5"));
            return;
        }
        let (id, versioned) = if runtime.knows(4, 8) { (8, 4) } else { (4, 0) };
        // The answer changes during startup. So the test compares only if it was the same before and after.
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

#[test]
fn stack_names_what_each_thread_does() {
    with_runtimes(|runtime| {
        let pid = runtime.process_id.to_string();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let output = runtime.dotnet_ipc(&["stack", &pid, "--json", "--timeout", "60s"]).output().unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let threads: Vec<Value> =
                stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let main = threads.iter().find(|thread| thread["thread_id"] == runtime.process_id);
            let frames = main.and_then(|main| main["frames"].as_array());
            let runs_main =
                |frames: &Vec<Value>| frames.iter().any(|frame| frame.as_str().unwrap().contains(".Main("));
            match frames {
                Some(frames) if runs_main(frames) => {
                    assert!(main.unwrap()["thread_name"].is_string(), "{}: {stdout}", runtime.name);
                    break;
                }
                // Compiled ahead of time.
                None if output.status.code() == Some(1) => break,
                // It starts.
                _ => assert!(Instant::now() < deadline, "{}: {stdout}", runtime.name),
            }
        }
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
            let pid = runtime.process_id.to_string();
            let mut trace = runtime.dotnet_ipc(&["trace", &pid, "-o", file.to_str().unwrap()]);
            let mut trace = trace.stderr(Stdio::null()).spawn().unwrap();
            let soon = Instant::now() + Duration::from_secs(20);
            while std::fs::metadata(&file).map_or(0, |metadata| metadata.len()) == 0 {
                assert!(Instant::now() < soon, "{}: the trace has no bytes", runtime.name);
                std::thread::sleep(Duration::from_millis(20));
            }
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

/// Compares the responses to the conformance requests with the recorded responses of the kind, without the deadly
/// requests.
///
/// Runs only on request: `cargo test -p dotnet-ipc --test real -- --ignored --nocapture`.
#[test]
#[ignore = "dumps keep single-file programs busy for minutes"]
fn conformance_agrees_with_the_recorded_answers() {
    with_runtimes(|runtime| {
        let kind = match runtime.name.split('-').next().unwrap() {
            "net9aot" => "net9-aot",
            "net8aot" => "net8-aot",
            name => name,
        };
        if !["net10", "net9", "net8", "net9-aot", "net8-aot", "net31"].contains(&kind) {
            eprintln!("{}: skipped, there are no recorded answers of its kind", runtime.name);
            return;
        }
        let output = runtime.run(&["conformance", &runtime.process_id.to_string(), "--as", kind], 0);
        eprint!("{}: {}", runtime.name, String::from_utf8_lossy(&output.stdout));
    });
}
