//! The life of sessions.
use core::task::Poll;
use core::time::Duration;
use std::io::{self, ErrorKind, Read};

use ipc_proto::types::{Format, Provider, SessionId};
use ipc_proto::{CollectTracing2, Session, SessionEnd};
use ipc_std::{Client, Connection, Stream, Timeouts, TraceConfig, TraceReader};
use ipc_testkit::{FakeRuntime, Fault, Profile};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions, Version};

use crate::peer::{HANGS, connect, is_ready, pair};
use crate::recordings::*;
use crate::stream::*;

/// As a real runtime: events in the order of time, each with its stack, and no sequence points.
#[test]
fn format_0_gives_net_perf() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    for stackwalk in [true, false] {
        let config = TraceConfig { format: Format::NET_PERF, stackwalk, ..TraceConfig::new(&APP) };
        let session = Client::at(runtime.path()).start_tracing(&config).unwrap();
        let stopper = session.stopper();
        let mut trace = TraceReader::new(session);
        let (mut events, mut last) = (0, 0);
        while let Some(event) = trace.next_event().unwrap() {
            let header = event.header();
            assert!(header.timestamp >= last, "out of order");
            last = header.timestamp;
            let metadata = event.metadata().unwrap();
            if metadata.provider == "App" {
                let stack = (header.thread * 16).to_le_bytes();
                assert_eq!(header.stack, if stackwalk { &stack[..] } else { &[] });
                events += 1;
            }
            if events == 12 {
                stopper.stop();
            }
        }
        assert_eq!(
            (trace.summary().trace.unwrap().version, trace.summary().end),
            (Version::V3, Some(End::Complete))
        );
        assert!(events >= 12);
    }
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
    // The timestamps begin with the resume, not with the request.
    let whole = parse(&stream);
    assert_eq!(whole.events[0].timestamp, whole.sync.1);
    late.stop();
    late.read_to_end(&mut stream).unwrap();
    assert_eq!(parse(&stream).end, End::Complete);
    assert!(late.is_complete());
}

/// Since .NET 11, the header is sent before the resume, and a stop before it completes the stream.
#[test]
fn a_session_of_net11_begins_while_it_is_suspended() {
    let runtime = replaying(Profile { suspended: true, ..Profile::net11() }, &alternating(Version::V4));
    let client = Client::at(runtime.path());
    let [mut early, mut late] = [(); 2].map(|()| client.start_tracing(&TraceConfig::new(&APP)).unwrap());
    let mut streams = [&mut early, &mut late].map(|session| {
        let mut header = vec![0; 102];
        session.read_exact(&mut header).unwrap();
        assert_eq!(parse(&header).process_id, Some(runtime.process_id()));
        header
    });
    early.stop();
    early.read_to_end(&mut streams[0]).unwrap();
    assert!(early.is_complete());
    let whole = parse(&streams[0]);
    assert_eq!((whole.end, whole.events.len()), (End::Complete, 1));

    client.resume().unwrap();
    while parse(&streams[1]).events.is_empty() {
        read_some(&mut late, &mut streams[1]);
    }
    late.stop();
    late.read_to_end(&mut streams[1]).unwrap();
    let whole = parse(&streams[1]);
    assert_eq!(whole.end, End::Complete);
    assert!(!whole.events_of("App").is_empty() && whole.events[0].timestamp > whole.sync.1);

    // A suspended program has no methods for a rundown.
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net11() }).unwrap();
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&[all("*")])).unwrap();
    session.stop();
    let mut stream = Vec::new();
    session.read_to_end(&mut stream).unwrap();
    assert_eq!(parse(&stream).events.len(), 1);
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
    // The fault is after the first piece of the stream, so that one piece is complete and one is cut off.
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
    // Meanwhile, other sessions and commands work.
    let other_app = [all("Other-App")];
    let (other, _) = trace(&runtime, &TraceConfig::new(&other_app), rounds(2));
    assert_eq!(other.events.len(), 1);
    client.process_info().unwrap();
    // After its Stop, the slow session receives everything that was sent.
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
    // The same holds over a stream that is not a socket of the runtime.
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

/// The end mark of a trace precedes the end of its stream, which a session must see.
#[test]
fn a_session_is_over_after_its_last_event() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    for order in [EventOrder::Stream, EventOrder::BY_TIME] {
        let session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&APP)).unwrap();
        let stopper = session.stopper();
        let assembler = EventAssembler::new(order, ReadOptions::default());
        let mut reader = TraceReader::with_assembler(session, assembler);
        while reader.next_event().unwrap().is_some() {
            stopper.stop();
        }
        assert_eq!(reader.summary().end, Some(End::Complete));
        let session = reader.get_ref();
        assert_eq!((session.end(), session.is_complete()), (Some(SessionEnd::Complete), true));
        assert!(session.stop_error().is_none());
    }
}

#[test]
fn a_nonblocking_session_is_over_after_its_last_event() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&APP)).unwrap();
    session.set_nonblocking(true).unwrap();
    let mut reader = TraceReader::new(session);
    loop {
        match reader.poll_next_event().unwrap() {
            Poll::Ready(Some(_)) => reader.get_ref().stop(),
            Poll::Ready(None) => break,
            Poll::Pending => {
                // The answer to the Stop can be due at a time of the session's clock.
                is_ready(reader.get_ref(), Duration::from_millis(20));
            }
        }
    }
    assert_eq!(
        (reader.summary().end, reader.get_ref().end()),
        (Some(End::Complete), Some(SessionEnd::Complete))
    );
}

/// A stream that reports what it reads to a session, as a program with a transport of its own does.
struct Reported {
    stream: Stream,
    session: Session,
}

impl Read for Reported {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(buf)?;
        self.session.stream_advance(&buf[..n]);
        Ok(n)
    }
}

#[test]
fn a_session_of_the_core_is_over_after_its_last_event() {
    let runtime = replaying(Profile::net10(), &alternating(Version::V4));
    let mut connection = Connection::new(connect(runtime.path()));
    let start = CollectTracing2 {
        buffer_mb: 1,
        format: Format::NET_TRACE,
        rundown: false,
        providers: APP[..].into(),
    };
    let SessionId { session_id } = connection.call(&start).unwrap();
    let (stream, session) = (connection.into_stream(), Session::new(session_id));
    let mut reader = TraceReader::new(Reported { stream, session });
    assert!(reader.next_event().unwrap().is_some());
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| Client::at(runtime.path()).stop_tracing(session_id));
        while reader.next_event().unwrap().is_some() {}
        stopping.join().unwrap().unwrap();
    });
    assert_eq!(
        (reader.summary().end, reader.get_ref().session.end()),
        (Some(End::Complete), Some(SessionEnd::Complete))
    );
}
