//! The tool's commands beyond asking and tracing, and `decode`: what they send, show, and refuse to send.
#![cfg(feature = "cli")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

mod tool;

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use ipc_proto::types::{ClientData, DumpFlags, DumpType, EventFilter, PerfMapType, SessionConfig, Status};
use ipc_proto::{Code, HResult, Request};
use ipc_std::fake::{FakeRuntime, Profile, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{Ran, run, run_with};

const CLSID: &str = "123e4567-e89b-12d3-a456-426614174000";

/// A runtime that says OK to all of these.
fn obliging() -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [0x0101, 0x0102, 0x0103, 0x0301, 0x0302, 0x0403, 0x0405, 0x0406, 0x0407] {
        runtime.on(Code(code), |_| Response::ok(&Status::OK));
    }
    runtime
}

fn ask(runtime: &FakeRuntime, args: &[&str]) -> Ran {
    run(&[args, &["--socket", runtime.path().to_str().unwrap()]].concat())
}

#[test]
fn help_has_examples() {
    let commands = [
        "resume",
        "set-env",
        "perf-map",
        "startup-hook",
        "attach-profiler",
        "startup-profiler",
        "dump",
        "decode",
    ];
    for command in commands {
        let help = run(&[command, "--help"]).well().into_text();
        assert!(help.contains("Examples:\n  dotnet-ipc "), "{help}");
        assert!(help.contains(&format!("Usage: dotnet-ipc {command} [OPTIONS]")), "{help}");
    }
}

/// Does something with the last request that came.
fn last<T>(runtime: &FakeRuntime, see: impl FnOnce(Request<'_>) -> T) -> T {
    let requests = runtime.requests();
    see(requests.last().unwrap().message().unwrap().request().unwrap())
}

fn came(runtime: &FakeRuntime, code: u16) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(Code(code)))
}

#[test]
fn a_variable_is_set_emptied_and_removed() {
    let runtime = obliging();
    let value = |runtime: &FakeRuntime| {
        last(runtime, |request| {
            let Request::SetEnvironmentVariable(set) = request else { panic!("{request:?}") };
            assert_eq!(set.name, "A=B");
            set.value.non_null().map(|value| value.to_string())
        })
    };
    let ran = ask(&runtime, &["set-env", "A=B", "wärde"]).well();
    assert_eq!((ran.text(), value(&runtime).as_deref()), ("A=B=wärde\n", Some("wärde")));
    let ran = ask(&runtime, &["set-env", "A=B", "", "--json"]).well();
    assert_eq!((ran.json(), value(&runtime).as_deref()), (json!({ "name": "A=B", "value": "" }), Some("")));
    ask(&runtime, &["set-env", "--", "A=B", "-x"]).fails(2, "--socket");
    // Nobody can tell that this is no NativeAOT, which would end.
    let sent = runtime.requests().len();
    ask(&runtime, &["set-env", "A=B"]).fails(2, "--force");
    assert!(runtime.requests()[sent..].iter().all(|request| request.code() != Some(Code(0x0403))));
    let ran = ask(&runtime, &["set-env", "A=B", "--force"]).well();
    assert_eq!((ran.text(), value(&runtime)), ("A=B is removed\n", None));
}

#[test]
fn a_process_id_is_an_operand_only_without_a_socket() {
    let runtime = obliging();
    ask(&runtime, &["set-env", "4242", "GREETING"]).well();
    last(&runtime, |request| {
        assert!(matches!(request, Request::SetEnvironmentVariable(set) if set.name == "4242"));
    });
    run(&["set-env", "GREETING", "hello"]).fails(2, "\"GREETING\" is no process id");
    run(&["set-env"]).fails(2, "a process id or --socket is required");
    run(&["set-env", "4242"]).fails(2, "NAME is required");
    run(&["set-env", "4242", "A", "B", "C"]).fails(2, "\"C\" is not expected");
    run(&["attach-profiler", "4242", CLSID]).fails(2, "LIBRARY is required");
}

