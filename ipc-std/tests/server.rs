//! The server of a runtime: what it listens at and whom it calls, seen from the other end.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
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

/// The next runtime that calls, once it has said who it is.
fn called(monitor: &Listener) -> Stream {
    let mut stream = monitor.accept();
    let mut frame = [0; Advertise::LEN];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(&frame[..], b"ADVR_V1\0drawn at startup\x2a\0\0\0\0\0\0\0\0\0");
    stream
}

/// Says this to the next runtime that calls, and waits until it has closed: to close first would be to hang up.
fn say(monitor: &Listener, byte: u8) {
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
    assert_eq!(taken(&mut server, 0).1, *b"a");
    drop(server);
    assert!(Stream::connect(&path, std::time::Instant::now() + HANGS).is_err());
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: Wine does not honour FILE_FLAG_FIRST_PIPE_INSTANCE")]
fn who_listens_already_is_left_alone() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    let path = server.path().unwrap().to_owned();
    let mut another = self::server();
    assert_eq!(another.listen(&place.directory()).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(another);
    connect(&path).write_all(b"a").unwrap();
    assert_eq!(taken(&mut server, 0).1, *b"a");
}

#[test]
#[cfg(unix)]
fn a_socket_goes_with_its_server_and_a_dead_one_is_left_alone() {
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
fn a_silent_tool_is_handed_over_at_once() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    let tool = connect(server.path().unwrap());
    let mut incoming = server.accept().unwrap().unwrap();
    drop(tool);
    assert_eq!(incoming.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let place = Place::new();
    let long = place.path(&"x".repeat(300));
    let mut large = Server::new(&Advertise { process_id: 1 << 32, ..ADVERTISE }).unwrap();
    assert_eq!(large.listen(&place.directory()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(server().listen(&long).is_err());
    assert!(server().call(&long).is_err());
    #[cfg(unix)]
    assert_eq!(std::fs::read_dir(place.directory()).unwrap().count(), 0);
}

#[test]
fn a_port_calls_again_when_its_turn_is_over() {
    let place = Place::new();
    let (path, monitor) = listen(&place, "monitor");
    let mut server = server();
    assert_eq!((server.listen(&place.directory()).unwrap(), server.call(&path).unwrap()), (0, 1));
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
    let place = Place::new();
    let [(busy, busy_monitor), (free, free_monitor)] = ["busy", "free"].map(|name| listen(&place, name));
    let mut server = server();
    assert_eq!([server.call(&busy).unwrap(), server.call(&free).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| say(&busy_monitor, b'1'));
        let _held = taken(&mut server, 0).0.turn;
        for _ in 0..2 {
            scope.spawn(|| say(&free_monitor, b'2'));
            taken(&mut server, 1);
        }
        assert!(!busy_monitor.is_called());
    });
}

#[test]
#[cfg(unix)] // a pipe's end is seen when its data is read, as in a runtime there
fn a_hang_up_is_seen_before_data() {
    let place = Place::new();
    let [(busy, busy_monitor), (path, monitor)] = ["busy", "monitor"].map(|name| listen(&place, name));
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
    let place = Place::new();
    let (path, monitor) = listen(&place, "monitor");
    let mut server = server();
    assert_eq!([server.listen(&place.directory()).unwrap(), server.call(&path).unwrap()], [0, 1]);
    let tools = [(); 3].map(|()| connect(server.path().unwrap()));
    assert_eq!(server.accept().unwrap().unwrap().port, 0);
    let mut command = called(&monitor);
    command.write_all(b"1").unwrap();
    let order = [(); 3].map(|()| server.accept().unwrap().unwrap().port);
    assert_eq!(order, [1, 0, 0]);
    drop((tools, command));
}

#[test]
#[cfg(unix)]
fn a_full_backlog_holds_up_nobody() {
    let place = Place::new();
    let [(full, full_monitor), (path, monitor)] = ["full", "monitor"].map(|name| listen(&place, name));
    rustix::net::listen(&full_monitor.listener, 0).unwrap();
    let waiting = connect(&full);
    let mut server = server();
    assert_eq!([server.call(&full).unwrap(), server.call(&path).unwrap()], [0, 1]);
    thread::scope(|scope| {
        scope.spawn(|| say(&monitor, b'1'));
        assert_eq!(taken(&mut server, 1).1, *b"1");
        full_monitor.accept();
        scope.spawn(|| say(&full_monitor, b'2'));
        assert_eq!(taken(&mut server, 0).1, *b"2");
    });
    drop(waiting);
}

#[test]
fn it_stops_for_good() {
    let place = Place::new();
    let mut server = server();
    server.listen(&place.directory()).unwrap();
    server.call(&place.path("nobody")).unwrap();
    let stopper = server.stopper();
    let stopping = thread::spawn(move || stopper.stop());
    assert!(server.accept().unwrap().is_none());
    stopping.join().unwrap();
    let _tool = connect(server.path().unwrap());
    assert!(server.accept().unwrap().is_none());
    // One more after the end of it is no trouble.
    let stopper = server.stopper();
    drop(server);
    stopper.stop();
}
