//! Sessions of real runtimes whose streams are larger than the buffers of a connection.
use core::time::Duration;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::Instant;

use ipc_proto::HResult;
use ipc_proto::SessionEnd;
use ipc_proto::types::{EventLevel, Provider};
use ipc_std::{Client, Error, Monitor, Phase, Timeouts, TraceConfig, TraceReader, TraceSession};
use nettrace::End;
use rustix::process::{Signal, kill_process_group};

use crate::ports::{arrived, each_with_ports};
use crate::runtime::{Runtime, Start, each_runtime, with_runtimes};

/// Returns the provider of the runtime and that of the test program, with all events.
fn everything() -> [Provider<'static>; 2] {
    ["Microsoft-Windows-DotNETRuntime", "Lab-Workload"].map(|name| Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: name.into(),
        arguments: "".into(),
    })
}

/// A runtime that was suspended at a port, traced, and resumed. No client has read the stream.
struct Loaded {
    _directory: tempfile::TempDir,
    _monitor: Monitor,
    runtime: Runtime,
    client: Client,
    session: TraceSession,
}

fn loaded(start: &Start<'_>, timeouts: Timeouts) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let monitor = Monitor::bind(directory.path().join("port")).unwrap().with_timeouts(timeouts);
    let (name, value) = monitor.variable(true).unwrap();
    let flood = [("LAB_BURST", "500"), ("LAB_THREADS", "12"), ("LAB_PAUSE_MS", "0")];
    let mut variables = flood.map(|(name, value)| (name, OsStr::new(value))).to_vec();
    variables.push((name, &value));
    let runtime = start(&variables);
    let client = monitor.client(arrived(&monitor, &runtime).runtime_cookie);
    let session = client.start_tracing(&TraceConfig::new(&everything())).unwrap();
    client.resume().unwrap();
    Loaded { _directory: directory, _monitor: monitor, runtime, client, session }
}

/// Waits until the buffers of the connection are full.
fn fill_buffers() {
    thread::sleep(Duration::from_secs(5));
}

#[test]
fn a_session_that_was_not_read_is_stopped_and_complete() {
    each_with_ports(|start| {
        let mut load = loaded(start, Timeouts::default());
        fill_buffers();
        let mut trace = Vec::new();
        let end = load.session.finish(&mut trace).unwrap();
        assert_eq!(end, SessionEnd::Complete, "{}", load.runtime.name);
        assert!(load.session.stop_error().is_none(), "{:?}", load.session.stop_error());
        let mut reader = TraceReader::new(&trace[..]);
        let mut events = 0;
        while reader.next_event().unwrap().is_some() {
            events += 1;
        }
        eprintln!(
            "{}: {} bytes, {events} events, {} lost",
            load.runtime.name,
            trace.len(),
            reader.summary().losses.lost
        );
        assert_eq!(reader.summary().end, Some(End::Complete));
        assert!(events > 100, "{}: {events}", load.runtime.name);
    });
}

#[test]
fn a_reader_that_fails_leaves_no_open_session() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    each_with_ports(|start| {
        let mut load = loaded(start, Timeouts::default());
        load.session.read_exact(&mut [0; 4096]).unwrap();
        assert_eq!(load.session.finish(&mut Full).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(load.session.end(), Some(SessionEnd::Complete), "{}", load.runtime.name);
        // A session that is dropped, as by `?`, is stopped as well.
        let mut another = load.client.start_tracing(&TraceConfig::new(&everything())).unwrap();
        another.read_exact(&mut [0; 4096]).unwrap();
        drop(another);
        load.client.process_info().unwrap();
    });
}

#[test]
fn a_runtime_that_hangs_is_an_error_at_the_deadline() {
    each_with_ports(|start| {
        let timeouts = Timeouts { stop: Duration::from_secs(1), ..Timeouts::default() };
        let mut load = loaded(start, timeouts);
        load.session.read_exact(&mut [0; 4096]).unwrap();
        let group = load.runtime.group();
        kill_process_group(group, Signal::STOP).unwrap();
        let e = load.session.finish(&mut io::sink()).unwrap_err();
        kill_process_group(group, Signal::CONT).unwrap();
        let sentence = e.to_string();
        match e.downcast().unwrap() {
            // While the runtime was stopped, it had no connection at its port.
            Error::Timeout { phase: Phase::StoppingTrace { .. } | Phase::Connecting, .. } => {}
            other => panic!("{}: {other}", load.runtime.name),
        }
        eprintln!("{}: {sentence}", load.runtime.name);
        drop(load.session);
        load.client.process_info().unwrap();
    });
}

