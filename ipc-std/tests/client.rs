//! The client with a fake runtime, and with peers that violate the protocol.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

mod peer;

use core::time::Duration;
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::sync::{Arc, Mutex};

use ipc_proto::types::{ClientData, EventLevel, Provider, Status};
use ipc_proto::{
    AttachProfiler, Code, Command, Direction, GenerateCoreDump3, GetProcessInfo3, HResult, ResumeRuntime,
    StopTracing, types,
};
use ipc_std::{Client, Connection, Environment, Error, ErrorKind, Observer, Phase, Timeouts, TraceConfig};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};

use peer::{HANGS, Listener, Place, connect, pair};

const PROVIDERS: [Provider<'_>; 1] = [Provider {
    keywords: u64::MAX,
    level: EventLevel::INFORMATIONAL,
    name: ipc_proto::Text::new("Lab-Workload"),
    arguments: ipc_proto::Text::NULL,
}];

/// The timeout of operations that are expected to time out.
const SHORT: Duration = Duration::from_millis(400);

fn with_short_timeout(runtime: &FakeRuntime) -> Client {
    Client::at(runtime.path()).with_timeouts(Timeouts { call: SHORT, ..Timeouts::default() })
}

fn codes(runtime: &FakeRuntime) -> Vec<u16> {
    runtime.requests().iter().filter_map(|request| Some(request.code()?.0)).collect()
}

/// Returns the [`Error`] inside the I/O error of a trace's `read`.
fn inner_error(e: std::io::Error) -> Error {
    *e.into_inner().expect("an inner error").downcast().expect("an ipc_std::Error")
}

#[test]
fn process_info_retries_older_commands_on_new_connections() {
    for (profile, expected, rid) in [
        (Profile::net10(), &[0x0408][..], Some("linux-x64")),
        (Profile { version: 7, ..Profile::net8() }, &[0x0408, 0x0404], None),
        (Profile { version: 5, ..Profile::net8() }, &[0x0408, 0x0404, 0x0400], None),
    ] {
        let runtime = FakeRuntime::start(profile).unwrap();
        let info = Client::at(runtime.path()).process_info().unwrap();
        assert_eq!(codes(&runtime), expected);
        assert_eq!(info.command_line, "/app/Fake --of-a runtime");
        assert_eq!(info.portable_rid.to_utf8().as_deref(), rid);
        assert_eq!(info.clr_product_version.to_utf8().is_some(), expected.len() < 3);
    }
}

#[test]
fn an_error_names_core_3_1() {
    let runtime = FakeRuntime::start(Profile::net31()).unwrap();
    let error = Client::at(runtime.path()).process_info().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.hresult(), Some(HResult::UNKNOWN_COMMAND));
    assert!(error.to_string().contains("older than .NET 5"), "{error}");
}

#[test]
fn one_deadline_limits_all_steps() {
    let runtime = FakeRuntime::start(Profile { version: 5, ..Profile::net8() }).unwrap();
    runtime.set_fault(Fault::Delay(SHORT * 4));
    let timeouts = Timeouts { call: SHORT * 6, ..Timeouts::default() };
    let error = Client::at(runtime.path()).with_timeouts(timeouts).process_info().unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(codes(&runtime), [0x0408, 0x0404], "the second step times out and no third follows");
}

