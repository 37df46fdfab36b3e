//! What a peer can make a [`FakeRuntime`] store, and how long it can keep a connection.
#![cfg(feature = "io")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test reports an unexpected state by a panic"
)]
#[path = "../../tests/peer/mod.rs"]
mod peer;

use core::time::Duration;
use std::io::{self, Write};
use std::time::Instant;

use ipc_proto::Message;
use ipc_testkit::{FakeRuntime, Profile};

use peer::{HANGS, connect, pair};

#[test]
fn the_newest_requests_of_16_mib_are_stored() {
    const LIMIT: usize = 16 << 20;
    let runtime = FakeRuntime::without_listener(Profile::net10()).unwrap();
    let send = |number: u32, len: usize| {
        let (ours, theirs) = pair();
        let mut request = b"DOTNET_IPC_V1\0".to_vec();
        request.extend(u16::try_from(len).unwrap().to_le_bytes());
        request.extend([4, 3, 0, 0]);
        request.resize(len, 0);
        request[20..24].copy_from_slice(&number.to_le_bytes());
        std::thread::scope(|scope| {
            scope.spawn(|| runtime.serve(theirs));
            // `client` is dropped after the request, which closes the connection.
            let mut client = ours;
            client.write_all(&request)
        })
        .unwrap();
    };
    for number in 0..300 {
        send(number, Message::MAX_LEN);
    }
    let requests = runtime.requests();
    let stored: usize = requests.iter().map(|request| request.bytes.len()).sum();
    assert!((LIMIT - 2 * Message::MAX_LEN..=LIMIT).contains(&stored), "{stored}");
    let numbers: Vec<u32> = requests
        .iter()
        .map(|request| u32::from_le_bytes(*request.bytes[20..].first_chunk().unwrap()))
        .collect();
    let first = 300 - u32::try_from(requests.len()).unwrap();
    assert_eq!(numbers, (first..300).collect::<Vec<_>>(), "in order, up to the newest");
}

#[test]
fn a_silent_client_is_disconnected() {
    let profile = || Profile { client_timeout: Duration::from_millis(20), ..Profile::net10() };
    let runtime = FakeRuntime::start(profile()).unwrap();
    let mut silent = connect(runtime.path());
    let mut slow = connect(runtime.path());
    slow.write_all(b"DOTNET_IPC_V1\0\x14").unwrap();
    // An answer to the incomplete request can precede the end.
    for stream in [&mut silent, &mut slow] {
        stream.set_deadline(Instant::now() + HANGS);
        io::copy(stream, &mut io::sink()).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    use ipc_proto::{Command, GetProcessEnvironment, encode_to_vec};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // The environment is longer than the buffers of a socket.
    let environment = vec!["x".repeat(1 << 18); 4];
    let client_timeout = Duration::from_millis(20);
    let runtime = FakeRuntime::start(Profile { environment, client_timeout, ..Profile::net10() }).unwrap();
    let mut stream = connect(runtime.path());
    stream
        .write_all(&encode_to_vec(GetProcessEnvironment::CODE, &GetProcessEnvironment {}).unwrap())
        .unwrap();
    // A hang-up is reported although no event is requested.
    let timeout = Timespec::try_from(HANGS).unwrap();
    assert_eq!(poll(&mut [PollFd::new(&stream, PollFlags::empty())], Some(&timeout)), Ok(1));
    stream.set_deadline(Instant::now() + HANGS);
    let received = io::copy(&mut stream, &mut io::sink()).unwrap();
    assert!((20..2 << 20).contains(&received), "{received} bytes");
}
