//! Tests of the conformance kit, and of the fake runtime with it.
#![cfg(feature = "io")]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use core::cell::Cell;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
#[cfg(unix)]
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use ipc_proto::plan::Flavour;
use ipc_proto::{Command, GetProcessInfo2, HResult, Message, Parsed, Request, ResumeRuntime, StopTracing};
use ipc_std::Stream;
#[cfg(unix)]
use ipc_testkit::conformance::Outcome;
use ipc_testkit::conformance::{
    Against, Case, ExpectedAnswer, KINDS, NotTried, ReceivedAnswer, Seen, State, cases, run, run_all, send,
};
use ipc_testkit::{FakeRuntime, Profile, Response};

fn connect(path: &Path) -> impl Fn() -> io::Result<Stream> {
    move || Stream::connect(path, soon(Duration::from_secs(60)))
}

fn soon(after: Duration) -> Instant {
    Instant::now().checked_add(after).unwrap()
}

/// Tries every case in its state.
fn every_case(profile: &Profile) {
    let (version, flavour) = (profile.version, profile.flavour);
    for state in [State::Running, State::Suspended] {
        let profile = Profile { suspended: state == State::Suspended, ..profile.clone() };
        let runtime = FakeRuntime::start(profile).unwrap();
        let cases = cases().into_iter().filter(|case| case.state == state);
        let report = run_all(cases.map(|case| case.for_server(version, flavour)), connect(runtime.path()));
        assert!(report.differences.is_empty() && (report.not_tried.is_empty() || cfg!(windows)), "{report}");
    }
}

#[test]
fn a_fake_runtime_knows_every_command() {
    every_case(&Profile { careful: true, ..Profile::net11() });
}

