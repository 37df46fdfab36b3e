//! Traces of real runtimes, read to their end.
use core::time::Duration;
use std::ffi::OsStr;
use std::io::Read;
use std::time::Instant;

use ipc_proto::types::{EventLevel, Format, Provider};
use ipc_proto::{Array, CollectTracing, StopTracing};
use ipc_std::{Client, TraceReader};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions, Version};
use serde_json::Value;

use crate::runtime::{Runtime, each_runtime, with_runtimes};
use crate::tool::{finish, tool};

/// The result of reading a trace.
#[derive(Debug, PartialEq)]
struct Seen {
    version: Option<Version>,
    end: Option<End>,
    events: u64,
    lost: u64,
}

/// Reads a trace in order of time. Asserts that every event has metadata and every field a value.
fn read(runtime: &Runtime, bytes: &[u8]) -> Seen {
    let name = &runtime.name;
    let mut trace =
        TraceReader::with_assembler(bytes, EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default()));
    let (mut events, mut last) = (0, i64::MIN);
    while let Some(event) = trace.next_event().unwrap() {
        let metadata = event.metadata().unwrap_or_else(|| panic!("{name}: an event without metadata"));
        assert_eq!(metadata.problem, None, "{name}: {} {}", metadata.provider, metadata.event_id);
        if metadata.provider == "Microsoft-Windows-DotNETRuntime" && !metadata.fields.is_empty() {
            let mut values = event.values();
            values.by_ref().for_each(drop);
            assert_eq!(values.error(), None, "{name}: {} {}", metadata.event_id, metadata.version);
        }
        assert!(event.nanoseconds() >= last, "{name}: out of order");
        last = event.nanoseconds();
        events += 1;
    }
    let summary = trace.summary();
    assert_eq!(summary.late, 0, "{name}");
    let version = summary.trace.map(|trace| trace.version);
    assert_eq!(summary.trace.and_then(|trace| trace.process_id), Some(runtime.process_id), "{name}");
    Seen { version, end: summary.end, events, lost: summary.losses.lost }
}

#[test]
fn a_trace_is_read_to_its_end() {
    with_runtimes(|runtime| {
        let file = runtime.directory.path().join("all.nettrace");
        let (pid, file) = (runtime.process_id.to_string(), file.to_str().unwrap().to_owned());
        let args = ["trace", &pid, "-o", &file, "--duration", "2s", "--provider"];
        runtime.run(&[&args[..], &["Microsoft-Windows-DotNETRuntime:ffffffffffffffff:5"]].concat(), 0);
        let bytes = std::fs::read(&file).unwrap();
        let seen = read(runtime, &bytes);
        assert_eq!((seen.version, seen.end), (Some(Version::V4), Some(End::Complete)), "{}", runtime.name);
        assert!(seen.events > 0, "{}", runtime.name);
        let stats: Value =
            serde_json::from_slice(&runtime.run(&["stats", &file, "--json"], 0).stdout).unwrap();
        assert_eq!((&stats["events"], &stats["lost"]), (&seen.events.into(), &seen.lost.into()));
        // The first half of the bytes gives the events of that half.
        let half = read(runtime, &bytes[..bytes.len() / 2]);
        assert!(matches!(half.end, Some(End::Truncated { .. })), "{}: {half:?}", runtime.name);
        assert!(half.events < seen.events, "{}", runtime.name);
    });
}

