//! [`Monitor`] with runtimes, with other peers, and with other monitors.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
mod peer;

use core::time::Duration;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
#[cfg(unix)]
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, process::Command};

use ipc_proto::port::Rejection;
use ipc_proto::types::{EventLevel, Provider};
use ipc_proto::{Advertise, Guid, HResult, ReceiveAdvertise, encode_to_vec};
use ipc_std::{
    AdvertisedRuntime, Client, Error, ErrorKind, Monitor, MonitorEvent, Phase, Stream, Timeouts, TraceConfig,
};
use ipc_testkit::{FakePort, FakeRuntime, Profile};

use peer::{Place, connect, is_ready};

/// Longer than anything takes, even on a loaded machine.
const LONG: Duration = Duration::from_secs(20);

struct Lab {
    _place: Place,
    path: PathBuf,
    monitor: Monitor,
}

fn lab() -> Lab {
    let place = Place::new();
    let path = place.path("port");
    Lab { monitor: Monitor::bind(&path).unwrap(), path, _place: place }
}

/// Starts a runtime that connects to the monitor at `path`.
fn runtime(path: &Path, suspended: bool) -> FakeRuntime {
    let ports = vec![FakePort { path: path.to_owned(), suspended }];
    FakeRuntime::without_listener(Profile { ports, ..Profile::net10() }).unwrap()
}

fn next(monitor: &Monitor) -> MonitorEvent {
    monitor.next_event(LONG).unwrap().expect("an event")
}

fn arrived(monitor: &Monitor) -> AdvertisedRuntime {
    match next(monitor) {
        MonitorEvent::Arrived(runtime) => runtime,
        other => panic!("{other:?}"),
    }
}

/// Connects and sends the frame of a runtime with this cookie.
fn advertise(path: &Path, cookie: &[u8; 16]) -> Stream {
    let mut stream = connect(path);
    let mut frame = [0; Advertise::LEN];
    let advertise = Advertise { runtime_cookie: Guid(*cookie), process_id: 42, future: 0 };
    ipc_proto::Encode::encode(&advertise, &mut ipc_proto::wire::Writer::new(&mut frame));
    stream.write_all(&frame).unwrap();
    stream
}

/// Takes events until the runtime waits for a command.
fn wait_until_waiting(monitor: &Monitor, cookie: Guid) {
    let until = Instant::now() + LONG;
    while !monitor.is_waiting(cookie) {
        assert!(Instant::now() < until, "the runtime does not connect again");
        assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
    }
}

/// Returns whether a process listens at `path`.
fn has_listener(path: &Path) -> bool {
    Client::at(path).connect().is_ok()
}

