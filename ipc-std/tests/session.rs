//! The end of tracing sessions under all circumstances.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by unwrapping"
)]
mod peer;

use core::task::Poll;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider, SessionId, Status};
use ipc_proto::{Code, Command, HResult, Message, Parsed, Request, SessionEnd, StopTracing, encode_to_vec};
use ipc_std::{
    Client, Error, Monitor, MonitorEvent, Phase, Stream, Timeouts, TraceConfig, TraceReader, TraceSession,
};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};

use peer::{HANGS, Listener, Place, is_ready};

const SHORT: Duration = Duration::from_millis(300);

/// Returns a stream that is larger than the buffers of a connection, with an end mark.
fn stream() -> Vec<u8> {
    let mut stream: Vec<u8> = b"Nettrace".iter().copied().cycle().take(3_000_000).collect();
    stream.extend([6, 1]);
    stream
}

fn try_start(client: &Client) -> Result<TraceSession, Error> {
    let (name, arguments) = ("Lab".into(), "".into());
    let provider = Provider { keywords: 1, level: EventLevel::INFORMATIONAL, name, arguments };
    client.start_tracing(&TraceConfig::new(&[provider]))
}

fn start(client: &Client) -> TraceSession {
    try_start(client).unwrap()
}

fn inside(e: io::Error) -> Error {
    e.downcast().unwrap()
}

/// A model of a real runtime: one thread serves one command at a time, and answers a Stop after it has written the rest
/// of the stream.
struct Runtime {
    _place: Place,
    path: PathBuf,
}

impl Runtime {
    fn serve(mut commands: impl FnMut(Stream, u16) -> bool + Send + 'static) -> Self {
        let place = Place::new();
        let path = place.path("runtime");
        let listener = Listener::bind(&path);
        thread::spawn(move || {
            loop {
                let mut stream = listener.accept();
                let mut bytes = vec![0; 20];
                if stream.read_exact(&mut bytes).is_err() {
                    continue;
                }
                let (Parsed::Partial { needed } | Parsed::Complete { used: needed, .. }) =
                    Message::parse(&bytes).unwrap();
                bytes.resize(needed, 0);
                stream.read_exact(&mut bytes[20..]).unwrap();
                let code = u16::from_be_bytes([bytes[16], bytes[17]]);
                if !commands(stream, code) {
                    return;
                }
            }
        });
        Self { _place: place, path }
    }

    /// Starts a runtime with one session, whose stream is `bytes`. The second half is sent after the Stop.
    fn tracing(bytes: Vec<u8>, answer: Vec<u8>) -> Self {
        let half = bytes.len() / 2;
        let mut session = None;
        Self::serve(move |mut stream, code| {
            if code == StopTracing::CODE.0 {
                let mut session: Stream = Option::take(&mut session).unwrap();
                // Blocks until the client reads.
                let _ = session.write_all(&bytes[half..]);
                drop(session);
                let _ = stream.write_all(&answer);
            } else {
                stream.write_all(&ok()).unwrap();
                let _ = stream.write_all(&bytes[..half.min(1000)]);
                session = Some(stream);
            }
            true
        })
    }
}

fn ok() -> Vec<u8> {
    encode_to_vec(Code::OK, &SessionId { session_id: 7 }).unwrap()
}

fn client(path: &Path) -> Client {
    Client::at(path).with_timeouts(Timeouts { stop: HANGS, ..Timeouts::default() })
}

