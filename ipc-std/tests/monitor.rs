//! [`Monitor`] against runtimes, against those that are none, and against itself.
#![cfg(feature = "fake")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]
mod peer;

use core::time::Duration;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Command;
use std::thread;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider};
use ipc_proto::{Advertise, Guid, HResult, ReceiveAdvertise, encode_to_vec};
use ipc_std::fake::{FakeRuntime, Port, Profile};
use ipc_std::{
    AdvertisedRuntime, Client, Error, ErrorKind, Monitor, MonitorEvent, Phase, Rejection, Stream, Timeouts,
    TraceConfig,
};

#[cfg(unix)]
use peer::Listener;
use peer::{Place, connect, is_ready};

/// Nothing takes so long, but on a machine that does nothing at all.
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

/// A runtime that calls the monitor at `path`.
fn runtime(path: &Path, suspended: bool) -> FakeRuntime {
    let ports = vec![Port { path: path.to_owned(), suspended }];
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

/// A connection on which somebody says that he is a runtime with this cookie.
fn says(path: &Path, cookie: &[u8; 16]) -> Stream {
    let mut stream = connect(path);
    let mut frame = [0; Advertise::LEN];
    let advertise = Advertise { runtime_cookie: Guid(*cookie), process_id: 42, future: 0 };
    ipc_proto::Encode::encode(&advertise, &mut ipc_proto::wire::Writer::new(&mut frame));
    stream.write_all(&frame).unwrap();
    stream
}

/// Takes events until the runtime waits for a command: then it is seen when it hangs up, though this process lives on.
fn wait_until_waiting(monitor: &Monitor, cookie: Guid) {
    let until = Instant::now() + LONG;
    while !monitor.is_waiting(cookie) {
        assert!(Instant::now() < until, "it connects again");
        assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
    }
}

/// Whether somebody listens at `path`.
fn is_there(path: &Path) -> bool {
    Client::at(path).connect().is_ok()
}

/// Whether the other side has closed it, or does within a long time.
fn is_closed(stream: &mut Stream) -> bool {
    stream.set_deadline(Instant::now() + LONG);
    match stream.read(&mut [0]) {
        Ok(n) => n == 0,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_runtime_arrives_once_is_commanded_often_and_leaves() {
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
    assert!(monitor.poll_event().unwrap().is_none(), "it arrived once");
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
fn the_system_says_who_it_is() {
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
fn a_step_down_takes_the_next_connection() {
    let Lab { monitor, path, .. } = &lab();
    let ports = vec![Port { path: path.clone(), suspended: false }];
    let old = FakeRuntime::without_listener(Profile { ports, ..Profile::net31() }).unwrap();
    let client = monitor.client(arrived(monitor).runtime_cookie);
    let error = client.process_info().unwrap_err();
    assert_eq!(error.hresult(), Some(HResult::UNKNOWN_COMMAND), "{error}");
    assert_eq!(old.requests().len(), 3, "ProcessInfo3, 2 and 1, a connection each");
}

#[test]
fn a_trace_streams_while_other_commands_come() {
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
        // Whoever takes events takes nobody's connection.
        scope.spawn(|| {
            while fakes.iter().any(FakeRuntime::is_suspended) {
                assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
            }
        });
    });
}

#[test]
fn whoever_waits_is_woken_by_what_another_has_seen() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = says(path, b"the only one....");
    let cookie = arrived(monitor).runtime_cookie;
    for _ in 0..300 {
        let taken = monitor.wait_for(cookie).unwrap();
        thread::scope(|scope| {
            // Two wait, one of them polling for both. What they wait for is seen by a third.
            let waiting = scope.spawn(|| monitor.wait_for(cookie).unwrap());
            let other = scope.spawn(|| monitor.next_event(Duration::from_millis(1)).unwrap());
            drop(taken);
            stream = says(path, b"the only one....");
            assert!(monitor.poll_event().unwrap().is_none());
            assert!(other.join().unwrap().is_none());
            drop(waiting.join().unwrap());
        });
        stream = says(path, b"the only one....");
    }
    drop(stream);
}

#[test]
fn it_sits_in_somebody_elses_loop() {
    let Lab { monitor, path, .. } = &lab();
    let wait = |until_due: bool| {
        let due = monitor.due().filter(|_| until_due);
        let timeout = due.map_or(LONG, |due| due.saturating_duration_since(Instant::now()));
        is_ready(monitor, timeout)
    };
    let fake = runtime(path, false);
    let runtime = loop {
        assert!(wait(false), "it is readable when somebody comes");
        match monitor.poll_event().unwrap() {
            Some(MonitorEvent::Arrived(runtime)) => break runtime,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    // What a client has seen meanwhile makes it readable too, though no connection has anything to say any more.
    let other = says(path, b"one who arrives.");
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
    assert_eq!(left, 2, "by the time that is due it has seen that both have left");
}

#[test]
fn those_who_are_none_are_dropped_and_hold_nobody_up() {
    const EACH: usize = 60;
    let Lab { monitor, path, .. } = &lab();
    let fake = runtime(path, true);
    let client = monitor.client(arrived(monitor).runtime_cookie);
    let say = |bytes: &[u8]| {
        let mut stream = connect(path);
        stream.write_all(bytes).unwrap();
        stream
    };
    let mut others = Vec::new();
    for _ in 0..EACH {
        others.extend([&b""[..], b"A", b"ADVR_V1\0 and some more", b"GET / HTTP/1.1\r\n"].map(say));
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
fn too_many_that_say_nothing_make_room() {
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
    // On a machine that stood still for 250 ms some were too late before.
    assert!(rejected <= 44, "{rejected}");
    assert!(silent.iter_mut().take(44).all(is_closed));
    drop(more);
}

#[test]
fn who_speaks_unasked_is_dropped() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = says(path, b"cannot wait, it.");
    arrived(monitor);
    stream.write_all(b"!").unwrap();
    assert!(matches!(next(monitor), MonitorEvent::Rejected { rejection: Rejection::Unasked, .. }));
    assert!(matches!(next(monitor), MonitorEvent::Left(_)), "and does not come again");
}

#[test]
fn the_newest_connection_wins() {
    let Lab { monitor, path, .. } = &lab();
    let mut old = says(path, b"the same runtime");
    let runtime = arrived(monitor);
    let mut new = says(path, b"the same runtime");
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer_one(&mut new));
        monitor.client(runtime.runtime_cookie).resume().unwrap();
        answering.join().unwrap();
    });
    assert!(is_closed(&mut old));
    assert!(monitor.poll_event().unwrap().is_none(), "it has neither left nor arrived again");
}

/// Answers one command with 24 bytes of OK, whatever it is.
fn answer_one(stream: &mut Stream) {
    stream.read_exact(&mut [0; 20]).unwrap();
    let ok = encode_to_vec(ipc_proto::Code::OK, &ipc_proto::types::Status::OK).unwrap();
    stream.write_all(&ok).unwrap();
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let Lab { monitor, path, .. } = &lab();
    let mut stream = connect(path);
    let frame = [&Advertise::MAGIC[..], b"a slow runtime's", &[42, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let limit = Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into());
    let began = Instant::now();
    for byte in frame {
        // It is gone already if it was too late.
        let _ = stream.write_all(&[byte]);
        if let Some(event) = monitor.poll_event().unwrap() {
            match event {
                MonitorEvent::Arrived(runtime) => assert_eq!(runtime.process_id, 42),
                // On a machine that stood still meanwhile.
                MonitorEvent::Rejected { .. } => assert!(began.elapsed() >= limit),
                other => panic!("{other:?}"),
            }
            return;
        }
    }
    panic!("it should have arrived");
}

#[test]
fn who_does_not_come_again_is_waited_for_by_the_deadline() {
    let Lab { monitor, path, .. } = &lab();
    let stream = says(path, b"comes only once.");
    let runtime = arrived(monitor);
    let timeouts = Timeouts { call: Duration::from_millis(50), ..Timeouts::default() };
    let client = monitor.client(runtime.runtime_cookie).with_timeouts(timeouts);
    let first = client.connect().unwrap();
    let error = client.connect().unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::AwaitingRuntime, .. }), "{error}");
    // It lives on, as this process does.
    assert_eq!(monitor.runtimes(), [runtime]);
    drop((first, stream));
    assert!(matches!(monitor.wait_for(Guid::NIL), Err(Error::Left { .. })));
}

