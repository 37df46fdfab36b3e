//! [`Monitor`] with real runtimes. .NET 5 and later have diagnostic ports.
use core::time::Duration;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Provider};
use ipc_std::{AdvertisedRuntime, Client, Error, Monitor, MonitorEvent, Phase, Timeouts, TraceConfig};

use crate::runtime::{Runtime, Start, each_runtime};

const LONG: Duration = Duration::from_secs(30);

/// Calls `test` with a function that starts a runtime, for each runtime that has ports.
pub(crate) fn each_with_ports(test: impl Fn(&Start<'_>)) {
    each_runtime(|start| {
        let mut runtime = start(&[]);
        runtime.wait_for_socket();
        if runtime.knows(4, 0) {
            eprintln!("{}: process {}", runtime.name, runtime.process_id);
            test(start);
        }
    });
}

pub(crate) fn arrived(monitor: &Monitor, runtime: &Runtime) -> AdvertisedRuntime {
    match monitor.next_event(LONG).unwrap() {
        Some(MonitorEvent::Arrived(arrived)) => arrived,
        other => panic!("{}: {other:?}", runtime.name),
    }
}

fn assert_left(monitor: &Monitor, runtime: &Runtime) {
    match monitor.next_event(LONG).unwrap() {
        Some(MonitorEvent::Left(_)) => {}
        other => panic!("{}: {other:?}", runtime.name),
    }
}

/// Returns whether the bytes contain this text in UTF-16.
fn contains(bytes: &[u8], text: &str) -> bool {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(text.len()).any(|window| window == text)
}

/// Returns providers of events that a runtime writes only after it resumes, without a rundown: the loaded assemblies.
/// NativeAOT loads none; the test program writes events there.
fn startup_providers() -> [Provider<'static>; 2] {
    ["Microsoft-Windows-DotNETRuntime", "Lab-Workload"].map(|name| Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: name.into(),
        arguments: "".into(),
    })
}

#[test]
fn two_ports_that_suspend_are_resumed_one_by_one() {
    each_with_ports(|start| {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] =
            ["a port", "another"].map(|name| Monitor::bind(directory.path().join(name)).unwrap());
        let paths = [&first, &second].map(|monitor| monitor.path().unwrap().to_str().unwrap().to_owned());
        let ports = format!("{},suspend;{}", paths[0], paths[1]);
        let mut runtime = start(&[("DOTNET_DiagnosticPorts", ports.as_ref())]);
        let [seen, again] = [&first, &second].map(|monitor| arrived(monitor, &runtime));
        assert_eq!((seen.runtime_cookie, seen.process_id), (again.runtime_cookie, again.process_id));

        let timeouts = Timeouts { silence: Duration::from_millis(300), ..Timeouts::default() };
        let client = first.client(seen.runtime_cookie).with_timeouts(timeouts);
        let info = client.process_info().unwrap();
        assert_eq!((info.runtime_cookie, info.process_id), (seen.runtime_cookie, seen.process_id));
        client.set_environment_variable("LAB_SET", Some("through a port")).unwrap();
        // The test program exits after this number of rounds.
        client.set_environment_variable("LAB_ROUNDS", Some("3")).unwrap();
        let providers = startup_providers();
        let config = TraceConfig { rundown_keyword: 0, ..TraceConfig::new(&providers) };
        let mut session = client.start_tracing(&config).unwrap();
        client.resume().unwrap();
        client.resume().unwrap();
        // .NET 11 sends the header of the stream.
        let mut trace = Vec::new();
        let error = session.read_to_end(&mut trace).unwrap_err();
        let error = error.downcast::<Error>().unwrap();
        assert!(trace.len() < 200, "{}: {} bytes", runtime.name, trace.len());
        let silent = matches!(error, Error::Timeout { phase: Phase::ReadingTrace, .. });
        assert!(silent, "{}: the runtime runs although another port suspends it: {error}", runtime.name);

        second.client(seen.runtime_cookie).resume().unwrap();
        let aot = runtime.is_native();
        let first_word = if aot { "Lab-Workload" } else { "System.Private.CoreLib" };
        read_until(&mut session, &mut trace, |trace| contains(trace, first_word));
        if info.command_line.to_string().contains("Workload") {
            while let Err(e) = session.read_to_end(&mut trace) {
                assert_eq!(e.kind(), std::io::ErrorKind::TimedOut, "{}: {e}", runtime.name);
            }
            assert!(runtime.ends_soon(), "{}: the program did not read the variable", runtime.name);
        } else {
            let environment = client.environment().unwrap();
            assert_eq!(environment.get("LAB_SET").unwrap(), "through a port");
            session.stop();
            session.read_to_end(&mut trace).unwrap();
            runtime.kill();
        }
        assert!(session.is_complete(), "{}", runtime.name);
        assert_left(&first, &runtime);
        assert_left(&second, &runtime);
    });
}

/// Reads until `enough` returns true.
fn read_until(session: &mut impl Read, bytes: &mut Vec<u8>, enough: impl Fn(&[u8]) -> bool) {
    let until = Instant::now() + LONG;
    let mut buf = vec![0; 1 << 16];
    while !enough(bytes) {
        assert!(Instant::now() < until, "the expected bytes do not arrive");
        match session.read(&mut buf) {
            Ok(0) => panic!("the stream has ended"),
            Ok(n) => bytes.extend_from_slice(&buf[..n]),
            Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::TimedOut),
        }
    }
}

#[test]
fn a_monitor_notices_a_killed_runtime() {
    each_with_ports(|start| {
        let directory = tempfile::tempdir().unwrap();
        let monitor = Monitor::bind(directory.path().join("port")).unwrap();
        let (name, value) = monitor.variable(true).unwrap();
        let ends: [fn(&Client); 4] = [
            |_| {},
            // The connection carries a command, or half of one.
            |client| drop(client.connect().unwrap()),
            |client| drop(client.start_tracing(&TraceConfig::new(&startup_providers())).unwrap()),
            |client| client.resume().unwrap(),
        ];
        for before in ends {
            let mut runtime = start(&[(name, &value)]);
            let seen = arrived(&monitor, &runtime);
            before(&monitor.client(seen.runtime_cookie));
            runtime.kill();
            assert_left(&monitor, &runtime);
            assert!(monitor.runtimes().is_empty());
        }
    });
}

#[test]
fn a_runtime_connects_to_a_restarted_monitor() {
    each_with_ports(|start| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("port");
        let bind = |path: &Path| Monitor::bind(path).unwrap();
        let mut monitor = bind(&path);
        let (name, value) = monitor.variable(true).unwrap();
        let runtime = start(&[(name, &value)]);
        let seen = arrived(&monitor, &runtime);
        for _ in 0..3 {
            drop(monitor);
            monitor = bind(&path);
            assert_eq!(arrived(&monitor, &runtime), seen, "{}", runtime.name);
        }
        monitor.client(seen.runtime_cookie).resume().unwrap();
        // The runtime also connects again after a time without a monitor.
        drop(monitor);
        monitor = bind(&path);
        assert_eq!(arrived(&monitor, &runtime), seen, "{}", runtime.name);
        monitor.client(seen.runtime_cookie).process_info().unwrap();
    });
}
