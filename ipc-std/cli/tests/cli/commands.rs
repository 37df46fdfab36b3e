//! Tests of the commands that control a runtime: their requests, their output, and the requests that they refuse to
//! send.

use core::time::Duration;
use std::fs;
use std::thread;

use ipc_proto::types::{ClientData, DumpFlags, DumpType, EventFilter, PerfMapType, SessionConfig, Status};
use ipc_proto::{Code, HResult, Request};
use ipc_testkit::{FakeRuntime, Profile, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{Ran, run};

const CLSID: &str = "123e4567-e89b-12d3-a456-426614174000";

/// Starts a fake runtime that responds with OK to every control command.
fn accepting() -> FakeRuntime {
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

/// Calls a function with the last received request.
fn last<T>(runtime: &FakeRuntime, inspect: impl FnOnce(Request<'_>) -> T) -> T {
    let requests = runtime.requests();
    inspect(requests.last().unwrap().message().unwrap().request().unwrap())
}

fn received(runtime: &FakeRuntime, code: u16) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(Code(code)))
}

#[test]
fn a_variable_is_set_emptied_and_removed() {
    let runtime = accepting();
    let value = |runtime: &FakeRuntime| {
        last(runtime, |request| {
            let Request::SetEnvironmentVariable(set) = request else { panic!("{request:?}") };
            assert_eq!(set.name, "A B");
            set.value.non_null().map(|value| value.to_string())
        })
    };
    let ran = ask(&runtime, &["set-env", "A B", "wärde"]).well();
    assert_eq!((ran.text(), value(&runtime).as_deref()), ("A B=wärde\n", Some("wärde")));
    let ran = ask(&runtime, &["set-env", "A B", "", "--json"]).well();
    assert_eq!((ran.json(), value(&runtime).as_deref()), (json!({ "name": "A B", "value": "" }), Some("")));
    ask(&runtime, &["set-env", "--", "A B", "-x"]).fails(2, "--socket");
    // The process may have a NativeAOT runtime, which the request would end.
    let sent = runtime.requests().len();
    ask(&runtime, &["set-env", "A B"]).fails(2, "--force").fails(2, "makes it empty");
    assert!(runtime.requests()[sent..].iter().all(|request| request.code() != Some(Code(0x0403))));
    let ran = ask(&runtime, &["set-env", "A B", "--force"]).well();
    assert_eq!((ran.text(), value(&runtime)), ("A B is removed\n", None));
}

#[test]
fn a_name_and_its_value_are_two_operands() {
    let runtime = accepting();
    let sent = runtime.requests().len();
    // As one operand, this would remove the variable "GREETING=hello".
    let ran = ask(&runtime, &["set-env", "GREETING=hello"]);
    ran.fails(2, "the form is `set-env PID GREETING hello`");
    ask(&runtime, &["set-env", "A=", "B"]).fails(2, "\"A=\" has \"=\"");
    assert_eq!(runtime.requests().len(), sent);
    // Windows stores the current folder of a drive like this.
    ask(&runtime, &["set-env", "=C:", r"C:\app"]).well();
}

#[test]
fn a_process_id_is_an_operand_only_without_a_socket() {
    let runtime = accepting();
    ask(&runtime, &["set-env", "4242", "GREETING"]).well();
    last(&runtime, |request| {
        assert!(matches!(request, Request::SetEnvironmentVariable(set) if set.name == "4242"));
    });
    run(&["set-env", "GREETING", "hello"]).fails(2, "\"GREETING\" is not a process ID");
    run(&["set-env"]).fails(2, "a process ID, --name or --socket is required");
    run(&["set-env", "4242"]).fails(2, "VARIABLE is required");
    run(&["set-env", "4242", "A", "B", "C"]).fails(2, "\"C\" is not expected");
    run(&["attach-profiler", "4242", CLSID]).fails(2, "LIBRARY is required");
}

#[test]
fn perf_maps() {
    let runtime = accepting();
    for (args, kind, text) in [
        (&["perf-map", "on"][..], PerfMapType::ALL, "perf map on: all\n"),
        (&["perf-map", "on", "jit-dump"], PerfMapType::JIT_DUMP, "perf map on: jit-dump\n"),
        (&["perf-map", "on", "perf-map"], PerfMapType::PERF_MAP, "perf map on: perf-map\n"),
    ] {
        assert_eq!(ask(&runtime, args).well().into_text(), text);
        last(&runtime, |request| {
            assert!(matches!(request, Request::EnablePerfMap(enable) if enable.perf_map_type == kind));
        });
    }
    let off = ask(&runtime, &["perf-map", "off", "--json"]).well().json();
    assert_eq!(off, json!({ "enabled": false, "perf_map_type": null }));
    last(&runtime, |request| assert!(matches!(request, Request::DisablePerfMap(_))));
    ask(&runtime, &["perf-map", "off", "all"]).fails(2, "is not off, on all");
}

/// The process information and the command share one deadline.
#[test]
fn the_timeout_limits_the_whole_command() {
    // Two answers take longer than the timeout, one takes much less.
    let slow = Duration::from_secs(3);
    let perf_map = |options: &[&str]| {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.on(Code(0x0408), move |_| {
            thread::sleep(slow);
            Response::Refuse(HResult::UNKNOWN_COMMAND)
        });
        runtime.on(Code(0x0405), move |_| {
            thread::sleep(slow);
            Response::ok(&Status::OK)
        });
        let ran = ask(&runtime, &[&["perf-map", "on"], options].concat());
        assert!(received(&runtime, 0x0405));
        ran
    };
    thread::scope(|scope| {
        scope.spawn(|| perf_map(&["--timeout", "5s"]).fails(4, "EnablePerfMap"));
        scope.spawn(|| perf_map(&["--timeout", "30s"]).well());
        scope.spawn(|| perf_map(&["--timeout", "5s", "--force"]).well());
    });
}

/// `--force` applies to requests that can end a runtime or have no effect. These commands send no such request.
#[test]
fn harmless_commands_have_no_force_option() {
    for args in [&["resume", "1"][..], &["dump", "1", "-o", "x"], &["attach-profiler", "1", CLSID, "/p.so"]] {
        run(&[args, &["--force"]].concat()).fails(2, "--force");
    }
}

#[test]
fn a_startup_hook_must_exist() {
    let runtime = accepting();
    let missing = ask(&runtime, &["startup-hook", "/nowhere/Hook.dll", "--json"]);
    assert_eq!(missing.status, Some(2));
    let error: Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!(error["kind"], "danger");
    assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
    assert!(!received(&runtime, 0x0407));
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
    let runtime = accepting();
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
    runtime.on(Code(0x0301), |_| Response::Refuse(HResult::MOD_NOT_FOUND));
    ask(&runtime, &["attach-profiler", CLSID, "/p.so"]).fails(5, "0x8007007e");
    ask(&runtime, &["attach-profiler", "none", "/p.so"]).fails(2, "not a GUID");
    ask(&runtime, &["attach-profiler", CLSID, "/p.so", "--data", "0"]).fails(2, "hexadecimal");
    ask(&runtime, &["attach-profiler", CLSID, "/p.so", "--data", "@/nowhere"]).fails(1, "cannot read");
}

/// A running process accepts a startup profiler and ignores it. The process here was started without a setting that
/// suspends it.
#[test]
#[cfg(target_os = "linux")]
fn a_startup_profiler_needs_a_suspended_runtime() {
    let runtime = accepting();
    let ran = ask(&runtime, &["startup-profiler", CLSID, "/p.so"]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("not suspended") && ran.stderr.contains("--force"), "{ran:?}");
    assert!(!received(&runtime, 0x0302));
    let ran = ask(&runtime, &["startup-profiler", CLSID, "/p.so", "--json", "--force"]).well();
    assert_eq!(ran.json(), json!({ "profiler_guid": CLSID, "profiler_path": "/p.so" }));
    last(&runtime, |request| {
        assert!(matches!(request, Request::StartupProfiler(startup) if startup.profiler_path == "/p.so"));
    });
}

/// Where the process of a socket is unknown, the result has a remark.
#[test]
#[cfg(unix)]
fn a_startup_profiler_of_an_unknown_process() {
    let runtime = accepting();
    let directory = TempDir::new().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(runtime.path(), &link).unwrap();
    let ran = run(&["startup-profiler", "--socket", link.to_str().unwrap(), CLSID, "/p.so"]);
    assert_eq!((ran.status, ran.text()), (Some(0), "profiler /p.so set\n"));
    assert!(ran.stderr.starts_with("note: a runtime that is not suspended ignores"), "{ran:?}");
}

#[test]
fn set_env_suggests_no_variable_that_is_read_at_startup() {
    let help = run(&["set-env", "--help"]).well().into_text();
    let examples = help.split_once("Examples:").unwrap().1;
    assert!(!examples.contains("DOTNET_"), "{help}");
    assert!(help.contains("once, at startup"), "{help}");
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
    let runtime = accepting();
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
        let ran = ask(&runtime, &["dump", "-o", file, "--type", kind, "--overwrite"]).well();
        assert_eq!(ran.text(), format!("Wrote {kind} dump: {file} (6 B, GenerateCoreDump3)\n"));
        last(&runtime, |request| {
            let Request::GenerateCoreDump3(dump) = request else { panic!("{request:?}") };
            assert_eq!(
                (dump.dump_name, dump.dump_type, dump.flags),
                (file.into(), dump_type, DumpFlags::NONE)
            );
        });
    }
    // The path is absolute, because the target has another current directory. The tool cannot find a file whose name
    // has a template.
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
    assert!(ran.status == Some(0) && ran.stderr.starts_with("note: the file does not exist here"), "{ran:?}");
    ask(&runtime, &["dump", "-o", "-"]).fails(2, "the target writes the dump");
}

