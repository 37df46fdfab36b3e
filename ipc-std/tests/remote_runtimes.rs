//! [`Monitor`] with runtimes whose process it cannot see: on another machine, in a browser, behind a tunnel.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider, Status};
use ipc_proto::{Advertise, Encode, Guid, encode_to_vec, wire::Writer};
use ipc_std::{Client, Error, ErrorKind, Monitor, MonitorEvent, Stream, TraceConfig};

/// Longer than anything takes, even on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// No process has this id here: it is above the largest one that the tests' machines give out.
const NOBODY: u64 = 4_000_000;

/// Process ids that mean nothing here: a dead one, that of every browser, this process, and the first process.
fn process_ids() -> [u64; 4] {
    [NOBODY, 42, std::process::id().into(), 1]
}

fn frame(cookie: Guid, process_id: u64) -> [u8; Advertise::LEN] {
    let mut frame = [0; Advertise::LEN];
    let advertise = Advertise { runtime_cookie: cookie, process_id, future: 0 };
    advertise.encode(&mut Writer::new(&mut frame));
    frame
}

const COOKIE: Guid = Guid(*b"a remote runtime");

/// A port to which runtimes connect by TCP.
struct Port {
    listener: TcpListener,
    monitor: Monitor,
}

impl Port {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { listener, monitor: Monitor::unbound().unwrap() }
    }

    /// Connects a runtime, and returns its end of the connection.
    fn connect(&self, cookie: Guid, process_id: u64) -> TcpStream {
        let mut runtime = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        runtime.set_read_timeout(Some(LONG)).unwrap();
        runtime.write_all(&frame(cookie, process_id)).unwrap();
        self.monitor.push(Stream::tcp(self.listener.accept().unwrap().0).unwrap());
        runtime
    }

    fn client(&self) -> Client {
        self.monitor.client(COOKIE)
    }

    fn arrives(&self) {
        let event = self.monitor.next_event(LONG).unwrap();
        assert!(matches!(event, Some(MonitorEvent::Arrived(r)) if r.runtime_cookie == COOKIE), "{event:?}");
    }

    fn leaves(&self, what: &str) {
        let event = self.monitor.next_event(LONG).unwrap();
        assert!(
            matches!(event, Some(MonitorEvent::Left(r)) if r.runtime_cookie == COOKIE),
            "{what}: {event:?}"
        );
        assert!(self.monitor.runtimes().is_empty());
        assert!(matches!(self.client().resume(), Err(Error::Left { .. })));
    }
}

/// Receives a command of 20 bytes, and answers OK.
fn answer(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.read_exact(&mut [0; 20])?;
    stream.write_all(&encode_to_vec(ipc_proto::Code::OK, &Status::OK).unwrap())
}

#[test]
fn a_living_runtime_does_not_leave_while_it_connects_again() {
    for process_id in process_ids() {
        let port = &Port::new();
        let mut connection = port.connect(COOKIE, process_id);
        port.arrives();
        thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..3 {
                    answer(&mut connection).unwrap();
                    drop(connection);
                    // Longer than the interval of the checks of processes.
                    thread::sleep(Duration::from_millis(150));
                    connection = port.connect(COOKIE, process_id);
                }
            });
            for _ in 0..3 {
                port.client().resume().unwrap();
            }
        });
        let event = port.monitor.poll_event().unwrap();
        assert!(event.is_none(), "process {process_id}: {event:?}");
    }
}

#[test]
fn an_ended_runtime_leaves_whatever_id_it_had() {
    thread::scope(|scope| {
        for process_id in process_ids() {
            scope.spawn(move || an_ended_runtime_leaves(process_id));
        }
    });
}

fn an_ended_runtime_leaves(process_id: u64) {
    let port = &Port::new();
    let idle = port.connect(COOKIE, process_id);
    port.arrives();
    drop(idle);
    port.leaves("idle");

    let mut answering = port.connect(COOKIE, process_id);
    port.arrives();
    thread::scope(|scope| {
        scope.spawn(move || answer(&mut answering).unwrap());
        port.client().resume().unwrap();
    });
    port.leaves("after an answer");

    let mut silent = port.connect(COOKIE, process_id);
    port.arrives();
    thread::scope(|scope| {
        scope.spawn(move || silent.read_exact(&mut [0; 20]).unwrap());
        assert_eq!(port.client().resume().unwrap_err().kind(), ErrorKind::Gone);
    });
    port.leaves("before an answer");

    let taken = port.connect(COOKIE, process_id);
    port.arrives();
    drop((port.monitor.wait_for(COOKIE).unwrap(), taken));
    port.leaves("unused");
}

#[test]
fn a_runtime_that_ends_in_a_trace_leaves_before_the_trace_is_dropped() {
    let port = &Port::new();
    let mut tracing = port.connect(COOKIE, 1);
    port.arrives();
    let (level, arguments) = (EventLevel::VERBOSE, "".into());
    let providers = [Provider { keywords: u64::MAX, level, name: "Remote".into(), arguments }];
    let mut session = thread::scope(|scope| {
        scope.spawn(move || {
            let mut header = [0; 20];
            tracing.read_exact(&mut header).unwrap();
            let rest = usize::from(u16::from_le_bytes([header[14], header[15]])) - header.len();
            tracing.read_exact(&mut vec![0; rest]).unwrap();
            let started = b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0Nettrace";
            tracing.write_all(started).unwrap();
        });
        port.client().start_tracing(&TraceConfig::new(&providers)).unwrap()
    });
    let mut trace = Vec::new();
    session.read_to_end(&mut trace).unwrap();
    assert_eq!(trace, b"Nettrace");
    port.leaves("tracing");
    drop(session);
}