#[test]
fn one_thread_stops_a_session_and_reads_more_than_buffers_hold() {
    let bytes = stream();
    let runtime = Runtime::tracing(bytes.clone(), ok());
    let mut session = start(&client(&runtime.path));
    assert!(!session.is_stopping() && session.end().is_none());
    let mut copy = Vec::new();
    assert_eq!(session.finish(&mut copy).unwrap(), SessionEnd::Complete);
    assert!(session.is_stopping());
    assert_eq!(copy, [&bytes[..1000], &bytes[bytes.len() / 2..]].concat());
    assert!(session.stop_error().is_none(), "{:?}", session.stop_error());
    // The session has ended.
    assert_eq!(session.finish(&mut copy).unwrap(), SessionEnd::Complete);
    assert_eq!(session.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn dropping_a_session_stops_it_and_reads_the_rest() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut session = None;
    let runtime = Runtime::serve(move |mut stream, code| {
        if code == StopTracing::CODE.0 {
            let mut session: Stream = Option::take(&mut session).unwrap();
            // Fails if the client has closed the connection.
            sender.send(session.write_all(&stream_of(2_000_000))).unwrap();
            drop(session);
            stream.write_all(&ok()).is_ok()
        } else {
            stream.write_all(&ok()).unwrap();
            session = Some(stream);
            true
        }
    });
    drop(start(&client(&runtime.path)));
    receiver.recv_timeout(HANGS).unwrap().unwrap();
}

fn stream_of(len: usize) -> Vec<u8> {
    vec![0; len]
}

#[test]
fn a_writer_that_fails_does_not_block_the_runtime() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(buf.len()).ok_or(ErrorKind::StorageFull)?;
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let runtime = Runtime::tracing(stream(), ok());
    let mut session = start(&client(&runtime.path));
    assert_eq!(session.finish(&mut Full(500_000)).unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(session.is_complete(), "the stream was read to its end: {:?}", session.end());
}

#[test]
fn an_event_loop_can_drive_a_session() {
    let bytes = stream();
    let runtime = Runtime::tracing(bytes.clone(), ok());
    let mut session = start(&client(&runtime.path));
    session.set_nonblocking(true).unwrap();
    let (mut read, mut buf) = (Vec::new(), vec![0; 5000]);
    loop {
        match session.poll_read(&mut buf).unwrap() {
            Poll::Ready(0) => break,
            Poll::Ready(n) => read.extend_from_slice(&buf[..n]),
            Poll::Pending => {
                let until = session.due().unwrap_or_else(|| Instant::now() + HANGS);
                is_ready(&session, until.saturating_duration_since(Instant::now()));
            }
        }
        if read.len() == 1000 {
            session.stop();
        }
    }
    assert!(session.is_complete() && session.due().is_none());
    assert_eq!(read, [&bytes[..1000], &bytes[bytes.len() / 2..]].concat());
}

#[test]
fn cancelling_wakes_a_waiting_reader() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let mut session = start(&Client::at(runtime.path()));
    let stopper = session.stopper();
    let e = thread::scope(|scope| {
        let reader = scope.spawn(|| session.read(&mut [0; 8]).unwrap_err());
        stopper.cancel();
        reader.join().unwrap()
    });
    assert_eq!(e.kind(), ErrorKind::ConnectionAborted);
    assert!(matches!(inside(e), Error::Cancelled { .. }));
    assert_eq!(session.end(), Some(SessionEnd::Abandoned));
    session.stop();
    assert!(session.read(&mut [0; 8]).is_err(), "cancelling is final");
    drop(session);
    assert_eq!(runtime.requests().len(), 1, "no Stop was sent");
}

#[test]
fn the_error_of_a_missing_answer_describes_the_received_bytes() {
    for (answer, expected) in [
        (Vec::new(), "went away while waiting for the response"),
        (ok()[..13].to_vec(), "13 received"),
        (b"HTTP/1.1 400 Bad Request".to_vec(), "violates the protocol"),
        (encode_to_vec(Code::ERROR, &HResult::FAIL).unwrap(), "refuses StopTracing"),
    ] {
        let runtime = Runtime::tracing(stream(), answer);
        let mut session = start(&client(&runtime.path));
        assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete, "the stream decides");
        let error = session.stop_error().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_refusal_after_the_end_of_the_stream_is_no_error_of_reading() {
    // A race, so many attempts: the client can look at the stream just before the runtime ends it and refuses the Stop.
    for _ in 0..200 {
        let refusal = encode_to_vec(Code::ERROR, &HResult::FAIL).unwrap();
        let runtime = Runtime::tracing(b"Nettrace\x06\x01".to_vec(), refusal);
        let mut session = start(&client(&runtime.path));
        session.finish(&mut io::sink()).unwrap();
        assert!(session.stop_error().is_some());
    }
}

#[test]
fn the_end_of_the_runtime_cuts_the_session_off() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let mut session = start(&Client::at(runtime.path()));
    session.read_exact(&mut [0; 8]).unwrap();
    drop(runtime);
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::CutOff);
}

#[test]
#[cfg(unix)] // pipes have no other names
fn a_stop_fails_after_the_time_of_a_call_if_the_socket_is_removed() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let timeouts = Timeouts { call: SHORT, stop: HANGS, ..Timeouts::default() };
    let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    let away = runtime.path().with_extension("away");
    std::fs::rename(runtime.path(), &away).unwrap();
    let e = session.finish(&mut io::sink()).unwrap_err();
    assert!(matches!(inside(e), Error::NoSuchPath { .. }));
    assert!(session.end().is_none() && !session.is_stopping() && session.due().is_none());
    std::fs::rename(&away, runtime.path()).unwrap();
    assert_eq!(
        session.finish(&mut io::sink()).unwrap(),
        SessionEnd::CutOff,
        "the second Stop succeeds, and the stream has no bytes"
    );
    assert!(session.stop_error().is_none());

    let session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    std::fs::rename(runtime.path(), &away).unwrap();
    session.stop();
    drop(session); // does not wait indefinitely
    std::fs::rename(&away, runtime.path()).unwrap();
}

