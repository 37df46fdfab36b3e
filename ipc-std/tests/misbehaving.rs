//! Transports that break the contract of their traits: they panic, or report more bytes than they were lent. Each such
//! fault is an error at once, with the peer and the phase.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking, and so do its transports"
)]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider};
use ipc_proto::{Advertise, Call, Guid, ProtocolError, Request, ResumeRuntime, Serve, SessionEnd};
use ipc_std::{
    Client, ConnectError, Connection, Connector, DriveError, Error, ErrorKind as Kind, Monitor, MonitorEvent,
    Phase, Server, Stream, Timeouts, TraceConfig, TraceSession, drive,
};

/// The limit of a wait for a transport that has failed already.
const HANGS: Duration = Duration::from_secs(60);

const RESUME: &[u8] = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
const ADVERTISE: &[u8] = b"ADVR_V1\0the cookie of it\x2a\0\0\0\0\0\0\0\0\0";
const OK: &[u8] = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0";
const STARTED: &[u8] = b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x01\0\0\0\0\0\0\0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    PanicInWrite,
    PanicInFlush,
    PanicInRead,
    LongWrite,
    LongRead,
    /// The transport has no data within its own limit.
    Silence,
}
use Fault::{LongRead, LongWrite, PanicInFlush, PanicInRead, PanicInWrite, Silence};

impl Fault {
    const ALL: [Self; 5] = [PanicInWrite, PanicInFlush, PanicInRead, LongWrite, LongRead];

    /// Returns the phase of a command in which the fault appears, and the text of its error.
    fn expected(self) -> (Phase, &'static str) {
        match self {
            PanicInWrite => (Phase::Sending, "the transport panicked: in write"),
            PanicInFlush => (Phase::Sending, "the transport panicked: in flush"),
            PanicInRead => (Phase::AwaitingAnswer, "the transport panicked: in read 0"),
            LongWrite => (Phase::Sending, "bytes are reported"),
            LongRead => (Phase::AwaitingAnswer, "bytes are reported"),
            Silence => (Phase::AwaitingAnswer, "timed out"),
        }
    }
}

/// Answers with `answer`, and then has the fault.
struct Faulty {
    answer: &'static [u8],
    fault: Fault,
}

impl Read for Faulty {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.answer.read(buf)?;
        match self.fault {
            _ if n > 0 => Ok(n),
            PanicInRead => panic!("in read {n}"),
            LongRead => Ok(buf.len() + 1),
            _ => Err(ErrorKind::WouldBlock.into()),
        }
    }
}
impl Write for Faulty {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self.fault {
            PanicInWrite => panic!("in write"),
            LongWrite => Ok(buf.len() + 1),
            _ => Ok(buf.len()),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        if self.fault == PanicInFlush { panic!("in flush") } else { Ok(()) }
    }
}

fn timeouts() -> Timeouts {
    Timeouts { call: HANGS, stop: HANGS, silence: HANGS, ..Timeouts::default() }
}

fn over(answer: &'static [u8], fault: Fault) -> Client {
    Client::over("the tunnel", move |_| Stream::blocking(Faulty { answer, fault })).with_timeouts(timeouts())
}

fn check(error: &Error, fault: Fault, phase: Phase, text: &str) {
    let Error::Io { peer, phase: actual, source } = error else { panic!("{fault:?}: {error}") };
    assert_eq!((peer.as_str(), *actual), ("the tunnel", phase), "{fault:?}");
    assert!(source.to_string().contains(text), "{fault:?}: {source}");
}

#[test]
fn a_fault_of_a_transport_with_a_thread_is_an_error_at_once() {
    for fault in Fault::ALL {
        let (phase, text) = fault.expected();
        check(&over(b"", fault).resume().unwrap_err(), fault, phase, text);
        // The thread has ended, and its end is found by every later call.
        let mut stream = Stream::blocking(Faulty { answer: b"", fault }).unwrap();
        stream.set_deadline(Instant::now() + HANGS);
        for _ in 0..3 {
            let error = stream.write(&[0; 20]).and_then(|_| stream.read(&mut [0])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Other, "{fault:?}: {error}");
        }
        assert!(stream.has_hung_up(), "{fault:?}");
    }
}

#[test]
fn a_panic_of_an_interrupt_stays_in_the_stream() {
    let stream = Stream::interruptible(Faulty { answer: b"", fault: Silence }, || panic!("in interrupt"));
    stream.unwrap().shutdown(Shutdown::Both).unwrap();
}

#[test]
fn a_fault_after_the_first_bytes_is_an_error_at_once() {
    for fault in [PanicInRead, LongRead] {
        let (_, text) = fault.expected();
        check(&over(&OK[..8], fault).resume().unwrap_err(), fault, Phase::ReceivingHeader, text);
        check(&over(&OK[..20], fault).resume().unwrap_err(), fault, Phase::ReceivingAnswer, text);
    }
}

#[test]
fn a_plain_stream_that_reports_too_many_bytes_is_an_error() {
    for fault in [LongWrite, LongRead] {
        let (phase, text) = fault.expected();
        let mut connection = Connection::with_peer("the tunnel", Faulty { answer: b"", fault });
        check(&connection.call(&ResumeRuntime {}).unwrap_err(), fault, phase, text);

        let mut buf = [0; 64];
        let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
        let error = drive(&mut call, &mut Faulty { answer: b"", fault }).unwrap_err();
        let DriveError::Protocol(ProtocolError::Overrun { advanced: 21, lent: 20 }) = error else {
            panic!("{fault:?}: {error}")
        };
    }
}

#[derive(Debug)]
struct Prompt;

impl Connector for Prompt {
    fn connect(&self, _: Instant) -> Result<Stream, ConnectError> {
        panic!("in connect")
    }
    fn peer(&self) -> &str {
        "the tunnel"
    }
    fn is_prompt(&self) -> bool {
        true
    }
}

