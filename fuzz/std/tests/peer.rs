//! The hostile peer that other projects fuzz their code with, at a connection of `ipc-std`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{Read, Write};

use ipc_fuzz::{Peer, holds, seeds};
use ipc_proto::{Command, GetProcessInfo3, ResumeRuntime};
use ipc_std::Connection;

#[test]
fn a_connection_returns_whatever_the_peer_sends() {
    let (mut answered, mut whole) = (0, 0);
    for input in seeds("hostile") {
        let mut peer = Peer::new(input);
        answered += usize::from(Connection::new(&mut peer).call(&ResumeRuntime {}).is_ok());
        let mut peer = Peer::new(input);
        let _ = Connection::new(&mut peer).environment(1 << 20);
        let mut peer = Peer::new(input);
        let _ = Connection::new(&mut peer).call(&GetProcessInfo3 {});
        whole += usize::from(peer.received()[peer.received().len().min(16)..].starts_with(&[4, 8]));
        assert_eq!(GetProcessInfo3::CODE.0, 0x0408);
    }
    assert!(answered > 3, "{answered} peers answer");
    assert!(whole > 300, "{whole} peers receive the request");
}

/// The seeds reach what a client does after the first answer: long environments, and several answers one after the
/// other.
#[test]
fn peers_send_whole_environments_and_several_answers() {
    let (mut environments, mut longest, mut several) = (0, 0, 0);
    for input in seeds("hostile") {
        let mut connection = Connection::new(Peer::new(input));
        let environment = connection.environment(1 << 20);
        let info = connection.call(&GetProcessInfo3 {}).map(drop);
        let resumed = connection.call(&ResumeRuntime {}).map(drop);
        let is_answer = |result: &Result<(), ipc_std::Error>| {
            result.as_ref().map_or_else(|error| error.hresult().is_some(), |()| true)
        };
        let answers = [&environment.as_ref().map_or(info, |_| Ok(())), &resumed];
        several += usize::from(answers.into_iter().all(is_answer));
        if let Ok(environment) = environment {
            environments += 1;
            let entries = environment.entries().map(|entry| 6 + 2 * entry.units().count());
            longest = longest.max(4 + entries.sum::<usize>());
        }
    }
    assert!(environments > 100, "{environments} whole environments");
    assert!(longest > 3 << 16, "the longest environment has {longest} bytes");
    assert!(several > 5, "{several} peers answer several times");
}

#[test]
fn code_that_ignores_the_end_fails() {
    fn reads_without_end(bytes: &[u8]) {
        let mut peer = Peer::new(bytes);
        while peer.read(&mut [0; 64]).is_ok() {}
    }
    fn writes_without_end(bytes: &[u8]) {
        let mut peer = Peer::new(bytes);
        let mut failures = 0;
        while failures < 2000 {
            failures += usize::from(peer.write(&[0; 64]).is_err());
        }
    }
    assert!(!holds(reads_without_end, b"some bytes"));
    // The fifth and the sixth byte are a number that eight divides: this peer receives so many bytes.
    assert!(!holds(writes_without_end, &[0; 40]));
}
