//! The conformance kit against the fake runtime, and the kit itself.
#![cfg(all(feature = "conformance", feature = "fake"))]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Instant;

use ipc_proto::plan::Flavour;
use ipc_proto::{HResult, Message, Parsed, Request};
use ipc_std::Stream;
use ipc_std::conformance::{Against, Answer, Expectation, Seen, State, ask, cases, run};
use ipc_std::fake::{FakeRuntime, Profile};

fn connect(path: &Path) -> impl Fn() -> io::Result<Stream> {
    move || Stream::connect(path, soon(Duration::from_secs(60)))
}

fn soon(after: Duration) -> Instant {
    Instant::now().checked_add(after).unwrap()
}

/// Tries every case, in the state that it is for.
fn every_case(profile: &Profile) {
    let (version, flavour) = (profile.version, profile.flavour);
    let mut differences = Vec::new();
    for state in [State::Running, State::Suspended] {
        let profile = Profile { suspended: state == State::Suspended, ..profile.clone() };
        let runtime = FakeRuntime::start(profile).unwrap();
        for case in cases().into_iter().filter(|case| case.state == state && case.can_be_sent()) {
            let case = case.of(version, flavour);
            if let Err(difference) = run(&case, connect(runtime.path())) {
                differences.push(difference.to_string());
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_fake_runtime_that_knows_every_command() {
    every_case(&Profile { version: 11, ..Profile::net10() });
}

#[test]
fn a_fake_net10() {
    every_case(&Profile::net10());
}

#[test]
fn a_fake_net9() {
    every_case(&Profile::net9());
}

#[test]
fn a_fake_net31() {
    every_case(&Profile::net31());
}

#[test]
fn a_fake_net8() {
    every_case(&Profile::net8());
}

#[test]
fn a_fake_native_aot() {
    every_case(&Profile::net9_aot());
}

/// A case that cannot be read would be left out without a word.
#[test]
fn every_line_is_a_case() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/cases.jsonl");
    let lines = std::fs::read_to_string(data).unwrap();
    let cases = cases();
    assert_eq!(cases.len(), lines.lines().count());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}

/// There is one file, which two places name.
#[test]
fn testdata_has_the_same() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let testdata = here.join("../testdata/conformance/cases.jsonl");
    assert_eq!(
        testdata.canonicalize().unwrap(),
        here.join("src/conformance/cases.jsonl").canonicalize().unwrap()
    );
}

/// By the decoder and the rules of `ipc-proto`, which know nothing of the data.
#[test]
fn what_is_expected_agrees_with_the_core() {
    for case in cases() {
        let refusal = match Message::parse(&case.request) {
            Ok(Parsed::Complete { value, .. }) => match value.request() {
                Err(e) => Some(HResult::from(e)),
                Ok(Request::Unknown(_)) => Some(HResult::UNKNOWN_COMMAND),
                Ok(request) => request.check().err().map(|violation| violation.hresult()),
            },
            _ => continue,
        };
        let expected = match &case.expect {
            Some(Expectation::HResult(hresult)) => Some(*hresult),
            _ => None,
        };
        // What depends on more than the request is not a matter of the core.
        let of_the_state = [
            HResult::NOT_YET_AVAILABLE,
            HResult::MOD_NOT_FOUND,
            HResult::ENVVAR_NOT_FOUND,
            HResult::FAIL, // no such directory for a dump
        ];
        match refusal {
            Some(refusal) => assert_eq!(expected, Some(refusal), "{}", case.name),
            None => {
                assert!(expected.is_none_or(|e| of_the_state.contains(&e)), "{}: {expected:?}", case.name)
            }
        }
    }
}

#[test]
fn every_command_of_every_group_is_there() {
    let cases = cases();
    for row in Request::ALL {
        let of_it = || cases.iter().filter(|case| case.command() == Some(row));
        assert!(of_it().count() > 1, "{}", row.name);
        // Those with fields are cut at each of them.
        let cut = of_it().filter(|case| case.name.starts_with("cut/")).count();
        let without = row.name.starts_with("Get") || ["ResumeRuntime", "DisablePerfMap"].contains(&row.name);
        let one_field = ["StopTracing", "EnablePerfMap"].contains(&row.name);
        assert_eq!(cut == 0, without || one_field, "{}", row.name);
    }
}

#[test]
fn differences_are_one_line() {
    let case = cases().into_iter().find(|case| case.name == "ct1/mb0").unwrap();
    assert_eq!(case.expect, Some(Expectation::HResult(HResult::BAD_ENCODING)));
    let difference = case.judge(Against::Expected, &Answer::Closed).unwrap_err();
    assert_eq!(
        difference.to_string(),
        "ct1/mb0: expected 0x80131384 DS_IPC_E_BAD_ENCODING, got the end of the connection"
    );
    assert!(case.is_deadly_for("net9") && !case.is_deadly_for("net10") && case.is_deadly());
    assert_eq!(case.seen("net9"), BTreeSet::from([Seen::Dies]));
    assert_eq!(case.judge(Against::Observed("net9"), &Answer::Closed), Ok(()));
    let garbage = case.judge(Against::Observed("net10"), &Answer::Garbage(vec![1; 30])).unwrap_err();
    assert!(garbage.to_string().contains("got 30 bytes that are no message: 01 01"), "{garbage}");
    let unseen = case.judge(Against::Observed("net5"), &Answer::Silence).unwrap_err();
    assert_eq!(unseen.to_string(), "ct1/mb0: expected what nobody has seen yet, got no answer in time");
}

/// What stands behind the code is nobody's concern: it need not be words.
#[test]
fn a_refusal_is_its_code() {
    let case = cases().into_iter().find(|case| case.name == "ct1/mb0").unwrap();
    let refusal = b"DOTNET_IPC_V1\0\x1c\0\xff\xff\0\0\x84\x13\x13\x80\xff\xff\xff\xff";
    let answer = Answer::Message(refusal.to_vec());
    assert_eq!(case.judge(Against::Expected, &answer), Ok(()));
    assert_eq!(answer.to_string(), "0x80131384 DS_IPC_E_BAD_ENCODING");
}

#[test]
fn older_servers_refuse_by_the_code() {
    let named = |name: &str| cases().into_iter().find(|case| case.name == name).unwrap();
    let expect = |name: &str, version, flavour| named(name).of(version, flavour).expect;
    let refused = |hresult| Some(Expectation::HResult(hresult));
    let unknown = refused(HResult::UNKNOWN_COMMAND);
    assert_eq!(expect("cut/CollectTracing6/4", 10, Flavour::CoreClr), unknown);
    assert_eq!(expect("empty/0408", 6, Flavour::CoreClr), unknown);
    assert_eq!(expect("empty/0302", 9, Flavour::NativeAot), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("dump1/type0", 9, Flavour::Mono), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("hook/empty", 9, Flavour::NativeAot), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("hook/trunc", 9, Flavour::NativeAot), refused(HResult::BAD_ENCODING));
    assert_eq!(expect("hdr/bad-magic", 3, Flavour::CoreClr), named("hdr/bad-magic").expect);
}

/// A session that a case starts does not stay.
#[test]
fn sessions_are_ended() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let case = cases().into_iter().find(|case| case.name == "ct2/ok").unwrap();
    let answer = ask(&case, None, connect(runtime.path())).unwrap();
    assert_eq!(case.judge(Against::Expected, &answer), Ok(()));
    let asked: Vec<_> = runtime.requests().iter().map(|request| request.code().unwrap().0).collect();
    assert_eq!(asked, [0x0203, 0x0201]);
}

/// A server that takes the request and says nothing is not waited for beyond the deadline.
#[test]
fn silence_has_an_end() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(ipc_std::fake::Fault::Silent);
    let case = cases().remove(0);
    let connect = || Stream::connect(runtime.path(), soon(Duration::from_millis(50)));
    assert_eq!(ask(&case, None, connect).unwrap(), Answer::Silence);
    let difference = run(&case, connect).unwrap_err();
    assert!(difference.to_string().ends_with("got no answer in time"), "{difference}");
}

