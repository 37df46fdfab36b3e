//! The life of sessions.
use core::time::Duration;
use std::io::{ErrorKind, Read};

use ipc_proto::CollectTracing2;
use ipc_proto::nettrace::{End, Version};
use ipc_proto::types::{Format, Provider};
use ipc_std::fake::{FakeRuntime, Fault, Profile};
use ipc_std::{Client, Connection, Timeouts, TraceConfig};

use crate::peer::{HANGS, connect, pair};
use crate::recordings::*;
use crate::stream::*;

#[test]
fn format_0_gives_v4() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let start =
        CollectTracing2 { buffer_mb: 1, format: Format::NET_PERF, rundown: false, providers: APP[..].into() };
    let mut stream = connect(runtime.path());
    Connection::new(&mut stream).call(&start).unwrap();
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"Nettrace");
}

#[test]
fn a_session_stopped_while_suspended_has_no_bytes() {
    let runtime = replaying(Profile { suspended: true, ..Profile::net10() }, &alternating(Version::V4));
    let client = Client::at(runtime.path());
    let mut early = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut late = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    early.stop();
    let mut stream = Vec::new();
    early.read_to_end(&mut stream).unwrap();
    assert_eq!(stream.len(), 0);

    client.resume().unwrap();
    while parse(&stream).events.is_empty() {
        read_some(&mut late, &mut stream);
    }
    // Time begins with the resume, not with the request.
    let whole = parse(&stream);
    assert_eq!(whole.events[0].timestamp, whole.sync.1);
    late.stop();
    late.read_to_end(&mut stream).unwrap();
    assert_eq!(parse(&stream).end, End::Complete);
    assert!(late.is_complete());
}

#[test]
fn sessions_are_independent() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    let other = [Provider { keywords: 1, ..all("Other-App") }];
    std::thread::scope(|scope| {
        let nothing = scope.spawn(|| trace(&runtime, &TraceConfig::new(&other), rounds(2)).0.events.len());
        let (whole, _) = trace(&runtime, &TraceConfig::new(&APP), rounds(2));
        assert!(whole.events_of("App").len() >= 10);
        assert_eq!(nothing.join().unwrap(), 1);
    });
}

#[test]
fn faults_affect_replays() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    let timeouts = Timeouts { silence: Duration::from_millis(300), ..Timeouts::default() };
    let client = Client::at(runtime.path()).with_timeouts(timeouts);
    // After the first piece, so that one piece is complete and one is cut off.
    let (_, stream) = trace(&runtime, &TraceConfig::new(&APP), rounds(1));
    let n = stream.len();
    runtime.set_fault(Fault::StallStream(n));
    let mut session = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut stalled = vec![0; n];
    session.read_exact(&mut stalled).unwrap();
    assert!(stalled.starts_with(b"Nettrace"));
    assert_eq!(session.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    session.abandon();
    runtime.set_fault(Fault::CloseAfter(28 + n));
    let mut session = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut cut = Vec::new();
    session.read_to_end(&mut cut).unwrap();
    assert_eq!(cut.len(), n);
    assert!(!session.is_complete());
    runtime.set_fault(Fault::Drip(Duration::from_micros(1)));
    trace(&runtime, &TraceConfig::new(&APP), |whole| !whole.events_of("App").is_empty());
}

#[test]
fn a_client_that_does_not_read_blocks_no_other() {
    let runtime = replaying(Profile::net10(), &flood());
    let client = Client::at(runtime.path()).with_timeouts(Timeouts { stop: HANGS, ..Timeouts::default() });
    let mut lazy = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    // Other sessions and commands work.
    let other_app = [all("Other-App")];
    let (other, _) = trace(&runtime, &TraceConfig::new(&other_app), rounds(2));
    assert_eq!(other.events.len(), 1);
    client.process_info().unwrap();
    // After the Stop it receives everything that was sent.
    let stopper = lazy.stopper();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(move || stopper.stop());
        let mut stream = Vec::new();
        lazy.read_to_end(&mut stream).unwrap();
        stopping.join().unwrap();
        let whole = parse(&stream);
        assert_eq!((whole.end, whole.lost), (End::Complete, 0));
        assert_eq!(whole.events_of("App").len() % FLOOD as usize, 0);
    });

    // The runtime exits although a session is blocked.
    let mut lazy = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    drop(runtime);
    let mut stream = Vec::new();
    lazy.read_to_end(&mut stream).unwrap();
    assert!(!lazy.is_complete() && parse(&stream).end != End::Complete);
}

#[test]
fn a_closed_connection_ends_the_session() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    let client = Client::at(runtime.path());
    let id = client.start_tracing(&TraceConfig::new(&APP)).unwrap().session_id();
    // The answer arrives after the end of the session.
    client.stop_tracing(id).unwrap();
    // Also over a stream that is not a socket of the runtime.
    let (ours, theirs) = pair();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| runtime.serve(theirs));
        let start = CollectTracing2 {
            buffer_mb: 1,
            format: Format::NET_TRACE,
            rundown: false,
            providers: APP[..].into(),
        };
        Connection::new(ours).call(&start).unwrap();
        serving.join().unwrap();
    });
}