#[test]
fn a_timeout_names_its_phase() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for (fault, expected, bytes) in [
        (Fault::Silent, Phase::AwaitingAnswer, 0..=0),
        (Fault::Drip(SHORT / 10), Phase::ReceivingHeader, 1..=19),
    ] {
        runtime.set_fault(fault);
        match with_short_timeout(&runtime).process_info().unwrap_err() {
            Error::Timeout { phase, sent, received, .. } => {
                assert_eq!((phase, sent), (expected, 20));
                assert!(bytes.contains(&received), "{received}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
#[cfg(unix)]
fn connect_waits_for_a_full_backlog() {
    let place = Place::new();
    let path = place.path("full");
    let listener = Listener::bind(&path);
    rustix::net::listen(&listener.listener, 0).unwrap();
    let _pending = connect(&path);
    let client = Client::at(&path);
    let short = client.clone().with_timeouts(Timeouts { call: SHORT, ..Timeouts::default() });
    assert!(matches!(short.connect().unwrap_err(), Error::Timeout { phase: Phase::Connecting, .. }));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| client.connect());
        listener.accept();
        late.join().unwrap().unwrap();
    });
}

#[test]
fn a_peer_that_closes_early_is_gone() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for n in [0, 1, 19, 20, 21] {
        runtime.set_fault(Fault::CloseAfter(n));
        match Client::at(runtime.path()).process_info().unwrap_err() {
            Error::Gone { received, sent: 20, .. } => assert_eq!(received, n as u64),
            other => panic!("{n}: {other}"),
        }
    }
}

#[test]
fn garbage_is_a_protocol_error() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for garbage in [
        &b"DOTNET_IPC_V2\0\x18\0\xff\0\0\0\0\0\0\0"[..],
        b"DOTNET_IPC_V1\0\0\0\xff\0\0\0",
        b"DOTNET_IPC_V1\0\x18\0\x04\x01\0\0\0\0\0\0",
        b"DOTNET_IPC_V1\0\x18\0\xff\x01\0\0\0\0\0\0",
        b"DOTNET_IPC_V1\0\x16\0\xff\0\0\0\0\0",
        b"\0",
    ] {
        runtime.set_fault(Fault::Garbage(garbage.to_vec()));
        let error = Client::at(runtime.path()).resume().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert_eq!(error.command(), Some(ResumeRuntime::CODE));
    }
}

#[test]
fn a_response_longer_than_the_buffer_is_received() {
    let command_line = "x".repeat(30_000);
    let runtime =
        FakeRuntime::start(Profile { command_line: command_line.clone(), ..Profile::net10() }).unwrap();
    assert_eq!(Client::at(runtime.path()).process_info().unwrap().command_line, command_line.as_str());
    assert_eq!(runtime.requests().len(), 1);
}

#[test]
fn a_runtime_refuses_a_response_longer_than_a_message() {
    let runtime =
        FakeRuntime::start(Profile { command_line: "x".repeat(40_000), ..Profile::net10() }).unwrap();
    let error = Client::at(runtime.path()).process_info().unwrap_err();
    assert_eq!(error.hresult(), Some(HResult::FAIL));
}

#[test]
fn the_environment_is_received_completely() {
    // More bytes than a message can have.
    let long = format!("LONG={}", "é".repeat(50_000));
    let entries = ["A=1=2", "=C:=C:\\x", "odd", "A=3", "EMPTY=", "", "=", long.as_str()];
    let environment = entries.map(str::to_owned).to_vec();
    let runtime = FakeRuntime::start(Profile { environment, ..Profile::net10() }).unwrap();
    let timeouts = Timeouts { call: HANGS, ..Timeouts::default() };
    let client = Client::at(runtime.path()).with_timeouts(timeouts);
    let environment = client.environment().unwrap();
    assert_eq!(environment, Environment::from_entries(entries));
    assert_eq!(environment.get("A").unwrap(), "1=2");
    assert_eq!(environment.get("=C:").unwrap(), "C:\\x");
    assert_eq!(environment.get("EMPTY").unwrap(), "");
    assert_eq!(environment.get("LONG").unwrap(), long[5..]);
    let names: Vec<String> = environment.variables().map(|variable| variable.name.to_string()).collect();
    assert_eq!(names, ["A", "=C:", "A", "EMPTY", "LONG"]);

    let error = client.connect().unwrap().environment(1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    runtime.set_fault(Fault::CloseAfter(200));
    match client.environment().unwrap_err() {
        Error::Gone { phase: Phase::ReceivingContinuation, received: 200, .. } => {}
        other => panic!("{other}"),
    }
}

#[test]
fn an_empty_environment_is_valid() {
    let runtime = FakeRuntime::start(Profile { environment: Vec::new(), ..Profile::net10() }).unwrap();
    assert_eq!(Client::at(runtime.path()).environment().unwrap(), Environment::default());
}

#[test]
fn a_refusal_keeps_code_and_message() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let dump = GenerateCoreDump3 {
        dump_name: "/tmp/x".into(),
        dump_type: types::DumpType::FULL,
        flags: types::DumpFlags::NONE,
    };
    let error = Client::at(runtime.path()).connect().unwrap().call(&dump).unwrap_err();
    assert!(matches!(&error, Error::Refused { hresult: HResult::FAIL, message: Some(_), .. }));
    assert!(error.to_string().contains("a fake runtime"), "{error}");
}