#[test]
fn perf_maps() {
    let runtime = obliging();
    for (args, kind, said) in [
        (&["perf-map", "on"][..], PerfMapType::ALL, "perf map on: all\n"),
        (&["perf-map", "on", "jit-dump"], PerfMapType::JIT_DUMP, "perf map on: jit-dump\n"),
        (&["perf-map", "on", "perf-map"], PerfMapType::PERF_MAP, "perf map on: perf-map\n"),
    ] {
        assert_eq!(ask(&runtime, args).well().into_text(), said);
        last(&runtime, |request| {
            assert!(matches!(request, Request::EnablePerfMap(enable) if enable.perf_map_type == kind));
        });
    }
    let off = ask(&runtime, &["perf-map", "off", "--json"]).well().json();
    assert_eq!(off, json!({ "enabled": false, "perf_map_type": null }));
    last(&runtime, |request| assert!(matches!(request, Request::DisablePerfMap(_))));
    ask(&runtime, &["perf-map", "off", "all"]).fails(2, "neither off nor on");
}

/// Two calls, who it is and then the command, have one deadline.
#[test]
fn the_timeout_is_for_all_of_a_command() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let slow = Duration::from_millis(700);
    runtime.on(Code(0x0408), move |_| {
        thread::sleep(slow);
        Response::Refuse(HResult::UNKNOWN_COMMAND)
    });
    runtime.on(Code(0x0405), move |_| {
        thread::sleep(slow);
        Response::ok(&Status::OK)
    });
    ask(&runtime, &["perf-map", "on", "--timeout", "1s"]).fails(4, "EnablePerfMap");
    assert!(came(&runtime, 0x0405));
    ask(&runtime, &["perf-map", "on", "--timeout", "30s"]).well();
    ask(&runtime, &["perf-map", "on", "--timeout", "1s", "--force"]).well();
}

/// It is for what may end a runtime, and no request of these commands does.
#[test]
fn there_is_nothing_to_force() {
    for args in [
        &["resume", "1"][..],
        &["dump", "1", "-o", "x"],
        &["attach-profiler", "1", CLSID, "/p.so"],
        &["startup-profiler", "1", CLSID, "/p.so"],
    ] {
        run(&[args, &["--force"]].concat()).fails(2, "--force");
    }
}

#[test]
fn a_startup_hook_has_to_be_there() {
    let runtime = obliging();
    let missing = ask(&runtime, &["startup-hook", "/nowhere/Hook.dll", "--json"]);
    assert_eq!(missing.status, Some(2));
    let error: Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!(error["kind"], "danger");
    assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
    assert!(!came(&runtime, 0x0407));
    ask(&runtime, &["startup-hook", "/nowhere/Hook.dll", "--force"]).well();
    if cfg!(target_os = "linux") {
        let hook = std::env::current_exe().unwrap();
        ask(&runtime, &["startup-hook", hook.to_str().unwrap()]).well();
        last(&runtime, |request| {
            let Request::ApplyStartupHook(apply) = request else { panic!("{request:?}") };
            assert_eq!(apply.startup_hook_path, hook.to_str().unwrap());
        });
    }
}

#[test]
fn profilers() {
    let runtime = obliging();
    let directory = TempDir::new().unwrap();
    let settings = directory.path().join("settings");
    fs::write(&settings, [7, 8, 9]).unwrap();
    let from_file = format!("@{}", settings.display());
    for (data, bytes) in [("0a:0b", &[10, 11][..]), (&from_file, &[7, 8, 9])] {
        ask(&runtime, &["attach-profiler", CLSID, "/p.so", "--attach-timeout", "2.5", "--data", data]).well();
        last(&runtime, |request| {
            let Request::AttachProfiler(attach) = request else { panic!("{request:?}") };
            assert_eq!((attach.attach_timeout, attach.client_data), (2_500, ClientData(bytes)));
            assert_eq!(
                (attach.profiler_guid.to_string().as_str(), attach.profiler_path),
                (CLSID, "/p.so".into())
            );
        });
    }
    let ran = ask(&runtime, &["startup-profiler", CLSID, "/p.so", "--json"]).well();
    assert_eq!(ran.json(), json!({ "profiler_guid": CLSID, "profiler_path": "/p.so" }));
    last(&runtime, |request| {
        assert!(matches!(request, Request::StartupProfiler(startup) if startup.profiler_path == "/p.so"));
    });
    runtime.on(Code(0x0301), |_| Response::Refuse(HResult::MOD_NOT_FOUND));
    ask(&runtime, &["attach-profiler", CLSID, "/p.so"]).fails(5, "0x8007007e");
    ask(&runtime, &["attach-profiler", "none", "/p.so"]).fails(2, "not a GUID");
    ask(&runtime, &["attach-profiler", CLSID, "/p.so", "--data", "0"]).fails(2, "hexadecimal");
    ask(&runtime, &["attach-profiler", CLSID, "/p.so", "--data", "@/nowhere"]).fails(1, "cannot read");
}