/// The release of an older connection, which was held for long, says nothing of the newest connection.
#[test]
fn a_runtime_that_has_connected_again_does_not_leave() {
    let port = &Port::new();
    let first = port.connect(COOKIE, NOBODY);
    port.arrives();
    let held = [port.monitor.wait_for(COOKIE).unwrap()];
    let second = port.connect(COOKIE, NOBODY);
    let taken = port.monitor.wait_for(COOKIE).unwrap();
    drop((held, first));
    // Another runtime that arrives, ends and leaves is the clock.
    let other = Guid(*b"another runtime.");
    drop(port.connect(other, NOBODY));
    for _ in 0..2 {
        let (MonitorEvent::Arrived(runtime) | MonitorEvent::Left(runtime)) =
            port.monitor.next_event(LONG).unwrap().unwrap()
        else {
            panic!("a frame is valid");
        };
        assert_eq!(runtime.runtime_cookie, other);
    }
    assert_eq!(port.monitor.runtimes().len(), 1);
    drop((taken, second));
    port.leaves("the newest connection");
}

type MakeStream = fn(TcpStream) -> io::Result<Stream>;

/// Every stream that can be read while it is written to.
fn kinds() -> [(&'static str, MakeStream); 3] {
    [
        ("polled", Stream::tcp),
        ("timed", |tcp| {
            tcp.set_read_timeout(Some(Duration::from_millis(5)))?;
            Stream::timed(tcp)
        }),
        ("halves", |tcp| {
            let (reader, closer) = (tcp.try_clone()?, tcp.try_clone()?);
            Stream::halves(reader, tcp, move || drop(closer.shutdown(Shutdown::Both)))
        }),
    ]
}

#[test]
fn the_end_of_an_idle_connection_is_noticed() {
    for (kind, stream) in kinds() {
        let port = Port::new();
        let connect = || {
            let mut runtime = TcpStream::connect(port.listener.local_addr().unwrap()).unwrap();
            runtime.write_all(&frame(COOKIE, 42)).unwrap();
            port.monitor.push(stream(port.listener.accept().unwrap().0).unwrap());
            runtime
        };
        let mut runtime = connect();
        port.arrives();
        assert!(port.monitor.is_waiting(COOKIE));
        // The connection is watched, and carries a command all the same.
        thread::scope(|scope| {
            scope.spawn(|| answer(&mut runtime).unwrap());
            port.client().resume().unwrap();
        });
        drop(runtime);
        let runtime = connect();
        let began = Instant::now();
        while !port.monitor.is_waiting(COOKIE) {
            assert!(began.elapsed() < LONG && port.monitor.poll_event().unwrap().is_none());
        }
        drop(runtime);
        // Before the runtime counts as left, a command gets no dead connection.
        while port.monitor.is_waiting(COOKIE) {
            assert!(began.elapsed() < LONG && port.monitor.poll_event().unwrap().is_none(), "{kind}");
        }
        port.leaves(kind);

        let mut runtime = connect();
        port.arrives();
        runtime.write_all(b"!").unwrap();
        let event = port.monitor.next_event(LONG).unwrap();
        assert!(matches!(event, Some(MonitorEvent::Rejected { .. })), "{kind}: {event:?}");
        port.leaves(kind);
    }
}

/// The system reports this process at both ends of a bridge, and this process does not end.
#[test]
#[cfg(unix)]
fn a_runtime_behind_a_bridge_leaves() {
    let port = Port::new();
    let (mut runtime, ours) = std::os::unix::net::UnixStream::pair().unwrap();
    runtime.write_all(&frame(COOKIE, 42)).unwrap();
    port.monitor.push(Stream::new(ours).unwrap());
    port.arrives();
    thread::scope(|scope| {
        scope.spawn(move || answer(&mut runtime).unwrap());
        port.client().resume().unwrap();
    });
    port.leaves("a bridge");
}

#[test]
#[cfg(unix)]
fn the_end_of_an_idle_child_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("frame"), frame(COOKIE, 42)).unwrap();
    std::fs::write(file("ok"), encode_to_vec(ipc_proto::Code::OK, &Status::OK).unwrap()).unwrap();
    let port = Port::new();
    let push = |script: &str| {
        let script = format!("cat frame; {script}");
        let mut command = std::process::Command::new("sh");
        port.monitor.push(Stream::child(command.args(["-c", &script]).current_dir(&directory)).unwrap());
        port.arrives();
    };
    push("head -c 20 > request; cat ok");
    port.client().resume().unwrap();
    port.leaves("after a command");
    push("while [ ! -e end ]; do sleep 0.01; done");
    std::fs::write(file("end"), "").unwrap();
    port.leaves("idle");
}
