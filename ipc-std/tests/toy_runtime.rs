//! The example `toy_runtime`, which is written by the rules of the README, gives the answers that the conformance kit
//! expects.
#![cfg(feature = "conformance")]
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a test fails by unwrapping")]

use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ipc_proto::plan::Flavour;
use ipc_proto::types::ProcessInfo3;
use ipc_proto::{Advertise, Guid, Request};
use ipc_std::conformance::{State, cases, run};
use ipc_std::{Server, ServerStopper, Stream};

#[path = "../examples/toy_runtime/runtime.rs"]
mod runtime;

/// The commands that the toy leaves out although a runtime of its version and kind has them.
const LEFT_OUT: [&str; 8] = [
    "GenerateCoreDump",
    "GenerateCoreDump2",
    "GenerateCoreDump3",
    "AttachProfiler",
    "StartupProfiler",
    "EnablePerfMap",
    "DisablePerfMap",
    "ApplyStartupHook",
];

/// A toy that serves on a thread until it is dropped.
struct Served {
    stopper: ServerStopper,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(mut server: Server, version: u8, state: State) -> Self {
        let stopper = server.stopper();
        let thread = thread::spawn(move || {
            let version = format!("{version}.0.0");
            let info = ProcessInfo3 {
                version: 1,
                process_id: 42,
                runtime_cookie: Guid::NIL,
                command_line: "/opt/toy".into(),
                os: "Linux".into(),
                arch: "x64".into(),
                managed_entrypoint_assembly_name: "program".into(),
                clr_product_version: version.as_str().into(),
                portable_rid: "linux-x64".into(),
            };
            let mut toy = runtime::Toy::new(info, &[state == State::Suspended]);
            toy.run(&mut server).unwrap();
        });
        Self { stopper, thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// What opens connections to a server.
type Connect = Box<dyn Fn() -> io::Result<Stream>>;

/// Adds a port that listens.
fn listening(server: &mut Server) -> Connect {
    let directory = tempfile::tempdir().unwrap();
    server.listen(directory.path()).unwrap();
    let path = server.path().unwrap().to_owned();
    Box::new(move || {
        let _exists = &directory;
        Stream::connect(&path, soon())
    })
}

/// Adds a port whose connections the caller opens.
#[cfg(unix)]
fn fed(server: &mut Server) -> Connect {
    let inlet = server.inlet();
    Box::new(move || {
        let (client, served) = std::os::unix::net::UnixStream::pair()?;
        inlet.push(Stream::new(served)?);
        Ok(Stream::new(client)?.with_deadline(soon()))
    })
}

/// Tries every case in its state. Returns the commands whose answers differ, with the differences.
fn differences(
    version: u8,
    flavour: Flavour,
    port: fn(&mut Server) -> Connect,
) -> (BTreeSet<&'static str>, Vec<String>) {
    let (mut commands, mut differences) = (BTreeSet::new(), Vec::new());
    for state in [State::Running, State::Suspended] {
        let advertise = Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 };
        let mut server = Server::new(&advertise).unwrap();
        let connect = port(&mut server);
        let _toy = Served::start(server, version, state);
        for case in cases().into_iter().filter(|case| case.state == state && case.can_be_sent()) {
            let command = case.command().map_or("no command", |command| command.name);
            if let Err(difference) = run(&case.for_server(version, flavour), &connect) {
                commands.insert(command);
                differences.push(difference.to_string());
            }
        }
    }
    (commands, differences)
}

/// Asserts that a toy leaves out these commands, and has no other difference.
fn assert_leaves_out(expected: &[&str], version: u8, flavour: Flavour, port: fn(&mut Server) -> Connect) {
    let (commands, differences) = differences(version, flavour, port);
    let has = |name: &&str| Request::ALL.iter().any(|row| row.name == *name && row.since <= version);
    let expected: BTreeSet<_> = expected.iter().copied().filter(has).collect();
    let refused = differences.iter().all(|text| text.ends_with("got 0x80131515 DS_IPC_E_NOTSUPPORTED"));
    assert!(commands == expected && refused, ".NET {version}, {flavour:?}:\n{}", differences.join("\n"));
}

#[test]
fn a_toy_of_any_version_differs_only_in_the_commands_that_it_leaves_out() {
    for version in [3, 5, 6, 7, 8, 9, 10, 11] {
        assert_leaves_out(&LEFT_OUT, version, Flavour::CoreClr, listening);
    }
}

#[cfg(unix)]
#[test]
fn a_toy_whose_connections_are_delivered_answers_the_same() {
    assert_leaves_out(&LEFT_OUT, 10, Flavour::CoreClr, fed);
}
