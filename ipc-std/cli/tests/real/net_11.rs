//! Features of .NET 11 that older runtimes lack: sessions that block, and the sign that a runtime listens.
use std::ffi::OsStr;
use std::fs;

use ipc_std::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::json;
use crate::runtime::{Runtime, each_runtime, with_runtimes};
use crate::tool::until;

/// Returns the major version of the runtime; 0 before .NET 6.
fn version(runtime: &Runtime) -> u32 {
    let Ok(info) = Client::at(&runtime.socket).process_info() else { return 0 };
    info.clr_product_version.to_string().split('.').next().unwrap().parse().unwrap_or(0)
}

/// A runtime whose socket was deleted still shows that it listens.
#[test]
fn a_deleted_socket_is_told_apart_from_no_listener() {
    with_runtimes(|runtime| {
        let version = version(runtime);
        fs::remove_file(&runtime.socket).unwrap();
        let found = json(&runtime.run(&["find", &runtime.process_id.to_string(), "--json"], 3));
        let reason = &found["steps"].as_array().unwrap().last().unwrap()["reason"];
        assert_eq!(reason["reason"], "no_socket", "{}: {found}", runtime.name);
        // A late .NET 10 shows it too.
        let listens = &reason["runtime_listens"];
        assert!(*listens == true || version < 11 && listens.is_null(), "{}: {found}", runtime.name);
    });
}

/// The threads of the program wait when the buffer is full, so no loss is the fault of the buffer. Ctrl-Z ends the
/// session, because a tool that is stopped would not read.
#[test]
fn a_session_that_blocks_has_no_buffer_that_is_too_small() {
    each_runtime(|start| {
        let flood = [("LAB_BURST", "500"), ("LAB_THREADS", "4"), ("LAB_PAUSE_MS", "1")];
        let mut runtime = start(&flood.map(|(name, value)| (name, OsStr::new(value))));
        runtime.wait_for_socket();
        let (pid, file) = (runtime.process_id.to_string(), runtime.directory.path().join("block.nettrace"));
        let options = ["--buffering", "block", "--buffer", "1", "--no-rundown", "--json"];
        let provider = ["--provider", "Lab-Workload"];
        let args = [&["trace", &pid, "-o", file.to_str().unwrap()], &options[..], &provider].concat();
        if version(&runtime) < 11 {
            runtime.run(&args, 5);
            return;
        }
        // More than the buffer takes.
        let child = runtime.start_trace(&[&options[..], &provider].concat(), &file, 2 << 20);
        kill_process(Pid::from_child(&child), Signal::TSTP).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {errors}", runtime.name);
        assert!(!errors.contains("--buffer larger"), "{}: {errors}", runtime.name);
        let stats: Value = json(&runtime.run(&["stats", file.to_str().unwrap(), "--json"], 0));
        assert_eq!(stats["end"], "complete", "{}", runtime.name);
        assert!(stats["events"].as_u64().unwrap() > 10_000, "{}: {stats}", runtime.name);
    });
}

/// The thread that serves requests writes the heap, which is larger than the buffer, before it answers ResumeRuntime.
#[test]
fn a_snapshot_that_blocks_is_read_while_the_runtime_is_resumed() {
    each_runtime(|start| {
        let mut runtime = start(&[("LAB_HEAP", OsStr::new("200000"))]);
        runtime.wait_for_socket();
        if version(&runtime) < 11 {
            return;
        }
        let (pid, file) = (runtime.process_id.to_string(), runtime.directory.path().join("heap.nettrace"));
        let file = file.to_str().unwrap();
        let options = ["--provider", "Microsoft-Windows-DotNETRuntime:1980001:5", "--buffering", "block"];
        let args = ["trace", &pid, "-o", file, "--overwrite", "--buffer", "1", "--duration", "2s"];
        let args = [&args[..], &options].concat();
        until("the program has not built its heap", || {
            runtime.run(&args, 0);
            let heap = json(&runtime.run(&["heap", file, "--json"], 0));
            assert_eq!(heap["complete"], true, "{}", runtime.name);
            heap["objects"].as_u64().unwrap() > 200_000
        });
    });
}
