//! `CounterStream` over a fake runtime.
#![cfg(feature = "counters")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use ipc_proto::Code;
use ipc_std::{Client, ErrorKind};
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace_analysis::counters::{CounterConfig, CounterEvent};

const RECORDING: &[u8] = include_bytes!("../../testdata/counters/net10-shared.nettrace");

fn config(selections: &[&str]) -> CounterConfig {
    let selections = selections.iter().map(|text| text.parse().unwrap()).collect();
    CounterConfig { selections, ..CounterConfig::default() }
}

/// Starts a runtime that sends a whole recording in each session, and the last byte only at the stop.
fn recorded(profile: Profile) -> FakeRuntime {
    let runtime = FakeRuntime::start(profile).unwrap();
    for code in [Code(0x0202), Code(0x0203), Code(0x0204)] {
        runtime.on(code, |_| Response::Trace(RECORDING.to_vec()));
    }
    runtime
}

#[test]
fn the_samples_of_the_selections() {
    let runtime = recorded(Profile::net10());
    let mut counters = Client::at(runtime.path())
        .start_counters(&config(&["Lab.Meter/lab.gauge", "EventCounters\\Lab-Counters"]))
        .unwrap();
    assert_eq!(counters.runtime_version(), Some(10));
    let planned: Vec<_> = counters.plan().providers.iter().map(|provider| &*provider.name).collect();
    assert_eq!(planned, ["Lab.Meter", "Lab-Counters", "System.Diagnostics.Metrics"]);
    // The last byte of the recording arrives at the stop.
    counters.session().stop();
    let (mut names, mut count) = (BTreeSet::new(), 0);
    while let Some(event) = counters.next_event().unwrap() {
        if let CounterEvent::Sample(sample) = event {
            names.insert(sample.name.to_string());
            count += 1;
        }
    }
    assert!(matches!(counters.next_event(), Ok(None)));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["ipoll", "lab.gauge", "poll", "rate", "sizes"]);
    assert_eq!(count, 20);
}

#[test]
fn versions_and_failures() {
    let arguments = |profile: Profile| {
        let runtime = recorded(profile);
        let counters = Client::at(runtime.path()).start_counters(&config(&["Meters\\Lab.Meter"])).unwrap();
        counters.plan().providers.first().unwrap().arguments.clone()
    };
    assert!(arguments(Profile::net10()).starts_with("SessionId=SHARED;"));
    assert!(arguments(Profile::net8()).starts_with("SessionId=SHARED;"));
    let own = [arguments(Profile::net31()), arguments(Profile::net31())];
    assert!(own.iter().all(|own| !own.contains("SHARED") && !own.contains("SessionId=00000000-")), "{own:?}");
    assert_ne!(own.first(), own.last());
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let failed = Client::at(runtime.path()).start_counters(&config(&[])).unwrap_err();
    assert_eq!((failed.kind(), &*failed.to_string()), (ErrorKind::Invalid, "no counters are selected"));
}

#[cfg(unix)]
#[path = "../testkit/examples/counter_agent/agent.rs"]
mod agent;

/// The event loop of the example reads many processes, and continues when some of them end.
#[cfg(unix)]
#[test]
fn an_agent_on_one_thread() {
    let runtimes: Vec<_> = (0..20).map(|_| recorded(Profile::net8())).collect();
    let mut agent = agent::Agent::new(config(&["Lab-Counters", "EventCounters\\System.Runtime"]));
    for runtime in &runtimes {
        agent.add(&Client::at(runtime.path())).unwrap();
    }
    drop(runtimes);
    agent.run(core::time::Duration::from_secs(60), false).unwrap();
    let recorded = include_str!("../../testdata/counters/net10-shared.samples.jsonl");
    let expected = recorded.lines().filter(|line| line.contains("\"event_counter\"")).count() * 20;
    assert_eq!((agent.processes(), agent.samples()), (20, u64::try_from(expected).unwrap()));
}
