//! The transfer of the descriptor of `user_events`, in both roles and as bytes on the socket. Not every kernel has
//! `user_events`, so the descriptor is that of a file or a pipe.
#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use core::mem::MaybeUninit;
use core::time::Duration;
use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use ipc_proto::types::{
    EventFilter, EventLevel, SessionConfig, SessionId, TracepointConfig, UserEventsProvider,
    UserEventsSession,
};
use ipc_proto::{
    Advertise, Array, CollectTracing5, CollectTracing6, Command as _, Continuation, Guid, HResult, Message,
    Serve, Text, encode_to_vec,
};
use ipc_std::{Client, Error, Incoming, Server, Stream, UserEvents, drive};
use ipc_testkit::{FakeRuntime, Profile, Response};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// A deadline that only a hanging test reaches.
const HANGS: Duration = Duration::from_secs(300);

const PROVIDER: UserEventsProvider<'_> = UserEventsProvider {
    keywords: 1,
    level: EventLevel::VERBOSE,
    name: Text::new("P"),
    arguments: Text::new(""),
    filter: EventFilter::ALL,
    tracepoints: TracepointConfig { default_tracepoint_name: Text::new("tp"), sets: Array::EMPTY },
};

/// Returns the bytes of CollectTracing5, or of 6, by its id.
fn request(id: u8) -> Vec<u8> {
    #[rustfmt::skip]
    let parts = [
        &b"DOTNET_IPC_V1\0\x51\0\x02"[..], &[id], &[0, 0],
        &[1, 0, 0, 0],                          // session_type
        &[0; 8],                                // rundownKeyword
        &[1, 0, 0, 0],                          // one provider
        &[1, 0, 0, 0, 0, 0, 0, 0],              // keywords
        &[5, 0, 0, 0],                          // logLevel
        &[2, 0, 0, 0], b"P\0\0\0",              // provider_name
        &[1, 0, 0, 0], b"\0\0",                 // arguments
        &[0, 0, 0, 0, 0],                       // no filter
        &[3, 0, 0, 0], b"t\0p\0\0\0",           // default_tracepoint_name
        &[0, 0, 0, 0],                          // no sets
    ];
    parts.concat()
}

fn refusal(hresult: HResult) -> Vec<u8> {
    [&b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0"[..], &hresult.0.to_le_bytes()].concat()
}

fn start(client: &Client, data: impl AsFd) -> Result<UserEvents, Error> {
    let providers = [PROVIDER];
    let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
    client.start_user_events(&session, data)
}

fn runtime() -> FakeRuntime {
    FakeRuntime::start(Profile::net10()).unwrap()
}

fn connect(runtime: &FakeRuntime) -> UnixStream {
    let stream = UnixStream::connect(runtime.path()).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream
}

fn listen(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    set_socket_timeout(&listener, Timeout::Recv, Some(HANGS)).unwrap();
    listener
}

/// Creates a pipe. Its reader notices when the last writer is closed.
fn pipe() -> (File, OwnedFd) {
    let (reader, writer) = UnixStream::pair().unwrap();
    (OwnedFd::from(reader).into(), writer.into())
}

fn wait(fd: impl AsFd) {
    let soon = Timespec::try_from(HANGS).unwrap();
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&soon)).unwrap(), 1, "the descriptor does not become ready");
}

/// Waits until all descriptors of the other end are closed.
fn wait_until_closed(mut reader: &File) {
    wait(reader);
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    assert_eq!(sent, bytes.len());
}

fn stream(socket: UnixStream, deadline: Duration) -> Stream {
    Stream::new(socket).unwrap().with_deadline(Instant::now() + deadline)
}

/// Reads all bytes until the end.
fn read_to_end(mut socket: &UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn the_runtime_writes_to_the_file_of_the_client() {
    let runtime = runtime();
    let mut data = tempfile::tempfile().unwrap();
    let session = start(&Client::at(runtime.path()), &data).unwrap();
    assert_ne!(session.session_id(), 0);
    assert!(runtime.user_events_data(session.session_id() + 1).is_none());
    let there = runtime.user_events_data(session.session_id()).unwrap();
    File::from(there).write_all(b"from the runtime").unwrap();
    data.rewind().unwrap();
    let mut seen = String::new();
    data.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "from the runtime");
    assert_eq!(runtime.requests()[0].bytes, request(6));
}