#[test]
fn an_observer_sees_every_message() {
    let runtime = FakeRuntime::start(Profile { version: 7, ..Profile::net8() }).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let observer =
        Observer::new(move |o| sink.lock().unwrap().push((o.connection, o.direction, o.bytes.to_vec())));
    let client = Client::at(runtime.path()).with_observer(observer);
    client.process_info().unwrap();
    let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    session.stop();
    std::io::copy(&mut session, &mut std::io::sink()).unwrap();
    runtime.set_fault(Fault::CloseAfter(7));
    client.resume().unwrap_err();

    let seen = seen.lock().unwrap();
    let sent: Vec<&[u8]> = seen
        .iter()
        .filter(|(_, direction, _)| *direction == Direction::ToRuntime)
        .map(|(.., b)| &b[..])
        .collect();
    let requests = runtime.requests();
    assert_eq!(sent, requests.iter().map(|request| &request.bytes[..]).collect::<Vec<_>>());
    let lengths: Vec<usize> = seen
        .iter()
        .filter(|(_, direction, _)| *direction == Direction::ToClient)
        .map(|(.., b)| b.len())
        .collect();
    assert_eq!(lengths[..1], [24]);
    assert_eq!(lengths[2..], [28, 28, 7]);
    let connections: Vec<u64> = seen.iter().step_by(2).map(|(connection, ..)| *connection).collect();
    assert!(
        connections.windows(2).all(|pair| pair[0] < pair[1]),
        "each command has its own connection: {connections:?}"
    );
}

#[test]
fn a_trace_has_exactly_the_sent_bytes() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let mut stream: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    stream.extend([6, 1]);
    let sent = stream.clone();
    runtime.on(Code(0x0203), move |_| Response::Trace(sent.clone()));
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let mut received = vec![0; 10];
    session.read_exact(&mut received).unwrap();
    assert!(!session.is_complete());
    session.stop();
    session.stop();
    session.read_to_end(&mut received).unwrap();
    assert!(received == stream);
    assert!(session.is_complete());
    assert!(session.stop_error().is_none());
    assert_eq!(session.received(), stream.len() as u64);
    assert_eq!(session.read(&mut [0; 8]).unwrap(), 0);
    session.stop();
    assert_eq!(codes(&runtime), [0x0203, 0x0201], "one stop request is sent");
}

#[test]
fn a_trace_is_stopped_from_another_thread() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let stopper = session.stopper();
    let mut trace = Vec::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| session.read_to_end(&mut trace));
        stopper.stop();
        reader.join().unwrap().unwrap();
    });
    assert!(trace.starts_with(b"Nettrace"));
    assert!(session.is_complete());
}

#[test]
fn the_rundown_selects_the_command() {
    for (keyword, profile, expected) in [
        (ipc_proto::plan::DEFAULT_RUNDOWN, Profile::net10(), &[0x0203][..]),
        (0, Profile::net10(), &[0x0203]),
        (1, Profile::net10(), &[0x0205]),
        (1, Profile::net8(), &[0x0205, 0x0203]),
    ] {
        let runtime = FakeRuntime::start(profile).unwrap();
        let config = TraceConfig { rundown_keyword: keyword, ..TraceConfig::new(&PROVIDERS) };
        let session = Client::at(runtime.path()).start_tracing(&config).unwrap();
        assert_eq!(codes(&runtime), expected);
        assert_eq!(session.command().0, expected[expected.len() - 1]);
        let payload = runtime.requests().pop().unwrap().bytes.split_off(20);
        if session.command().0 == 0x0203 {
            assert_eq!(payload[8], u8::from(keyword != 0), "the request has the rundown flag");
        }
    }
}

