//! Compiled methods: recorded ones against the numbers of TraceEvent, and made ones for each rule.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod runtime_events;

use std::fs;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::jit::{Compilation, Compilations, JitStatistics, Tier};
use serde_json::Value;

use crate::runtime_events::{Written, each_event, path, utf16};

/// Events by id and version.
const LOAD: (u32, u32) = (141, 2);
const LOAD_VERBOSE: (u32, u32) = (143, 2);
const JITTING_STARTED: (u32, u32) = (145, 1);

const JITTED: u32 = 8;

/// Returns the compilations of a trace, and their statistics.
fn compilations(trace: &[u8]) -> (Vec<Compilation>, JitStatistics) {
    let (mut compilations, mut found) = (Compilations::default(), Vec::new());
    each_event(trace, |event| {
        compilations.event(event);
        found.extend(core::iter::from_fn(|| compilations.pop()));
    });
    let report = compilations.finish();
    found.extend(report.compilations);
    (found, report.statistics)
}

fn names(name: &str) -> Vec<u8> {
    [utf16("My.Type"), utf16(name), utf16("instance void  (int32,class System.String)")].concat()
}

fn started(name: &str, il_size: u32) -> Vec<u8> {
    let ids = [1_u64, 42].iter().flat_map(|id| id.to_le_bytes());
    let mut payload: Vec<u8> = ids.chain([0; 4]).chain(il_size.to_le_bytes()).collect();
    payload.extend(names(name));
    payload.extend([0; 2]);
    payload
}

fn loaded(name: Option<&str>, size: u32, flags: u32, version: u64) -> Vec<u8> {
    let ids = [1_u64, 42, 0x1000].iter().flat_map(|id| id.to_le_bytes());
    let mut payload: Vec<u8> =
        ids.chain(size.to_le_bytes()).chain([0; 4]).chain(flags.to_le_bytes()).collect();
    payload.extend(name.map(names).unwrap_or_default());
    payload.extend([0; 2]);
    payload.extend(version.to_le_bytes());
    payload
}

#[test]
fn recorded_compilations() {
    let trace = fs::read(path("analysis/net10-compilations.nettrace")).unwrap();
    let (found, statistics) = compilations(&trace);
    let expected = fs::read_to_string(path("analysis/net10-compilations.jit.jsonl")).unwrap();
    let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(expected["method"], found.method);
        // TraceEvent reports the tier "Unknown" for a compilation without a load.
        assert_eq!(expected["tier"], found.tier.unwrap_or_default().to_string());
        assert_eq!(expected["thread"], found.thread);
        // TraceEvent reports 0 for a number that the trace does not have.
        assert_eq!(expected["il_size"], found.il_size.unwrap_or_default());
        assert_eq!(expected["native_size"], found.native_size.unwrap_or_default());
        let nanoseconds = |key: &str| (expected[key].as_f64().unwrap() * 1e6).round() as i64;
        assert_eq!(
            (nanoseconds("start_ms"), nanoseconds("jit_ms")),
            (found.start, found.duration.unwrap_or_default() as i64)
        );
    }
    let tiers: Vec<_> = statistics.tiers().map(|(tier, statistics)| (tier, statistics.count)).collect();
    assert_eq!(tiers, [(Tier::OPTIMIZED_TIER1, 32), (Tier::QUICK_JITTED_INSTRUMENTED, 51)]);
    assert_eq!(statistics.all.count, 83);
    assert_eq!(
        Some(statistics.all.durations.longest()),
        found.iter().filter_map(|found| found.duration).max()
    );
}

