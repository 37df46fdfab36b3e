//! Tracing sessions that end, whatever happens to them.
#![cfg(feature = "fake")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test says what it expects by unwrapping it"
)]
mod peer;

use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider, SessionId, Status};
use ipc_proto::{Code, Command, HResult, Message, Parsed, Request, SessionEnd, StopTracing, encode_to_vec};
use ipc_std::fake::{FakeRuntime, Fault, Profile, Response};
use ipc_std::{Client, Error, Monitor, MonitorEvent, Phase, Stream, Timeouts, TraceConfig, TraceSession};

use peer::{Listener, Place, is_ready};

const SHORT: Duration = Duration::from_millis(300);
/// What takes this long hangs.
const HANGS: Duration = Duration::from_secs(20);

/// What the stream of a stopped session is to be: more than any connection holds, and an end mark.
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

/// A runtime that is written down here, as the real one is built: one thread for commands, one by one, which answers a
/// stop after it has written the rest of the stream.
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

    /// One with a single session, whose stream is this; what is behind the first half comes when it is stopped.
    fn tracing(bytes: Vec<u8>, answer: Vec<u8>) -> Self {
        let half = bytes.len() / 2;
        let mut session = None;
        Self::serve(move |mut stream, code| {
            if code == StopTracing::CODE.0 {
                let mut session: Stream = Option::take(&mut session).unwrap();
                // Waits for as long as nobody reads.
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
fn one_thread_stops_and_reads_more_than_fits() {
    let bytes = stream();
    let runtime = Runtime::tracing(bytes.clone(), ok());
    let mut session = start(&client(&runtime.path));
    assert!(!session.is_stopping() && session.end().is_none());
    let mut copy = Vec::new();
    assert_eq!(session.finish(&mut copy).unwrap(), SessionEnd::Complete);
    assert!(session.is_stopping());
    assert_eq!(copy, [&bytes[..1000], &bytes[bytes.len() / 2..]].concat());
    assert!(session.stop_error().is_none(), "{:?}", session.stop_error());
    // There is nothing more to do.
    assert_eq!(session.finish(&mut copy).unwrap(), SessionEnd::Complete);
    assert_eq!(session.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn dropping_it_stops_it_and_reads_the_rest() {
    let (tell, told) = std::sync::mpsc::channel();
    let mut session = None;
    let runtime = Runtime::serve(move |mut stream, code| {
        if code == StopTracing::CODE.0 {
            let mut session: Stream = Option::take(&mut session).unwrap();
            // Fails if the other side is closed.
            tell.send(session.write_all(&stream_of(2_000_000))).unwrap();
            drop(session);
            stream.write_all(&ok()).is_ok()
        } else {
            stream.write_all(&ok()).unwrap();
            session = Some(stream);
            true
        }
    });
    drop(start(&client(&runtime.path)));
    told.recv_timeout(HANGS).unwrap().unwrap();
}

fn stream_of(len: usize) -> Vec<u8> {
    vec![0; len]
}

#[test]
fn a_reader_that_fails_does_not_hold_up_the_runtime() {
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
    assert!(session.is_complete(), "all of it was read: {:?}", session.end());
}

#[test]
fn it_can_be_driven_by_somebody_elses_loop() {
    let bytes = stream();
    let runtime = Runtime::tracing(bytes.clone(), ok());
    let mut session = start(&client(&runtime.path));
    let (mut read, mut buf) = (Vec::new(), vec![0; 5000]);
    loop {
        match session.poll_read(&mut buf).unwrap() {
            Some(0) => break,
            Some(n) => read.extend_from_slice(&buf[..n]),
            None => {
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
fn cancelling_wakes_a_reader_that_waits() {
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
    assert!(session.read(&mut [0; 8]).is_err(), "it is final");
    drop(session);
    assert_eq!(runtime.requests().len(), 1, "nothing was asked");
}

#[test]
fn a_stop_that_is_not_answered_is_told_of_by_what_came() {
    for (answer, expected) in [
        (Vec::new(), "went away while waiting for an answer"),
        (ok()[..13].to_vec(), "13 received"),
        (b"HTTP/1.1 400 Bad Request".to_vec(), "breaks the protocol"),
        (encode_to_vec(Code::ERROR, &HResult::FAIL).unwrap(), "refuses StopTracing"),
    ] {
        let runtime = Runtime::tracing(stream(), answer);
        let mut session = start(&client(&runtime.path));
        assert_eq!(
            session.finish(&mut io::sink()).unwrap(),
            SessionEnd::Complete,
            "what counts is the stream"
        );
        let error = session.stop_error().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_runtime_that_is_gone_cuts_it_off() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let mut session = start(&Client::at(runtime.path()));
    session.read_exact(&mut [0; 8]).unwrap();
    drop(runtime);
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::CutOff);
}

#[test]
#[cfg(unix)] // pipes have no other names
fn one_whose_socket_is_taken_away_is_given_up_in_the_time_of_a_call() {
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
        "asked again, it has sent nothing"
    );
    assert!(session.stop_error().is_none());

    let session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    std::fs::rename(runtime.path(), &away).unwrap();
    session.stop();
    drop(session); // neither does this wait for ever
    std::fs::rename(&away, runtime.path()).unwrap();
}

#[test]
#[cfg(unix)] // pipes have no other names
fn one_whose_socket_is_taken_away_says_so_when_there_is_no_more_time_either() {
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
fn a_stop_that_is_refused_is_told_of_at_once() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(StopTracing::CODE, |_| Response::Refuse(HResult::NOT_SUPPORTED));
    let mut session = start(&client(runtime.path()));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert_eq!(e.hresult(), Some(HResult::NOT_SUPPORTED), "{e}");
    assert!(session.end().is_none() && !session.is_stopping(), "it goes on");
    session.read_exact(&mut [0; 8]).unwrap();
    drop(session); // it is closed
    assert_eq!(runtime.requests().len(), 2, "nobody asks again in vain");
}

/// Whoever polls is not to be told that there is something to do when there is nothing.
#[test]
fn one_that_waits_does_not_spin() {
    let quiet = |session: &mut TraceSession| {
        let begin = Instant::now();
        // What is under way settles first.
        while session.poll_read(&mut [0; 4096]).unwrap().is_some() || is_ready(session, Duration::ZERO) {
            assert!(begin.elapsed() < HANGS, "it spins");
        }
        assert_eq!(session.poll_read(&mut [0; 8]).unwrap(), None);
        assert!(session.end().is_none());
    };
    // Nothing comes.
    let suspended = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let mut idle = start(&client(suspended.path()));
    quiet(&mut idle);
    // The stop is heard, and not answered.
    suspended.set_fault(Fault::Silent);
    idle.stop();
    while suspended.requests().len() < 2 {
        idle.poll_read(&mut [0; 8]).unwrap();
    }
    quiet(&mut idle);
    idle.abandon();
    // The stream has ended, and the answer is outstanding.
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let silent = Runtime::serve(move |mut stream, code| {
        if code == StopTracing::CODE.0 {
            let _ = told.recv();
            return false;
        }
        stream.write_all(&ok()).is_ok()
    });
    let mut ended = start(&client(&silent.path));
    ended.stop();
    quiet(&mut ended);
    drop(tell);
    assert_eq!(ended.finish(&mut io::sink()).unwrap(), SessionEnd::CutOff);
}

/// A reader that comes late to hear of the stop has all the time for it.
#[test]
fn the_time_of_a_stop_begins_when_it_is_heard_of() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let timeouts = Timeouts { stop: Duration::from_secs(2), ..Timeouts::default() };
    let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    session.stop();
    assert_eq!(session.due(), None, "nobody has heard");
    thread::sleep(Duration::from_millis(2100)); // that is the case: somebody is busy with other things
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
}

#[test]
fn a_timeout_says_whether_the_runtime_stands_still() {
    let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
    let stands_still = FakeRuntime::start(Profile::net10()).unwrap();
    stands_still.set_fault(Fault::StallStream(0));
    let mut session = start(&Client::at(stands_still.path()).with_timeouts(timeouts));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert!(matches!(e, Error::Timeout { phase: Phase::StoppingTrace { drained: 0 }, .. }), "{e}");
    assert!(matches!(session.end(), Some(SessionEnd::TimedOut(_))));

    let goes_on = Runtime::serve(|mut stream, code| {
        stream.write_all(&ok()).unwrap();
        if code != StopTracing::CODE.0 {
            thread::spawn(move || while stream.write_all(&[0; 4096]).is_ok() {});
        }
        true
    });
    let mut session = start(&Client::at(&goes_on.path).with_timeouts(timeouts));
    let e = inside(session.finish(&mut io::sink()).unwrap_err());
    assert!(matches!(e, Error::Timeout { phase: Phase::StoppingTrace { drained: 1.. }, .. }), "{e}");
}

#[test]
fn two_sessions_of_one_thread_do_not_wait_for_each_other() {
    // Commands are served one by one: the stop of the second waits behind that of the first, which waits for its reader.
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
            session.poll_read(&mut buf).unwrap();
        }
    }
    assert!(first.is_complete() && second.is_complete());
}

#[test]
fn the_65th_session_is_one_too_many() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path());
    let sessions: Vec<TraceSession> = (0..64).map(|_| start(&client)).collect();
    let e = try_start(&client).unwrap_err();
    assert!(matches!(e, Error::TooManySessions { .. }), "{e}");
    assert_eq!(e.hresult(), Some(HResult::FAIL));
    assert!(e.to_string().contains("64"), "{e}");
    drop(sessions);
    drop(start(&client));
}

#[test]
fn it_is_stopped_at_a_port_too() {
    let place = Place::new();
    let monitor = Monitor::bind(place.path("port")).unwrap();
    let ports = vec![ipc_std::fake::Port { path: monitor.path().to_owned(), suspended: false }];
    let runtime = FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap();
    let bytes = stream();
    runtime.on(Code(0x0203), move |_| Response::Trace(bytes.clone()));
    let Some(MonitorEvent::Arrived(arrived)) = monitor.next_event(HANGS).unwrap() else {
        panic!("nobody came")
    };
    let mut session = start(&monitor.client(arrived.runtime_cookie));
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
    assert_eq!(session.received(), 3_000_002);
    assert!(session.stop_error().is_none());
}

#[test]
fn a_handler_may_stop_what_it_likes() {
    // The id in the answer is not looked at: runtimes answer any with OK.
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.on(StopTracing::CODE, |request| {
        assert!(matches!(request, Request::StopTracing(_)));
        Response::ok(&Status::OK)
    });
    let timeouts = Timeouts { stop: SHORT, ..Timeouts::default() };
    let mut session = start(&Client::at(runtime.path()).with_timeouts(timeouts));
    assert_eq!(session.finish(&mut io::sink()).unwrap_err().kind(), ErrorKind::TimedOut);
    let error = session.stop_error().unwrap().to_string();
    assert!(error.contains("breaks the protocol"), "four bytes are no session's id: {error}");
}
