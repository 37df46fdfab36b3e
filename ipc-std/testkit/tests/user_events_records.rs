//! The records that a fake runtime writes to tracepoints: to a socket, and to the kernel where it has `user_events`.
#![cfg(all(feature = "io", unix))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use ipc_proto::types::{
    EventFilter, EventLevel, TracepointConfig, TracepointSet, UserEventsProvider, UserEventsSession,
};
use ipc_proto::{Array, HResult, Text};
use ipc_std::{Client, Error, UserEvents};
use ipc_testkit::{FakeRuntime, Profile};
use nettrace::user_events::{ExtensionItem, MetadataCache, TracepointRecord};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Returns a provider with all its events.
fn provider<'a>(name: &'a str, tracepoint: &'a str) -> UserEventsProvider<'a> {
    UserEventsProvider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: name.into(),
        arguments: "".into(),
        filter: EventFilter::ALL,
        tracepoints: TracepointConfig { default_tracepoint_name: tracepoint.into(), sets: Array::EMPTY },
    }
}

fn start(
    runtime: &FakeRuntime,
    providers: &[UserEventsProvider<'_>],
    data: impl AsFd,
) -> Result<UserEvents, Error> {
    let session = UserEventsSession { rundown_keyword: u64::MAX, providers: Array::from(providers) };
    Client::at(runtime.path()).start_user_events(&session, data)
}

/// A record as it was received.
struct Received {
    write_index: u32,
    event_id: u16,
    has_metadata: bool,
    provider: String,
}

/// Starts a session, and receives `count` records.
fn receive(providers: &[UserEventsProvider<'_>], count: usize) -> Vec<Received> {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (records, data) = UnixDatagram::pair().unwrap();
    records.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let session = start(&runtime, providers, data).unwrap();
    let (mut buf, mut cache) = (vec![0; 0x2_0000], MetadataCache::new(MetadataCache::LIMIT));
    let received = (0..count).map(|_| {
        let len = records.recv(&mut buf).unwrap();
        let (index, record) = buf[..len].split_first_chunk().unwrap();
        let record = TracepointRecord::decode(record).unwrap();
        let has_metadata =
            record.extension.iter().any(|item| matches!(item.unwrap(), ExtensionItem::Metadata(_)));
        let event = cache.read(1, &record);
        assert_eq!(event.problem, None);
        let metadata = event.metadata.expect("metadata comes with the first event");
        assert_eq!(metadata.event_id, u32::from(record.event_id));
        if metadata.provider == RUNTIME {
            assert!(metadata.name.is_empty() && metadata.fields.iter().next().is_none(), "{metadata:?}");
        }
        Received {
            write_index: u32::from_le_bytes(*index),
            event_id: record.event_id,
            has_metadata,
            provider: metadata.provider.to_string(),
        }
    });
    let received: Vec<_> = received.collect();
    session.stop().unwrap();
    received
}

#[test]
fn metadata_is_written_once_in_a_session() {
    let received = receive(&[provider(RUNTIME, "dotnet")], 60);
    let mut with_metadata = BTreeMap::<u16, usize>::new();
    for record in &received {
        assert_eq!((record.provider.as_str(), record.write_index), (RUNTIME, 0));
        *with_metadata.entry(record.event_id).or_default() += usize::from(record.has_metadata);
    }
    assert!(with_metadata.len() > 1, "several kinds of events: {with_metadata:?}");
    assert!(with_metadata.values().all(|count| *count == 1), "{with_metadata:?}");
}

/// Tracepoints are registered provider by provider: the default tracepoint first, then the tracepoints of the sets.
#[test]
fn events_are_written_to_their_tracepoints() {
    let even: Vec<u32> = (0..1000).step_by(2).collect();
    let sets = [
        TracepointSet { tracepoint_name: "nothing".into(), event_ids: Array::from(&[][..]) },
        TracepointSet { tracepoint_name: "even".into(), event_ids: Array::from(even.as_slice()) },
    ];
    let with_sets = TracepointConfig { default_tracepoint_name: "odd".into(), sets: Array::from(&sets) };
    let providers =
        [provider("Other", "other"), UserEventsProvider { tracepoints: with_sets, ..provider(RUNTIME, "") }];
    let mut indexes = BTreeSet::new();
    for record in receive(&providers, 60) {
        indexes.insert(record.write_index);
        assert_eq!(record.write_index, if record.event_id % 2 == 0 { 3 } else { 1 }, "{}", record.event_id);
    }
    assert_eq!(indexes.len(), 2, "events of both");
    // Without a default tracepoint, events outside of the sets are not written.
    let only_sets = TracepointConfig { default_tracepoint_name: Text::NULL, ..with_sets };
    let providers = [UserEventsProvider { tracepoints: only_sets, ..provider(RUNTIME, "") }];
    for record in receive(&providers, 10) {
        assert_eq!((record.write_index, record.event_id % 2), (1, 0));
    }
}

/// .NET 10 and 11 and NativeAOT of both have sessions. An empty default tracepoint is none.
#[test]
fn each_runtime_has_sessions() {
    for profile in [Profile::net10(), Profile::net11(), Profile::net10_aot(), Profile::net11_aot()] {
        let runtime = FakeRuntime::start(profile).unwrap();
        for name in ["dotnet", "", "before\tafter", "before\nafter"] {
            let (_records, data) = UnixDatagram::pair().unwrap();
            start(&runtime, &[provider(RUNTIME, name)], data).unwrap().stop().unwrap();
        }
    }
}

#[test]
fn a_tracepoint_that_cannot_be_registered_is_a_failure() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for name in ["two words", "flag:s"] {
        let (_records, data) = UnixDatagram::pair().unwrap();
        match start(&runtime, &[provider(RUNTIME, "good"), provider("Other", name)], data) {
            Err(Error::Refused { hresult, .. }) => assert_eq!(hresult, HResult::FAIL, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Events that no reader takes are dropped.
#[test]
fn a_reader_that_does_not_read_blocks_nothing() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (records, data) = UnixDatagram::pair().unwrap();
    // The queue is full before the runtime writes.
    data.set_nonblocking(true).unwrap();
    while data.send(&[0; 64]).is_ok() {}
    data.set_nonblocking(false).unwrap();
    let session = start(&runtime, &[provider(RUNTIME, "dotnet")], data).unwrap();
    session.stop().unwrap();
    drop((runtime, records));
}

/// The kernel's side: the tracepoint has the fields, and its trace has the events.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_accepts_the_records() {
    use std::fs;
    use std::time::Instant;

    const TRACEFS: &str = "/sys/kernel/tracing";
    let data = match fs::OpenOptions::new().write(true).open(format!("{TRACEFS}/user_events_data")) {
        Ok(data) => data,
        Err(e) => {
            eprintln!("the_kernel_accepts_the_records: skipped, no user_events_data ({e})");
            return;
        }
    };
    let name = format!("dotnet_ipc_test_{}", std::process::id());
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let session = start(&runtime, &[provider(RUNTIME, &name)], &data).unwrap();
    let event = format!("events/user_events/{name}");
    let format = fs::read_to_string(format!("{TRACEFS}/{event}/format")).unwrap();
    for field in ["u8 version;", "u16 event_id;", "__rel_loc u8 extension[", "__rel_loc u8 payload["] {
        assert!(format.contains(field), "{field}: {format}");
    }
    // The test has a trace instance of its own, which no other tool reads.
    let instance = format!("{TRACEFS}/instances/{name}");
    fs::create_dir(&instance).unwrap();
    fs::write(format!("{instance}/{event}/enable"), "1").unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut trace = String::new();
    while !trace.contains(&format!("{name}:")) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
        trace = fs::read_to_string(format!("{instance}/trace")).unwrap();
    }
    fs::write(format!("{instance}/{event}/enable"), "0").unwrap();
    session.stop().unwrap();
    fs::remove_dir(&instance).unwrap();
    assert!(trace.contains(&format!("{name}:")), "{trace}");
}