/// Returns whether the peer closes the connection.
fn is_closed(stream: &mut Stream) -> bool {
    stream.set_deadline(Instant::now() + LONG);
    match stream.read(&mut [0]) {
        Ok(n) => n == 0,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn runtime_arrives_once_takes_commands_and_leaves() {
    let Lab { monitor, path, .. } = &lab();
    let fake = runtime(path, true);
    let seen = arrived(monitor);
    assert_eq!(seen.runtime_cookie, fake.profile().runtime_cookie);
    assert_eq!(seen.process_id, u64::from(std::process::id()));
    let client = monitor.client(seen.runtime_cookie);
    for _ in 0..20 {
        assert_eq!(client.process_info().unwrap().clr_product_version, "10.0.12");
    }
    client.set_environment_variable("SEEN", Some("yes")).unwrap();
    assert_eq!(client.environment().unwrap().get("SEEN").unwrap(), "yes");
    assert!(fake.is_suspended());
    client.resume().unwrap();
    assert!(!fake.is_suspended());
    assert!(monitor.poll_event().unwrap().is_none(), "the runtime arrives once");
    assert_eq!(monitor.runtimes(), [seen]);
    wait_until_waiting(monitor, seen.runtime_cookie);
    drop(fake);
    assert!(matches!(next(monitor), MonitorEvent::Left(left) if left == seen));
    assert!(monitor.runtimes().is_empty());
    assert!(matches!(client.resume(), Err(Error::Left { .. })));
    assert_eq!(client.resume().unwrap_err().kind(), ErrorKind::Gone);
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn system_reports_credentials() {
    let Lab { monitor, path, .. } = &lab();
    let _fake = runtime(path, false);
    let credentials = arrived(monitor).credentials.unwrap();
    assert_eq!(credentials.process_id, std::process::id());
    #[cfg(unix)]
    assert_eq!(credentials.user_id, rustix::process::getuid().as_raw());
    #[cfg(unix)]
    assert_eq!(credentials.group_id, rustix::process::getgid().as_raw());
}

#[test]
fn older_command_takes_the_next_connection() {
    let Lab { monitor, path, .. } = &lab();
    let ports = vec![FakePort { path: path.clone(), suspended: false }];
    let old = FakeRuntime::without_listener(Profile { ports, ..Profile::net31() }).unwrap();
    let client = monitor.client(arrived(monitor).runtime_cookie);
    let error = client.process_info().unwrap_err();
    assert_eq!(error.hresult(), Some(HResult::UNKNOWN_COMMAND), "{error}");
    assert_eq!(old.requests().len(), 3, "ProcessInfo3, 2 and 1, each on its own connection");
}

#[test]
fn trace_streams_beside_other_commands() {
    let Lab { monitor, path, .. } = &lab();
    let _fake = runtime(path, true);
    let client = monitor.client(arrived(monitor).runtime_cookie);
    let providers = [Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: "Lab-Workload".into(),
        arguments: "".into(),
    }];
    let mut session = client.start_tracing(&TraceConfig::new(&providers)).unwrap();
    client.resume().unwrap();
    let mut magic = [0; 8];
    session.read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"Nettrace");
    assert!(client.process_info().is_ok());
    session.stop();
    session.read_to_end(&mut Vec::new()).unwrap();
    assert!(session.is_complete());
    assert!(session.stop_error().is_none());
}

#[test]
fn many_threads_share_a_monitor() {
    const RUNTIMES: usize = 12;
    let Lab { monitor, path, .. } = &lab();
    let fakes: Vec<_> = (0..RUNTIMES).map(|_| runtime(path, true)).collect();
    let cookies: Vec<_> = fakes.iter().map(|_| arrived(monitor).runtime_cookie).collect();
    thread::scope(|scope| {
        for cookie in &cookies {
            scope.spawn(move || {
                let client = monitor.client(*cookie);
                for _ in 0..30 {
                    client.process_info().unwrap();
                }
                client.resume().unwrap();
            });
        }
        // A wait for events does not take connections from the clients.
        scope.spawn(|| {
            while fakes.iter().any(FakeRuntime::is_suspended) {
                assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
            }
        });
    });
}

#[test]
fn waiting_thread_wakes_for_a_connection_that_another_thread_accepted() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = advertise(path, b"the only one....");
    let cookie = arrived(monitor).runtime_cookie;
    for _ in 0..300 {
        let taken = monitor.wait_for(cookie).unwrap();
        thread::scope(|scope| {
            // Two threads wait, and one of them polls for both. A third thread accepts the connection.
            let waiting = scope.spawn(|| monitor.wait_for(cookie).unwrap());
            let other = scope.spawn(|| monitor.next_event(Duration::from_millis(1)).unwrap());
            drop(taken);
            stream = advertise(path, b"the only one....");
            assert!(monitor.poll_event().unwrap().is_none());
            assert!(other.join().unwrap().is_none());
            drop(waiting.join().unwrap());
        });
        stream = advertise(path, b"the only one....");
    }
    drop(stream);
}