#[test]
fn a_suspended_runtime_sends_no_event_before_its_resume() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path()).with_timeouts(Timeouts { silence: SHORT, ..Timeouts::default() });
    let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let error = session.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), IoErrorKind::TimedOut);
    assert!(matches!(inner_error(error), Error::Timeout { phase: Phase::ReadingTrace, received: 28, .. }));
    client.resume().unwrap();
    assert!(!runtime.is_suspended());
    let mut magic = [0; 8];
    session.read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"Nettrace");
}

#[test]
fn a_suspended_runtime_attaches_no_profiler() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path());
    let without_path = AttachProfiler {
        attach_timeout: 0,
        profiler_guid: ipc_proto::Guid::NIL,
        profiler_path: "".into(),
        client_data: ClientData(&[]),
    };
    // The client refuses to send this request. A connection sends it without a check.
    let attach = || client.connect().unwrap().call(&without_path).unwrap_err().hresult();
    assert_eq!(attach(), Some(HResult::NOT_YET_AVAILABLE));
    let error = client.attach_profiler(Duration::ZERO, ipc_proto::Guid::NIL, "", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    client.resume().unwrap();
    assert_eq!(attach(), Some(HResult::FAIL));
    // A startup profiler must be set before the resume.
    let startup = client.set_startup_profiler(ipc_proto::Guid::NIL, "/p.so").unwrap_err();
    assert_eq!(startup.hresult(), Some(HResult::INVALID_ARG));
}

#[test]
fn a_stalled_trace_ends_at_the_stop_deadline() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::StallStream(100));
    let client = Client::at(runtime.path()).with_timeouts(Timeouts { stop: SHORT, ..Timeouts::default() });
    let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let mut first = [0; 100];
    session.read_exact(&mut first).unwrap();
    session.stop();
    match inner_error(session.read(&mut first).unwrap_err()) {
        Error::Timeout { phase: Phase::StoppingTrace { drained: 0 }, sent: 28, received: 0, .. } => {}
        other => panic!("{other}"),
    }
    assert!(!session.is_complete());
}

#[test]
fn a_stop_wakes_a_blocked_reader() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::StallStream(0));
    let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
    let client = Client::at(runtime.path()).with_timeouts(timeouts);
    let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let stopper = session.stopper();
    std::thread::scope(|scope| {
        // Without the stop, the read waits for one day.
        let reader = scope.spawn(|| session.read(&mut [0; 8]).unwrap_err());
        stopper.stop();
        let error = inner_error(reader.join().unwrap());
        assert!(matches!(error, Error::Timeout { phase: Phase::StoppingTrace { .. }, .. }), "{error}");
    });
}

#[test]
fn an_endless_stream_ends_at_the_stop_deadline() {
    let place = Place::new();
    let path = place.path("flood");
    let listener = Listener::bind(&path);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = listener.accept();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0").unwrap();
            // Write until the client closes the connection.
            while stream.write_all(&[0; 4096]).is_ok() {}
        });
        let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
        let client = Client::at(&path).with_timeouts(timeouts);
        let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
        session.stop();
        let error = inner_error(std::io::copy(&mut session, &mut std::io::sink()).unwrap_err());
        assert!(
            matches!(error, Error::Timeout { phase: Phase::StoppingTrace { .. }, sent: 1.., .. }),
            "{error}"
        );
        drop(session);
    });
}

#[test]
fn a_fake_runtime_ends_the_session_of_a_lost_client() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path());
    let id = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap().session_id();
    // The session ends because its client was dropped, and not by a request. The response arrives only after that end.
    client.stop_tracing(id).unwrap();
    let id = client.start_tracing(&TraceConfig::new(&PROVIDERS)).map(|session| session.session_id()).unwrap();
    runtime.on(StopTracing::CODE, |_| Response::Refuse(HResult::FAIL));
    assert_eq!(client.stop_tracing(id).unwrap_err().hresult(), Some(HResult::FAIL));
}