#[test]
fn an_existing_dump_is_not_replaced_silently() {
    let runtime = accepting();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("app.dmp");
    fs::write(&file, "a dump").unwrap();
    let file = file.to_str().unwrap();
    let ran = ask(&runtime, &["dump", "-o", file, "--json"]);
    assert_eq!((ran.status, &ran.error()["kind"]), (Some(1), &json!("io")), "{ran:?}");
    assert!(ran.stderr.contains("exists already") && ran.stderr.contains("--overwrite"), "{ran:?}");
    assert!(!received(&runtime, 0x0103));
    ask(&runtime, &["dump", "-o", file, "--overwrite"]).well();
    // The name of the dump is not the template, so nothing is replaced.
    fs::write(directory.path().join("%p.dmp"), "").unwrap();
    ask(&runtime, &["dump", "-o", directory.path().join("%p.dmp").to_str().unwrap()]).well();
}

#[test]
fn dumps_of_older_runtimes() {
    let runtime = FakeRuntime::start(Profile::net31()).unwrap();
    runtime.on(Code(0x0101), |_| Response::ok(&Status::OK));
    let ran = ask(&runtime, &["dump", "-o", "/%d", "--crash-report"]);
    assert_eq!((ran.status, ran.text()), (Some(0), "Wrote full dump: /%d (GenerateCoreDump)\n"));
    assert_eq!(ran.stderr, "note: crash reports and verbose logging need .NET 6\n");
    let ran = ask(&runtime, &["dump", "-o", "/%d", "--crash-report", "--json"]).well();
    assert_eq!(ran.json()["lost"], json!(["crash reports and verbose logging need .NET 6"]));
    ask(&runtime, &["dump", "-o", "/%d"]).well();
}

