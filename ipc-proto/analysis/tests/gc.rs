//! Garbage collections: recorded ones against the numbers of TraceEvent, and made ones for each rule.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod runtime_events;

use std::fs;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::gc::{Collection, CollectionType, Collections, GcStatistics, Reason};
use serde_json::Value;

use crate::runtime_events::{Written, each_event, numbers, path};

/// Events by id and version.
const START: (u32, u32) = (1, 2);
const END: (u32, u32) = (2, 1);
const RESTART: (u32, u32) = (3, 1);
const HEAP_STATS: (u32, u32) = (4, 2);
const SUSPENDED: (u32, u32) = (8, 1);
const SUSPEND: (u32, u32) = (9, 1);

/// Returns the collections of a trace, and their statistics.
fn collections(trace: &[u8]) -> (Vec<Collection>, GcStatistics) {
    let (mut collections, mut found) = (Collections::default(), Vec::new());
    each_event(trace, |event| {
        collections.event(event);
        found.extend(core::iter::from_fn(|| collections.pop()));
    });
    let report = collections.finish();
    found.extend(report.collections);
    (found, report.statistics)
}

fn start(number: u32, generation: u32, reason: Reason, collection_type: CollectionType) -> Vec<u8> {
    numbers(&[number, generation, reason.0, collection_type.0])
}

fn heap_stats(size: u64) -> Vec<u8> {
    let mut payload: Vec<u8> = (1..=10).flat_map(|part| (part * size).to_le_bytes()).collect();
    payload.extend(numbers(&[3, 0, 7]));
    payload.extend([0; 2]);
    payload.extend([size, size].iter().flat_map(|size| size.to_le_bytes()));
    payload
}

#[test]
fn recorded_collections() {
    let trace = fs::read(path("analysis/net10-collections.nettrace")).unwrap();
    let (found, statistics) = collections(&trace);
    let expected = fs::read_to_string(path("analysis/net10-collections.gc.jsonl")).unwrap();
    let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let heap = found.heap.unwrap();
        let text = |key: &str| expected[key].as_str().unwrap();
        assert_eq!(expected["number"], found.number);
        assert_eq!(expected["generation"], found.generation);
        assert_eq!(text("type"), found.collection_type.unwrap().to_string());
        assert_eq!(text("reason"), found.reason.unwrap().to_string());
        assert_eq!(expected["complete"], found.is_complete);
        for (key, nanoseconds) in [
            ("start_ms", u64::try_from(found.start.unwrap()).unwrap()),
            ("pause_start_ms", u64::try_from(found.pause_start.unwrap()).unwrap()),
            ("pause_ms", found.pause.unwrap()),
            ("suspend_ms", found.suspension.unwrap()),
            ("duration_ms", found.duration.unwrap()),
            // A megabyte has a million bytes, as a millisecond has a million nanoseconds.
            ("heap_after_mb", heap.total_after()),
            ("promoted_mb", heap.total_promoted()),
        ] {
            let expected = expected[key].as_f64().unwrap() * 1e6;
            assert!((nanoseconds as f64 - expected).abs() < 1.0, "{key} of {found:?}: {expected}");
        }
    }
    let of_type = |wanted| found.iter().filter(|found| found.collection_type == Some(wanted)).count();
    assert!(of_type(CollectionType::BACKGROUND) > 0);
    assert_eq!(statistics.all.count, 29);
    assert_eq!(statistics.generations.iter().map(|generation| generation.count).sum::<u64>(), 29);
    let longest = found.iter().filter_map(|found| found.pause).max();
    assert_eq!(longest, Some(statistics.all.pauses.longest()));
    assert!(statistics.paused_share() > 0.0 && statistics.paused_share() < 1.0);
}