#[test]
fn a_runtime_that_was_removed_arrives_again() {
    let Lab { monitor, path, .. } = &lab();
    let fake = runtime(path, false);
    let first = arrived(monitor);
    assert!(monitor.remove(first.runtime_cookie));
    assert!(!monitor.remove(first.runtime_cookie));
    // Its connection is closed, so it makes another.
    assert_eq!(arrived(monitor).runtime_cookie, fake.profile().runtime_cookie);
}

#[test]
fn runtimes_find_a_monitor_that_is_restarted() {
    let Lab { monitor, path, _place } = lab();
    let fakes = [(); 3].map(|()| runtime(&path, true));
    for _ in &fakes {
        arrived(&monitor);
    }
    drop(monitor);
    assert!(!is_there(&path));
    let monitor = Monitor::bind(&path).unwrap();
    for _ in &fakes {
        monitor.client(arrived(&monitor).runtime_cookie).resume().unwrap();
    }
    assert!(!fakes.iter().any(FakeRuntime::is_suspended));
}

#[test]
#[cfg(unix)]
fn a_dead_socket_is_replaced_and_nothing_else() {
    let place = Place::new();
    let path = place.path("port");
    drop(Listener::bind(&path));
    assert!(path.exists(), "the socket is left behind");
    let monitor = Monitor::bind(&path).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    let error = Monitor::bind(&path).unwrap_err();
    assert!(matches!(&error, Error::InUse { .. }), "{error}");
    // Somebody else's that lies there now is not removed.
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
#[cfg(unix)]
fn of_many_that_replace_a_dead_socket_one_has_it() {
    let place = Place::new();
    let path = place.path("port");
    for _ in 0..200 {
        drop(Listener::bind(&path));
        let bound: Vec<_> = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| Monitor::bind(&path)));
            threads.map(|thread| thread.join().unwrap()).into_iter().flatten().collect()
        });
        assert_eq!(bound.len(), 1);
        let _runtime = says(&path, b"comes to the one");
        arrived(&bound[0]);
    }
}

