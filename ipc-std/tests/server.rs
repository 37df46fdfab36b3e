//! The server of a runtime: what it listens at and whom it calls, seen from the other end.
#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

use ipc_proto::{Advertise, Guid, SocketName};
use ipc_std::{Incoming, Server};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use tempfile::TempDir;

const ADVERTISE: Advertise =
    Advertise { runtime_cookie: Guid(*b"drawn at startup"), process_id: 42, future: 0 };
/// Nothing here takes as long, unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

fn server() -> Server {
    let server = Server::new(&ADVERTISE).unwrap();
    let stopper = server.stopper();
    thread::spawn(move || {
        thread::sleep(HANGS);
        stopper.stop();
    });
    server
}

fn listen(directory: &TempDir, name: &str) -> (PathBuf, UnixListener) {
    let path = directory.path().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    set_socket_timeout(&listener, Timeout::Recv, Some(HANGS)).unwrap();
    (path, listener)
}

/// The next runtime that calls, once it has said who it is.
fn called(monitor: &UnixListener) -> UnixStream {
    let (mut stream, _) = monitor.accept().unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let mut frame = [0; Advertise::LEN];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(&frame[..], b"ADVR_V1\0drawn at startup\x2a\0\0\0\0\0\0\0\0\0");
    stream
}