#[test]
fn a_blocking_collection() {
    let trace = Written::new()
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        // A sampler suspends the program too, but for another reason than a collection.
        .event(110, 8, SUSPEND, &numbers(&[0, 1]))
        .event(115, 8, SUSPENDED, &[])
        .event(120, 7, SUSPENDED, &[])
        .event(130, 7, START, &start(5, 1, Reason::INDUCED, CollectionType::NON_CONCURRENT))
        // A second GCStart with the number of an earlier one is ignored.
        .event(131, 7, START, &start(5, 1, Reason::INDUCED, CollectionType::NON_CONCURRENT))
        .event(150, 7, END, &numbers(&[5, 1]))
        .event(160, 7, HEAP_STATS, &heap_stats(10))
        .event(165, 8, RESTART, &[])
        .event(200, 7, RESTART, &[])
        .bytes();
    let (found, statistics) = collections(&trace);
    let [found] = found[..] else { panic!("{found:?}") };
    assert_eq!((found.number, found.generation, found.reason), (5, 1, Some(Reason::INDUCED)));
    assert_eq!((found.pause_start, found.start), (Some(100), Some(130)));
    assert_eq!((found.pause, found.suspension, found.duration), (Some(100), Some(20), Some(20)));
    assert!(found.is_complete);
    let heap = found.heap.unwrap();
    assert_eq!((heap.after, heap.promoted), ([10, 30, 50, 70, 10], [20, 40, 60, 80, 10]));
    assert_eq!((heap.pinned_objects, heap.handles), (3, 7));
    assert_eq!((statistics.all.count, statistics.all.induced, statistics.generations[1].count), (1, 1, 1));
    assert_eq!((statistics.all.promoted, statistics.all.largest_heap, statistics.span), (210, 170, 100));
    assert_eq!(statistics.paused_share(), 1.0);
}

#[test]
fn a_background_collection_with_others_inside() {
    let background = start(1, 2, Reason::ALLOC_LARGE, CollectionType::BACKGROUND);
    let trace = Written::new()
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        .event(110, 7, SUSPENDED, &[])
        .event(120, 7, START, &background)
        // A collection of generation 0 in the same suspension.
        .event(130, 7, START, &start(2, 0, Reason::ALLOC_SMALL, CollectionType::NON_CONCURRENT))
        .event(140, 7, END, &numbers(&[2, 0]))
        .event(150, 7, HEAP_STATS, &heap_stats(1))
        .event(160, 7, RESTART, &[])
        // A collection while the background collection runs.
        .event(300, 8, SUSPEND, &numbers(&[1, 2]))
        .event(305, 8, SUSPENDED, &[])
        .event(310, 8, START, &start(3, 1, Reason::ALLOC_SMALL, CollectionType::FOREGROUND))
        .event(320, 8, END, &numbers(&[3, 1]))
        .event(330, 8, HEAP_STATS, &heap_stats(1))
        .event(340, 8, RESTART, &[])
        // The last pause of the background collection, on its own thread.
        .event(500, 9, SUSPEND, &numbers(&[6, 2]))
        .event(504, 9, SUSPENDED, &[])
        .event(600, 9, RESTART, &[])
        .event(700, 9, END, &numbers(&[1, 2]))
        .event(710, 9, HEAP_STATS, &heap_stats(2))
        .bytes();
    let (found, statistics) = collections(&trace);
    let times = |found: &Collection| (found.number, found.pause.unwrap(), found.suspension.unwrap());
    let numbers: Vec<_> = found.iter().map(times).collect();
    // The suspension at the start, and the pause at the end with its suspension.
    assert_eq!(numbers, [(1, 10 + 100, 10 + 4), (2, 30, 0), (3, 40, 5)]);
    assert!(found.iter().all(|found| found.is_complete));
    assert_eq!(
        (found[0].duration, found[1].pause_start, found[2].pause_start),
        (Some(580), Some(130), Some(300))
    );
    assert_eq!(statistics.all.count, 3);
}

#[test]
fn a_full_collection_replaces_a_younger_one() {
    let trace = Written::new()
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        .event(110, 7, SUSPENDED, &[])
        .event(120, 7, START, &start(1, 1, Reason::ALLOC_SMALL, CollectionType::NON_CONCURRENT))
        .event(130, 7, END, &numbers(&[1, 1]))
        .event(140, 7, START, &start(2, 2, Reason::PM_FULL, CollectionType::NON_CONCURRENT))
        .event(150, 7, END, &numbers(&[2, 2]))
        .event(160, 7, HEAP_STATS, &heap_stats(1))
        .event(170, 7, RESTART, &[])
        .bytes();
    let (found, _) = collections(&trace);
    let pauses: Vec<_> = found.iter().map(|found| (found.number, found.pause, found.is_complete)).collect();
    assert_eq!(pauses, [(1, Some(0), true), (2, Some(30), true)]);
}