#[test]
fn a_handler_that_panics_closes_its_connection() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(ResumeRuntime::CODE, |_| std::panic::resume_unwind(Box::new("a failed assertion")));
    assert_eq!(Client::at(runtime.path()).resume().unwrap_err().kind(), ErrorKind::Gone);
    let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(runtime)));
    assert!(dropped.is_err(), "dropping the runtime repeats the panic");
}

#[test]
fn a_truncated_trace_is_not_complete() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::CloseAfter(28 + 1000));
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
    let mut trace = Vec::new();
    session.read_to_end(&mut trace).unwrap();
    assert_eq!(trace.len(), 1000);
    assert!(!session.is_complete());
}

#[test]
fn a_missing_listener_is_not_found() {
    let place = Place::new();
    let kind = |path: &std::path::Path| Client::at(path).resume().unwrap_err().kind();
    assert_eq!(kind(&place.path("absent")), ErrorKind::NotFound);
    // Linux can connect through a short alias to a path that is too long for a socket address, but a file name has its
    // own limit.
    let too_long = if cfg!(target_os = "linux") { ErrorKind::NotFound } else { ErrorKind::Io };
    let length = if cfg!(windows) { 300 } else { 200 };
    assert_eq!(kind(&place.path(&"x".repeat(length))), too_long);
    for process_id in [u32::MAX, std::process::id()] {
        let error = Client::for_process(process_id).unwrap_err();
        assert!(matches!(&error, Error::Undiscovered(why) if why.process_id() == process_id), "{error}");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
#[cfg(unix)]
fn a_stale_socket_has_no_listener() {
    let place = Place::new();
    let path = place.path("dotnet-diagnostic-1-1-socket");
    let kind = |path: &std::path::Path| Client::at(path).resume().unwrap_err().kind();
    drop(Listener::bind(&path));
    assert_eq!(kind(&path), ErrorKind::NoListener);
    assert_eq!(kind(&path.join("below")), ErrorKind::NotFound);
}

#[test]
#[cfg(windows)]
fn an_impostor_receives_no_request() {
    let other = Profile { process_id: 4_000_000_000, ..Profile::net10() };
    let squatter = FakeRuntime::start_in(&ipc_std::discover::directory(), other).unwrap();
    let error = Client::for_process(4_000_000_000).unwrap().resume().unwrap_err();
    assert!(matches!(&error, Error::Impostor { .. }), "{error}");
    assert!(squatter.requests().iter().all(|request| request.bytes.is_empty()));
}

#[test]
#[cfg(windows)]
#[ignore = "needs real Windows: Wine has no list of pipes"]
fn pipes_are_listed() {
    let profile = Profile { process_id: std::process::id(), ..Profile::net10() };
    let runtime = FakeRuntime::start_in(&ipc_std::discover::directory(), profile).unwrap();
    let list = ipc_std::discover::list(&ipc_std::discover::ScanConfig::default());
    assert!(list.iter().flatten().any(|found| found.path == runtime.path()), "{list:?}");
}

#[test]
fn requests_that_crash_runtimes_are_not_sent() {
    let runtime = FakeRuntime::start(Profile::net9()).unwrap();
    let client = Client::at(runtime.path());
    let many = vec![PROVIDERS[0]; 1001];
    for (config, value) in [
        (TraceConfig::new(ipc_proto::plan::Providers::NONE), "providers"),
        (TraceConfig::new(&many), "providers"),
        (TraceConfig { buffer_mb: 0, ..TraceConfig::new(&PROVIDERS) }, "buffer_mb"),
    ] {
        let error = client.start_tracing(&config).unwrap_err();
        assert!(matches!(&error, Error::Invalid { place, .. } if place.to_string() == value), "{error}");
    }
    // The client may open a connection, but sends no bytes.
    let requests = runtime.requests();
    assert!(requests.iter().all(|request| request.bytes.is_empty()), "{requests:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn another_socket_of_a_process_id_proves_nothing() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let perf_map = ipc_proto::EnablePerfMap { perf_map_type: types::PerfMapType::ALL };
    let perf_map = ipc_proto::Request::EnablePerfMap(perf_map);
    // No variable in the environment of this process suspends a runtime.
    assert_eq!(Client::at(runtime.path()).hazard(&perf_map).unwrap(), None);
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join(format!("dotnet-diagnostic-{}-1-socket", std::process::id()));
    std::os::unix::fs::symlink(runtime.path(), &other).unwrap();
    let hazard = Client::at(&other).hazard(&perf_map).unwrap();
    assert_eq!(hazard, Some(ipc_proto::plan::Hazard::PerfMapWhileSuspended));
}

#[test]
fn a_connection_works_over_any_stream() {
    let runtime = FakeRuntime::without_listener(Profile::net10()).unwrap();
    assert_eq!(runtime.path().as_os_str(), "");
    let (ours, theirs) = pair();
    std::thread::scope(|scope| {
        scope.spawn(|| runtime.serve(theirs));
        let mut connection = Connection::new(ours);
        assert_eq!(connection.call(&GetProcessInfo3 {}).unwrap().version, 1);
    });
}

#[test]
fn a_refusal_before_the_request_is_read() {
    let (ours, mut theirs) = pair();
    theirs.write_all(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x84\x13\x13\x80").unwrap();
    drop(theirs);
    let error = Connection::new(ours).call(&StopTracing { session_id: 1 }).unwrap_err();
    assert_eq!(error.hresult(), Some(HResult::BAD_ENCODING), "{error}");
}

#[test]
fn a_fake_runtime_starts_and_ends_like_a_real_one() {
    let place = Place::new();
    let runtime = FakeRuntime::start_in(&place.directory(), Profile::net10()).unwrap();
    let path = runtime.path().to_owned();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let name: ipc_proto::SocketName = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(name.process_id, std::process::id());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = FakeRuntime::start_in(&place.directory(), Profile::net10()).unwrap_err();
        assert_eq!(again.kind(), IoErrorKind::AddrInUse);
    }

    // Dropping the runtime returns immediately, although one client is connected, one waits for a response and one
    // reads a trace.
    runtime.set_fault(Fault::Silent);
    let client = Client::at(&path);
    let _idle = connect(&path);
    std::thread::scope(|scope| {
        let pending = scope.spawn(|| client.resume());
        while runtime.requests().is_empty() {
            std::thread::yield_now();
        }
        runtime.set_fault(None);
        let mut session = client.start_tracing(&TraceConfig::new(&PROVIDERS)).unwrap();
        drop(runtime);
        assert_eq!(pending.join().unwrap().unwrap_err().kind(), ErrorKind::Gone);
        session.read_to_end(&mut Vec::new()).unwrap();
        assert!(!session.is_complete());
    });
    assert_eq!(client.resume().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_fake_runtime_answers_by_script() {
    let runtime = FakeRuntime::start(Profile::net31()).unwrap();
    runtime.on(ResumeRuntime::CODE, |_| Response::ok(&Status::OK));
    let client = Client::at(runtime.path());
    client.resume().unwrap();
    let mut times = 0;
    runtime.on(ResumeRuntime::CODE, move |_| {
        times += 1;
        Response::Refuse(HResult(times))
    });
    for expected in 1..3 {
        assert_eq!(client.resume().unwrap_err().hresult(), Some(HResult(expected)));
    }
    // The OK response of the specification, which has no payload, is also accepted.
    runtime.on(ResumeRuntime::CODE, |_| Response::Ok(Vec::new()));
    client.resume().unwrap();
    connect(runtime.path()).write_all(b"no message, but longer than a header").unwrap();
    let log = || runtime.requests().last().map(|request| request.bytes.clone()).unwrap();
    while !log().starts_with(b"no message") {
        std::thread::yield_now();
    }
    assert_eq!(runtime.requests().last().unwrap().code(), None);
}
