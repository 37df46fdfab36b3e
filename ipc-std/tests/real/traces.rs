//! Traces of real runtimes, read to their ends.
use std::ffi::OsStr;
use std::io::Read;

use ipc_proto::nettrace::{End, Version};
use ipc_proto::types::{EventLevel, Format, Provider};
use ipc_proto::{Array, CollectTracing, StopTracing};
use ipc_std::{Client, TraceReader};
use serde_json::Value;

use crate::runtime::{Runtime, each_runtime, with_runtimes};

/// What was read of a trace.
#[derive(Debug, PartialEq)]
struct Seen {
    version: Option<Version>,
    end: Option<End>,
    events: u64,
    lost: u64,
}

/// Reads a trace, in the order of time, and expects that every event is described and every field is there.
fn read(runtime: &Runtime, bytes: &[u8]) -> Seen {
    let name = &runtime.name;
    let mut trace = TraceReader::new(bytes).in_order(TraceReader::<&[u8]>::HELD);
    let (mut events, mut last) = (0, i64::MIN);
    while let Some(event) = trace.next_event().unwrap() {
        let metadata = event.metadata().unwrap_or_else(|| panic!("{name}: an event without a description"));
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
    assert_eq!(trace.late(), 0, "{name}");
    let version = trace.trace().map(|trace| trace.version);
    assert_eq!(trace.trace().and_then(|trace| trace.process_id), Some(runtime.process_id), "{name}");
    Seen { version, end: trace.end(), events, lost: trace.lost() }
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
        // Half of it is half of it, and no more is lost than that.
        let half = read(runtime, &bytes[..bytes.len() / 2]);
        assert!(matches!(half.end, Some(End::Truncated { .. })), "{}: {half:?}", runtime.name);
        assert!(half.events < seen.events, "{}", runtime.name);
    });
}

/// Only the laboratory's program can be told to say more than a small buffer holds.
#[test]
fn what_a_runtime_drops_is_counted() {
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
        runtime.run(&[&args[..], &["--provider", "Lab-Workload"]].concat(), 0);
        let seen = read(&runtime, &std::fs::read(&file).unwrap());
        eprintln!("{}: {seen:?}", runtime.name);
        assert_eq!(seen.end, Some(End::Complete), "{}", runtime.name);
        assert!(seen.lost > 10_000 && seen.lost < 100_000_000, "{}: {seen:?}", runtime.name);
    });
}

/// The format before NetTrace, which runtimes still write when they are asked for it.
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
        stream.set_deadline(std::time::Instant::now() + core::time::Duration::from_secs(60));
        let stopping = std::thread::spawn(move || {
            client.connect().unwrap().call(&StopTracing { session_id }).map(|_| ()).unwrap();
        });
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stopping.join().unwrap();
        let seen = read(runtime, &bytes);
        assert_eq!((seen.version, seen.end), (Some(Version::V3), Some(End::Complete)), "{}", runtime.name);
        assert!(seen.events > 0, "{}: the rundown at least", runtime.name);
    });
}