/// Sends every case to a fake runtime, and compares the answers with those of real runtimes of its kind.
fn every_observed_case(profile: &Profile, kind: &str) {
    let mut differences = Vec::new();
    for state in [State::Running, State::Suspended] {
        let profile = Profile { suspended: state == State::Suspended, ..profile.clone() };
        let runtime = FakeRuntime::start(profile).unwrap();
        let cases = cases().into_iter();
        for case in
            cases.filter(|case| case.state == state && (cfg!(unix) || !(case.half_close || case.descriptor)))
        {
            // A runtime that never answers takes the whole time.
            let waits = case.seen(kind).contains(&Seen::Waits);
            let patience = Duration::from_millis(if waits { 100 } else { 60_000 });
            let connect = || Stream::connect(runtime.path(), soon(patience));
            let answer = send(&case, None, connect).unwrap();
            differences.extend(case.judge(Against::Observed(kind), &answer).err());
        }
    }
    let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_fake_net11_answers_as_real_ones() {
    every_observed_case(&Profile::net11(), "net11");
}

#[test]
fn a_fake_net11_with_native_aot_answers_as_real_ones() {
    every_observed_case(&Profile::net11_aot(), "net11-aot");
}

#[test]
fn a_fake_net10_with_native_aot_answers_as_real_ones() {
    every_observed_case(&Profile::net10_aot(), "net10-aot");
}

/// The errors of .NET 11 follow rules, so its fake has them for requests that are not cases of the kit, too.
#[test]
fn a_fake_net11_errs_by_rules() {
    let [coreclr, native] = [Profile::net11(), Profile::net11_aot()].map(|p| FakeRuntime::start(p).unwrap());
    let answer = |runtime: &FakeRuntime, request: &[u8]| {
        let mut case = cases().remove(0);
        case.request = request.to_vec();
        send(&case, None, connect(runtime.path())).unwrap()
    };
    let both = |request: &[u8]| [&coreclr, &native].map(|runtime| answer(runtime, request).to_string());
    let message = |code: u16, payload: &[u8]| {
        let size = u16::try_from(Message::HEADER_LEN + payload.len()).unwrap();
        [b"DOTNET_IPC_V1\0", &size.to_le_bytes()[..], &code.to_be_bytes(), &[0, 0], payload].concat()
    };
    let text = |count: u32, text: &str| {
        let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        [&count.to_le_bytes()[..], &units].concat()
    };
    let null = 0_u32.to_le_bytes();
    let [ok, closed, invalid, fail, unsupported] =
        ["OK, 24 bytes", "the end of the connection", "0x80070057", "0x80004005", "0x80131515"];
    let session = "OK, 28 bytes";

    let session_of = |name: &[u8], ids: &[u32]| {
        let ids = ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
        let start: &[u8] = &[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0];
        let count = u32::try_from(ids.len() / 4).unwrap().to_le_bytes();
        message(0x0206, &[start, &[1; 8], &[4, 0, 0, 0], name, &null, &[1], &count, &ids].concat())
    };
    assert_eq!(both(&session_of(&text(4, "App"), &[7, 9, 7])), [session; 2], "duplicate ids");
    assert_eq!(both(&session_of(&text(4 | 1 << 31, "App"), &[7])), [session; 2], "a count that wraps");
    let refused = "0x80131384 DS_IPC_E_BAD_ENCODING";
    for count in [4 | 1 << 30, 4 | 3 << 30] {
        assert_eq!(both(&session_of(&text(count, "App"), &[7])), [refused; 2], "{count:#x}");
    }

    assert!(
        both(&message(0x0404, &[5; 30]))
            .iter()
            .all(|answer| answer.contains("bytes that are not a message: 05 05"))
    );
    for (kind, expected) in [(4_u32, invalid), (1 << 31, ok), (u32::MAX, ok)] {
        let [coreclr, native] = both(&message(0x0405, &kind.to_le_bytes()));
        assert!(
            coreclr.starts_with(expected) && native.starts_with(unsupported),
            "{kind}: {coreclr} {native}"
        );
    }
    for (name, kind, flags, expected) in [
        (null.to_vec(), 0_u32, 0_u32, closed),
        (text(3, "/x"), 1, 8, ok),
        (text(3, "/x"), 0, 8, fail),
        (text(3, "/x"), 1, 7, fail),
    ] {
        let dump = [&name[..], &kind.to_le_bytes(), &flags.to_le_bytes()].concat();
        let [coreclr, native] = both(&message(0x0102, &dump));
        assert!(coreclr.starts_with(expected) && native.starts_with(fail), "{dump:?}: {coreclr} {native}");
    }
    let unset = [text(5, "HOME"), null.to_vec()].concat();
    assert_eq!(both(&message(0x0403, &unset)), [ok, closed]);
    let unnamed = [text(1, ""), text(2, "x")].concat();
    assert_eq!(both(&message(0x0403, &unnamed)), [ok, "0xffffffff"]);
    for (hook, expected) in [("/no/such/hook", invalid), (env!("CARGO_MANIFEST_DIR"), invalid), ("", ok)] {
        let path = text(u32::try_from(hook.len()).unwrap() + 1, hook);
        let [coreclr, native] = both(&message(0x0407, &path));
        assert!(
            coreclr.starts_with(expected) && native.starts_with(unsupported),
            "{hook}: {coreclr} {native}"
        );
    }
    let hook = message(0x0407, &text(5, "/no/"));
    for (profile, expected) in [(Profile::net10(), closed), (Profile::net8(), invalid)] {
        let runtime = FakeRuntime::start(Profile { careful: false, ..profile }).unwrap();
        assert!(answer(&runtime, &hook).to_string().starts_with(expected));
    }
}

#[test]
fn the_kinds_are_those_of_the_cases() {
    let observed: BTreeSet<String> = cases().into_iter().flat_map(|case| case.observed.into_keys()).collect();
    let kinds = observed.iter().map(|kind| kind.strip_suffix("-single-file").unwrap_or(kind));
    assert_eq!(kinds.collect::<BTreeSet<_>>(), KINDS.iter().copied().collect());
}

#[test]
fn a_fake_net10_gives_the_expected_answers() {
    every_case(&Profile::net10());
}

#[test]
fn a_fake_net9_gives_the_expected_answers() {
    every_case(&Profile::net9());
}

#[test]
fn a_fake_net31_gives_the_expected_answers() {
    every_case(&Profile::net31());
}

#[test]
fn a_fake_net8_gives_the_expected_answers() {
    every_case(&Profile::net8());
}

#[test]
fn a_fake_native_aot_gives_the_expected_answers() {
    every_case(&Profile::net9_aot());
}

/// `cases` skips lines that it cannot parse, so a malformed line would be missing without an error.
#[test]
fn every_line_is_a_case() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/cases.jsonl");
    let lines = std::fs::read_to_string(data).unwrap();
    let cases = cases();
    assert_eq!(cases.len(), lines.lines().count());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn the_size_of_an_observed_answer_is_a_number_without_a_sign() {
    let data = include_str!("../src/conformance/cases.jsonl");
    let line = data.lines().find(|line| line.contains("OK 28")).unwrap();
    assert!(line.parse::<Case>().is_ok());
    for size in ["+28", "-28", "", "0x1c"] {
        let line = line.replace("OK 28", &format!("OK {size}"));
        assert_eq!(line.parse::<Case>().unwrap_err().field, "observed", "{size}");
    }
}

/// A case that ended a runtime is deadly for the kind of that runtime, so the kit sends it only with `--deadly`.
#[test]
fn a_case_that_ended_a_runtime_is_deadly() {
    for case in cases() {
        for (kind, observed) in &case.observed {
            let died = observed.contains(&Seen::Dies);
            assert!(!died || case.kills.contains(kind), "{} ended {kind}", case.name);
        }
        assert!(case.observed.contains_key("net8-aot"), "{}: not sent to NativeAOT 8", case.name);
    }
    // A name that is empty or null ended NativeAOT 8; NativeAOT 9 refuses such a name.
    for name in ["setenv/emptyname", "suspended/SetEnvironmentVariable/null-name"] {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        assert!(case.is_deadly() && case.is_deadly_for("net8-aot") && !case.is_deadly_for("net9-aot"));
    }
}

/// `testdata` has a link to the file in the package.
#[test]
fn testdata_has_the_same_cases() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let testdata = here.join("../../testdata/conformance/cases.jsonl");
    assert_eq!(
        testdata.canonicalize().unwrap(),
        here.join("src/conformance/cases.jsonl").canonicalize().unwrap()
    );
}

