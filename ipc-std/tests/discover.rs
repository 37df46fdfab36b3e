//! Discovery as a library has it: reasons as data, races, and who is spoken to. What the tool makes of them, and most of
//! the reasons, is in `cli_discover`.
#![cfg(all(target_os = "linux", feature = "cli"))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

mod tool;

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use ipc_std::discover::{self, Reason, Signs};
use ipc_std::{Client, Error, ErrorKind, Timeouts};
use tempfile::TempDir;

use crate::tool::FakeProcess;

/// A process without a runtime, whose `TMPDIR` this is.
fn idle(directory: &Path) -> Child {
    tool::started(Command::new("cat").env("TMPDIR", directory).stdin(Stdio::piped()))
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// The name that its socket would have.
fn socket_name(process_id: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    format!("dotnet-diagnostic-{process_id}-{started}-socket")
}

#[test]
fn what_is_found_can_be_asked() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let found = discover::find(runtime.id()).unwrap();
    assert_eq!((found.process_id, found.local_process_id), (runtime.id(), runtime.id()));
    assert_eq!((found.path.as_path(), found.router), (runtime.socket.as_path(), false));
    let info = found.client().process_info().unwrap();
    assert_eq!(found.info, Some(info));
    let rows = discover::list();
    let mut rows = rows.iter().filter_map(|row| row.as_ref().ok());
    assert!(rows.any(|row| row.path == runtime.socket), "it is in the list");
}

#[test]
fn reasons_are_data() {
    let directory = TempDir::new().unwrap();
    let idle = idle(directory.path());
    let why = discover::find(idle.id()).unwrap_err();
    let [Reason::NoSocket { looked_in, signs: Signs::Absent }] = why.reasons() else { panic!("{why:?}") };
    assert_eq!(looked_in, &[directory.path().to_owned(), discover::directory()]);
    assert_eq!((why.process_id(), why.kind()), (idle.id(), ErrorKind::NotFound));
    let error = Error::from(why);
    assert!(
        error.to_string().starts_with(&format!("process {} cannot be asked: it has no", idle.id())),
        "{error}"
    );
    end(idle);
}

#[test]
fn a_socket_that_vanishes() {
    let directory = TempDir::new().unwrap();
    let idle = idle(directory.path());
    let socket = directory.path().join(socket_name(idle.id()));
    let _listener = UnixListener::bind(&socket).unwrap();
    let mut search = discover::search(idle.id(), &Timeouts::default());
    assert_eq!(search.path(), Some(socket.as_path()));
    fs::remove_file(&socket).unwrap();
    let why = search.ask(&Timeouts::default(), None).unwrap_err();
    let [Reason::Vanished { path }] = why.reasons() else { panic!("{why:?}") };
    assert_eq!(*path, socket);
    assert!(why.to_string().contains("was there, and is no more"), "{why}");
    end(idle);
}

#[test]
fn a_client_knows_an_impostor_whenever_it_connects() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let client = Client::for_process(runtime.id()).unwrap();
    client.process_info().unwrap();
    fs::remove_file(&runtime.socket).unwrap();
    let _listener = UnixListener::bind(&runtime.socket).unwrap();
    let error = client.set_environment_variable("SECRET", Some("1")).unwrap_err();
    let Error::Impostor { process_id, peer, .. } = &error else { panic!("{error}") };
    assert_eq!((*process_id, peer.process_id), (runtime.id(), std::process::id()));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("nothing was sent"), "{error}");
}

#[test]
fn processes_come_and_go_while_it_looks() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        for _ in 0..50 {
            let (found, in_the_way) = discover::search_all(&Timeouts::default());
            assert!(in_the_way.is_empty(), "{in_the_way:?}");
            assert!(found.iter().any(|search| search.path() == Some(runtime.socket.as_path())));
        }
        done.store(true, Ordering::Relaxed);
    });
    // Of one that is gone there is nothing but that to say.
    for _ in 0..50 {
        let mut child = Command::new("true").spawn().unwrap();
        let looked = thread::scope(|scope| {
            let looked = scope.spawn(|| discover::find(child.id()).unwrap_err());
            thread::yield_now();
            looked.join().unwrap()
        });
        child.wait().unwrap();
        let expected = ["no_process", "ended", "no_socket"];
        assert!(looked.reasons().iter().all(|reason| expected.contains(&reason.name())), "{looked:?}");
    }
}