#[test]
fn a_stop_closes_the_descriptor() {
    let runtime = runtime();
    let (reader, writer) = pipe();
    let session = start(&Client::at(runtime.path()), writer).unwrap();
    let id = session.session_id();
    assert!(!session.has_ended());
    assert!(runtime.user_events_data(id).is_some());
    session.stop().unwrap();
    assert!(runtime.user_events_data(id).is_none(), "the session ends before the answer");
    wait_until_closed(&reader);
}

#[test]
fn dropping_the_session_ends_it() {
    let runtime = runtime();
    let (reader, writer) = pipe();
    drop(start(&Client::at(runtime.path()), writer).unwrap());
    wait_until_closed(&reader);
}

#[test]
fn a_session_stopped_by_another_client_keeps_its_connection() {
    let runtime = runtime();
    let client = Client::at(runtime.path());
    let (reader, writer) = pipe();
    let session = start(&client, writer).unwrap();
    let another = start(&client, pipe().1).unwrap();
    client.stop_tracing(session.session_id()).unwrap();
    wait_until_closed(&reader);
    assert!(!session.has_ended() && !another.has_ended());
    drop(runtime);
    for session in [session, another] {
        wait(&session);
        assert!(session.has_ended());
    }
}

/// The connection carries only the session id.
#[test]
fn a_suspended_runtime_accepts_the_descriptor() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    let client = Client::at(runtime.path());
    let (reader, writer) = pipe();
    let session = start(&client, writer).unwrap();
    client.resume().unwrap();
    assert!(!session.has_ended());
    session.stop().unwrap();
    wait_until_closed(&reader);
}

#[test]
fn the_bytes_that_a_client_sends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runtime");
    let listener = listen(&path);
    let mut data = tempfile::tempfile().unwrap();
    thread::scope(|scope| {
        let tool = scope.spawn(|| start(&Client::at(&path), &data));
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(HANGS)).unwrap();
        // A runtime reads the header first, then the payload.
        let mut bytes = [0; 81];
        socket.read_exact(&mut bytes[..20]).unwrap();
        socket.read_exact(&mut bytes[20..]).unwrap();
        assert_eq!(bytes[..], request(6));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 9];
        let received =
            recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::empty()).unwrap();
        assert_eq!(received.bytes, 1, "the descriptor comes with one byte");
        let mut descriptors = Vec::new();
        for message in control.drain() {
            let RecvAncillaryMessage::ScmRights(received) = message else {
                panic!("another control message")
            };
            descriptors.extend(received);
        }
        assert_eq!(descriptors.len(), 1);
        let descriptor = descriptors.remove(0);
        File::from(descriptor).write_all(b"here").unwrap();
        socket.set_nonblocking(true).unwrap();
        assert_eq!(
            socket.read(&mut bytes).unwrap_err().kind(),
            ErrorKind::WouldBlock,
            "the client waits for the answer"
        );
        socket.set_nonblocking(false).unwrap();
        socket.write_all(b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11").unwrap();
        let session = tool.join().unwrap().unwrap();
        assert_eq!(session.session_id(), 0x1122_3344_5566_7788);
        assert!(!session.has_ended());
        drop(socket);
        wait(&session);
        assert!(session.has_ended());
    });
    let mut seen = String::new();
    data.rewind().unwrap();
    data.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "here");
}

#[test]
fn the_bytes_that_a_runtime_accepts() {
    let runtime = runtime();
    runtime.on(CollectTracing6::CODE, |_| Response::UserEvents(Vec::new()));
    for id in [6, 7] {
        let (reader, writer) = pipe();
        let mut socket = connect(&runtime);
        let request = request(id);
        for piece in request.chunks(7) {
            socket.write_all(piece).unwrap();
        }
        send(&socket, b"!", &[writer.as_fd()]);
        drop(writer);
        let mut answer = [0; 28];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..20], *b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0");
        let session_id = u64::from_le_bytes(answer[20..].try_into().unwrap());
        assert!(runtime.user_events_data(session_id).is_some());
        socket.set_nonblocking(true).unwrap();
        assert_eq!(
            socket.read(&mut answer).unwrap_err().kind(),
            ErrorKind::WouldBlock,
            "the connection stays open"
        );
        drop(socket);
        wait_until_closed(&reader);
    }
}