/// The tool, on a server of ours.
#[cfg(feature = "cli")]
mod tool {
    use core::str::from_utf8;
    use std::process::{Command, Output};

    use ipc_proto::{Command as _, EnablePerfMap, GetProcessInfo3, HResult, types::Status};
    use ipc_std::fake::{FakeRuntime, Profile, Response};
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
            let (lines, said) = (lines(&output), from_utf8(&output.stderr).unwrap());
            assert_eq!(output.status.code(), Some(0), "{lines:?} {said}");
            assert_eq!(lines.len(), 1);
            assert!(lines[0].ends_with(" cases, 0 differences"), "{lines:?}");
            assert_eq!(said, "note: compared with a careful server of .NET 10\n");
        }
    }

    /// The tool finds out by itself which version and kind it has before it.
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
            let (lines, said) = (lines(&output), from_utf8(&output.stderr).unwrap());
            assert_eq!(output.status.code(), Some(0), "{kind}: {lines:?} {said}");
            assert_eq!(said, format!("note: compared with a careful server of {kind}\n"));
        }
    }

    #[test]
    fn what_is_deadly_is_sent_on_demand_only() {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        let output = conformance(&runtime, &["--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let count: Value = serde_json::from_str(lines(&output)[0]).unwrap();
        assert_eq!((&count["differences"], &count["unseen"]), (&0.into(), &0.into()));
        let (tried, deadly) = (count["cases"].as_u64().unwrap(), count["deadly"].as_u64().unwrap());
        assert!(tried > 350 && deadly > 100, "{count}");
        // Nothing without a payload that kills a real one has come.
        assert!(runtime.requests().iter().all(|request| !request.bytes.ends_with(&[0x14, 0, 1, 1, 0, 0])));
    }

    #[test]
    fn differences_are_told() {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.on(EnablePerfMap::CODE, |_| Response::Refuse(HResult(0x8000_0001)));
        runtime.on(GetProcessInfo3::CODE, |_| Response::ok(&Status::OK));
        let output = conformance(&runtime, &["--as", "net10"]);
        assert_eq!(output.status.code(), Some(8), "{output:?}");
        let lines = lines(&output);
        let expected = "perfmap/3: expected OK, 24 bytes, got 0x80000001";
        assert!(lines.contains(&expected), "{lines:?}");
        let said = from_utf8(&output.stderr).unwrap();
        assert!(said.contains(" answers are not what they should be"), "{said}");
        let output = conformance(&runtime, &["--as", "net10", "--json"]);
        assert_eq!(output.status.code(), Some(8));
        let first: Value =
            serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
        assert!(first["case"].is_string() && first["expected"].is_string() && first["answered"].is_string());
        let error: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["kind"], "different");
    }

    #[test]
    fn a_server_that_hangs_is_left_alone() {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.set_fault(ipc_std::fake::Fault::Silent);
        let output = conformance(&runtime, &["--as", "net10", "--timeout", "0.05"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert_eq!(lines(&output).len(), 3);
    }

    #[test]
    fn nobody_there_is_not_a_difference() {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        let path = runtime.path().to_owned();
        drop(runtime);
        let mut command = Command::new(env!("CARGO_BIN_EXE_dotnet-ipc"));
        let output = command.args(["conformance", "--as", "net10", "--socket"]).arg(path).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
    }
}
