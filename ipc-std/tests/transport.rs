//! The client, the server and the monitor over transports that the library does not know.
#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider, SessionBufferMode, Status};
use ipc_proto::{Advertise, Code, Guid, HResult, Message, Request, Serve, SessionEnd};
use ipc_std::{
    Client, ConnectError, Connector, Error, ErrorKind as Kind, Monitor, MonitorEvent, Phase, Server, Stream,
    Timeouts, TraceConfig, TraceReader, TraceSession, drive,
};
use ipc_testkit::{FakeRuntime, Fault, Profile};

/// The limit of waits that must end. They end long before it.
const HANGS: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// A socket without anything but blocking reads and writes, as TLS or a WebSocket would be.
struct Plain(UnixStream);

impl Read for Plain {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
impl Write for Plain {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn interruptible(socket: UnixStream) -> io::Result<Stream> {
    let closer = socket.try_clone()?;
    Stream::interruptible(Plain(socket), move || drop(closer.shutdown(Shutdown::Both)))
}

type MakeStream = fn(UnixStream) -> io::Result<Stream>;

/// Every way to make a stream of a socket.
fn kinds() -> [(&'static str, MakeStream); 5] {
    [
        ("polled", |socket| Stream::new(socket)),
        ("blocking", |socket| Stream::blocking(Plain(socket))),
        ("interruptible", interruptible),
        ("halves", |socket| {
            let (reader, closer) = (socket.try_clone()?, socket.try_clone()?);
            Stream::halves(Plain(reader), Plain(socket), move || drop(closer.shutdown(Shutdown::Both)))
        }),
        ("timed", |socket| {
            socket.set_read_timeout(Some(Duration::from_millis(20)))?;
            Stream::blocking(Plain(socket))
        }),
    ]
}

fn over(path: &Path, stream: MakeStream) -> Client {
    let path = path.to_owned();
    Client::over("the far runtime", move |_| stream(UnixStream::connect(&path)?))
}

fn providers() -> [Provider<'static>; 1] {
    [Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: "Lab-Workload".into(),
        arguments: "".into(),
    }]
}

fn start(client: &Client) -> TraceSession {
    client.start_tracing(&TraceConfig::new(&providers())).unwrap()
}

#[test]
fn everything_works_over_every_kind_of_stream() {
    for (kind, stream) in kinds() {
        // The runtime knows neither GetProcessInfo3 nor CollectTracing6.
        let runtime = FakeRuntime::start(Profile { version: 7, ..Profile::net8() }).unwrap();
        let client = over(runtime.path(), stream);
        assert_eq!(client.path(), None);
        assert_eq!(client.process_info().unwrap().command_line, "/app/Fake --of-a runtime", "{kind}");
        client.set_environment_variable("A", Some("1")).unwrap();
        assert_eq!(client.environment().unwrap().get("A").unwrap(), "1", "{kind}");
        let refused = client.stop_tracing(1).and_then(|()| client.apply_startup_hook("/x"));
        assert_eq!(refused.unwrap_err().kind(), Kind::Unsupported, "{kind}");

        let providers = providers();
        let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
        let session = client.start_tracing(&config).unwrap();
        assert_eq!((session.command(), session.lost_features().iter().count()), (Code(0x0203), 1), "{kind}");
        let stopper = session.stopper();
        let mut trace = TraceReader::new(session);
        while let Some(event) = trace.next_event().unwrap() {
            assert!(event.nanoseconds() != 0);
            stopper.stop();
        }
        let mut session = trace.into_inner();
        assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete, "{kind}");
    }
}

#[test]
fn a_cancel_ends_a_read_of_every_kind_of_stream() {
    for (kind, stream) in kinds() {
        let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
        let mut session = start(&over(runtime.path(), stream));
        let stopper = session.stopper();
        let cancel = thread::spawn(move || stopper.cancel());
        let error = session.read(&mut [0; 64]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{kind}: {error}");
        cancel.join().unwrap();
    }
}

#[test]
fn a_deadline_holds_for_every_kind_of_stream() {
    for (kind, stream) in kinds() {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        runtime.set_fault(Fault::Silent);
        let timeouts = Timeouts { call: SHORT, ..Timeouts::default() };
        let error = over(runtime.path(), stream).with_timeouts(timeouts).resume().unwrap_err();
        let Error::Timeout { peer, phase, sent, received, .. } = &error else { panic!("{kind}: {error}") };
        assert_eq!((peer.as_str(), *phase), ("the far runtime", Phase::AwaitingAnswer), "{kind}");
        assert_eq!((*sent, *received), (20, 0), "{kind}");
    }
}

#[test]
fn an_operation_is_interrupted_when_its_stream_is_dropped() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (sender, interrupted) = channel();
    let closer = ours.try_clone().unwrap();
    let mut stream = Stream::interruptible(Plain(ours), move || {
        sender.send(()).unwrap();
        drop(closer.shutdown(Shutdown::Both));
    })
    .unwrap()
    .with_deadline(Instant::now());
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(stream);
    interrupted.recv_timeout(HANGS).unwrap();
    theirs.set_read_timeout(Some(HANGS)).unwrap();
    assert_eq!((&theirs).read(&mut [0]).unwrap(), 0, "the connection is closed");
}

/// A half of a connection, with a count of its owners.
struct Counted(UnixStream, #[expect(dead_code, reason = "it is counted")] Arc<()>);

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
impl Write for Counted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn both_halves_are_dropped_with_their_stream() {
    let count = Arc::new(());
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let half = || Counted(ours.try_clone().unwrap(), Arc::clone(&count));
    let closer = ours.try_clone().unwrap();
    let interrupt = move || drop(closer.shutdown(Shutdown::Both));
    let mut stream = Stream::halves(half(), half(), interrupt).unwrap().with_deadline(Instant::now() + SHORT);
    // One half waits for bytes, and the other one for room.
    let sent = stream.write_all(&vec![0; 8 << 20]).unwrap_err();
    let received = stream.read(&mut [0]).unwrap_err();
    assert_eq!((sent.kind(), received.kind()), (ErrorKind::TimedOut, ErrorKind::TimedOut));
    assert_eq!(Arc::strong_count(&count), 3);
    drop(stream);
    let began = Instant::now();
    while Arc::strong_count(&count) > 1 {
        assert!(began.elapsed() < HANGS, "a thread still has its half");
        thread::yield_now();
    }
}

/// A connector that waits for the test.
#[derive(Debug)]
struct Slow {
    path: PathBuf,
    /// How many times the connector reports that the runtime is busy.
    busy: AtomicU32,
    /// Each attempt waits while this is true.
    hangs: Arc<AtomicBool>,
    attempts: Mutex<Sender<()>>,
}

impl Connector for Slow {
    fn connect(&self, _: Instant) -> Result<Stream, ConnectError> {
        self.attempts.lock().unwrap().send(()).unwrap();
        while self.hangs.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        if self.busy.load(Ordering::SeqCst) > 0 {
            self.busy.fetch_sub(1, Ordering::SeqCst);
            return Err(ConnectError::NotReady);
        }
        Ok(Stream::blocking(Plain(UnixStream::connect(&self.path)?))?)
    }
    fn peer(&self) -> &str {
        "the slow runtime"
    }
}

#[test]
fn a_busy_runtime_is_tried_again() {
    let runtime = FakeRuntime::start(Profile { version: 6, ..Profile::net8() }).unwrap();
    let busy = Arc::new(AtomicU32::new(3));
    let (path, state) = (runtime.path().to_owned(), Arc::clone(&busy));
    let client = Client::over("a busy runtime", move |_| {
        match state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |busy| busy.checked_sub(1)) {
            Ok(_) => Err(ErrorKind::WouldBlock.into()),
            Err(_) => Stream::new(UnixStream::connect(&path)?),
        }
    });
    assert!(client.process_info().is_ok());
    let mut session = start(&client);
    busy.store(5, Ordering::SeqCst); // the runtime is busy when the Stop connects
    session.stop();
    assert_eq!(session.finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
    assert_eq!(busy.load(Ordering::SeqCst), 0);
    busy.store(u32::MAX, Ordering::SeqCst);
    let timeouts = Timeouts { call: SHORT, ..Timeouts::default() };
    let error = client.with_timeouts(timeouts).resume().unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Connecting, .. }), "{error}");
}