#[test]
fn descriptor_works_in_an_event_loop() {
    let Lab { monitor, path, .. } = &lab();
    let wait = |until_due: bool| {
        let due = monitor.due().filter(|_| until_due);
        let timeout = due.map_or(LONG, |due| due.saturating_duration_since(Instant::now()));
        is_ready(monitor, timeout)
    };
    let fake = runtime(path, false);
    let runtime = loop {
        assert!(wait(false), "a new connection makes it readable");
        match monitor.poll_event().unwrap() {
            Some(MonitorEvent::Arrived(runtime)) => break runtime,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    // The monitor is readable for an event that a client's wait has found, although no connection is readable any more.
    let other = advertise(path, b"another runtime.");
    monitor.client(runtime.runtime_cookie).resume().unwrap();
    assert!(wait(false));
    assert!(matches!(next(monitor), MonitorEvent::Arrived(_)));
    wait_until_waiting(monitor, runtime.runtime_cookie);
    drop((fake, other));
    let mut left = 0;
    let until = Instant::now() + LONG;
    while left < 2 && Instant::now() < until {
        wait(true);
        while let Some(event) = monitor.poll_event().unwrap() {
            assert!(matches!(event, MonitorEvent::Left(_)), "{event:?}");
            left += 1;
        }
    }
    assert_eq!(left, 2, "polling when due finds that both have left");
}

#[test]
fn other_peers_are_dropped_and_delay_no_runtime() {
    const EACH: usize = 60;
    let Lab { monitor, path, .. } = &lab();
    let fake = runtime(path, true);
    let client = monitor.client(arrived(monitor).runtime_cookie);
    let send = |bytes: &[u8]| {
        let mut stream = connect(path);
        stream.write_all(bytes).unwrap();
        stream
    };
    let mut others = Vec::new();
    for _ in 0..EACH {
        others.extend([&b""[..], b"A", b"ADVR_V1\0 and some more", b"GET / HTTP/1.1\r\n"].map(send));
        client.process_info().unwrap();
    }
    client.resume().unwrap();
    assert!(!fake.is_suspended());
    let mut late = [0; 3];
    let mut bad_magic = 0;
    for _ in &others {
        match next(monitor) {
            MonitorEvent::Rejected { rejection: Rejection::TooLate { received: 0 }, .. } => late[0] += 1,
            MonitorEvent::Rejected { rejection: Rejection::TooLate { received: 1 }, .. } => late[1] += 1,
            MonitorEvent::Rejected { rejection: Rejection::TooLate { .. }, .. } => late[2] += 1,
            MonitorEvent::Rejected { rejection: Rejection::Protocol(_), .. } => bad_magic += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((late, bad_magic), ([EACH; 3], EACH));
    assert!(others.iter_mut().all(is_closed));
}

#[test]
fn oldest_of_too_many_silent_connections_is_dropped() {
    let Lab { monitor, path, .. } = &lab();
    let mut silent: Vec<_> = (0..200).map(|_| connect(path)).collect();
    assert!(monitor.poll_event().unwrap().is_none());
    let more: Vec<_> = (0..100).map(|_| connect(path)).collect();
    let crowded = |event| match event {
        MonitorEvent::Rejected { rejection, .. } => rejection == Rejection::Crowded,
        other => panic!("{other:?}"),
    };
    let mut rejected = 0;
    while let Some(event) = monitor.poll_event().unwrap() {
        rejected += usize::from(crowded(event));
    }
    // On a machine that stalled for 250 ms, some connections were rejected earlier because they were too late.
    assert!(rejected <= 44, "{rejected}");
    assert!(silent.iter_mut().take(44).all(is_closed));
    drop(more);
}

#[test]
fn data_before_a_command_ends_the_connection() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = advertise(path, b"cannot wait, it.");
    arrived(monitor);
    stream.write_all(b"!").unwrap();
    assert!(matches!(next(monitor), MonitorEvent::Rejected { rejection: Rejection::Unsolicited, .. }));
    assert!(matches!(next(monitor), MonitorEvent::Left(_)), "the runtime does not connect again");
}

#[test]
fn newest_connection_replaces_an_older_one() {
    let Lab { monitor, path, .. } = &lab();
    let mut old = advertise(path, b"the same runtime");
    let runtime = arrived(monitor);
    let mut new = advertise(path, b"the same runtime");
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer_one(&mut new));
        monitor.client(runtime.runtime_cookie).resume().unwrap();
        answering.join().unwrap();
    });
    assert!(is_closed(&mut old));
    assert!(monitor.poll_event().unwrap().is_none(), "the runtime neither leaves nor arrives again");
}

/// Answers any command with an OK of 24 bytes.
fn answer_one(stream: &mut Stream) {
    stream.read_exact(&mut [0; 20]).unwrap();
    let ok = encode_to_vec(ipc_proto::Code::OK, &ipc_proto::types::Status::OK).unwrap();
    stream.write_all(&ok).unwrap();
}