#[test]
#[cfg(unix)] // pipes have no other names
fn a_removed_socket_is_the_error_even_at_the_deadline_of_the_stop() {
    for call in [SHORT, Timeouts::default().call] {
        let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
        let timeouts = Timeouts { call, stop: SHORT, ..Timeouts::default() };
        let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
        std::fs::remove_file(runtime.path()).unwrap();
        let e = session.finish(&mut io::sink()).unwrap_err();
        assert!(matches!(inside(e), Error::NoSuchPath { .. }));
    }
}

#[test]
fn a_refused_stop_is_an_error_immediately() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(StopTracing::CODE, |_| Response::Refuse(HResult::NOT_SUPPORTED));
    let mut session = start(&client(runtime.path()));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert_eq!(e.hresult(), Some(HResult::NOT_SUPPORTED), "{e}");
    assert!(session.end().is_none() && !session.is_stopping(), "the session continues");
    session.read_exact(&mut [0; 8]).unwrap();
    drop(session); // closes it
    assert_eq!(runtime.requests().len(), 2, "dropping sends no second Stop");
}

/// The descriptor of a session without work is not readable.
#[test]
fn a_waiting_session_does_not_spin() {
    let quiet = |session: &mut TraceSession| {
        session.set_nonblocking(true).unwrap();
        let begin = Instant::now();
        // Operations in progress end first.
        while session.poll_read(&mut [0; 4096]).unwrap().is_ready() || is_ready(session, Duration::ZERO) {
            assert!(begin.elapsed() < HANGS, "the session spins");
        }
        assert!(session.poll_read(&mut [0; 8]).unwrap().is_pending());
        assert!(session.end().is_none());
    };
    // The runtime sends nothing.
    let suspended = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let mut idle = start(&client(suspended.path()));
    quiet(&mut idle);
    // The runtime receives the Stop, and does not answer.
    suspended.set_fault(Fault::Silent);
    idle.stop();
    while suspended.requests().len() < 2 {
        let _ = idle.poll_read(&mut [0; 8]).unwrap();
    }
    quiet(&mut idle);
    idle.abandon();
    // The stream has ended, and the answer is outstanding.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let silent = Runtime::serve(move |mut stream, code| {
        if code == StopTracing::CODE.0 {
            let _ = receiver.recv();
            return false;
        }
        stream.write_all(&ok()).is_ok()
    });
    let mut ended = start(&client(&silent.path));
    ended.stop();
    quiet(&mut ended);
    drop(sender);
    assert_eq!(ended.finish(&mut io::sink()).unwrap(), SessionEnd::CutOff);
}

/// A reader that reads late has the whole time of the Stop.
#[test]
fn the_time_of_a_stop_begins_with_the_next_read() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let timeouts = Timeouts { stop: Duration::from_secs(2), ..Timeouts::default() };
    let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    session.stop();
    assert_eq!(session.due(), None, "the reader has not received the request");
    thread::sleep(Duration::from_millis(2100)); // the case under test: the reader is busy
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
}

#[test]
fn a_timeout_shows_whether_the_runtime_hangs() {
    let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
    let hangs = FakeRuntime::start(Profile::net10()).unwrap();
    hangs.set_fault(Fault::StallStream(0));
    let mut session = start(&Client::at(hangs.path()).with_timeouts(timeouts));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert!(matches!(e, Error::Timeout { phase: Phase::StoppingTrace { drained: 0 }, .. }), "{e}");
    assert!(matches!(session.end(), Some(SessionEnd::TimedOut(_))));

    let busy = Runtime::serve(|mut stream, code| {
        stream.write_all(&ok()).unwrap();
        if code != StopTracing::CODE.0 {
            thread::spawn(move || while stream.write_all(&[0; 4096]).is_ok() {});
        }
        true
    });
    let mut session = start(&Client::at(&busy.path).with_timeouts(timeouts));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert!(matches!(e, Error::Timeout { phase: Phase::StoppingTrace { drained: 1.. }, .. }), "{e}");
}

