//! A fake runtime that connects to simple monitors; its responses are compared with those of real runtimes.
#![cfg(feature = "io")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../../tests/peer/mod.rs"]
mod peer;

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::path::Path;
use std::thread;

use ipc_proto::types::{ClientData, EventLevel, Format, Provider};
use ipc_proto::wire::decode;
use ipc_proto::{
    Advertise, AttachProfiler, Code, CollectTracing2, Command, GetProcessInfo3, Guid, HResult, Message,
    Parsed, ResumeRuntime, StartupProfiler, StopTracing, Text,
};
use ipc_std::{Client, Connection, Error, ErrorKind, Stream};
use ipc_testkit::{FakePort, FakeRuntime, Fault, Profile};
use serde_json::Value;

use peer::{Listener, Place, pair};

const PROVIDERS: [Provider<'_>; 1] = [Provider {
    keywords: u64::MAX,
    level: EventLevel::INFORMATIONAL,
    name: Text::new("Lab-Workload"),
    arguments: Text::NULL,
}];
const STARTUP: StartupProfiler<'_> =
    StartupProfiler { profiler_guid: Guid::NIL, profiler_path: Text::new("/p.so") };
const ATTACH: AttachProfiler<'_> = AttachProfiler {
    attach_timeout: 1000,
    profiler_guid: Guid::NIL,
    profiler_path: Text::new("/p.so"),
    client_data: ClientData(&[]),
};

fn trace() -> CollectTracing2<'static> {
    CollectTracing2 { buffer_mb: 1, format: Format::NET_TRACE, rundown: true, providers: (&PROVIDERS).into() }
}

/// A monitor that accepts one connection after another.
struct Monitor(Listener);

impl Monitor {
    fn new(path: &Path) -> Self {
        Self(Listener::bind(path))
    }

    fn port(&self, suspended: bool) -> FakePort {
        FakePort { path: self.0.path.clone(), suspended }
    }

    /// Accepts the next connection and receives its frame.
    #[track_caller]
    fn accept(&self) -> ([u8; Advertise::LEN], Stream) {
        let mut stream = self.0.accept();
        let mut frame = [0; Advertise::LEN];
        stream.read_exact(&mut frame).unwrap();
        (frame, stream)
    }

    fn is_called(&self) -> bool {
        self.0.is_called()
    }

    /// Sends a command on the next connection.
    #[track_caller]
    fn call<C: Command>(&self, command: &C) -> Result<(), Error> {
        Connection::new(self.accept().1).call(command).map(|_| ())
    }

    #[track_caller]
    fn refusal<C: Command>(&self, command: &C) -> Option<HResult> {
        self.call(command).err().and_then(|error| error.hresult())
    }
}

fn monitor(place: &Place, name: &str) -> Monitor {
    Monitor::new(&place.path(name))
}

fn connecting(ports: Vec<FakePort>) -> FakeRuntime {
    FakeRuntime::start(Profile { ports, ..Profile::net10() }).unwrap()
}

/// Reads the remaining bytes.
fn rest(mut stream: Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn runtime_sends_its_frame() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let profile = Profile {
        runtime_cookie: Guid(*b"a runtime's name"),
        process_id: 4242,
        ports: vec![monitor.port(false)],
        ..Profile::net8()
    };
    let _runtime = FakeRuntime::without_listener(profile).unwrap();
    for _ in 0..2 {
        assert_eq!(&monitor.accept().0, b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0");
    }
}

#[test]
fn connection_carries_one_command() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let runtime = connecting(vec![monitor.port(true)]);
    let (_, mut stream) = monitor.accept();
    // The runtime has one connection to a monitor at a time.
    assert!(!monitor.is_called());
    let request = ipc_proto::encode_to_vec(GetProcessInfo3::CODE, &GetProcessInfo3 {}).unwrap();
    stream.write_all(&request.repeat(2)).unwrap();
    let answer = rest_or_reset(stream);
    let Ok(Parsed::Complete { value, used }) = Message::parse(&answer) else { panic!("{answer:?}") };
    assert_eq!((value.code, used), (Code::OK, answer.len()));
    monitor.call(&ResumeRuntime {}).unwrap();
    monitor.call(&GetProcessInfo3 {}).unwrap();
    assert!(!runtime.is_suspended());
    assert_eq!(runtime.requests().len(), 3);
}