#[test]
fn a_refused_dump_has_a_one_line_reason() {
    let runtime = accepting();
    let message = "[createdump] no room\n[createdump] \u{1b}[2JFailure took 198ms\n";
    runtime.on(Code(0x0103), move |_| Response::RefuseWith(HResult::FAIL, message.to_owned()));
    let ran =
        ask(&runtime, &["dump", "-o", "/x"]).fails(5, "[createdump] no room [createdump] \\u{1b}[2JFailure");
    assert!(ran.stderr.contains("check that the directory exists"), "{ran:?}");
}

/// Records a trace with the providers A and B and these options.
fn traced(runtime: &FakeRuntime, args: &[&str]) -> Ran {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("t");
    let provider =
        ["trace", "--duration", "0", "-o", file.to_str().unwrap(), "--provider", "A:1", "--provider", "B"];
    ask(runtime, &[&provider, args].concat())
}

#[test]
fn trace_options_become_request_fields() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let ids = ["--event-ids", "b=-7,9", "--no-stacks", "--rundown-keyword", "0x10"];
    let ran = traced(&runtime, &ids);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let requests = runtime.requests();
    let Request::CollectTracing5(start) = requests[0].message().unwrap().request().unwrap() else {
        panic!("{requests:?}")
    };
    let SessionConfig::Streaming(session) = start.session else { panic!("{start:?}") };
    assert_eq!((session.rundown_keyword, session.stackwalk), (0x10, false));
    let filters: Vec<_> = session.providers.iter().map(|provider| provider.filter).collect();
    assert_eq!(filters, [EventFilter::ALL, EventFilter { enable: false, event_ids: (&[7, 9]).into() }]);

    let old = FakeRuntime::start(Profile::net8()).unwrap();
    let ran = traced(&old, &["--no-stacks"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("note: events without stacks need .NET 9: "), "{ran:?}");
    // The request was for a trace without losses.
    let ran = traced(&old, &["--buffering", "block"]);
    ran.fails(5, "blocking instead of dropping needs .NET 11");
    traced(&runtime, &["--event-ids", "C=+1"]).fails(2, "the provider C is not recorded");
    traced(&runtime, &["--event-ids", "A=1"]).fails(2, "for only these events");
    traced(&runtime, &["--no-rundown", "--rundown-keyword", "1"]).fails(2, "cannot be used with");
}