#[test]
fn a_panic_of_a_connector_is_an_error_at_once() {
    let closure = Client::over("the tunnel", |_| panic!("in connect"));
    for client in [closure, Client::new(Prompt)] {
        let error = client.with_timeouts(timeouts()).resume().unwrap_err();
        check(&error, PanicInRead, Phase::Connecting, "the transport panicked: in connect");
    }
}

fn start(client: &Client) -> TraceSession {
    let (level, name) = (EventLevel::INFORMATIONAL, "A".into());
    let providers = [Provider { keywords: 1, level, name, arguments: "".into() }];
    client.start_tracing(&TraceConfig::new(&providers)).unwrap()
}

#[test]
fn a_fault_within_a_trace_has_the_peer_and_the_phase() {
    for fault in [PanicInRead, LongRead] {
        let (_, text) = fault.expected();
        let mut session = start(&over(STARTED, fault));
        let error = session.read(&mut [0; 64]).unwrap_err();
        check(&error.downcast().unwrap(), fault, Phase::ReadingTrace, text);
        // The stream is lost, and the session with it.
        assert_eq!((session.read(&mut [0; 64]).unwrap(), session.end()), (0, Some(SessionEnd::CutOff)));
    }
}

#[test]
fn a_fault_of_the_connection_for_a_stop_has_the_peer_and_the_phase() {
    for fault in [PanicInWrite, LongWrite] {
        let is_started = AtomicBool::new(false);
        let client = Client::over("the tunnel", move |_| {
            let fault = if is_started.swap(true, Ordering::SeqCst) { fault } else { Silence };
            Stream::blocking(Faulty { answer: STARTED, fault })
        });
        let mut session = start(&client.with_timeouts(timeouts()));
        session.stop();
        let error = session.read(&mut [0; 64]).map_err(|e| e.downcast::<Error>().unwrap()).unwrap_err();
        let (_, text) = fault.expected();
        // The thread writes while the session waits for the answer.
        check(&error, fault, Phase::AwaitingAnswer, text);
        session.abandon();
    }
    let is_started = AtomicBool::new(false);
    let client = Client::over("the tunnel", move |_| {
        assert!(!is_started.swap(true, Ordering::SeqCst), "in connect");
        Stream::blocking(Faulty { answer: STARTED, fault: Silence })
    });
    let mut session = start(&client.with_timeouts(timeouts()));
    session.stop();
    let error = session.read(&mut [0; 64]).unwrap_err().downcast().unwrap();
    check(&error, PanicInRead, Phase::Connecting, "the transport panicked: in connect");
    session.abandon();
}

/// The port connects again after every fault: of its connector, and of the connection before its command arrives.
#[test]
fn a_server_tries_again_after_a_fault() {
    let mut server =
        Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 }).unwrap();
    let attempts = AtomicUsize::new(0);
    server.connect_over(move |_| {
        let attempt = attempts.fetch_add(1, Ordering::SeqCst);
        let answer = if attempt > Fault::ALL.len() { RESUME } else { b"" };
        let fault = attempt.checked_sub(1).and_then(|n| Fault::ALL.get(n)).copied();
        assert!(attempt > 0, "in connect");
        Stream::blocking(Faulty { answer, fault: fault.unwrap_or(Silence) })
    });
    let mut incoming = server.accept().unwrap().unwrap();
    let (mut receive, mut send) = ([0; 64], [0; 64]);
    let mut serve = Serve::new(&mut receive, &mut send).unwrap();
    drive(&mut serve, &mut incoming.stream).unwrap();
    assert!(matches!(serve.finish().0, Ok(Request::ResumeRuntime(_))));
}

/// A monitor drops a connection that fails before its runtime is known.
#[test]
fn a_monitor_takes_the_next_connection_after_a_fault() {
    let monitor = Monitor::unbound().unwrap();
    for answer in [&b""[..], &ADVERTISE[..9]] {
        for fault in [PanicInRead, LongRead] {
            monitor.push(Stream::blocking(Faulty { answer, fault }).unwrap());
        }
    }
    monitor.push(Stream::blocking(Faulty { answer: ADVERTISE, fault: Silence }).unwrap());
    loop {
        match monitor.next_event(HANGS).unwrap() {
            Some(MonitorEvent::Arrived(runtime)) => break assert_eq!(runtime.process_id, 42),
            event => assert!(event.is_some(), "the runtime does not arrive"),
        }
    }
}

#[test]
fn a_second_call_counts_its_own_bytes() {
    let mut connection = Connection::with_peer("the tunnel", Faulty { answer: OK, fault: Silence });
    connection.call(&ResumeRuntime {}).map(drop).unwrap();
    let error = connection.call(&ResumeRuntime {}).map(drop).unwrap_err();
    let Error::Timeout { phase, sent, received, .. } = &error else { panic!("{error}") };
    assert_eq!((*phase, *sent, *received), (Phase::AwaitingAnswer, 20, 0));
}

/// A shell that logs in greets before the program starts.
#[test]
fn an_answer_that_is_no_message_is_quoted() {
    let greeting = b"Last login: \x1b[1mMon Nov 28\x1b[0m from 10.0.0.1\r\n";
    let error = over(greeting, Silence).resume().unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol);
    let end = r#"not the magic DOTNET_IPC_V1 (at byte 0): "Last login: \x1b[1mMon ""#;
    assert!(error.to_string().ends_with(end), "{error}");
    let error = over(b"DOTNET_IPC_V1\0\x13\0\xff\0\0\0", Silence).resume().unwrap_err().to_string();
    assert!(error.ends_with("(at byte 14)"), "{error}");
}