#[test]
fn two_sessions_of_one_thread_do_not_block_each_other() {
    // The runtime serves one command at a time: the second Stop waits for the first, which waits for its reader.
    let mut sessions = Vec::new();
    let runtime = Runtime::serve(move |mut stream, code| {
        if code == StopTracing::CODE.0 {
            let mut session: Stream = sessions.remove(0);
            let _ = session.write_all(&[&stream_of(1_000_000)[..], &[6, 1]].concat());
            drop(session);
            stream.write_all(&ok()).is_ok()
        } else {
            stream.write_all(&ok()).unwrap();
            sessions.push(stream);
            true
        }
    });
    let client = client(&runtime.path);
    let (mut first, mut second) = (start(&client), start(&client));
    first.stop();
    second.stop();
    let mut buf = vec![0; 1 << 16];
    while first.end().is_none() || second.end().is_none() {
        for session in [&mut second, &mut first] {
            let _ = session.poll_read(&mut buf).unwrap();
        }
    }
    assert!(first.is_complete() && second.is_complete());
}

#[test]
fn the_65th_session_fails() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path());
    let sessions: Vec<TraceSession> = (0..64).map(|_| start(&client)).collect();
    let e = try_start(&client).unwrap_err();
    assert!(matches!(e, Error::Refused { .. }), "{e}");
    assert_eq!(e.hresult(), Some(HResult::FAIL));
    assert!(e.to_string().contains("64"), "{e}");
    drop(sessions);
    drop(start(&client));
}

#[test]
fn a_session_at_a_port_can_be_stopped() {
    let place = Place::new();
    let monitor = Monitor::bind(place.path("port")).unwrap();
    let ports = vec![ipc_testkit::FakePort { path: monitor.path().unwrap().to_owned(), suspended: false }];
    let runtime = FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap();
    let bytes = stream();
    runtime.on(Code(0x0203), move |_| Response::Trace(bytes.clone()));
    let Some(MonitorEvent::Arrived(arrived)) = monitor.next_event(HANGS).unwrap() else {
        panic!("no runtime arrived")
    };
    let mut session = start(&monitor.client(arrived.runtime_cookie));
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
    assert_eq!(session.received(), 3_000_002);
    assert!(session.stop_error().is_none());
}

#[test]
fn the_id_in_the_answer_is_not_compared() {
    // Runtimes answer any id with OK.
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(StopTracing::CODE, |request| {
        assert!(matches!(request, Request::StopTracing(_)));
        Response::ok(&Status::OK)
    });
    let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
    let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    assert_eq!(session.finish(&mut io::sink()).unwrap_err().kind(), ErrorKind::TimedOut);
    let error = session.stop_error().unwrap().to_string();
    assert!(error.contains("violates the protocol"), "four bytes are not a session id: {error}");
}

/// A reader that returns `WouldBlock` before each piece of a trace.
struct Trickle<'a> {
    rest: &'a [u8],
    piece: usize,
    blocks: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.blocks = !self.blocks;
        if self.blocks {
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = self.piece.min(buf.len());
        self.rest.take(n as u64).read(buf).inspect(|n| self.rest = &self.rest[*n..])
    }
}

#[test]
fn nothing_is_lost_when_a_reader_would_block() {
    let trace = include_bytes!("../../testdata/nettrace/gen-net10-lab-small.nettrace");
    let all = |mut reader: TraceReader<Trickle<'_>>| {
        let (mut events, mut pending) = (Vec::new(), 0);
        loop {
            match reader.poll_next_event().unwrap() {
                Poll::Ready(Some(event)) => events.push((event.timestamp(), event.stack().count())),
                Poll::Ready(None) => break,
                Poll::Pending => pending += 1,
            }
        }
        assert!(pending > 0 && matches!(reader.poll_next_event(), Ok(Poll::Ready(None))));
        assert_eq!(reader.summary().end, Some(nettrace::End::Complete));
        events
    };
    let trickle = |piece| Trickle { rest: trace, piece, blocks: false };
    let whole = all(TraceReader::new(trickle(trace.len())));
    assert_eq!(whole.len(), 142);
    let mut in_order = whole.clone();
    in_order.sort();
    for piece in [1, 7, 1000] {
        assert_eq!(all(TraceReader::new(trickle(piece))), whole);
        let mut sorted = all(TraceReader::with_assembler(
            trickle(piece),
            nettrace::EventAssembler::new(nettrace::EventOrder::BY_TIME, nettrace::ReadOptions::default()),
        ));
        assert!(sorted.is_sorted_by_key(|(timestamp, _)| *timestamp));
        sorted.sort();
        assert_eq!(sorted, in_order);
    }
}

