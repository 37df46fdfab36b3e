//! Checks of the examples.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by unwrapping")]

#[cfg(unix)]
#[path = "../examples/websocket/socket.rs"]
mod socket;

/// The example `trace` of `ipc-proto`.
#[cfg(unix)]
#[path = "../../ipc-proto/examples/trace.rs"]
#[allow(dead_code, reason = "the example is a program")]
mod trace;

#[cfg(unix)]
#[test]
fn trace_over_blocking_streams() {
    let runtime = ipc_testkit::FakeRuntime::start(ipc_testkit::Profile::net10()).unwrap();
    let (socket, mut bytes) = (runtime.path().to_owned(), Vec::new());
    let connect = move || std::os::unix::net::UnixStream::connect(&socket);
    assert_eq!(trace::record(connect, 0, &mut bytes).unwrap(), ipc_proto::SessionEnd::Complete);
    assert!(bytes.starts_with(b"Nettrace"), "{} bytes", bytes.len());
}

/// The byte stream of the example `websocket`.
#[cfg(unix)]
mod websocket {
    use super::socket::{PATH, Socket};
    use core::time::Duration;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use tungstenite::protocol::frame::Frame;
    use tungstenite::protocol::frame::coding::{Data, OpCode};
    use tungstenite::{Error, Message, WebSocket};

    const LIMIT: Duration = Duration::from_secs(10);

    /// Returns a socket that has accepted a peer.
    fn accepted() -> (Socket, WebSocket<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || {
            let url = format!("ws://{address}{PATH}");
            let (peer, response) = tungstenite::client(url, TcpStream::connect(address).unwrap()).unwrap();
            assert_eq!(response.headers()["Access-Control-Allow-Origin"], "*");
            peer
        });
        let socket = Socket::accept(listener.accept().unwrap().0, LIMIT).unwrap();
        (socket, peer.join().unwrap())
    }

    #[test]
    fn messages_are_one_stream() {
        let (mut socket, mut peer) = accepted();
        let send = thread::spawn(move || {
            peer.send(Message::binary(&b"AD"[..])).unwrap();
            peer.send(Message::binary(&b""[..])).unwrap(); // not the end of the stream
            peer.send(Message::Ping(b"?"[..].into())).unwrap();
            for (part, opcode, last) in [("V", Data::Binary, false), ("R_", Data::Continue, true)] {
                let frame = Frame::message(part.as_bytes(), OpCode::Data(opcode), last);
                peer.send(Message::Frame(frame)).unwrap();
            }
            peer.send(Message::binary(&b"V1"[..])).unwrap();
            assert_eq!(peer.read().unwrap(), Message::Pong(b"?"[..].into()));
            peer.close(None).unwrap();
            while peer.read().is_ok() {}
        });
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap(); // less than a message
        let mut rest = String::new();
        socket.read_to_string(&mut rest).unwrap();
        assert_eq!((byte, &*rest), (*b"A", "DVR_V1"));
        assert_eq!(socket.read(&mut byte).unwrap(), 0);
        assert_eq!(socket.write(b"late").unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(socket);
        send.join().unwrap();
    }

    #[test]
    fn a_write_is_one_message_and_the_end_is_a_close() {
        let (mut socket, mut peer) = accepted();
        assert_eq!(socket.write(&[7; 100_000]).unwrap(), 100_000);
        drop(socket);
        assert_eq!(peer.read().unwrap(), Message::binary(vec![7; 100_000]));
        assert!(peer.read().unwrap().is_close());
    }

    #[test]
    fn a_peer_that_is_no_runtime_is_an_error() {
        let (mut socket, mut peer) = accepted();
        peer.send(Message::text("hello")).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::InvalidData);
        let (mut socket, peer) = accepted();
        drop(peer); // without a close
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn every_wait_has_a_deadline() {
        let (mut socket, _peer) = accepted();
        socket.set_limit(Some(Duration::from_millis(20)));
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
        // A peer that sends nothing at all.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = Socket::accept(listener.accept().unwrap().0, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn another_path_or_scheme_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accept = thread::spawn(move || Socket::accept(listener.accept().unwrap().0, LIMIT).map(drop));
        let refused = tungstenite::client(format!("ws://{address}/"), TcpStream::connect(address).unwrap());
        assert!(matches!(
            refused,
            Err(tungstenite::HandshakeError::Failure(Error::Http(response))) if response.status() == 404
        ));
        assert!(accept.join().unwrap().is_err());
        for url in ["wss://127.0.0.1/", "http://127.0.0.1/", "nonsense", "ws:", ""] {
            assert_eq!(Socket::connect(url, LIMIT).unwrap_err().kind(), ErrorKind::InvalidData, "{url}");
        }
    }
}