/// A trace can begin or end in the middle of a collection: what it does not have is unknown, not 0.
#[test]
fn parts_of_collections() {
    let of = |found: &Collection| (found.number, found.is_complete, found.pause, found.duration);
    // The trace begins after the suspension.
    let mut written = Written::new();
    written
        .event(10, 7, SUSPENDED, &[])
        .event(20, 7, START, &start(3, 0, Reason::ALLOC_SMALL, CollectionType::NON_CONCURRENT))
        .event(30, 7, END, &numbers(&[3, 0]))
        .event(40, 7, HEAP_STATS, &heap_stats(1))
        .event(50, 7, RESTART, &[]);
    let (found, statistics) = collections(&written.bytes());
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [(3, false, None, Some(10))]);
    assert_eq!((found[0].pause_start, found[0].suspension, found[0].start), (None, None, Some(20)));
    assert!(found[0].heap.is_some());
    assert_eq!((statistics.all.count, statistics.processes), (0, 0));
    // The trace ends in the middle of a collection. The end of the suspension was lost, and one event is too short for
    // its fields.
    written
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        .event(120, 7, START, &start(4, 0, Reason(99), CollectionType(9)))
        .event(121, 7, START, &[1, 2, 3]);
    let (found, _) = collections(&written.bytes());
    assert_eq!(found.iter().map(of).collect::<Vec<_>>()[1..], [(4, false, None, None)]);
    assert_eq!((found[1].pause_start, found[1].suspension, found[1].heap), (Some(100), None, None));
    let [reason, kind] =
        [found[1].reason.unwrap().to_string(), found[1].collection_type.unwrap().to_string()];
    assert_eq!((reason, kind), ("99".into(), "9".into()));
    // The program is restarted before GCEnd: as by .NET Framework 2.0, or if events are lost.
    written.event(130, 7, RESTART, &[]).event(140, 7, END, &numbers(&[4, 0])).event(
        150,
        7,
        HEAP_STATS,
        &heap_stats(1),
    );
    let (found, statistics) = collections(&written.bytes());
    assert_eq!(of(&found[1]), (4, true, Some(30), Some(20)));
    assert_eq!(statistics.all.count, 1);
}

/// GCEnd belongs to the collection of its number, and the sizes after it to the same one.
#[test]
fn an_end_without_a_start() {
    let trace = Written::new()
        .event(10, 7, END, &numbers(&[8, 1]))
        .event(20, 7, HEAP_STATS, &heap_stats(1))
        .event(30, 7, RESTART, &[])
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        .event(110, 7, SUSPENDED, &[])
        .event(120, 7, START, &start(9, 2, Reason::ALLOC_LARGE, CollectionType::BACKGROUND))
        .event(130, 7, RESTART, &[])
        // The start of a collection is lost while the background collection runs.
        .event(200, 8, END, &numbers(&[10, 0]))
        .event(210, 8, HEAP_STATS, &heap_stats(3))
        .event(300, 9, SUSPEND, &numbers(&[6, 2]))
        .event(304, 9, SUSPENDED, &[])
        .event(320, 9, RESTART, &[])
        .event(400, 9, END, &numbers(&[9, 2]))
        .event(410, 9, HEAP_STATS, &heap_stats(2))
        .bytes();
    let (found, statistics) = collections(&trace);
    let of = |found: &Collection| {
        let size = found.heap.unwrap().after[0];
        (found.number, found.generation, found.start, found.duration, size, found.is_complete)
    };
    assert_eq!(
        found.iter().map(of).collect::<Vec<_>>(),
        [(8, 1, None, None, 1, false), (9, 2, Some(120), Some(280), 2, true), (10, 0, None, None, 3, false)]
    );
    assert_eq!((found[0].reason, found[0].collection_type, found[0].pause), (None, None, None));
    assert_eq!(statistics.all.count, 1);
}

/// The end of a suspension is lost: the thread's next suspension is its own.
#[test]
fn a_restart_ends_the_suspension_of_its_thread() {
    let mut written = Written::new();
    written
        .event(100, 7, SUSPEND, &numbers(&[1, 1]))
        .event(110, 7, SUSPENDED, &[])
        .event(120, 7, START, &start(1, 0, Reason::ALLOC_SMALL, CollectionType::NON_CONCURRENT))
        .event(130, 7, END, &numbers(&[1, 0]))
        .event(140, 7, HEAP_STATS, &heap_stats(1))
        // The restart is lost. The thread suspends the program for another reason.
        .event(1000, 7, SUSPEND, &numbers(&[0, 1]))
        .event(1010, 7, RESTART, &[]);
    let (found, _) = collections(&written.bytes());
    assert_eq!((found[0].pause, found[0].duration, found[0].is_complete), (None, Some(10), false));
    // A suspension that has not ended is reported.
    written.event(2000, 7, SUSPEND, &numbers(&[1, 2])).event(2500, 8, (80, 1), &[]);
    let mut collections = Collections::default();
    each_event(&written.bytes(), |event| collections.event(event));
    let open = collections.finish().open_suspensions;
    assert_eq!(open.iter().map(|open| (open.process_id, open.start)).collect::<Vec<_>>(), [(Some(0), 2000)]);
}