#[test]
fn compilations_inside_others_and_on_other_threads() {
    let flags = |tier: Tier| JITTED | u32::from(tier.0) << 7;
    let trace = Written::new()
        .event(100, 7, JITTING_STARTED, &started("Outer", 10))
        .event(110, 8, JITTING_STARTED, &started("Other", 20))
        .event(120, 7, JITTING_STARTED, &started("Inner", 30))
        .event(125, 7, LOAD_VERBOSE, &loaded(Some("Precompiled"), 5, 0x42, 0))
        .event(150, 7, LOAD_VERBOSE, &loaded(Some("Inner"), 300, flags(Tier::QUICK_JITTED), 0))
        .event(160, 8, LOAD_VERBOSE, &loaded(Some("Other"), 200, flags(Tier::OPTIMIZED_TIER1), 2))
        .event(190, 7, LOAD, &loaded(None, 100, flags(Tier::OPTIMIZED), 0))
        .bytes();
    let (found, statistics) = compilations(&trace);
    let row = |found: &Compilation| {
        (found.method.clone(), found.start, found.duration, found.native_size, found.tier)
    };
    let method = |name: &str| format!("My.Type.{name}(int32,class System.String)");
    assert_eq!(
        found.iter().map(row).collect::<Vec<_>>(),
        [
            (method("Outer"), 100, Some(90), Some(100), Some(Tier::OPTIMIZED)),
            (method("Other"), 110, Some(50), Some(200), Some(Tier::OPTIMIZED_TIER1)),
            (method("Inner"), 120, Some(30), Some(300), Some(Tier::QUICK_JITTED)),
        ]
    );
    assert_eq!((found[1].version, found[1].module_id, found[1].il_size), (2, 42, Some(20)));
    assert_eq!((statistics.all.il_size, statistics.all.native_size), (60, 600));
    assert_eq!(statistics.all.durations.total(), 170);
}

/// Returns the payload for the method with this number.
fn of_method(id: u64, mut payload: Vec<u8>) -> Vec<u8> {
    payload[..8].copy_from_slice(&id.to_le_bytes());
    payload
}

/// With a lost start or a lost load, the others keep their own partners.
#[test]
fn a_load_ends_the_compilation_of_its_own_method() {
    let load = |id, size| of_method(id, loaded(None, size, JITTED, 0));
    let start = |id, size| of_method(id, started("M", size));
    let trace = Written::new()
        .event(100, 7, JITTING_STARTED, &start(1, 1)) // its load is lost
        .event(110, 7, LOAD, &load(2, 22)) // its start is lost
        .event(120, 7, JITTING_STARTED, &start(3, 3))
        .event(130, 7, JITTING_STARTED, &start(4, 4))
        .event(135, 8, LOAD, &load(3, 88)) // of another thread
        .event(140, 7, LOAD, &load(3, 33))
        .event(150, 7, LOAD, &load(4, 44))
        .bytes();
    let (found, statistics) = compilations(&trace);
    let rows: Vec<_> = found.iter().map(|found| (found.il_size, found.native_size, found.duration)).collect();
    assert_eq!(
        rows,
        [
            (Some(1), None, None),
            (None, Some(22), None),
            (Some(3), Some(33), Some(20)),
            (Some(4), Some(44), Some(20)),
            (None, Some(88), None),
        ]
    );
    assert_eq!(statistics.all.durations.total(), 40);
}

/// The layouts of the events are known without their versions.
#[test]
fn compilations_of_unknown_versions() {
    let trace = Written::new()
        .event(100, 7, (145, 0), &started("M", 1))
        .event(150, 7, (143, 0), &loaded(Some("M"), 11, JITTED, 3))
        .bytes();
    let (found, _) = compilations(&trace);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (found.il_size, found.native_size, found.duration, found.version),
        (Some(1), Some(11), Some(50), 3)
    );
    assert_eq!(found.method, "My.Type.M(int32,class System.String)");
}

/// The same method and thread in two processes are different compilations.
#[test]
fn compilations_of_two_processes() {
    let mut written = Written::new();
    written.process(100).event(100, 7, JITTING_STARTED, &started("M", 1));
    written.process(200).event(110, 7, JITTING_STARTED, &started("M", 2));
    written.process(100).event(150, 7, LOAD, &loaded(None, 11, JITTED, 0));
    written.process(200).event(190, 7, LOAD, &loaded(None, 22, JITTED, 0));
    let (found, _) = compilations(&written.bytes());
    let of = |found: &Compilation| (found.process_id, found.il_size, found.native_size, found.duration);
    assert_eq!(
        found.iter().map(of).collect::<Vec<_>>(),
        [(Some(100), Some(1), Some(11), Some(50)), (Some(200), Some(2), Some(22), Some(80))]
    );
}

