//! Tests of the command `conformance` with the fake runtime.

use core::str::from_utf8;
use std::process::{Command, Output};

use ipc_proto::{Command as _, EnablePerfMap, GetProcessInfo3, HResult, types::Status};
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

#[test]
fn differences_are_reported() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(EnablePerfMap::CODE, |_| Response::Refuse(HResult(0x8000_0001)));
    runtime.on(GetProcessInfo3::CODE, |_| Response::ok(&Status::OK));
    let output = conformance(&runtime, &["--as", "net10"]);
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let lines = lines(&output);
    let expected = "perfmap/3: expected OK, 24 bytes, got 0x80000001";
    assert!(lines.contains(&expected), "{lines:?}");
    let stderr = from_utf8(&output.stderr).unwrap();
    assert!(stderr.contains(" responses are wrong"), "{stderr}");
    let output = conformance(&runtime, &["--as", "net10", "--json"]);
    assert_eq!(output.status.code(), Some(8));
    let first: Value = serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert!(first["case"].is_string() && first["expected"].is_string() && first["answered"].is_string());
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["kind"], "different");
}

#[test]
fn a_server_that_hangs_stops_the_comparison() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(ipc_testkit::Fault::Silent);
    let output = conformance(&runtime, &["--as", "net10", "--timeout", "0.05"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(lines(&output).len(), 3);
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