/// Says this to the next runtime that calls, and waits until it has closed: to close first would be to hang up.
fn say(monitor: &UnixListener, byte: u8) {
    let mut stream = called(monitor);
    stream.write_all(&[byte]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

/// Takes what comes next, which is from this port, and says that.
fn taken(server: &mut Server, port: usize) -> (Incoming, [u8; 1]) {
    let mut incoming = server.accept().unwrap().expect("nobody stopped it");
    assert_eq!(incoming.port, port);
    let mut said = [0];
    incoming.stream.read_exact(&mut said).unwrap();
    (incoming, said)
}

#[test]
fn it_listens_as_a_runtime_does() {
    let directory = TempDir::new().unwrap();
    let mut server = server();
    assert_eq!(server.path(), None);
    assert_eq!(server.listen(directory.path()).unwrap(), 0);
    let path = server.path().unwrap().to_owned();
    let name: SocketName = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
    assert_eq!((name.process_id, path.parent()), (42, Some(directory.path())));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut tool = UnixStream::connect(&path).unwrap();
    tool.write_all(b"a").unwrap();
    assert_eq!(taken(&mut server, 0).1, *b"a");

    // What lies there is left alone, alive or dead.
    let mut another = self::server();
    assert_eq!(another.listen(directory.path()).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(another);
    assert!(path.exists());
    drop(server);
    assert!(!path.exists());
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(self::server().listen(directory.path()).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert!(path.exists());
}

#[test]
fn a_silent_tool_is_handed_over_at_once() {
    let directory = TempDir::new().unwrap();
    let mut server = server();
    server.listen(directory.path()).unwrap();
    let tool = UnixStream::connect(server.path().unwrap()).unwrap();
    let mut incoming = server.accept().unwrap().unwrap();
    drop(tool);
    assert_eq!(incoming.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let directory = TempDir::new().unwrap();
    let long = directory.path().join("x".repeat(200));
    let mut large = Server::new(&Advertise { process_id: 1 << 32, ..ADVERTISE }).unwrap();
    assert_eq!(large.listen(directory.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(server().listen(&long).is_err());
    assert!(server().call(&long).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_port_calls_again_when_its_turn_is_over() {
    let directory = TempDir::new().unwrap();
    let (path, monitor) = listen(&directory, "monitor");
    let mut server = server();
    assert_eq!((server.listen(directory.path()).unwrap(), server.call(&path).unwrap()), (0, 1));
    let monitor = thread::spawn(move || {
        let mut first = called(&monitor);
        first.write_all(b"1").unwrap();
        say(&monitor, b'2');
        let mut byte = [0];
        first.read_exact(&mut byte).unwrap();
        byte
    });
    let (Incoming { mut stream, turn, .. }, said) = taken(&mut server, 1);
    assert_eq!(said, *b"1");
    // On another thread, while this one waits.
    let answered = thread::spawn(move || drop(turn));
    assert_eq!(taken(&mut server, 1).1, *b"2");
    answered.join().unwrap();
    // The first connection goes on, as that of a session does.
    stream.write_all(b"s").unwrap();
    assert_eq!(monitor.join().unwrap(), *b"s");
}

#[test]
fn a_turn_keeps_its_port_from_calling_and_no_other() {
    let directory = TempDir::new().unwrap();
    let [(busy, busy_monitor), (free, free_monitor)] = ["busy", "free"].map(|name| listen(&directory, name));
    let mut server = server();
    assert_eq!([server.call(&busy).unwrap(), server.call(&free).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| say(&busy_monitor, b'1'));
        let _held = taken(&mut server, 0).0.turn;
        for _ in 0..2 {
            scope.spawn(|| say(&free_monitor, b'2'));
            taken(&mut server, 1);
        }
        busy_monitor.set_nonblocking(true).unwrap();
        assert_eq!(busy_monitor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_hang_up_is_seen_before_data() {
    let directory = TempDir::new().unwrap();
    let [(busy, busy_monitor), (path, monitor)] = ["busy", "monitor"].map(|name| listen(&directory, name));
    let mut server = server();
    assert_eq!([server.call(&busy).unwrap(), server.call(&path).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| say(&busy_monitor, b'1'));
        taken(&mut server, 0);
        // Both have called by now, and nobody looks.
        called(&monitor).write_all(b"not heard").unwrap();
        scope.spawn(|| say(&monitor, b'2'));
        assert_eq!(taken(&mut server, 1).1, *b"2");
    });
}

#[test]
fn a_busy_listener_leaves_ports_their_turn() {
    let directory = TempDir::new().unwrap();
    let (path, monitor) = listen(&directory, "monitor");
    let mut server = server();
    assert_eq!([server.listen(directory.path()).unwrap(), server.call(&path).unwrap()], [0, 1]);
    let tools = [(); 3].map(|()| UnixStream::connect(server.path().unwrap()).unwrap());
    assert_eq!(server.accept().unwrap().unwrap().port, 0);
    let mut command = called(&monitor);
    command.write_all(b"1").unwrap();
    let order = [(); 3].map(|()| server.accept().unwrap().unwrap().port);
    assert_eq!(order, [1, 0, 0]);
    drop((tools, command));
}

#[test]
fn a_full_backlog_holds_up_nobody() {
    let directory = TempDir::new().unwrap();
    let [(full, full_monitor), (path, monitor)] = ["full", "monitor"].map(|name| listen(&directory, name));
    rustix::net::listen(&full_monitor, 0).unwrap();
    let waiting = UnixStream::connect(&full).unwrap();
    let mut server = server();
    assert_eq!([server.call(&full).unwrap(), server.call(&path).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| say(&monitor, b'1'));
        assert_eq!(taken(&mut server, 1).1, *b"1");
        full_monitor.accept().unwrap();
        scope.spawn(|| say(&full_monitor, b'2'));
        assert_eq!(taken(&mut server, 0).1, *b"2");
    });
    drop(waiting);
}

#[test]
fn it_stops_for_good() {
    let directory = TempDir::new().unwrap();
    let mut server = server();
    server.listen(directory.path()).unwrap();
    server.call(&directory.path().join("nobody")).unwrap();
    let stopper = server.stopper();
    let stopping = thread::spawn(move || stopper.stop());
    assert!(server.accept().unwrap().is_none());
    stopping.join().unwrap();
    let _tool = UnixStream::connect(server.path().unwrap()).unwrap();
    assert!(server.accept().unwrap().is_none());
    // One more after the end of it is no trouble.
    let stopper = server.stopper();
    drop(server);
    stopper.stop();
}