#[test]
fn of_two_descriptors_the_first_is_used() {
    let runtime = runtime();
    for others in [1, 2, 7] {
        let ((first, first_writer), (other, other_writer)) = (pipe(), pipe());
        let mut socket = connect(&runtime);
        socket.write_all(&request(6)).unwrap();
        let mut descriptors = vec![first_writer.as_fd()];
        descriptors.resize(1 + others, other_writer.as_fd());
        send(&socket, b"!", &descriptors);
        let mut answer = [0; 28];
        socket.read_exact(&mut answer).unwrap();
        let session_id = u64::from_le_bytes(answer[20..].try_into().unwrap());
        let there = runtime.user_events_data(session_id).unwrap();
        drop((first_writer, other_writer));
        wait_until_closed(&other);
        File::from(there).write_all(&[7]).unwrap();
        let mut seen = [0];
        (&first).read_exact(&mut seen).unwrap();
        assert_eq!(seen, [7]);
    }
}

#[test]
fn no_descriptor_is_a_bad_encoding() {
    let runtime = runtime();
    let bad = refusal(HResult::BAD_ENCODING);
    // A byte without a descriptor, or the end of the connection.
    let mut socket = connect(&runtime);
    socket.write_all(&[&request(6)[..], b"!"].concat()).unwrap();
    assert_eq!(read_to_end(&socket), bad);
    let mut socket = connect(&runtime);
    socket.write_all(&request(6)).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&socket), bad);
    // The same over a stream that is not known to be a socket.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| runtime.serve(theirs));
        ours.write_all(&request(6)).unwrap();
        send(&ours, b"!", &[pipe().1.as_fd()]);
        assert_eq!(read_to_end(&ours), bad);
    });
}

/// Plain reads receive the request, and they close a descriptor that comes with its bytes.
#[test]
fn a_descriptor_sent_with_the_request_is_lost() {
    let runtime = runtime();
    let (reader, writer) = pipe();
    let mut socket = connect(&runtime);
    send(&socket, &request(6), &[writer.as_fd()]);
    drop(writer);
    wait_until_closed(&reader);
    socket.write_all(b"!").unwrap();
    assert_eq!(read_to_end(&socket), refusal(HResult::BAD_ENCODING));
}

#[test]
fn a_peer_that_closes_is_harmless() {
    let runtime = runtime();
    for with_descriptor in [false, true] {
        let (reader, writer) = pipe();
        let mut socket = connect(&runtime);
        socket.write_all(&request(6)).unwrap();
        if with_descriptor {
            send(&socket, b"!", &[writer.as_fd()]);
        }
        drop((socket, writer));
        wait_until_closed(&reader);
    }
    Client::at(runtime.path()).process_info().unwrap();
}

/// A runtime waits for a silent client, but can be dropped meanwhile.
#[test]
fn a_silent_peer_does_not_block_the_end_of_the_runtime() {
    let runtime = runtime();
    let mut socket = connect(&runtime);
    socket.write_all(&request(6)).unwrap();
    while runtime.requests().is_empty() {
        thread::yield_now();
    }
    drop(runtime);
    assert_eq!(read_to_end(&socket), b"");
}

#[test]
fn refusals_reach_the_client() {
    let new = runtime();
    new.on(CollectTracing5::CODE, |_| Response::Refuse(HResult::FAIL));
    let old = FakeRuntime::start(Profile::net9()).unwrap();
    for (runtime, expected) in [(&new, HResult::FAIL), (&old, HResult::UNKNOWN_COMMAND)] {
        let (reader, writer) = pipe();
        match start(&Client::at(runtime.path()), writer) {
            Err(Error::Refused { hresult, .. }) => assert_eq!(hresult, expected),
            other => panic!("{other:?}"),
        }
        wait_until_closed(&reader);
    }
}

/// A runtime that does not know the command answers immediately and closes the connection, in most cases before the
/// client sends the descriptor.
#[test]
fn an_older_runtime_does_not_wait_for_the_descriptor() {
    const TIMES: usize = 50;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runtime");
    let listener = listen(&path);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TIMES {
                let (mut socket, _) = listener.accept().unwrap();
                socket.read_exact(&mut [0; 81]).unwrap();
                socket.write_all(&refusal(HResult::UNKNOWN_COMMAND)).unwrap();
            }
        });
        for _ in 0..TIMES {
            match start(&Client::at(&path), pipe().1) {
                Err(Error::Refused { hresult, .. }) => assert_eq!(hresult, HResult::UNKNOWN_COMMAND),
                other => panic!("{other:?}"),
            }
        }
    });
}