/// Reads the remaining bytes of a peer that does not read everything.
fn rest_or_reset(mut stream: Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(e) = stream.read_to_end(&mut bytes) {
        assert_eq!(e.kind(), IoErrorKind::ConnectionReset);
    }
    bytes
}

#[test]
fn runtime_connects_again_during_a_trace() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let _runtime = connecting(vec![monitor.port(true)]);
    let mut tracing = Connection::new(monitor.accept().1);
    let session = tracing.call(&trace()).unwrap();
    monitor.call(&ResumeRuntime {}).unwrap();
    let mut stream = tracing.into_stream();
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"Nettrace");
    let (_, stopping) = monitor.accept();
    thread::scope(|scope| {
        let stopped =
            scope.spawn(|| Connection::new(stopping).call(&StopTracing { session_id: session.session_id }));
        assert!(rest(stream).len() > 1000);
        assert_eq!(stopped.join().unwrap().unwrap().session_id, session.session_id);
    });
    monitor.accept();
}

#[test]
fn suspended_runtime_streams_nothing() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let _runtime = connecting(vec![monitor.port(true)]);
    let mut tracing = Connection::new(monitor.accept().1);
    let session_id = tracing.call(&trace()).unwrap().session_id;
    monitor.call(&StopTracing { session_id }).unwrap();
    assert!(rest(tracing.into_stream()).is_empty());
}

#[test]
fn runtime_connects_again_after_a_hang_up() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let runtime = connecting(vec![monitor.port(true)]);
    for _ in 0..3 {
        drop(monitor.accept());
    }
    // The monitor also hangs up in the middle of a command.
    monitor.accept().1.write_all(b"DOTNET_IPC_V1\0\x18").unwrap();
    monitor.call(&ResumeRuntime {}).unwrap();
    assert!(!runtime.is_suspended());
}

#[test]
fn monitor_can_start_late_and_restart() {
    let place = Place::new();
    let path = place.path("monitor");
    let runtime = connecting(vec![FakePort { path: path.clone(), suspended: true }]);
    for _ in 0..2 {
        let monitor = Monitor::new(&path);
        monitor.call(&GetProcessInfo3 {}).unwrap();
        let waiting = monitor.accept();
        #[cfg(unix)]
        fs::remove_file(&path).unwrap();
        drop((monitor, waiting));
    }
    // A stale socket remains.
    drop(Monitor::new(&path));
    #[cfg(unix)]
    fs::remove_file(&path).unwrap();
    Monitor::new(&path).call(&ResumeRuntime {}).unwrap();
    assert!(!runtime.is_suspended());
}

#[test]
fn resume_counts_for_its_own_port() {
    let place = Place::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| monitor(&place, name));
    let ports = vec![first.port(true), second.port(false), third.port(true)];
    let runtime = FakeRuntime::start(Profile { suspended: true, ports, ..Profile::net10() }).unwrap();
    let tool = Client::at(runtime.path());
    let mut tracing = Connection::new(first.accept().1);
    let session_id = tracing.call(&trace()).unwrap().session_id;
    for _ in 0..2 {
        first.call(&ResumeRuntime {}).unwrap();
        second.call(&ResumeRuntime {}).unwrap();
        tool.resume().unwrap();
        assert!(runtime.is_suspended());
        second.call(&STARTUP).unwrap();
        assert_eq!(second.refusal(&ATTACH), Some(HResult::NOT_YET_AVAILABLE));
    }
    third.call(&ResumeRuntime {}).unwrap();
    assert!(!runtime.is_suspended());
    assert_eq!(first.refusal(&STARTUP), Some(HResult::INVALID_ARG));
    assert_eq!(first.refusal(&ATTACH), Some(HResult::MOD_NOT_FOUND));
    let mut stream = tracing.into_stream();
    stream.read_exact(&mut [0; 8]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| third.call(&StopTracing { session_id }).unwrap());
        assert!(rest(stream).len() > 1000);
    });
    // Another resume has no effect, and is not an error.
    tool.resume().unwrap();
    third.call(&ResumeRuntime {}).unwrap();
}