#[test]
fn frame_can_arrive_byte_by_byte() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = connect(path);
    let frame = [&Advertise::MAGIC[..], b"a slow runtime's", &[42, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let limit = Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into());
    let began = Instant::now();
    for byte in frame {
        // The connection is closed already if the frame was too late.
        let _ = stream.write_all(&[byte]);
        if let Some(event) = monitor.poll_event().unwrap() {
            match event {
                MonitorEvent::Arrived(runtime) => assert_eq!(runtime.process_id, 42),
                // The frame is too late on a machine that stalled meanwhile.
                MonitorEvent::Rejected { .. } => {
                    // The monitor counts whole milliseconds.
                    assert!(began.elapsed() + Duration::from_millis(1) >= limit);
                }
                other => panic!("{other:?}"),
            }
            return;
        }
    }
    panic!("the runtime does not arrive");
}

#[test]
fn command_waits_for_a_connection_until_the_deadline() {
    let Lab { monitor, path, .. } = &lab();
    let stream = advertise(path, b"comes only once.");
    let runtime = arrived(monitor);
    let timeouts = Timeouts { call: Duration::from_millis(50), ..Timeouts::default() };
    let client = monitor.client(runtime.runtime_cookie).with_timeouts(timeouts);
    let first = client.connect().unwrap();
    let error = client.connect().unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::AwaitingRuntime, .. }), "{error}");
    // The runtime is still known, because its process, this one, runs.
    assert_eq!(monitor.runtimes(), [runtime]);
    drop((first, stream));
    assert!(matches!(monitor.wait_for(Guid::NIL), Err(Error::Left { .. })));
}

#[test]
fn removed_runtime_arrives_again() {
    let Lab { monitor, path, .. } = &lab();
    let fake = runtime(path, false);
    let first = arrived(monitor);
    assert!(monitor.remove(first.runtime_cookie));
    assert!(!monitor.remove(first.runtime_cookie));
    // The monitor closed the connection of the runtime, so the runtime connects again.
    assert_eq!(arrived(monitor).runtime_cookie, fake.profile().runtime_cookie);
}

#[test]
fn runtimes_find_a_restarted_monitor() {
    let Lab { monitor, path, _place } = lab();
    let fakes = [(); 3].map(|()| runtime(&path, true));
    for _ in &fakes {
        arrived(&monitor);
    }
    drop(monitor);
    assert!(!has_listener(&path));
    let monitor = Monitor::bind(&path).unwrap();
    for _ in &fakes {
        monitor.client(arrived(&monitor).runtime_cookie).resume().unwrap();
    }
    assert!(!fakes.iter().any(FakeRuntime::is_suspended));
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: Wine does not honour FILE_FLAG_FIRST_PIPE_INSTANCE")]
fn port_has_one_owner() {
    let Lab { monitor, path, .. } = &lab();
    assert!(matches!(Monitor::bind(path).unwrap_err(), Error::InUse { .. }));
    let _runtime = runtime(path, false);
    arrived(monitor);
}

#[test]
fn waiting_threads_notice_changes_by_other_threads() {
    let Lab { monitor, path, .. } = &lab();
    let _stream = advertise(path, b"is forgotten ...");
    let runtime = arrived(monitor);
    let began = Instant::now();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| monitor.next_event(LONG * 3).unwrap());
        let waiting_for = scope.spawn(|| {
            let _taken = monitor.wait_for(runtime.runtime_cookie).unwrap();
            monitor.wait_for(runtime.runtime_cookie).map(|_| ())
        });
        while monitor.is_waiting(runtime.runtime_cookie) {
            thread::yield_now();
        }
        // A thread that waits for a removed runtime fails immediately.
        assert!(monitor.remove(runtime.runtime_cookie));
        assert!(matches!(waiting_for.join().unwrap(), Err(Error::Left { .. })));
        let _other = advertise(path, b"so that it ends.");
        assert!(matches!(waiting.join().unwrap(), Some(MonitorEvent::Arrived(_))));
    });
    assert!(began.elapsed() < LONG / 2, "a thread waited until its deadline");
}

#[test]
fn event_loop_notices_an_earlier_due_time() {
    let Lab { monitor, path, .. } = &lab();
    let _stream = advertise(path, b"has a command...");
    let runtime = arrived(monitor);
    // Waits until the deadline of the frame, which arrived in time, has passed.
    while monitor.due().is_some() {
        assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
    }
    thread::scope(|scope| {
        scope.spawn(|| drop(monitor.wait_for(runtime.runtime_cookie).unwrap()));
        assert!(is_ready(monitor, LONG), "the descriptor becomes readable");
    });
    assert!(monitor.poll_event().unwrap().is_none());
    assert!(monitor.due().is_some());
}

