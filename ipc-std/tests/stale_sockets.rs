//! Sockets at which no process listens any more.
//!
//! Nothing in this file starts a process: between `fork` and `exec` a child would have a copy of the descriptor of
//! every listener, and the sockets would not be dead yet.
#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports an unexpected state by a panic"
)]
mod peer;

use std::os::unix::net::UnixListener;
use std::thread;

use ipc_std::{Error, Monitor};

use peer::{HANGS, Listener, Place, connect, is_ready};

#[test]
fn only_a_stale_socket_is_replaced() {
    let place = Place::new();
    let path = place.path("port");
    drop(Listener::bind(&path));
    assert!(path.exists(), "the stale socket remains");
    let monitor = Monitor::bind(&path).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    let error = Monitor::bind(&path).unwrap_err();
    assert!(matches!(&error, Error::InUse { .. }), "{error}");
    // A socket that another monitor bound there later is not removed.
    std::fs::remove_file(&path).unwrap();
    let other = Monitor::bind(&path).unwrap();
    drop(monitor);
    assert!(path.exists());
    drop(other);
    assert!(!path.exists());
    std::fs::write(&path, "a letter").unwrap();
    let error = Monitor::bind(&path).unwrap_err();
    assert!(matches!(&error, Error::Listen { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a letter");
}

#[test]
fn one_of_many_monitors_replaces_a_stale_socket() {
    let place = Place::new();
    let path = place.path("port");
    for _ in 0..20 {
        drop(Listener::bind(&path));
        let bound: Vec<_> = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| Monitor::bind(&path)));
            threads.map(|thread| thread.join().unwrap()).into_iter().flatten().collect()
        });
        assert_eq!(bound.len(), 1);
        // Clients reach the only monitor that is bound.
        let _client = connect(&path);
        assert!(is_ready(&bound[0], HANGS), "the connection does not arrive");
    }
}

/// Any process that can read a directory can lock it.
#[test]
fn a_locked_directory_does_not_prevent_binding() {
    let place = Place::new();
    let path = place.path("port");
    drop(Listener::bind(&path));
    let directory = std::fs::File::open(path.parent().unwrap()).unwrap();
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive).unwrap();
    drop(Monitor::bind(&path).unwrap());
}

#[test]
fn a_copy_that_stays_is_a_listener() {
    let place = Place::new();
    let path = place.path("port");
    let _listener = UnixListener::bind(&path).unwrap();
    let error = Monitor::bind(&path).unwrap_err();
    assert!(matches!(&error, Error::InUse { .. }), "{error}");
}
