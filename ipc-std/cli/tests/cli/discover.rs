//! Tests of discovery through the library: reasons as data, races, and the identity of the peer. `find` tests
//! the output of the tool and most of the reasons.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use ipc_std::discover::{self, Reason, Scan, ScanConfig, Signs};
use ipc_std::{Client, Error, ErrorKind, Timeouts};
use tempfile::TempDir;

use crate::tool::FakeProcess;

/// Starts a process without a runtime and with this `TMPDIR`.
fn idle(directory: &Path) -> Child {
    crate::tool::started(Command::new("cat").env("TMPDIR", directory).stdin(Stdio::piped()))
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Returns the name of the socket that a runtime in the process with this id would have.
fn socket_name(process_id: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    format!("dotnet-diagnostic-{process_id}-{started}-socket")
}

#[test]
fn a_found_runtime_answers_requests() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let found = discover::find(runtime.id()).unwrap();
    assert_eq!((found.process_id, found.local_process_id), (runtime.id(), runtime.id()));
    assert_eq!((found.path.as_path(), found.router), (runtime.socket.as_path(), false));
    let info = found.client().process_info().unwrap();
    assert_eq!(found.info, Some(info));
    let rows = discover::list(&ScanConfig::default());
    let mut rows = rows.iter().filter_map(|row| row.as_ref().ok());
    assert!(rows.any(|row| row.path == runtime.socket), "the list has the runtime");
}

#[test]
fn reasons_are_data() {
    let directory = TempDir::new().unwrap();
    let idle = idle(directory.path());
    let why = discover::find(idle.id()).unwrap_err();
    let [Reason::NoSocket { searched, signs: Signs::Absent }] = why.reasons() else { panic!("{why:?}") };
    assert_eq!(searched, &[directory.path().to_owned(), discover::directory()]);
    assert_eq!((why.process_id(), why.kind()), (idle.id(), ErrorKind::NotFound));
    let error = Error::from(why);
    assert!(
        error.to_string().starts_with(&format!("process {} cannot be used: it has no", idle.id())),
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
    let mut search = discover::search(idle.id(), Timeouts::default().call);
    assert_eq!(search.path(), Some(socket.as_path()));
    fs::remove_file(&socket).unwrap();
    let why = discover::identify(&mut search, None).unwrap_err();
    let [Reason::Vanished { path }] = why.reasons() else { panic!("{why:?}") };
    assert_eq!(*path, socket);
    assert!(why.to_string().contains("disappeared during the search"), "{why}");
    end(idle);
}

#[test]
fn a_client_detects_an_impostor_at_each_connection() {
    let directory = TempDir::new().unwrap();
    let runtime = FakeProcess::start(directory.path());
    let client = Client::for_process(runtime.id()).unwrap();
    client.process_info().unwrap();
    fs::remove_file(&runtime.socket).unwrap();
    let _listener = UnixListener::bind(&runtime.socket).unwrap();
    let error = client.set_environment_variable("SECRET", Some("1")).unwrap_err();
    let Error::Impostor { peer, reason } = &error else { panic!("{error}") };
    let Reason::Impostor { peer: listener, .. } = &**reason else { panic!("{error}") };
    assert_eq!((peer, listener.process_id), (&format!("process {}", runtime.id()), std::process::id()));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("nothing was sent"), "{error}");
}

#[test]
fn processes_start_and_end_during_a_search() {
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
            let Scan { searches: found, obstacles, .. } = discover::scan(&ScanConfig::default());
            assert!(obstacles.is_empty(), "{obstacles:?}");
            assert!(found.iter().any(|search| search.path() == Some(runtime.socket.as_path())));
        }
        done.store(true, Ordering::Relaxed);
    });
    // The only reasons for a process that ended are that it ended, or that it has no socket.
    for _ in 0..50 {
        let mut child = Command::new("true").spawn().unwrap();
        let not_found = thread::scope(|scope| {
            let search = scope.spawn(|| discover::find(child.id()).unwrap_err());
            thread::yield_now();
            search.join().unwrap()
        });
        child.wait().unwrap();
        let expected = ["no_process", "ended", "no_socket"];
        assert!(not_found.reasons().iter().all(|reason| expected.contains(&reason.name())), "{not_found:?}");
    }
}

/// A directory with the socket of one runtime, and with 3,200 names of sockets of processes that do not exist. These
/// names are links to one socket that accepts no connection.
#[test]
fn many_silent_sockets_share_one_deadline_and_come_last() {
    const SILENT: usize = 1600;
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let silent = UnixListener::bind(path("silent")).unwrap();
    let runtime = FakeProcess::start(directory.path());
    // Most of the hard links have names that sort before that of the runtime.
    let is_free = |id: &u32| !Path::new(&format!("/proc/{id}")).exists();
    let mut process_ids = (1..runtime.id()).filter(is_free).chain(1 << 30..);
    for id in process_ids.by_ref().take(SILENT) {
        fs::hard_link(path("silent"), path(&format!("dotnet-diagnostic-{id}-1-socket"))).unwrap();
    }
    for id in process_ids.take(SILENT) {
        std::os::unix::fs::symlink("silent", path(&format!("dotnet-diagnostic-{id}-1-socket"))).unwrap();
    }
    rustix::net::listen(&silent, 1).unwrap();

    // 64 threads wait at the same time. With a deadline for each batch of 64 sockets, each socket would wait for the
    // whole deadline. With one deadline for all sockets, each waits only for a part of it. A busy machine needs more
    // time for each socket, but that time does not grow with the deadline.
    let has_one_deadline = |timeout: Duration| {
        let scan = discover::scan(&ScanConfig { directory: Some(directory.path()), timeout });
        let (mut links, mut silent, mut before, mut waited) = (0, 0, None, Duration::ZERO);
        discover::identify_all(scan, None, |search, result| {
            if search.process_id() == runtime.id() {
                before = Some(silent);
                return;
            }
            match result.unwrap_err().reasons() {
                [Reason::NotASocket { .. }] => links += 1,
                [Reason::Unanswered { error, .. }] => {
                    let Some(Error::Timeout { after, .. }) = error.downcast_ref() else { panic!("{error}") };
                    silent += 1;
                    waited += *after;
                }
                other => panic!("{other:?}"),
            }
        });
        assert_eq!((links, silent), (SILENT, SILENT));
        assert!(
            before.expect("the runtime is reported") < SILENT - 100,
            "{before:?} sockets were before the runtime"
        );
        waited / u32::try_from(SILENT).unwrap() < timeout / 4
    };
    let timeouts = [2, 8, 32].map(Duration::from_secs);
    assert!(timeouts.into_iter().any(has_one_deadline), "each socket waits for the whole deadline");
}