/// A peer that sends the end mark and never closes the stream: the deadlines of the session hold, and all events and
/// the end of the trace are known.
#[test]
fn a_stream_that_is_not_closed_after_its_end_mark() {
    let trace = include_bytes!("../../testdata/nettrace/gen-net10-lab-small.nettrace");
    for stops in [false, true] {
        let mut open = Vec::new();
        let runtime = Runtime::serve(move |mut stream, _| {
            stream.write_all(&ok()).unwrap();
            let _ = stream.write_all(if open.is_empty() { trace } else { &[] });
            open.push(stream);
            true
        });
        let timeouts = Timeouts { stop: SHORT, silence: SHORT, ..Timeouts::default() };
        let session = start(&Client::at(&runtime.path).with_timeouts(timeouts));
        if stops {
            session.stop();
        }
        let mut reader = TraceReader::new(session);
        for _ in 0..142 {
            assert!(reader.next_event().unwrap().is_some());
        }
        let error = reader.next_event().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let Error::Timeout { phase, .. } = inside(error) else { panic!("another error") };
        assert_eq!(matches!(phase, Phase::StoppingTrace { .. }), stops, "{phase:?}");
        assert_eq!(matches!(phase, Phase::ReadingTrace), !stops, "{phase:?}");
        assert_eq!(reader.summary().end, Some(nettrace::End::Complete));
        let end = reader.get_ref().end();
        assert!(if stops { matches!(end, Some(SessionEnd::TimedOut(_))) } else { end.is_none() }, "{end:?}");
        reader.into_inner().abandon();
    }
}

fn start_meters(client: &Client, interval: &str) -> TraceSession {
    let arguments = format!("SessionId=SHARED;RefreshInterval={interval}");
    let provider = Provider {
        keywords: 2,
        level: EventLevel::INFORMATIONAL,
        name: "System.Diagnostics.Metrics".into(),
        arguments: (&*arguments).into(),
    };
    client.start_tracing(&TraceConfig::new(&[provider])).unwrap()
}

fn received_stop(runtime: &FakeRuntime) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(StopTracing::CODE))
}

/// A runtime that receives a Stop shortly before its first collection of meters never answers again.
#[test]
fn a_stop_is_sent_after_the_first_collection_of_meters() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/counters/net10-shared.nettrace");
    let recording = std::fs::read(recording).unwrap();
    for code in [0x0203, 0x0204] {
        let recording = recording.clone();
        runtime.on(Code(code), move |_| Response::Replay(recording.clone()));
    }
    // The collections of this runtime are those of the recording; the client expects the first one immediately.
    let mut session = start_meters(&Client::at(runtime.path()), "0.1");
    session.stop();
    let collected: Vec<u8> = "CollectionStop".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (mut stream, mut buf, mut stopped_after) = (Vec::new(), vec![0; 4096], None);
    loop {
        let n = session.read(&mut buf).unwrap();
        stream.extend_from_slice(&buf[..n]);
        if stopped_after.is_none() && received_stop(&runtime) {
            stopped_after = Some(stream.len());
        }
        if n == 0 {
            break;
        }
    }
    let stopped_after = stopped_after.unwrap();
    let has = |bytes: &[u8]| bytes.windows(collected.len()).any(|window| window == collected);
    assert!(
        has(&stream[..stopped_after]),
        "the Stop was sent after {stopped_after} bytes of {}",
        stream.len()
    );
    assert!(session.is_complete());
}

/// A program that does not collect its meters is stopped all the same, also by a session that is dropped.
#[test]
fn a_stop_waits_for_a_collection_within_a_bound() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let session = start_meters(&Client::at(runtime.path()), "0.1");
    let begin = Instant::now();
    drop(session);
    assert!(received_stop(&runtime) && begin.elapsed() < HANGS);
}

#[test]
fn a_runtime_that_is_silent_after_the_stop_is_given_up() {
    let mut connections = Vec::new();
    let runtime = Runtime::serve(move |mut stream, code| {
        if code != StopTracing::CODE.0 {
            stream.write_all(&ok()).unwrap();
        }
        connections.push(stream);
        true
    });
    let timeouts = Timeouts { stop_silence: SHORT, ..Timeouts::default() };
    let mut session = start(&Client::at(&runtime.path).with_timeouts(timeouts));
    session.stop();
    let error = inside(io::copy(&mut session, &mut io::sink()).unwrap_err());
    assert!(matches!(error, Error::Timeout { phase: Phase::StoppingTrace { .. }, .. }), "{error:?}");
}