/// The decoder and the checks of `ipc-proto` agree with the cases. `ipc-proto` does not use the data of the cases, so
/// the test is an independent check.
#[test]
fn the_expected_answers_agree_with_the_core() {
    for case in cases() {
        let refusal = match Message::parse(&case.request) {
            Ok(Parsed::Complete { value, .. }) => match value.request() {
                Err(e) => Some(HResult::from(e)),
                Ok(Request::Unknown(_)) => Some(HResult::UNKNOWN_COMMAND),
                Ok(request) => request.check().err().map(HResult::from),
            },
            _ => continue,
        };
        let expected = match &case.expect {
            Some(ExpectedAnswer::HResult(hresult)) => Some(*hresult),
            _ => None,
        };
        // These refusals depend on more than the request, so the core does not predict them.
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
fn every_command_has_cases() {
    macro_rules! field_counts {
        ($([
            $code:literal $name:ident / $specification_name:ident since $since:literal:
            $request:ty { $($field:ident: $ty:ty,)* }
            -> $response_name:ident: $response:ty, then $then:ident
        ])*) => { [$([$(stringify!($field)),*].as_slice() as &[&str]),*].map(<[&str]>::len) };
    }
    let field_counts = ipc_proto::for_each_command!(field_counts);
    let cases = cases();
    for (row, fields) in Request::ALL.iter().zip(field_counts) {
        let of_command = || cases.iter().filter(|case| case.command() == Some(row));
        assert!(of_command().count() > 1, "{} needs two requests in cases.jsonl", row.name);
        // A request with several fields is cut at each of them.
        let cut = of_command().filter(|case| case.name.starts_with("cut/")).count();
        assert!(fields > 0 || cut == 0, "{} has no field to cut", row.name);
        assert!(fields < 2 || cut > 0, "{} needs requests named cut/… in cases.jsonl", row.name);
    }
}

#[test]
fn a_difference_is_one_line() {
    let case = cases().into_iter().find(|case| case.name == "ct1/mb0").unwrap();
    assert_eq!(case.expect, Some(ExpectedAnswer::HResult(HResult::BAD_ENCODING)));
    let difference = case.judge(Against::Expected, &ReceivedAnswer::Closed).unwrap_err();
    assert_eq!(
        difference.to_string(),
        "ct1/mb0: expected 0x80131384 DS_IPC_E_BAD_ENCODING (buffer_mb: the buffer has 0 MB), got the end of the connection"
    );
    let case_with = |name: &str| cases().into_iter().find(|case| case.name == name).unwrap();
    let difference = case_with("cut/CollectTracing2/8").judge(Against::Expected, &ReceivedAnswer::Closed);
    let fault = "(rundown: a field extends past the end (at byte 28))";
    assert!(difference.unwrap_err().to_string().contains(fault));
    assert!(case.is_deadly_for("net9") && !case.is_deadly_for("net10") && case.is_deadly());
    assert_eq!(case.seen("net9"), BTreeSet::from([Seen::Dies]));
    assert_eq!(case.judge(Against::Observed("net9"), &ReceivedAnswer::Closed), Ok(()));
    let garbage = case.judge(Against::Observed("net10"), &ReceivedAnswer::Garbage(vec![1; 30])).unwrap_err();
    assert!(garbage.to_string().contains("got 30 bytes that are not a message: 01 01"), "{garbage}");
    let unseen = case.judge(Against::Observed("net5"), &ReceivedAnswer::Silence).unwrap_err();
    assert_eq!(
        unseen.to_string(),
        "ct1/mb0: expected an answer that no test has recorded yet, got no answer in time"
    );
}

/// Only the code of a refusal is compared: the bytes after the code need not be a valid text.
#[test]
fn a_refusal_is_compared_by_its_code() {
    let case = cases().into_iter().find(|case| case.name == "ct1/mb0").unwrap();
    let refusal = b"DOTNET_IPC_V1\0\x1c\0\xff\xff\0\0\x84\x13\x13\x80\xff\xff\xff\xff";
    let answer = ReceivedAnswer::Message(refusal.to_vec());
    assert_eq!(case.judge(Against::Expected, &answer), Ok(()));
    assert_eq!(answer.to_string(), "0x80131384 DS_IPC_E_BAD_ENCODING");
}

#[test]
fn older_servers_refuse_by_the_code() {
    let named = |name: &str| cases().into_iter().find(|case| case.name == name).unwrap();
    let expect = |name: &str, version, flavour| named(name).for_server(version, flavour).expect;
    let refused = |hresult| Some(ExpectedAnswer::HResult(hresult));
    let unknown = refused(HResult::UNKNOWN_COMMAND);
    assert_eq!(expect("cut/CollectTracing6/4", 10, Flavour::CoreClr), unknown);
    assert_eq!(expect("empty/0408", 6, Flavour::CoreClr), unknown);
    assert_eq!(expect("empty/0302", 9, Flavour::NativeAot), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("dump1/type0", 9, Flavour::Mono), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("hook/empty", 9, Flavour::NativeAot), refused(HResult::NOT_SUPPORTED));
    assert_eq!(expect("hook/trunc", 9, Flavour::NativeAot), refused(HResult::BAD_ENCODING));
    assert_eq!(expect("hdr/bad-magic", 3, Flavour::CoreClr), named("hdr/bad-magic").expect);
}

/// The kit stops the sessions that a case starts.
#[test]
fn sessions_are_stopped() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let case = cases().into_iter().find(|case| case.name == "ct2/ok").unwrap();
    let answer = send(&case, None, connect(runtime.path())).unwrap();
    assert_eq!(case.judge(Against::Expected, &answer), Ok(()));
    let received: Vec<_> = runtime.requests().iter().map(|request| request.code().unwrap().0).collect();
    assert_eq!(received, [0x0203, 0x0201]);
}

/// A socket that only reads and writes.
#[cfg(unix)]
struct Plain(UnixStream);

#[cfg(unix)]
impl Read for Plain {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
#[cfg(unix)]
impl Write for Plain {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A transport with a thread cannot close one direction.
#[cfg(unix)]
#[test]
fn a_case_that_was_not_tried_has_not_passed() {
    let runtime = FakeRuntime::start(Profile { careful: true, ..Profile::net11() }).unwrap();
    let connect = || {
        let plain = Plain(UnixStream::connect(runtime.path())?);
        Ok(Stream::blocking(plain)?.with_deadline(soon(Duration::from_secs(60))))
    };
    let needs_socket = |case: &Case| case.half_close || case.descriptor;
    let special = || cases().into_iter().filter(|case| case.state == State::Running && needs_socket(case));
    for case in [special().find(|case| case.half_close), special().find(|case| case.descriptor)] {
        assert_eq!(run(&case.unwrap(), connect), Ok(Outcome::NotTried(NotTried::HalfClose)));
    }
    let others = cases().into_iter().filter(|case| !needs_socket(case)).take(20);
    let report = run_all(special().chain(others), connect);
    assert_eq!((report.passed.len(), report.not_tried.len()), (20, special().count()), "{report}");
    let (text, end) = (
        report.to_string(),
        "68 not tried: the transport cannot close one direction, or sends no descriptor",
    );
    assert!(text.ends_with(&format!("20 passed, 0 differences; {end}")), "{text}");
}

/// A server that has three commands has no differences, whatever code it refuses the others with.
#[test]
fn a_small_server_has_no_differences() {
    let has = [ResumeRuntime::CODE, GetProcessInfo2::CODE, StopTracing::CODE];
    let refused_with = |refusal: HResult| {
        let runtime = FakeRuntime::start(Profile { careful: true, ..Profile::net11() }).unwrap();
        for row in Request::ALL.iter().filter(|row| !has.contains(&row.code)) {
            runtime.on(row.code, move |_| Response::Refuse(refusal));
        }
        let running = || cases().into_iter().filter(|case| case.state == State::Running);
        let all = run_all(running(), connect(runtime.path()));
        assert!(!all.differences.is_empty(), "{all}");
        let report = run_all(running().map(|case| case.for_commands(&has)), connect(runtime.path()));
        assert!(report.differences.is_empty(), "{report}");
    };
    refused_with(HResult::UNKNOWN_COMMAND);
    refused_with(HResult::NOT_SUPPORTED);
    // A server that accepts what it does not have is wrong.
    let runtime = FakeRuntime::start(Profile { careful: true, ..Profile::net11() }).unwrap();
    let case = cases().into_iter().find(|case| case.name == "empty/0408").unwrap().for_commands(&has);
    let difference = run(&case, connect(runtime.path())).unwrap_err().to_string();
    assert!(difference.starts_with("empty/0408: expected a refusal, got OK"), "{difference}");
}

/// The README describes the names of the cases by their text before the first slash.
#[test]
fn the_readme_lists_the_groups_of_cases() {
    let readme = include_str!("../README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let listed: BTreeSet<&str> =
        rows.flat_map(|names| names.split('`')).filter_map(|name| name.strip_suffix('/')).collect();
    let cases = cases();
    let groups = cases.iter().filter_map(|case| case.name.split('/').next());
    assert_eq!(listed, groups.collect());
}

/// The kit does not wait for each answer of a server that has stopped answering.
#[test]
fn a_silent_server_costs_two_deadlines() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(ipc_testkit::Fault::Silent);
    let connections = Cell::new(0);
    let report = run_all(cases(), || {
        connections.set(connections.get() + 1);
        Stream::connect(runtime.path(), soon(Duration::from_millis(50)))
    });
    assert_eq!((report.differences.len(), connections.get()), (1, 2), "{report}");
    assert!(report.not_tried.iter().all(|(_, why)| *why == NotTried::Silent), "{report}");
    assert_eq!(report.not_tried.len(), cases().len() - 1);
}

/// The kit waits for a silent server until the deadline.
#[test]
fn the_wait_for_a_silent_server_has_a_limit() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(ipc_testkit::Fault::Silent);
    let case = cases().remove(0);
    let connect = || Stream::connect(runtime.path(), soon(Duration::from_millis(50)));
    assert_eq!(send(&case, None, connect).unwrap(), ReceivedAnswer::Silence);
    let difference = run(&case, connect).unwrap_err();
    assert!(difference.to_string().ends_with("got no answer in time"), "{difference}");
}
