//! Tests of the command `conformance` with the fake runtime.

use core::str::from_utf8;
use std::process::{Command, Output};

use ipc_proto::types::{ProcessInfo3, Status};
use ipc_proto::{
    Command as _, EnablePerfMap, GetProcessInfo2, GetProcessInfo3, Guid, HResult, Request, StopTracing,
};
use ipc_testkit::{FakeRuntime, Profile, Response};
use serde_json::Value;

fn conformance(runtime: &FakeRuntime, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dotnet-ipc"));
    command.arg("conformance").arg("--socket").arg(runtime.path()).args(args).output().unwrap()
}

fn lines(output: &Output) -> Vec<&str> {
    from_utf8(&output.stdout).unwrap().lines().collect()
}

#[test]
fn a_careful_server_has_no_differences() {
    for (state, suspended) in [("running", false), ("suspended", true)] {
        let runtime = FakeRuntime::start(Profile { suspended, ..Profile::net10() }).unwrap();
        let output = conformance(&runtime, &["--deadly", "--state", state]);
        let (lines, stderr) = (lines(&output), from_utf8(&output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{lines:?} {stderr}");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with(" cases, 0 differences"), "{lines:?}");
        assert_eq!(stderr, "note: compared with a careful server of .NET 10\n");
    }
}

/// The tool detects the version and the kind of the runtime.
#[test]
fn every_profile_is_a_careful_server() {
    for (profile, kind) in [
        (Profile::net10(), ".NET 10"),
        (Profile::net9(), ".NET 9"),
        (Profile::net8(), ".NET 8"),
        (Profile::net9_aot(), ".NET 9 (NativeAOT)"),
        (Profile::net31(), ".NET Core 3"),
    ] {
        let runtime = FakeRuntime::start(profile).unwrap();
        let output = conformance(&runtime, &["--deadly"]);
        let (lines, stderr) = (lines(&output), from_utf8(&output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{kind}: {lines:?} {stderr}");
        assert_eq!(stderr, format!("note: compared with a careful server of {kind}\n"));
    }
}

/// The profiles of runtimes whose errors are known have these errors.
#[test]
fn a_profile_answers_as_the_real_runtimes_of_its_kind() {
    for (profile, kind) in [
        (Profile::net11(), "net11"),
        (Profile::net11_aot(), "net11-aot"),
        (Profile::net10_aot(), "net10-aot"),
    ] {
        let runtime = FakeRuntime::start(profile).unwrap();
        let output = conformance(&runtime, &["--as", kind]);
        assert_eq!(output.status.code(), Some(0), "{kind}: {output:?}");
        assert!(lines(&output)[0].contains(" cases, 0 differences"), "{kind}: {output:?}");
        // A careful server gives other answers.
        assert_eq!(conformance(&runtime, &[]).status.code(), Some(8), "{kind}");
    }
}

#[test]
fn deadly_requests_are_sent_only_on_demand() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let output = conformance(&runtime, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let count: Value = serde_json::from_str(lines(&output)[0]).unwrap();
    assert_eq!((&count["differences"], &count["unseen"]), (&0.into(), &0.into()));
    let (tried, deadly) = (count["cases"].as_u64().unwrap(), count["deadly"].as_u64().unwrap());
    assert!(tried > 350 && deadly > 100, "{count}");
    // A dump request without a payload ends a real runtime.
    assert!(runtime.requests().iter().all(|request| !request.bytes.ends_with(&[0x14, 0, 1, 1, 0, 0])));
}

/// A server that has few commands refuses all others. Cases that did not run are counted apart from cases that passed.
#[test]
fn a_small_server_names_its_commands() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let has = [GetProcessInfo3::CODE, GetProcessInfo2::CODE, StopTracing::CODE];
    for row in Request::ALL.iter().filter(|row| !has.contains(&row.code)) {
        runtime.on(row.code, |_| Response::Refuse(HResult::NOT_SUPPORTED));
    }
    assert_eq!(conformance(&runtime, &["--deadly"]).status.code(), Some(8));
    let commands = "--commands=GetProcessInfo3,processinfo2,0x0201";
    let output = conformance(&runtime, &["--deadly", commands, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let count: Value = serde_json::from_str(lines(&output)[0]).unwrap();
    assert_eq!((&count["differences"], &count["not_tried"]), (&0.into(), &0.into()), "{count}");
    for wrong in [["--commands=Nothing", "--deadly"], [commands, "--as=net10"]] {
        assert_eq!(conformance(&runtime, &wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn differences_are_reported() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(EnablePerfMap::CODE, |_| Response::Refuse(HResult(0x8000_0001)));
    runtime.on(GetProcessInfo3::CODE, |_| Response::ok(&Status::OK));
    let output = conformance(&runtime, &["--as", "net10", "--deadly"]);
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let lines = lines(&output);
    let expected = "perfmap/3: expected OK, 24 bytes, got 0x80000001";
    assert!(lines.contains(&expected), "{lines:?}");
    let stderr = from_utf8(&output.stderr).unwrap();
    assert!(stderr.contains(" responses are wrong"), "{stderr}");
    let output = conformance(&runtime, &["--as", "net10", "--deadly", "--json"]);
    assert_eq!(output.status.code(), Some(8));
    let first: Value = serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert!(first["case"].is_string() && first["expected"].is_string() && first["answered"].is_string());
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["kind"], "different");
}

/// Only the harm to runtimes of the reported version, or of a newer one, counts, whatever the answers are compared with.
#[test]
fn the_version_of_the_server_decides_what_is_deadly() {
    let counts = |profile, args: &[&str]| {
        let runtime = FakeRuntime::start(profile).unwrap();
        let output = conformance(&runtime, &[&["--json"], args].concat());
        let last: Value = serde_json::from_str(lines(&output).last().unwrap()).unwrap();
        (last["deadly"].as_u64().unwrap(), runtime.requests())
    };
    let (net10, _) = counts(Profile::net10(), &[]);
    let (net8, _) = counts(Profile::net8(), &[]);
    assert!(net8 > net10, "{net8} {net10}");
    // An empty CollectTracing5 ends .NET 10; .NET 9 did not know the command.
    let (as_net9, requests) = counts(Profile::net10(), &["--as", "net9"]);
    assert!(as_net9 > net10, "{as_net9} {net10}");
    assert!(requests.iter().all(|request| !request.bytes.ends_with(&[0x14, 0, 2, 6, 0, 0])));
}

#[test]
fn a_server_of_an_unknown_version_gets_nothing() {
    let newer = ProcessInfo3 {
        version: 1,
        process_id: 1,
        runtime_cookie: Guid::NIL,
        command_line: "newer".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly_name: "newer".into(),
        clr_product_version: "77.0.0".into(),
        portable_rid: "linux-x64".into(),
    };
    for (answer, words) in [
        (Response::ok(&newer), "the server is .NET 77"),
        (Response::Refuse(HResult::FAIL), "does not report its version"),
        (Response::ok(&Status::OK), "does not report its version"),
    ] {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.on(GetProcessInfo3::CODE, move |_| answer.clone());
        let output = conformance(&runtime, &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = from_utf8(&output.stderr).unwrap();
        assert!(stderr.contains(words) && stderr.contains("--deadly"), "{stderr}");
        assert!(
            runtime.requests().iter().all(|request| request.bytes[16] == 4),
            "it was asked for its version only"
        );
    }
}

#[test]
fn a_request_that_is_never_answered_is_named_and_the_others_are_sent() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (never, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let held = core::sync::atomic::AtomicBool::new(false);
    runtime.on(EnablePerfMap::CODE, move |_| {
        if !held.swap(true, core::sync::atomic::Ordering::Relaxed) {
            let _ = waits.lock().unwrap().recv();
        }
        Response::Refuse(HResult::INVALID_ARG)
    });
    let output = conformance(&runtime, &["--timeout", "0.3"]);
    let stderr = from_utf8(&output.stderr).unwrap();
    assert!(stderr.contains("the server did not respond to perfmap/"), "{stderr}");
    assert!(stderr.contains("it responds again after"), "{stderr}");
    assert!(lines(&output).last().unwrap().contains(" cases, "), "{output:?}");
    drop(never);
}

#[test]
fn a_server_that_hangs_stops_the_comparison() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (never, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    // From the first perf map on, nothing is answered.
    let hangs = std::sync::Arc::new(core::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&hangs);
    runtime.on(EnablePerfMap::CODE, move |_| {
        seen.store(true, core::sync::atomic::Ordering::Relaxed);
        let _ = waits.lock().unwrap().recv();
        Response::ok(&Status::OK)
    });
    let fault = std::thread::scope(|scope| {
        let comparison = scope.spawn(|| conformance(&runtime, &["--as", "net10", "--timeout", "0.2"]));
        while !hangs.load(core::sync::atomic::Ordering::Relaxed) {
            std::thread::yield_now();
        }
        runtime.set_fault(ipc_testkit::Fault::Silent);
        comparison.join().unwrap()
    });
    drop(never);
    assert_eq!(fault.status.code(), Some(4), "{fault:?}");
    let stderr = from_utf8(&fault.stderr).unwrap();
    assert!(stderr.contains("does not respond any more: the last request was perfmap/"), "{stderr}");
}

#[test]
fn a_missing_listener_is_not_a_difference() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let path = runtime.path().to_owned();
    drop(runtime);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dotnet-ipc"));
    let output = command.args(["conformance", "--as", "net10", "--socket"]).arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