/// Only the test program can be configured to write more than fits a small buffer.
#[test]
fn dropped_events_are_counted() {
    each_runtime(|start| {
        let flood = [("LAB_BURST", "500"), ("LAB_THREADS", "12"), ("LAB_PAUSE_MS", "0")];
        let flood = flood.map(|(name, value)| (name, OsStr::new(value)));
        let mut runtime = start(&flood);
        runtime.wait_for_socket();
        let command = std::fs::read(format!("/proc/{}/cmdline", runtime.process_id)).unwrap();
        if !String::from_utf8_lossy(&command).contains("Workload") {
            return;
        }
        let file = runtime.directory.path().join("flood.nettrace");
        let (pid, file) = (runtime.process_id.to_string(), file.to_str().unwrap().to_owned());
        let args = ["trace", &pid, "-o", &file, "--duration", "1s", "--buffer", "1", "--no-rundown"];
        let soon = Instant::now() + Duration::from_secs(60);
        // On a busy machine the program needs more than a second to start.
        let seen = loop {
            let output = runtime.run(&[&args[..], &["--provider", "Lab-Workload", "--json"]].concat(), 0);
            let counted: Value = serde_json::from_slice(&output.stdout).unwrap();
            let seen = read(&runtime, &std::fs::read(&file).unwrap());
            assert_eq!((&counted["events"], &counted["lost"]), (&seen.events.into(), &seen.lost.into()));
            eprintln!("{}: {seen:?}", runtime.name);
            assert_eq!(seen.end, Some(End::Complete), "{}", runtime.name);
            if seen.lost > 10_000 {
                break seen;
            }
            assert!(Instant::now() < soon, "{}: {seen:?}", runtime.name);
            std::fs::remove_file(&file).unwrap();
        };
        assert!(seen.lost < 100_000_000, "{}: {seen:?}", runtime.name);
    });
}

/// NetPerf, the format before NetTrace, which runtimes still write on request.
#[test]
fn a_trace_of_the_old_format_is_read_to_its_end() {
    with_runtimes(|runtime| {
        let client = Client::at(&runtime.socket);
        let providers = [Provider {
            keywords: u64::MAX,
            level: EventLevel::VERBOSE,
            name: "Microsoft-Windows-DotNETRuntime".into(),
            arguments: "".into(),
        }];
        let mut connection = client.connect().unwrap();
        let format = Format::NET_PERF;
        let start = CollectTracing { buffer_mb: 64, format, providers: Array::from(&providers) };
        let session_id = connection.call(&start).unwrap().session_id;
        let mut stream = connection.into_stream();
        stream.set_deadline(Instant::now() + Duration::from_secs(60));
        let stopping = std::thread::spawn(move || {
            client.connect().unwrap().call(&StopTracing { session_id }).map(|_| ()).unwrap();
        });
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stopping.join().unwrap();
        let seen = read(runtime, &bytes);
        assert_eq!((seen.version, seen.end), (Some(Version::V3), Some(End::Complete)), "{}", runtime.name);
        assert!(seen.events > 0, "{}: the rundown has events", runtime.name);
    });
}

/// The variables of `eventpipe-env` make a process record itself, and its file has the events after the process is
/// killed.
#[test]
fn a_process_traces_itself() {
    each_runtime(|start| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("{pid}.nettrace");
        let args = ["eventpipe-env", "--json", "--clr-events", "loader+gc", "-o", path.to_str().unwrap()];
        let variables: Value = serde_json::from_slice(&finish(tool(&args).spawn().unwrap()).stdout).unwrap();
        let variables = variables.as_object().unwrap().iter();
        let variables: Vec<_> =
            variables.map(|(name, value)| (name.as_str(), OsStr::new(value.as_str().unwrap()))).collect();
        let mut runtime = start(&variables);
        runtime.wait_for_socket();
        if !runtime.knows(4, 0) {
            // .NET Core 3.1 reads the prefix COMPlus_.
            return;
        }
        let file = folder.path().join(format!("{}.nettrace", runtime.process_id));
        let soon = Instant::now() + Duration::from_secs(60);
        // The end of the file is truncated in both cases.
        let events = |runtime: &Runtime| {
            let stats = runtime.dotnet_ipc(&["stats", file.to_str().unwrap(), "--json"]).output().unwrap();
            let stats: Value = serde_json::from_slice(&stats.stdout).unwrap_or_default();
            stats["events"].as_u64().unwrap_or_default()
        };
        while events(&runtime) == 0 {
            assert!(Instant::now() < soon, "{}: no events in {}", runtime.name, file.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        runtime.kill();
        let events = events(&runtime);
        eprintln!("{}: {events} events", runtime.name);
        assert!(events > 0, "{}", runtime.name);
    });
}