#[test]
fn default_port_has_its_own_resume() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let profile = Profile { suspended: true, ports: vec![monitor.port(true)], ..Profile::net10() };
    let listening = FakeRuntime::start(profile.clone()).unwrap();
    monitor.call(&ResumeRuntime {}).unwrap();
    assert!(listening.is_suspended());
    Client::at(listening.path()).resume().unwrap();
    assert!(!listening.is_suspended());
    drop(listening);

    let fed = FakeRuntime::without_listener(profile).unwrap();
    // The previous runtime may have connected again before it ended, so the first calls can fail.
    while monitor.call(&ResumeRuntime {}).is_err() {}
    assert!(fed.is_suspended());
    let (client, runtime) = pair();
    thread::scope(|scope| {
        scope.spawn(|| fed.serve(runtime));
        Connection::new(client).call(&ResumeRuntime {}).unwrap();
    });
    assert!(!fed.is_suspended());
}

#[test]
fn ports_without_a_listener_do_not_block_others() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let dead = place.path("dead");
    drop(Listener::bind(&dead));
    let [dead, absent] = [dead, place.path("absent")].map(|path| FakePort { path, suspended: false });
    let runtime = connecting(vec![dead, monitor.port(true), absent]);
    Client::at(runtime.path()).process_info().unwrap();
    monitor.call(&ResumeRuntime {}).unwrap();
    Client::at(runtime.path()).process_info().unwrap();
    assert!(!runtime.is_suspended());
}

#[test]
fn silent_monitor_does_not_block_others() {
    let place = Place::new();
    let [silent, monitor] = ["silent", "monitor"].map(|name| monitor(&place, name));
    let runtime = connecting(vec![silent.port(false), monitor.port(true)]);
    let _silent = silent.accept();
    let mut half = silent_half(&monitor);
    Client::at(runtime.path()).process_info().unwrap();
    half.write_all(b"\0\0").unwrap();
    assert_eq!(rest(half).len(), 24);
    assert!(!runtime.is_suspended());
    assert!(!silent.is_called());
}

/// Sends a `ResumeRuntime` without its last two bytes.
fn silent_half(monitor: &Monitor) -> Stream {
    let (_, mut stream) = monitor.accept();
    stream.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\x01").unwrap();
    stream
}

#[test]
fn faults_apply_to_ports() {
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let runtime = connecting(vec![monitor.port(true)]);
    runtime.set_fault(Fault::CloseAfter(7));
    assert_eq!(monitor.call(&GetProcessInfo3 {}).unwrap_err().kind(), ErrorKind::Gone);
    runtime.set_fault(Fault::Drip(Duration::from_millis(1)));
    monitor.call(&ResumeRuntime {}).unwrap();
    runtime.set_fault(Fault::Silent);
    let (_, mut stream) = monitor.accept();
    stream.write_all(&ipc_proto::encode_to_vec(ResumeRuntime::CODE, &ResumeRuntime {}).unwrap()).unwrap();
    while runtime.requests().len() < 3 {
        thread::yield_now();
    }
    // A command without an answer keeps the port busy.
    assert!(!monitor.is_called());
    runtime.set_fault(None);
    drop(stream);
    monitor.call(&ResumeRuntime {}).unwrap();
}

#[test]
fn dropped_runtime_closes_its_connections() {
    let place = Place::new();
    let [monitor, another] = ["monitor", "another"].map(|name| monitor(&place, name));
    let absent = FakePort { path: place.path("absent"), suspended: true };
    let runtime = connecting(vec![monitor.port(true), another.port(true), absent]);
    let mut tracing = Connection::new(monitor.accept().1);
    tracing.call(&trace()).unwrap();
    let half = silent_half(&another);
    let (_, waiting) = monitor.accept();
    drop(runtime);
    for stream in [tracing.into_stream(), half, waiting] {
        assert!(rest_or_reset(stream).is_empty());
    }
    assert!(!monitor.is_called());
}

#[test]
fn too_long_path_is_an_error() {
    let ports = vec![FakePort { path: "x".repeat(300).into(), suspended: false }];
    FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap_err();
}

