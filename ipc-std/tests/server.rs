//! [`Server`], the runtime's role at its ports, with tools and monitors as its peers.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod peer;

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::thread;

use ipc_proto::{Advertise, Guid};
use ipc_std::{Incoming, Server, Stream};

use peer::{HANGS, Listener, Place, connect};

const ADVERTISE: Advertise =
    Advertise { runtime_cookie: Guid(*b"drawn at startup"), process_id: 42, future: 0 };

fn server() -> Server {
    let server = Server::new(&ADVERTISE).unwrap();
    let stopper = server.stopper();
    thread::spawn(move || {
        thread::sleep(HANGS);
        stopper.stop();
    });
    server
}

fn listen(place: &Place, name: &str) -> (PathBuf, Listener) {
    let path = place.path(name);
    let listener = Listener::bind(&path);
    (path, listener)
}

/// Accepts a connection of the runtime and receives its frame.
fn accept_runtime(monitor: &Listener) -> Stream {
    let mut stream = monitor.accept();
    let mut frame = [0; Advertise::LEN];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(&frame[..], b"ADVR_V1\0drawn at startup\x2a\0\0\0\0\0\0\0\0\0");
    stream
}

/// Sends a byte on the runtime's next connection, and waits until the runtime closes it. If this peer closed first,
/// that would be a hang-up.
fn send_once(monitor: &Listener, byte: u8) {
    let mut stream = accept_runtime(monitor);
    stream.write_all(&[byte]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

/// Accepts the next connection, which must belong to this port, and reads a byte.
fn take(server: &mut Server, port: usize) -> (Incoming, [u8; 1]) {
    let mut incoming = server.accept().unwrap().expect("it is not stopped");
    assert_eq!(incoming.port, port);
    let mut byte = [0];
    incoming.stream.read_exact(&mut byte).unwrap();
    (incoming, byte)
}

#[test]
fn listener_has_name_and_mode_of_a_runtimes() {
    let place = Place::new();
    let mut server = server();
    assert_eq!(server.path(), None);
    assert_eq!(server.listen(&place.directory()).unwrap(), 0);
    let path = server.path().unwrap().to_owned();
    let name = path.file_name().unwrap().to_str().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let name: ipc_proto::SocketName = name.parse().unwrap();
        assert_eq!((name.process_id, path.parent()), (42, Some(&*place.directory())));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    #[cfg(windows)]
    assert!(name.ends_with("-dotnet-diagnostic-42"), "{name}");
    let mut tool = connect(&path);
    tool.write_all(b"a").unwrap();
    assert_eq!(take(&mut server, 0).1, *b"a");
    drop(server);
    assert!(Stream::connect(&path, std::time::Instant::now() + HANGS).is_err());
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: Wine does not honour FILE_FLAG_FIRST_PIPE_INSTANCE")]
fn socket_in_use_is_not_replaced() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    let path = server.path().unwrap().to_owned();
    let mut another = self::server();
    assert_eq!(another.listen(&place.directory()).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(another);
    connect(&path).write_all(b"a").unwrap();
    assert_eq!(take(&mut server, 0).1, *b"a");
}

#[test]
#[cfg(unix)]
fn own_socket_is_removed_and_a_stale_one_is_not() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    let path = server.path().unwrap().to_owned();
    assert!(path.exists());
    drop(server);
    assert!(!path.exists());
    drop(Listener::bind(&path));
    assert_eq!(self::server().listen(&place.directory()).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert!(path.exists());
}

#[test]
fn connection_of_a_silent_tool_is_returned_immediately() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    let tool = connect(server.path().unwrap());
    let mut incoming = server.accept().unwrap().unwrap();
    drop(tool);
    assert_eq!(incoming.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn too_long_values_are_errors() {
    let place = Place::new();
    let long = place.path(&"x".repeat(300));
    let mut large = Server::new(&Advertise { process_id: 1 << 32, ..ADVERTISE }).unwrap();
    assert_eq!(large.listen(&place.directory()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(server().listen(&long).is_err());
    assert!(server().connect(&long).is_err());
    #[cfg(unix)]
    assert_eq!(std::fs::read_dir(place.directory()).unwrap().count(), 0);
}

#[test]
fn port_connects_again_after_its_turn() {
    let place = Place::new();
    let (path, monitor) = listen(&place, "monitor");
    let mut server = server();
    assert_eq!((server.listen(&place.directory()).unwrap(), server.connect(&path).unwrap()), (0, 1));
    let monitor = thread::spawn(move || {
        let mut first = accept_runtime(&monitor);
        first.write_all(b"1").unwrap();
        send_once(&monitor, b'2');
        let mut byte = [0];
        first.read_exact(&mut byte).unwrap();
        byte
    });
    let (Incoming { mut stream, turn, .. }, byte) = take(&mut server, 1);
    assert_eq!(byte, *b"1");
    // Another thread ends the turn while this one waits.
    let answered = thread::spawn(move || drop(turn));
    assert_eq!(take(&mut server, 1).1, *b"2");
    answered.join().unwrap();
    // The first connection stays open, as that of a session.
    stream.write_all(b"s").unwrap();
    assert_eq!(monitor.join().unwrap(), *b"s");
}

#[test]
fn turn_blocks_only_its_own_port() {
    let place = Place::new();
    let [(busy, busy_monitor), (free, free_monitor)] = ["busy", "free"].map(|name| listen(&place, name));
    let mut server = server();
    assert_eq!([server.connect(&busy).unwrap(), server.connect(&free).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| send_once(&busy_monitor, b'1'));
        let _held = take(&mut server, 0).0.turn;
        for _ in 0..2 {
            scope.spawn(|| send_once(&free_monitor, b'2'));
            take(&mut server, 1);
        }
        assert!(!busy_monitor.is_called());
    });
}

#[test]
#[cfg(unix)] // on Windows, the end of a pipe appears after its data, for a runtime too
fn hang_up_has_precedence_over_data() {
    let place = Place::new();
    let [(busy, busy_monitor), (path, monitor)] = ["busy", "monitor"].map(|name| listen(&place, name));
    let mut server = server();
    assert_eq!([server.connect(&busy).unwrap(), server.connect(&path).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| send_once(&busy_monitor, b'1'));
        take(&mut server, 0);
        // Both ports have connected. The server does not run, so the data and the hang-up are there before it looks.
        accept_runtime(&monitor).write_all(b"is lost").unwrap();
        scope.spawn(|| send_once(&monitor, b'2'));
        assert_eq!(take(&mut server, 1).1, *b"2");
    });
}

#[test]
fn busy_listener_does_not_block_other_ports() {
    let place = Place::new();
    let (path, monitor) = listen(&place, "monitor");
    let mut server = server();
    assert_eq!([server.listen(&place.directory()).unwrap(), server.connect(&path).unwrap()], [0, 1]);
    let tools = [(); 3].map(|()| connect(server.path().unwrap()));
    assert_eq!(server.accept().unwrap().unwrap().port, 0);
    let mut command = accept_runtime(&monitor);
    command.write_all(b"1").unwrap();
    let order = [(); 3].map(|()| server.accept().unwrap().unwrap().port);
    assert_eq!(order, [1, 0, 0]);
    drop((tools, command));
}

#[test]
#[cfg(unix)]
fn full_backlog_does_not_block_other_ports() {
    let place = Place::new();
    let [(full, full_monitor), (path, monitor)] = ["full", "monitor"].map(|name| listen(&place, name));
    rustix::net::listen(&full_monitor.listener, 0).unwrap();
    let waiting = connect(&full);
    let mut server = server();
    assert_eq!([server.connect(&full).unwrap(), server.connect(&path).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| send_once(&monitor, b'1'));
        assert_eq!(take(&mut server, 1).1, *b"1");
        full_monitor.accept();
        scope.spawn(|| send_once(&full_monitor, b'2'));
        assert_eq!(take(&mut server, 0).1, *b"2");
    });
    drop(waiting);
}

#[test]
fn stopped_server_stays_stopped() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    server.connect(&place.path("absent")).unwrap();
    let stopper = server.stopper();
    let stopping = thread::spawn(move || stopper.stop());
    assert!(server.accept().unwrap().is_none());
    stopping.join().unwrap();
    let _tool = connect(server.path().unwrap());
    assert!(server.accept().unwrap().is_none());
    // A stop after the server is dropped has no effect.
    let stopper = server.stopper();
    drop(server);
    stopper.stop();
}