#[test]
fn a_suspended_runtime_is_resumed() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    assert_eq!(ask(&runtime, &["resume", "--json"]).well().json(), json!({ "resumed": true }));
    assert!(!runtime.is_suspended());
    let old = FakeRuntime::start(Profile::net31()).unwrap();
    ask(&old, &["resume"]).fails(5, "older than .NET 5");
}

#[test]
fn dumps() {
    let runtime = obliging();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("app.dmp");
    fs::write(&file, "a dump").unwrap();
    let file = file.to_str().unwrap();
    for (kind, dump_type) in [
        ("mini", DumpType::NORMAL),
        ("heap", DumpType::WITH_HEAP),
        ("triage", DumpType::TRIAGE),
        ("full", DumpType::FULL),
    ] {
        let ran = ask(&runtime, &["dump", "-o", file, "--type", kind]).well();
        assert_eq!(ran.text(), format!("{kind} dump: {file} (6 bytes, GenerateCoreDump3)\n"));
        last(&runtime, |request| {
            let Request::GenerateCoreDump3(dump) = request else { panic!("{request:?}") };
            assert_eq!(
                (dump.dump_name, dump.dump_type, dump.flags),
                (file.into(), dump_type, DumpFlags::NONE)
            );
        });
    }
    // Ours is not the directory of the target; what has a template cannot be looked for.
    let ran = ask(&runtime, &["dump", "-o", "a-%p.dmp", "--crash-report", "--diag", "--json"]).well();
    let path = std::env::current_dir().unwrap().join("a-%p.dmp");
    let expected = json!({
        "file": path, "type": "full", "bytes": null, "command": "GenerateCoreDump3", "lost": [],
    });
    assert_eq!(ran.json(), expected);
    last(&runtime, |request| {
        let Request::GenerateCoreDump3(dump) = request else { panic!("{request:?}") };
        assert_eq!((dump.dump_name, dump.flags), (path.to_str().unwrap().into(), DumpFlags(5)));
    });
    let ran = ask(&runtime, &["dump", "-o", "/nowhere/app.dmp"]);
    assert!(ran.status == Some(0) && ran.stderr.starts_with("note: there is no such file here"), "{ran:?}");
    ask(&runtime, &["dump", "-o", "-"]).fails(2, "the target writes the dump");
}

#[test]
fn dumps_of_older_runtimes() {
    let runtime = FakeRuntime::start(Profile::net31()).unwrap();
    runtime.on(Code(0x0101), |_| Response::ok(&Status::OK));
    let ran = ask(&runtime, &["dump", "-o", "/%d", "--crash-report"]);
    assert_eq!((ran.status, ran.text()), (Some(0), "full dump: /%d (GenerateCoreDump)\n"));
    assert_eq!(ran.stderr, "note: crash reports and verbose logging need .NET 6\n");
    let ran = ask(&runtime, &["dump", "-o", "/%d", "--crash-report", "--json"]).well();
    assert_eq!(ran.json()["lost"], json!(["crash reports and verbose logging need .NET 6"]));
    ask(&runtime, &["dump", "-o", "/%d"]).well();
}

#[test]
fn a_refused_dump_says_why_in_one_line() {
    let runtime = obliging();
    let words = "[createdump] no room\n[createdump] \u{1b}[2JFailure took 198ms\n";
    runtime.on(Code(0x0103), move |_| Response::RefuseWith(HResult::FAIL, words.to_owned()));
    let ran =
        ask(&runtime, &["dump", "-o", "/x"]).fails(5, "[createdump] no room [createdump] \\u{1b}[2JFailure");
    assert!(ran.stderr.contains("see that its directory is there"), "{ran:?}");
}

/// Sends a trace's wishes and gives the requests that came before the one to stop.
fn traced(runtime: &FakeRuntime, args: &[&str]) -> Ran {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("t");
    let provider =
        ["trace", "--duration", "0", "-o", file.to_str().unwrap(), "--provider", "A:1", "--provider", "B"];
    ask(runtime, &[&provider, args].concat())
}