#[test]
fn a_connect_that_hangs_blocks_neither_a_call_nor_a_session() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (sender, attempts) = channel();
    let hangs = Arc::new(AtomicBool::new(false));
    let (path, attempt) = (runtime.path().to_owned(), Mutex::new(sender));
    let slow = Slow { path, busy: AtomicU32::new(0), hangs: Arc::clone(&hangs), attempts: attempt };
    let timeouts = Timeouts { call: SHORT, stop: SHORT, ..Timeouts::default() };
    let client = Client::new(slow).with_timeouts(timeouts);
    let mut session = start(&client);
    hangs.store(true, Ordering::SeqCst);
    let error = client.resume().unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Connecting, command: None, .. }), "{error}");
    // The stream is read while the Stop connects.
    attempts.try_iter().for_each(drop);
    session.stop();
    let mut buf = [0; 4096];
    let mut read = 0;
    let error = loop {
        match session.read(&mut buf) {
            Ok(n) => read += n,
            Err(e) => break e,
        }
    };
    assert!(read > 0 && attempts.try_recv().is_ok());
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    hangs.store(false, Ordering::SeqCst);
}

#[test]
fn an_error_names_the_transport() {
    let refused = || io::Error::new(ErrorKind::ConnectionReset, "the tunnel is closed");
    let error = Client::over("pod/web-1", move |_| Err(refused())).process_info().unwrap_err();
    assert_eq!(error.to_string(), "pod/web-1: connecting failed: the tunnel is closed");
}