#[test]
fn many_runtimes_connect_to_one_monitor() {
    /// The number of connections. A process can have 1,024 descriptors, so the two descriptors of each connection fit.
    const MANY: usize = 100;
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let start = |_| {
        let profile = Profile { ports: vec![monitor.port(true)], ..Profile::net9_aot() };
        FakeRuntime::without_listener(profile).unwrap()
    };
    let runtimes: Vec<_> = (0..MANY).map(start).collect();
    let cookie = |runtime: &FakeRuntime| runtime.profile().runtime_cookie.0;
    let cookies: BTreeSet<_> = runtimes.iter().map(cookie).collect();
    assert_eq!(cookies.len(), MANY);
    let mut resumed = BTreeSet::new();
    while resumed.len() < MANY {
        let (frame, stream) = monitor.accept();
        let Ok(Parsed::Complete { value, .. }) = Advertise::parse(&frame) else { panic!("{frame:?}") };
        Connection::new(stream).call(&ResumeRuntime {}).unwrap();
        resumed.insert(value.runtime_cookie.0);
    }
    assert_eq!(resumed, cookies);
    assert!(!runtimes.iter().any(FakeRuntime::is_suspended));
}

fn unhex(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Returns the code of a response, and the result of a refusal.
fn outcome(answer: &[u8]) -> (Code, Option<HResult>) {
    let Ok(Parsed::Complete { value, .. }) = Message::parse(answer) else { panic!("{answer:?}") };
    (value.code, (value.code == Code::ERROR).then(|| decode(value.payload).unwrap()))
}

/// Sends recorded requests to a fake runtime, in the same order. A monitor sent them to a real, suspended runtime.
fn replay(file: &str, profile: Profile, differs: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/conversations").join(file);
    let place = Place::new();
    let monitor = monitor(&place, "monitor");
    let runtime = FakeRuntime::start(Profile { ports: vec![monitor.port(true)], ..profile }).unwrap();
    // `next` is the last connection. `kept` has the connections that stay open.
    let (mut next, mut kept) = (None, Vec::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let what = line["what"].as_str().unwrap();
        if what == "advertise" {
            // The recorded monitor closed a connection on which it sent no request.
            drop(next.take());
            let (frame, stream) = monitor.accept();
            assert_eq!(frame.len(), unhex(&line["bytes"]).len());
            next = Some(stream);
            continue;
        }
        let (request, recorded) = (unhex(&line["request"]), unhex(&line["response"]));
        let mut stream = next.take().expect("an advertise frame goes before each request");
        stream.write_all(&request).unwrap();
        let mut answer = vec![0; Message::HEADER_LEN];
        stream.read_exact(&mut answer).unwrap();
        let size = usize::from(u16::from_le_bytes([answer[14], answer[15]]));
        answer.resize(size, 0);
        stream.read_exact(&mut answer[Message::HEADER_LEN..]).unwrap();
        if differs.contains(&what) {
            assert_ne!(outcome(&answer), outcome(&recorded), "{file}: {what} is known to differ");
        } else {
            assert_eq!(outcome(&answer), outcome(&recorded), "{file}: {what}");
        }
        kept.push(stream);
    }
    assert!(!runtime.is_suspended(), "{file} ends with a resume");
    assert!(kept.len() > 10 && next.is_some());
}

#[test]
fn responses_are_those_of_real_runtimes() {
    replay("reverse-connect-net10.jsonl", Profile::net10(), &[]);
    replay("reverse-connect-net10-linux.jsonl", Profile::net10(), &[]);
    // The recorded .NET 8 read past the end of a payload, and accepted the bytes there. The fake runtime refuses them.
    replay("reverse-connect-net8-linux.jsonl", Profile::net8(), &["startup-prof-trunc"]);
    replay("reverse-connect-net9-aot-linux.jsonl", Profile::net9_aot(), &[]);
    replay("reverse-connect-net10-aot-linux.jsonl", Profile::net10_aot(), &[]);
    replay("reverse-connect-net11-aot-linux.jsonl", Profile::net11_aot(), &[]);
    replay("reverse-connect-net11-linux.jsonl", Profile::net11(), &[]);
}
