//! The example `toy_runtime`, which is written by the rules of the README, gives the answers that the conformance kit
//! expects.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a test fails by unwrapping")]

use core::time::Duration;
use std::io::{self, Read};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ipc_proto::plan::Flavour;
use ipc_proto::types::{EventFilter, EventLevel, ProcessInfo3, StreamingProvider};
use ipc_proto::{Advertise, Array, Guid, Request};
use ipc_std::{Client, Server, ServerStopper, Stream, TraceConfig, TraceReader, TraceSession};
use ipc_testkit::conformance::{State, cases, run_all};
use nettrace::End;

mod peer;
#[path = "../examples/toy_runtime/runtime.rs"]
mod runtime;

use peer::Place;

/// The commands that the toy has.
const HAS: &[&str] = &[
    "StopTracing",
    "CollectTracing",
    "CollectTracing2",
    "CollectTracing3",
    "CollectTracing4",
    "CollectTracing5",
    "CollectTracing6",
    "GetProcessInfo",
    "GetProcessInfo2",
    "GetProcessInfo3",
    "ResumeRuntime",
    "GetProcessEnvironment",
    "SetEnvironmentVariable",
];

/// A toy that serves on a thread until it is dropped.
struct Served {
    stopper: ServerStopper,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(mut server: Server, version: u8, flavour: Flavour, state: State) -> Self {
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
            let mut toy = runtime::Toy::new(info, flavour, &[state == State::Suspended]);
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

fn server() -> Server {
    Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 }).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A function that opens connections to a server.
type Connect = Box<dyn Fn() -> io::Result<Stream> + Send + Sync>;

/// Adds a port that listens.
fn listening(server: &mut Server) -> Connect {
    let place = Place::new();
    server.listen(&place.directory()).unwrap();
    let path = server.path().unwrap().to_owned();
    Box::new(move || {
        let _exists = &place;
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

/// Asserts that a toy gives the answers of a runtime of this version and kind that has only the commands of the toy.
fn assert_has_its_commands(version: u8, flavour: Flavour, port: fn(&mut Server) -> Connect) {
    let has: Vec<_> = Request::ALL.iter().filter(|row| HAS.contains(&row.name)).map(|row| row.code).collect();
    for state in [State::Running, State::Suspended] {
        let mut server = server();
        let connect = port(&mut server);
        let _toy = Served::start(server, version, flavour, state);
        let cases = cases().into_iter().filter(|case| case.state == state);
        let report =
            run_all(cases.map(|case| case.for_server(version, flavour).for_commands(&has)), &connect);
        assert!(report.differences.is_empty(), ".NET {version}, {flavour:?}:\n{report}");
        assert!(report.not_tried.is_empty() || cfg!(windows), "{report}");
    }
}

#[test]
fn a_toy_of_any_version_differs_only_in_the_commands_that_it_leaves_out() {
    for version in [3, 5, 6, 7, 8, 9, 10, 11] {
        assert_has_its_commands(version, Flavour::CoreClr, listening);
    }
}

#[test]
fn a_toy_of_another_kind_does_not_differ() {
    for version in [5, 8, 10] {
        assert_has_its_commands(version, Flavour::Mono, listening);
    }
    assert_has_its_commands(9, Flavour::NativeAot, listening);
}

#[cfg(unix)]
#[test]
fn a_toy_whose_connections_are_delivered_answers_the_same() {
    assert_has_its_commands(10, Flavour::CoreClr, fed);
}

/// Starts a toy of .NET 10 with the flavour of the example.
fn start(state: State) -> (Served, Client) {
    let mut server = server();
    let connect = listening(&mut server);
    let client = Client::over("the toy", move |_| connect());
    (Served::start(server, 10, Flavour::Mono, state), client)
}

/// The kit accepts any answer to a valid request for `user_events`, which not every system has. The connection of this
/// request is half-closed, which is impossible for a pipe.
#[cfg(unix)]
#[test]
fn a_toy_leaves_out_user_events() {
    use ipc_testkit::conformance::send;

    let (_toy, client) = start(State::Running);
    let case = cases().into_iter().find(|case| case.name == "ct5u/default").unwrap();
    let connect = || Ok(client.connect().unwrap().into_stream().with_deadline(soon()));
    let answer = send(&case, None, connect).unwrap();
    assert_eq!(answer.to_string(), "0x80131515 DS_IPC_E_NOTSUPPORTED");
}

fn provider(event_ids: &[u32]) -> StreamingProvider<'_> {
    StreamingProvider {
        keywords: 3,
        level: EventLevel::INFORMATIONAL,
        name: runtime::PROVIDER.into(),
        arguments: "".into(),
        filter: EventFilter { enable: true, event_ids: Array::from(event_ids) },
    }
}

/// Reads a session, and stops it after `limit` events. Returns the number of events, and how the trace ends.
fn read(session: TraceSession, limit: u32) -> (u32, Option<End>) {
    let stopper = session.stopper();
    let (mut trace, mut events) = (TraceReader::new(session), 0);
    while events < limit && trace.next_event().unwrap().is_some() {
        events += 1;
    }
    stopper.stop();
    while trace.next_event().unwrap().is_some() {
        events += 1;
    }
    (events, trace.summary().end)
}

#[test]
fn a_toy_sends_the_events_that_the_session_includes() {
    let (_toy, client) = start(State::Running);
    let [other, tick] = [[provider(&[8])], [provider(&[7])]];
    let other = client.start_tracing(&TraceConfig::new(&other)).unwrap();
    let tick = client.start_tracing(&TraceConfig::new(&tick)).unwrap();
    let (events, end) = read(tick, 3);
    assert!(events >= 3 && end == Some(End::Complete), "{events}, {end:?}");
    assert_eq!(read(other, 0), (0, Some(End::Complete)));
}

#[test]
fn a_suspended_toy_sends_no_events() {
    let (_toy, client) = start(State::Suspended);
    let config = [provider(&[7])];
    let mut stopped = client.start_tracing(&TraceConfig::new(&config)).unwrap();
    let resumed = client.start_tracing(&TraceConfig::new(&config)).unwrap();
    stopped.stop();
    let mut stream = Vec::new();
    stopped.read_to_end(&mut stream).unwrap();
    assert_eq!(stream, b"");
    client.resume().unwrap();
    let (events, end) = read(resumed, 3);
    assert!(events >= 3 && end == Some(End::Complete), "{events}, {end:?}");
}