/// The layouts of the events are known without their versions, and sizes that are cut off are not known.
#[test]
fn collections_of_unknown_versions() {
    let unknown = |id: (u32, u32)| (id.0, 0);
    let mut written = Written::new();
    for (time, id, payload) in [
        (100, SUSPEND, numbers(&[1, 1])),
        (110, SUSPENDED, Vec::new()),
        (120, START, start(5, 1, Reason::INDUCED, CollectionType::NON_CONCURRENT)),
        (150, END, numbers(&[5, 1])),
        (160, HEAP_STATS, heap_stats(10)),
        (200, RESTART, Vec::new()),
    ] {
        written.event(time, 7, unknown(id), &payload);
    }
    let (found, _) = collections(&written.bytes());
    assert_eq!((found[0].number, found[0].pause, found[0].suspension), (5, Some(100), Some(10)));
    assert_eq!((found[0].heap.unwrap().total_after(), found[0].is_complete), (170, true));
    written.event(300, 7, SUSPEND, &numbers(&[1, 1]));
    written.event(310, 7, START, &start(6, 1, Reason::INDUCED, CollectionType::NON_CONCURRENT));
    written.event(320, 7, END, &numbers(&[6, 1])).event(330, 7, HEAP_STATS, &[0; 20]).event(
        340,
        7,
        RESTART,
        &[],
    );
    let (found, _) = collections(&written.bytes());
    assert_eq!((found[1].pause, found[1].heap, found[1].is_complete), (Some(40), None, false));
}

/// The same numbers and threads in two processes are different collections.
#[test]
fn collections_of_two_processes() {
    let mut written = Written::new();
    let start = start(1, 0, Reason::ALLOC_SMALL, CollectionType::NON_CONCURRENT);
    let end = numbers(&[1, 0]);
    for (offset, id, payload) in [
        (0, SUSPEND, numbers(&[1, 1])),
        (10, SUSPENDED, Vec::new()),
        (20, START, start),
        (30, END, end),
        (40, HEAP_STATS, heap_stats(1)),
        (50, RESTART, Vec::new()),
    ] {
        written.process(100).event(1000 + offset, 7, id, &payload);
        written.process(200).event(1005 + 3 * offset, 7, id, &payload);
    }
    let (found, statistics) = collections(&written.bytes());
    let of =
        |found: &Collection| (found.process_id, found.number, found.pause, found.suspension, found.duration);
    assert_eq!(
        found.iter().map(of).collect::<Vec<_>>(),
        [(Some(100), 1, Some(50), Some(10), Some(10)), (Some(200), 1, Some(150), Some(30), Some(30))]
    );
    assert_eq!((statistics.all.count, statistics.processes, statistics.span), (2, 2, 155));
}

/// Only a limited number of collections waits for a background collection that never ends.
#[test]
fn the_number_of_waiting_collections_is_limited() {
    let mut written = Written::new();
    written.event(1, 7, SUSPEND, &numbers(&[1, 1]));
    written.event(2, 7, START, &start(0, 2, Reason::ALLOC_LARGE, CollectionType::BACKGROUND));
    for number in 1..20_000 {
        let payload = start(number, 0, Reason::ALLOC_SMALL, CollectionType::FOREGROUND);
        written.event(u64::from(number) + 2, 7, START, &payload);
    }
    let (mut collections, mut numbers) = (Collections::default(), Vec::new());
    each_event(&written.bytes(), |event| {
        collections.event(event);
        numbers.extend(core::iter::from_fn(|| collections.pop()).map(|collection| collection.number));
    });
    assert!(numbers.len() > 3_000, "{}", numbers.len());
    numbers.extend(collections.finish().collections.iter().map(|collection| collection.number));
    assert_eq!(numbers, Vec::from_iter(0..20_000));
}
