//! Checks of the examples.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by unwrapping")]

#[cfg(all(unix, feature = "fake"))]
#[path = "../examples/many_sessions/recorder.rs"]
mod recorder;

/// The event loop of `many_sessions`.
#[cfg(all(unix, feature = "fake"))]
mod many_sessions {
    use super::recorder;
    use core::time::Duration;

    use ipc_proto::types::{EventLevel, Provider};
    use ipc_proto::{Code, SessionEnd};
    use ipc_std::fake::{FakeRuntime, Fault, Profile, Response};
    use ipc_std::{Client, Timeouts, TraceConfig};

    fn record(clients: &[Client], length: Duration) -> Vec<recorder::Recording> {
        let (name, arguments) = ("Lab-Workload".into(), "".into());
        let provider = Provider { keywords: u64::MAX, level: EventLevel::VERBOSE, name, arguments };
        recorder::record(clients, &TraceConfig::new(&[provider]), length).unwrap()
    }

    #[test]
    fn every_session_is_read_to_its_end() {
        const TRACE: &[u8] = include_bytes!("../../testdata/nettrace/gen-net10-lab-small.nettrace");
        let runtimes: Vec<_> = (0..20).map(|_| FakeRuntime::start(Profile::net10()).unwrap()).collect();
        for runtime in &runtimes {
            runtime.on(Code(0x0203), |_| Response::Trace(TRACE.to_vec()));
        }
        let clients: Vec<_> = runtimes.iter().map(|runtime| Client::at(runtime.path())).collect();
        for recording in record(&clients, Duration::from_millis(100)) {
            assert_eq!((recording.events, recording.end), (142, Some(SessionEnd::Complete)), "{recording:?}");
        }
    }

    /// A runtime that exits, hangs, or sends nothing does not delay the others.
    #[test]
    fn sessions_do_not_wait_for_each_other() {
        let [good, silent, hangs, exits] = [(); 4].map(|()| FakeRuntime::start(Profile::net10()).unwrap());
        silent.on(Code(0x0203), |_| Response::Trace(Vec::new()));
        hangs.set_fault(Fault::StallStream(1000));
        exits.set_fault(Fault::CloseAfter(5000));
        let clients: Vec<_> =
            [&good, &silent, &hangs, &exits].iter().map(|runtime| Client::at(runtime.path())).collect();
        let timeouts = Timeouts { stop: Duration::from_millis(500), ..Timeouts::default() };
        let clients: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| if number == 2 { client.with_timeouts(timeouts) } else { client })
            .collect();
        let recordings = record(&clients, Duration::from_millis(300));
        let ends: Vec<_> = recordings.iter().map(|recording| recording.end).collect();
        assert_eq!(
            ends,
            [Some(SessionEnd::Complete), Some(SessionEnd::CutOff), None, Some(SessionEnd::CutOff)]
        );
        assert!(recordings.first().unwrap().events > 0, "{recordings:?}");
        let error = recordings.get(2).unwrap().error.as_ref().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
    }
}

#[cfg(unix)]
#[path = "../examples/websocket/socket.rs"]
mod socket;

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