/// A load without a size ends a compilation if time has passed: the next load of the thread is another method.
#[test]
fn a_load_without_a_size_ends_a_compilation() {
    let trace = Written::new()
        .event(100, 7, JITTING_STARTED, &started("First", 10))
        .event(130, 7, LOAD_VERBOSE, &loaded(Some("First"), 0, JITTED, 0))
        .event(150, 7, LOAD_VERBOSE, &loaded(Some("Second"), 5, JITTED, 0))
        .bytes();
    let (found, _) = compilations(&trace);
    let found: Vec<_> = found.iter().map(|found| (found.start, found.native_size, found.duration)).collect();
    assert_eq!(found, [(100, Some(0), Some(30)), (150, Some(5), None)]);
}

#[test]
fn parts_of_compilations() {
    let trace = Written::new()
        // Loads without a start, without a name, and without both.
        .event(100, 7, LOAD_VERBOSE, &loaded(Some("Loaded"), 1, JITTED, 0))
        .event(101, 7, LOAD, &loaded(None, 2, JITTED, 0))
        // An event that is too short for its fields.
        .event(102, 7, LOAD, &[1, 2, 3])
        .event(103, 7, JITTING_STARTED, &[])
        .event(104, 7, LOAD, &loaded(None, 3, JITTED, 0))
        // A method without size and time stays open, so its load can follow.
        .event(110, 7, LOAD, &loaded(None, 0, JITTED, 0))
        .event(111, 7, LOAD, &loaded(None, 4, JITTED, 0))
        // A compilation without an end.
        .event(120, 7, JITTING_STARTED, &started("Open", 6))
        .bytes();
    let (found, statistics) = compilations(&trace);
    let rows: Vec<_> =
        found.iter().map(|found| (found.start, found.il_size, found.native_size, found.duration)).collect();
    assert_eq!(
        rows,
        [
            (100, None, Some(1), None),
            (101, None, Some(2), None),
            (103, None, None, None),
            (104, None, Some(3), None),
            (110, None, Some(4), None),
            (120, Some(6), None, None),
        ]
    );
    assert_eq!(
        (found[0].method.as_str(), found[1].method.as_str()),
        ("My.Type.Loaded(int32,class System.String)", "")
    );
    assert_eq!(
        (found[0].tier, found[5].tier, Tier::UNKNOWN.to_string()),
        (Some(Tier::UNKNOWN), None, "Unknown".into())
    );
    assert_eq!((statistics.all.durations.count(), statistics.all.durations.total()), (0, 0));
}

/// Only a limited number of compilations waits for a compilation that never ends.
#[test]
fn the_memory_of_waiting_compilations_is_limited() {
    let (mut written, name) = (Written::new(), "x".repeat(200));
    written.event(1, 7, JITTING_STARTED, &started("Open", 1)).event(
        2,
        8,
        JITTING_STARTED,
        &started("Open", 2),
    );
    for number in 3..15_000 {
        written.event(number.into(), 9, JITTING_STARTED, &started(&name, number));
        written.event(number.into(), 9, LOAD, &loaded(None, 1, JITTED, 0));
    }
    written.event(60_000, 8, LOAD, &loaded(None, 5, JITTED, 0));
    let (mut compilations, mut sizes) = (Compilations::default(), Vec::new());
    let mut most_waiting = 0;
    each_event(&written.bytes(), |event| {
        compilations.event(event);
        let before = sizes.len() as i64;
        sizes.extend(core::iter::from_fn(|| compilations.pop()).map(|found| found.il_size));
        if event.thread_id() == 9 {
            most_waiting = most_waiting.max(event.nanoseconds() - before);
        }
    });
    assert!((5_000..12_000).contains(&most_waiting), "{most_waiting}");
    sizes.extend(compilations.finish().compilations.iter().map(|found| found.il_size));
    // The load of thread 8 comes too late: its start was returned already.
    let expected = (1..15_000).map(Some).chain([None]);
    assert_eq!(sizes, Vec::from_iter(expected));
}