#[test]
fn client_outlives_its_monitor() {
    let Lab { monitor, path, _place } = lab();
    let _fake = runtime(&path, false);
    let client = monitor.client(arrived(&monitor).runtime_cookie);
    drop(monitor);
    client.resume().unwrap();
    assert!(has_listener(&path));
    drop(client);
    assert!(!has_listener(&path));
}

#[test]
#[cfg(unix)]
fn spawned_command_has_the_port_in_its_environment() {
    let Lab { monitor, path, _place } = &lab();
    let out = _place.file("out");
    let script = format!("printf %s \"$DOTNET_DiagnosticPorts\" > '{}'", out.display());
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    for (suspend, tag) in [(true, "suspend"), (false, "nosuspend")] {
        assert!(monitor.spawn(&mut command, suspend).unwrap().wait().unwrap().success());
        assert_eq!(std::fs::read_to_string(&out).unwrap(), format!("{},{tag}", path.display()));
    }
    command.env("DOTNET_DiagnosticPorts", "/another,nosuspend;;/and one more");
    assert!(monitor.spawn(&mut command, true).unwrap().wait().unwrap().success());
    let all = format!("{},suspend;/another,nosuspend;/and one more", path.display());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), all);
    // A runtime ignores empty parts, so the list already names this port.
    command.env("DOTNET_DiagnosticPorts", format!(",{},nosuspend;/another,nosuspend", path.display()));
    assert!(monitor.spawn(&mut command, true).unwrap().wait().unwrap().success());
    let all = format!("{},suspend;/another,nosuspend", path.display());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), all);
    let error = monitor.spawn(&mut Command::new("/no/such program"), true).unwrap_err();
    assert!(error.to_string().starts_with("cannot start /no/such program: "), "{error}");
    let odd = Monitor::bind(_place.path("a;b")).unwrap();
    assert!(odd.variable(true).unwrap_err().to_string().contains("cannot contain"));
    let odd = Monitor::bind(_place.file("x").with_file_name(OsStr::from_bytes(b"\xff"))).unwrap();
    assert!(odd.variable(true).unwrap_err().to_string().contains("UTF-8"));

    // A value that is not UTF-8 is kept as it is.
    let value = OsStr::from_bytes(b"/\xff,nosuspend");
    assert!(monitor.spawn(command.env(Monitor::VARIABLE, value), true).unwrap().wait().unwrap().success());
    let all = [path.as_os_str().as_bytes(), b",suspend;/\xff,nosuspend"].concat();
    assert_eq!(std::fs::read(&out).unwrap(), all);
}

#[test]
fn wait_for_events_can_be_ended() {
    let Lab { monitor, .. } = &lab();
    let began = Instant::now();
    let waker = monitor.waker();
    // If `wake` is called before a thread waits, it ends the next wait.
    waker.wake();
    assert!(monitor.next_event(LONG * 3).unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| monitor.next_event(LONG * 3).unwrap().is_none());
        waker.wake();
        assert!(waiting.join().unwrap());
    });
    assert!(began.elapsed() < LONG * 3, "the wait was not ended");
    assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
    drop(lab());
    waker.wake();
}

#[test]
#[cfg(windows)]
fn pipe_has_one_name_and_a_short_form() {
    let place = Place::new();
    let whole = place.path("port");
    let short = whole.to_str().unwrap().strip_prefix(r"\\.\pipe\").unwrap();
    let monitor = Monitor::bind(short).unwrap();
    assert_eq!(monitor.path(), Some(whole.as_path()));
    assert_eq!(monitor.variable(true).unwrap().1, *format!("{short},suspend"));
    let _runtime = runtime(short.as_ref(), false);
    arrived(&monitor);
    for bad in ["", r"C:\port", r"\\.\pipe\", r"\\.\pipe\a\b"] {
        assert!(matches!(Monitor::bind(bad).unwrap_err(), Error::Listen { .. }), "{bad}");
    }
    let odd = Monitor::bind("a;b").unwrap();
    assert!(odd.variable(true).unwrap_err().to_string().contains("cannot contain"));
}