/// A runtime built of a `Server`, with a deadline.
#[test]
fn a_server_receives_the_descriptor() {
    let directory = tempfile::tempdir().unwrap();
    let advertise = Advertise { runtime_cookie: Guid([7; 16]), process_id: 42, future: 0 };
    let mut server = Server::new(&advertise).unwrap();
    server.listen(directory.path()).unwrap();
    let path = server.path().unwrap().to_owned();
    let (reader, writer) = pipe();
    thread::scope(|scope| {
        let tool = scope.spawn(|| start(&Client::at(path), writer));
        let Some(Incoming { mut stream, .. }) = server.accept().unwrap() else {
            panic!("the server was stopped")
        };
        stream.set_deadline(Instant::now() + HANGS);
        let (mut receive, mut send) = ([0; 4096], [0; 64]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        drive(&mut serve, &mut stream).unwrap();
        let (request, mut reply) = serve.finish();
        assert_eq!(request.unwrap().continuation(), Continuation::UserEvents);
        let descriptor = stream.receive_descriptor().unwrap().unwrap();
        let flags = rustix::io::fcntl_getfd(&descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "child processes do not inherit it");
        reply.answer_untyped(&SessionId { session_id: 5 }).unwrap();
        drive(&mut reply, &mut stream).unwrap();
        assert_eq!(tool.join().unwrap().unwrap().session_id(), 5);
        File::from(descriptor).write_all(&[1]).unwrap();
    });
    let mut seen = Vec::new();
    (&reader).read_to_end(&mut seen).unwrap();
    assert_eq!(seen, [1]);
}

#[test]
fn receiving_has_a_deadline() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let ours = stream(ours, Duration::from_millis(1));
    assert_eq!(ours.receive_descriptor().unwrap_err().kind(), ErrorKind::TimedOut);
    (&theirs).write_all(b"!?").unwrap();
    assert!(ours.receive_descriptor().unwrap().is_none());
    assert!(ours.receive_descriptor().unwrap().is_none(), "a byte without a descriptor");
    drop(theirs);
    assert_eq!(ours.receive_descriptor().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn sending_has_a_deadline() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let full = stream(ours.try_clone().unwrap(), Duration::from_millis(1));
    while (&ours).write(&[0; 4096]).is_ok() {}
    assert_eq!(full.send_descriptor(&theirs).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(theirs);
    assert_eq!(full.send_descriptor(&ours).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

/// Receiving fails if the process has reached its limit of descriptors. The test runs in a process of its own, because
/// the limit applies to the whole process.
#[test]
fn a_process_without_free_descriptors() {
    const CHILD: &str = "USER_EVENTS_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_process_without_free_descriptors"]).env(CHILD, "1");
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    send(&theirs, b"!", &[theirs.as_fd()]);
    send(&theirs, b"!", &[theirs.as_fd()]);
    let ours = stream(ours, HANGS);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let none = rustix::process::Rlimit { current: Some(0), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, none).unwrap();
    let lost = ours.receive_descriptor();
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let lost = lost.unwrap_err();
    assert!(lost.to_string().contains("has no free one"), "{lost}");
    assert!(ours.receive_descriptor().unwrap().is_some());
}

/// The client checks the request, because some runtimes end when they receive it.
#[test]
fn invalid_requests_are_not_sent() {
    let runtime = runtime();
    let mut provider = PROVIDER;
    provider.tracepoints.default_tracepoint_name = Text::NULL;
    let providers = [provider];
    let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
    let result = Client::at(runtime.path()).start_user_events(&session, pipe().1);
    assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    assert!(runtime.requests().is_empty());
    assert_eq!(request(6).len(), Message::HEADER_LEN + 61);
}

/// These requests end a runtime when it has the descriptor. Without one, it refuses them.
#[test]
fn values_that_end_a_runtime() {
    let (long, ids) = ("n".repeat(437), [7, 7]);
    let mut named = PROVIDER;
    named.tracepoints.default_tracepoint_name = long.as_str().into();
    let mut filtered = PROVIDER;
    filtered.filter.event_ids = Array::from(&ids);
    for provider in [named, filtered] {
        let providers = [provider];
        let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
        let request = CollectTracing5 { session: SessionConfig::UserEvents(session) };
        let request = encode_to_vec(CollectTracing5::CODE, &request).unwrap();
        for profile in [Profile::net10(), Profile::net11_aot()] {
            let runtime = FakeRuntime::start(Profile { careful: false, ..profile }).unwrap();
            let mut socket = connect(&runtime);
            socket.write_all(&request).unwrap();
            send(&socket, b"!", &[pipe().1.as_fd()]);
            assert_eq!(read_to_end(&socket), b"", "no answer");
            let mut socket = connect(&runtime);
            socket.write_all(&[&request[..], b"!"].concat()).unwrap();
            assert_eq!(read_to_end(&socket), refusal(HResult::BAD_ENCODING));
        }
    }
}