#[test]
fn a_monitor_and_a_runtime_meet_over_any_transport() {
    for (kind, stream) in kinds() {
        let monitor = Arc::new(Monitor::unbound().unwrap());
        let cookie = Guid([7; 16]);
        let mut server =
            Server::new(&Advertise { runtime_cookie: cookie, process_id: 42, future: 0 }).unwrap();
        let pushing = Arc::clone(&monitor);
        let port = server.connect_over(move |_| {
            let (ours, theirs) = UnixStream::pair()?;
            pushing.push(stream(theirs)?);
            stream(ours)
        });
        let stopper = server.stopper();
        let runtime = thread::spawn(move || {
            let mut served = Vec::new();
            while let Some(incoming) = server.accept().unwrap() {
                assert_eq!(incoming.port, port);
                served.push(serve(incoming.stream));
                drop(incoming.turn);
            }
            served
        });
        let arrived = monitor.next_event(HANGS).unwrap();
        assert!(matches!(&arrived, Some(MonitorEvent::Arrived(r)) if r.runtime_cookie == cookie), "{kind}");
        let client = monitor.client(cookie);
        for _ in 0..3 {
            client.resume().unwrap();
        }
        stopper.stop();
        assert_eq!(runtime.join().unwrap(), [Code(0x0401); 3], "{kind}");
        assert!(monitor.variable(true).is_err(), "no socket can be named");
    }
}

/// Serves one request, and returns its command.
fn serve(stream: Stream) -> Code {
    let mut stream = stream.with_deadline(Instant::now() + HANGS);
    let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; 64]);
    let mut serve = Serve::new(&mut receive, &mut send).unwrap();
    drive(&mut serve, &mut stream).unwrap();
    let (request, mut reply) = serve.finish();
    let request = request.unwrap();
    match &request {
        Request::ResumeRuntime(resume) => reply.answer(resume, &Status::OK).unwrap(),
        _ => reply.refuse(HResult::UNKNOWN_COMMAND).unwrap(),
    }
    drive(&mut reply, &mut stream).unwrap();
    request.code()
}

#[test]
fn a_server_accepts_what_is_pushed() {
    for (kind, stream) in kinds() {
        let mut server =
            Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 }).unwrap();
        let (first, second) = (server.inlet(), server.inlet());
        assert_eq!((first.port(), second.port()), (0, 1));
        let stopper = server.stopper();
        let serving = thread::spawn(move || {
            let mut served = Vec::new();
            while let Some(incoming) = server.accept().unwrap() {
                served.push((incoming.port, serve(incoming.stream)));
            }
            served
        });
        for inlet in [&first, &second, &first] {
            let inlet = inlet.clone();
            let client = Client::over("the server", move |_| {
                let (ours, theirs) = UnixStream::pair()?;
                inlet.push(stream(theirs)?);
                stream(ours)
            });
            client.resume().unwrap();
        }
        stopper.stop();
        let resume = Code(0x0401);
        assert_eq!(serving.join().unwrap(), [(0, resume), (1, resume), (0, resume)], "{kind}");
    }
}

/// The kit tests a server over any transport. What a transport cannot do is not a difference.
#[test]
fn the_kit_runs_over_any_transport() {
    use ipc_testkit::conformance::{self, State};

    let runtime = FakeRuntime::start(Profile { careful: true, ..Profile::net11() }).unwrap();
    for (kind, stream) in kinds() {
        let connect = || {
            let stream = stream(UnixStream::connect(runtime.path())?)?;
            Ok(stream.with_deadline(Instant::now() + HANGS))
        };
        let cases = conformance::cases().into_iter().filter(|case| case.state == State::Running).take(60);
        let report = conformance::run_all(cases, connect);
        assert!(report.differences.is_empty(), "{kind}: {report}");
        assert_eq!(report.not_tried.is_empty(), kind == "polled", "{kind}: {report}");
    }
}

/// The stream of the standard library whose read timeout has elapsed reports that it would block.
#[test]
fn a_read_timeout_of_a_plain_stream_is_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    tcp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let error = ipc_std::Connection::with_peer("the router", tcp)
        .call(&ipc_proto::ResumeRuntime {})
        .map(drop)
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout);
    let text = error.to_string();
    assert!(
        text.starts_with("the router: timed out after") && text.contains("waiting for the response"),
        "{text}"
    );
}