#[test]
fn whoever_waits_sees_in_time_what_another_thread_has_begun() {
    let Lab { monitor, path, .. } = &lab();
    let _stream = says(path, b"is forgotten ...");
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
        // Forgotten is forgotten, for those who wait too.
        assert!(monitor.remove(runtime.runtime_cookie));
        assert!(matches!(waiting_for.join().unwrap(), Err(Error::Left { .. })));
        let _other = says(path, b"so that it ends.");
        assert!(matches!(waiting.join().unwrap(), Some(MonitorEvent::Arrived(_))));
    });
    assert!(began.elapsed() < LONG / 2, "somebody has waited for the deadline");
}

#[test]
fn a_loop_of_ones_own_hears_of_what_is_due() {
    let Lab { monitor, path, .. } = &lab();
    let _stream = says(path, b"has a command...");
    let runtime = arrived(monitor);
    assert_eq!(monitor.due(), None);
    thread::scope(|scope| {
        scope.spawn(|| drop(monitor.wait_for(runtime.runtime_cookie).unwrap()));
        assert!(is_ready(monitor, LONG), "its descriptor says that there is news");
    });
    assert!(monitor.poll_event().unwrap().is_none());
    assert!(monitor.due().is_some());
}

#[test]
fn a_client_outlives_its_monitor() {
    let Lab { monitor, path, _place } = lab();
    let _fake = runtime(&path, false);
    let client = monitor.client(arrived(&monitor).runtime_cookie);
    drop(monitor);
    client.resume().unwrap();
    assert!(is_there(&path));
    drop(client);
    assert!(!is_there(&path));
}

#[test]
#[cfg(unix)]
fn a_command_is_told_where_the_port_is() {
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
    let error = monitor.spawn(&mut Command::new("/no/such program"), true).unwrap_err();
    assert!(error.to_string().starts_with("cannot start /no/such program: "), "{error}");
    let odd = Monitor::bind(_place.path("a;b")).unwrap();
    assert!(odd.variable(true).unwrap_err().to_string().contains("semicolon"));
}

#[test]
fn who_waits_for_events_can_be_woken() {
    let Lab { monitor, .. } = &lab();
    let began = Instant::now();
    let waker = monitor.waker();
    // Be it before anybody waits, for the next one who does.
    waker.wake();
    assert!(monitor.next_event(LONG * 3).unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| monitor.next_event(LONG * 3).unwrap().is_none());
        waker.wake();
        assert!(waiting.join().unwrap());
    });
    assert!(began.elapsed() < LONG * 3, "it was not woken");
    assert!(monitor.next_event(Duration::from_millis(1)).unwrap().is_none());
    drop(lab());
    waker.wake();
}

#[test]
#[cfg(windows)]
fn a_port_has_one_name_and_is_told_by_its_short_one() {
    let place = Place::new();
    let whole = place.path("port");
    let short = whole.to_str().unwrap().strip_prefix(r"\\.\pipe\").unwrap();
    let monitor = Monitor::bind(short).unwrap();
    assert_eq!(monitor.path(), whole);
    assert_eq!(monitor.variable(true).unwrap().1, *format!("{short},suspend"));
    let _runtime = runtime(short.as_ref(), false);
    arrived(&monitor);
    for bad in ["", r"C:\port", r"\\.\pipe\", r"\\.\pipe\a\b"] {
        assert!(matches!(Monitor::bind(bad).unwrap_err(), Error::Listen { .. }), "{bad}");
    }
    assert!(Monitor::bind("a;b").unwrap().variable(true).unwrap_err().to_string().contains("semicolon"));
}