#[test]
fn wishes_of_a_trace() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let ids = ["--event-ids", "b=-7,9", "--no-stacks", "--rundown-keyword", "0x10"];
    let ran = traced(&runtime, &ids);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("(CollectTracing5)"), "{ran:?}");
    let requests = runtime.requests();
    let Request::CollectTracing5(start) = requests[0].message().unwrap().request().unwrap() else {
        panic!("{requests:?}")
    };
    let SessionConfig::Streaming(session) = start.session else { panic!("{start:?}") };
    assert_eq!((session.rundown_keyword, session.stackwalk), (0x10, false));
    let filters: Vec<_> = session.providers.iter().map(|provider| provider.filter).collect();
    assert_eq!(filters, [EventFilter::ALL, EventFilter { enable: false, event_ids: (&[7, 9]).into() }]);

    let ran = traced(&FakeRuntime::start(Profile::net8()).unwrap(), &["--buffering", "block", "--no-stacks"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    for note in
        ["note: blocking instead of dropping needs .NET 11\n", "note: leaving out stacks needs .NET 9: "]
    {
        assert!(ran.stderr.contains(note), "{ran:?}");
    }
    traced(&runtime, &["--event-ids", "C=+1"]).fails(2, "the provider C is not recorded");
    traced(&runtime, &["--event-ids", "A=1"]).fails(2, "for these events only");
    traced(&runtime, &["--no-rundown", "--rundown-keyword", "1"]).fails(2, "cannot be used with");
}

fn testdata(file: &str) -> String {
    format!("{}/../testdata/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_message_is_shown_field_by_field() {
    let ran = run(&["decode", &testdata("messages/StopTracing.request.hex")]).well();
    let lines: Vec<_> = ran.text().lines().collect();
    assert_eq!(lines[0], "StopTracing 0x0201, request (28 bytes)");
    assert!(lines[1].starts_with("     0  44 4f 54 4e 45 54 5f 49 50 43 5f 56 31 00"), "{}", ran.text());
    assert!(lines[1].ends_with(r#"magic: "DOTNET_IPC_V1\0""#), "{}", ran.text());
    assert!(lines[4].starts_with("    17  01  ") && lines[4].ends_with("command_id: 1 StopTracing"));
    assert!(lines[6].starts_with("    20  ") && lines[6].contains("session_id: "), "{}", ran.text());

    let ran =
        run(&["decode", "--json", &testdata("messages/SetEnvironmentVariable.absent.request.hex")]).well();
    let message = ran.json();
    let keys: Vec<_> = message.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["kind", "command", "code", "size", "fields", "rest", "legacy", "error"]);
    assert_eq!((&message["command"], &message["code"]), (&json!("SetEnvironmentVariable"), &json!("0x0403")));
    let fields = message["fields"].as_array().unwrap();
    let name = fields.iter().find(|field| field["name"] == "name").unwrap();
    assert_eq!(name["offset"], 24);
    let value = fields.last().unwrap();
    assert_eq!(
        (&value["name"], &value["length"], &value["value"]),
        (&json!("value"), &json!(0), &Value::Null)
    );
    let sum: u64 = fields.iter().map(|field| field["length"].as_u64().unwrap()).sum();
    assert_eq!(message["size"], sum);
}

const RESUME: &str = "444f544e45545f4950435f563100140004010000";

#[test]
fn bytes_in_every_form() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bytes = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    let expected = run(&["decode", RESUME]).well().into_text();
    assert!(expected.starts_with("ResumeRuntime 0x0401, request (20 bytes)\n"), "{expected}");
    let spaced = "0x44 0x4f 54:4e:45 54 5f 49 50 43 5f 56 31 00 | 14 00 | 04 | 01 | 00 00";
    let words: Vec<&str> = spaced.split(' ').collect();
    for ran in [
        run(&["decode", spaced]),
        run(&[&["decode"], &words[..]].concat()),
        run(&["decode", &file("binary", bytes)]),
        run(&["decode", &file("text", format!("# a comment\n{spaced} # another\n").as_bytes())]),
        run_with(&["decode", "-"], bytes),
        run_with(&["decode"], RESUME.as_bytes()),
    ] {
        assert_eq!(ran.well().into_text(), expected);
    }
    run(&["decode", "/nowhere/message.bin"]).fails(1, "there is no file /nowhere/message.bin");
    run(&["decode", "hello"]).fails(2, "\"hello\" is not hexadecimal");
    run_with(&["decode", "-"], b"{\"no\": \"log\"}").fails(2, "line 1: no line of a wire log");
    run_with(&["decode", "-"], b"0 1").fails(2, "standard input");
}

#[test]
fn an_answer_is_to_a_command() {
    let answer = fs::read_to_string(testdata("messages/StopTracing.response.hex")).unwrap();
    let show = |args: &[&str]| run_with(&[&["decode"], args].concat(), answer.as_bytes());
    let ran = show(&[]).well();
    assert!(ran.text().starts_with("OK answer; --answer-to COMMAND says what is in it (28 bytes)\n"));
    assert!(ran.text().contains("payload: 8 bytes"));
    for name in ["StopTracing", "stoptracing", "0x0201", "0201"] {
        let ran = show(&["--answer-to", name]).well();
        assert!(ran.text().starts_with("OK answer to StopTracing 0x0201 (28 bytes)\n"), "{ran:?}");
        assert!(ran.text().contains("session_id: "), "{ran:?}");
    }
    // By the specification's name too, which is another.
    let info = testdata("messages/GetProcessInfo2.net10.response.hex");
    let ran = run(&["decode", &info, "--answer-to", "ProcessInfo2", "--json"]).well();
    assert_eq!(ran.json()["command"], "GetProcessInfo2");
    show(&["--answer-to", "StartTracing"]).fails(2, "no such command");
}

#[test]
fn messages_one_behind_the_other() {
    let vector =
        |name: &str| fs::read_to_string(testdata(&format!("messages/GetProcessEnvironment.{name}"))).unwrap();
    let all =
        ["request.hex", "odd-entries.response.hex", "odd-entries.continuation.hex"].map(vector).concat();
    let ran = run_with(&["decode", "--json"], all.as_bytes()).well();
    let frames: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = frames.iter().map(|frame| frame["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["request", "ok", "environment"]);
    assert_eq!(frames[1]["command"], "GetProcessEnvironment");
    let values: Vec<_> =
        frames[2]["fields"].as_array().unwrap().iter().map(|field| &field["value"]).collect();
    assert!(values.contains(&&json!("NO_EQUALS_SIGN")), "{values:?}");
    let cut = run_with(&["decode"], all.trim_end().trim_end_matches(|c| c != '\n').as_bytes());
    cut.fails(6, "message 3 is malformed: a field runs past the end");

    let start = "444f544e45545f4950435f5631001c00ff00000007000000000000004e657474726163650102";
    let ran = run(&["decode", "--answer-to", "CollectTracing2", start]).well();
    assert!(
        ran.text().contains("trace, up to the end of the connection, not shown (10 bytes, at byte 28)"),
        "{ran:?}"
    );
}

#[test]
fn a_wire_log_tells_the_commands() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    ask(&runtime, &["info", "--wire-log", log.to_str().unwrap()]).well();
    let ran = run(&["decode", log.to_str().unwrap()]).well();
    assert!(
        ran.text().starts_with("GetProcessInfo3 0x0408, request (20 bytes, sent on connection 1)\n"),
        "{ran:?}"
    );
    assert!(ran.text().contains("\nOK answer to GetProcessInfo3 0x0408 ("), "{ran:?}");
    assert!(ran.text().contains("clr_product_version: \"8.0.31\""), "{ran:?}");
    let ran = run(&["decode", log.to_str().unwrap(), "--json"]).well();
    let answer: Value = serde_json::from_str(ran.text().lines().nth(1).unwrap()).unwrap();
    assert_eq!((&answer["direction"], &answer["connection"]), (&json!("received"), &json!(1)));
}

#[test]
fn what_is_malformed_is_pointed_at() {
    let file = testdata("malformed/ApplyStartupHook.path-past-end.hex");
    let ran =
        run(&["decode", &file]).fails(6, "the message is malformed: a field runs past the end (at byte 24)");
    let lines: Vec<_> = ran.text().lines().collect();
    assert!(lines[6].ends_with("startup_hook_path.count: 9"), "{}", ran.text());
    assert_eq!(lines[7..], ["    24  61 62", "        ^ a field runs past the end (at byte 24)"]);

    let ran = run(&["decode", &testdata("malformed/header.bad-magic.hex")]).fails(6, "(at byte 12)");
    let lines: Vec<_> = ran.text().lines().collect();
    let (bytes, caret) = (lines[1], lines[2].find('^').unwrap());
    assert_eq!((&bytes[caret..caret + 2], lines.last().unwrap()), ("32", &"        … 4 bytes more"));

    // The place behind a full line, and behind nothing at all.
    let cut = run(&["decode", "--json", &RESUME[..32]]).fails(6, "(at byte 16)");
    assert_eq!(cut.json()["error"], json!({ "offset": 16, "error": "a field runs past the end" }));
    let text = [&RESUME[..28], "ffff 0407 0000 ff000000", &"6100".repeat(16)].concat();
    let ran = run(&["decode", &text]).fails(6, "(at byte 56)");
    assert!(ran.text().ends_with("\n    56\n        ^ a field runs past the end (at byte 56)\n"), "{ran:?}");
    run_with(&["decode", "-"], b"# nothing").fails(6, "(at byte 0)");
}

#[test]
fn a_broken_advertise_frame_is_pointed_at() {
    let frame = [b"ADVR_V1\0", &[7; 26][..]].concat();
    let show = |bytes: &[u8], words: &str| {
        let ran = run_with(&["decode", "-"], bytes).fails(6, words);
        assert!(ran.text().starts_with("advertise frame ("), "{ran:?}");
        let ran = run_with(&["decode", "-", "--json"], bytes);
        assert_eq!(ran.json()["kind"], "advertise");
        ran.json()["error"].clone()
    };
    let mut another = frame.clone();
    another[6] = b'2';
    let error = show(&another, "not the magic ADVR_V1 (at byte 6)");
    assert_eq!(error, json!({ "offset": 6, "error": "not the magic ADVR_V1" }));
    show(b"ADVRDOTNET_IPC_V1\0", "not the magic ADVR_V1 (at byte 4)");
    for len in [4, 6, 8, 20, 33] {
        let error = show(&frame[..len], &format!("a field runs past the end (at byte {len})"));
        assert_eq!(error["offset"], len);
    }
}

#[test]
fn what_is_no_message_has_no_kind() {
    let ran = run(&["decode", "--json", "deadbeef"]).fails(6, "(at byte 0)");
    let message = ran.json();
    assert_eq!((&message["kind"], &message["code"]), (&Value::Null, &Value::Null));
    let ran = run(&["decode", "--json", &testdata("legacy/before-draft.stop.request.hex")]).well();
    assert_eq!(ran.json()["kind"], "request");
}

/// Every file of a folder of `testdata/`.
fn vectors(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "hex")).collect()
}

#[test]
fn every_vector() {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for path in ["messages", "refused", "tolerated", "malformed"].into_iter().flat_map(vectors) {
        let ran = run(&["decode", path.to_str().unwrap()]);
        let name = name(&path);
        let continues = name.ends_with(".continuation.hex") || name.starts_with("header.bytes-behind");
        let malformed = path.parent().unwrap().ends_with("malformed") && !name.starts_with("unknown.");
        let status = if malformed || continues { 6 } else { 0 };
        assert_eq!(ran.status, Some(status), "{}: {ran:?}", path.display());
    }
}

#[test]
fn the_draft_of_2019_is_recognised() {
    let ran = run(&["decode", &testdata("legacy/draft.CollectTracing.specification.request.hex")]).well();
    assert!(ran.text().starts_with("CollectTracing 0x0202, request of the draft of 2019 ("), "{ran:?}");
    assert!(ran.text().contains("output_path: \"/tmp/foo.netperf\""), "{ran:?}");
    let ran = run(&["decode", &testdata("legacy/draft.error.specification.refusal.hex")]).well();
    assert!(ran.text().contains("error_code: 1 BAD_ENCODING"), "{ran:?}");
    let ran = run(&["decode", "--json", &testdata("legacy/before-draft.stop.request.hex")]).well();
    assert_eq!(ran.json()["legacy"], "before_draft");
}

#[test]
fn unknown_commands_are_shown_all_the_same() {
    let ran = run(&["decode", "444f544e45545f4950435f563100160004990000 abcd"]).well();
    assert!(ran.text().starts_with("unknown command 0x0499, request (22 bytes)\n"), "{ran:?}");
    assert!(ran.text().contains("    20  ab cd  "), "{ran:?}");
    let frame = run(&["decode", &testdata("messages/Advertise.frame.hex")]).well();
    assert!(frame.text().starts_with("advertise frame (34 bytes)\n"), "{frame:?}");
    assert!(frame.text().lines().nth(3).unwrap().ends_with("  process_id: 22024"), "{frame:?}");
}