#[test]
fn the_session_of_a_killed_runtime_is_cut_off() {
    each_with_ports(|start| {
        let mut load = loaded(start, Timeouts::default());
        load.session.read_exact(&mut [0; 4096]).unwrap();
        load.session.stop();
        load.runtime.kill();
        assert_eq!(
            load.session.finish(&mut io::sink()).unwrap(),
            SessionEnd::CutOff,
            "{}",
            load.runtime.name
        );
    });
}

#[test]
fn the_65th_session_fails() {
    with_runtimes(|runtime| {
        let client = Client::at(&runtime.socket);
        let providers = everything();
        let config = small(&providers[1..]);
        let mut sessions: Vec<TraceSession> =
            (0..64).map(|_| client.start_tracing(&config).unwrap()).collect();
        assert!(is_full(runtime, &config), "{}", runtime.name);
        assert_eq!(sessions.pop().unwrap().finish(&mut io::sink()).unwrap(), SessionEnd::Complete);
        client.start_tracing(&config).unwrap();
    });
}

#[test]
fn the_session_of_a_killed_client_is_closed_with_its_next_events() {
    with_runtimes(|runtime| {
        let client = Client::at(&runtime.socket);
        let providers = everything();
        let config = small(&providers[1..]);
        let _sessions: Vec<TraceSession> = (0..63).map(|_| client.start_tracing(&config).unwrap()).collect();
        let file = runtime.directory.path().join("killed client.nettrace");
        // Samples, or the events of the test program if it was compiled ahead of time.
        let options = ["--provider", "Microsoft-DotNETCore-SampleProfiler:0:4", "--provider", "Lab-Workload"];
        let mut tool = runtime.start_trace(&options, &file, 1);
        assert!(is_full(runtime, &config), "{}", runtime.name);
        tool.kill().unwrap();
        tool.wait().unwrap();
        let killed = Instant::now();
        while is_full(runtime, &config) {
            assert!(killed.elapsed() < Duration::from_secs(60), "{}: the session is open", runtime.name);
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{}: the session was closed after {:?}", runtime.name, killed.elapsed());
    });
}

/// A session with small buffers and without a rundown.
fn small<'a>(providers: &'a [Provider<'a>]) -> TraceConfig<'a> {
    TraceConfig { buffer_mb: 1, rundown_keyword: 0, ..TraceConfig::new(providers) }
}

/// Returns whether the runtime refuses another session because it has 64.
fn is_full(runtime: &Runtime, config: &TraceConfig<'_>) -> bool {
    match Client::at(&runtime.socket).start_tracing(config) {
        Ok(_) => false,
        Err(Error::Refused { hresult: HResult::FAIL, .. }) => true,
        Err(e) => panic!("{}: {e}", runtime.name),
    }
}

/// A suspended runtime is called that, and not one that was compiled ahead of time. .NET 11 has a stream while it is
/// suspended.
#[test]
fn a_suspended_runtime_is_called_suspended() {
    each_runtime(|start| {
        let mut runtime = start(&[("DOTNET_DefaultDiagnosticPortSuspend", OsStr::new("1"))]);
        runtime.wait_for_socket();
        if !runtime.knows(4, 0) {
            return; // .NET Core 3.1 is never suspended.
        }
        let pid = runtime.process_id.to_string();
        for args in [
            &["stack", &pid][..],
            &["top", &pid, "--duration", "1s"],
            &["report", &pid, "--no-resume", "--duration", "300ms"],
            &["events", &pid, "--no-resume", "--duration", "300ms"],
            &["counters", &pid, "--duration", "1s"],
            &["counters", "list", &pid],
        ] {
            let error = runtime.run(args, 1).stderr;
            let error = String::from_utf8_lossy(&error);
            assert!(error.contains("suspended"), "{}: {args:?}: {error}", runtime.name);
            assert!(error.contains("dotnet-ipc resume"), "{}: {args:?}: {error}", runtime.name);
            assert!(!error.contains("ahead of time"), "{}: {args:?}: {error}", runtime.name);
        }
        runtime.run(&["resume", &pid], 0);
    });
}
