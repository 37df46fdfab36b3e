//! The traces in `testdata` keep what the format guarantees to readers: the order of events and of sequence points, the
//! sequence numbers of threads, ids that were defined before, and the times of blocks.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nettrace::{End, Event, Limits, Metadata, Parser, Record, TimeRange, Version};

/// The traces that break guarantees: those that are made to be damaged, and one of one_collect, whose blocks and sequence
/// points have other times than their events.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    ("synth-bad-block", &[UNDAMAGED, COMPLETE]),
    ("synth-cut-in-block", &[COMPLETE]),
    ("gen-v6-onecollect-small", &[TIMES, POINTS]),
];

const UNDAMAGED: &str = "no block is damaged";
const COMPLETE: &str = "the trace has its end";
const TIMES: &str = "a block has the times of its events";
const POINTS: &str = "a sequence point is not older than what is before it";

/// What is known at a place of a trace.
#[derive(Default)]
struct Place {
    /// The times of the last sequence point, of the last sorted event, and the largest time of an event.
    point: u64,
    sorted: u64,
    newest: u64,
    /// The capture thread of the last event of this block.
    thread: Option<u64>,
    /// The time and the sequence number of the last event of each capture thread.
    last: BTreeMap<u64, (u64, u32)>,
    kinds: BTreeSet<u32>,
    stacks: BTreeSet<u32>,
    times: Option<TimeRange>,
    broken: BTreeSet<&'static str>,
}

impl Place {
    fn guarantee(&mut self, is_kept: bool, name: &'static str) {
        if !is_kept {
            self.broken.insert(name);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let Event { timestamp, capture_thread, sequence, .. } = *event;
        let (time, number) = self.last.get(&capture_thread).copied().unwrap_or((timestamp, 0));
        self.guarantee(timestamp >= self.point, "no event is older than the sequence point before it");
        self.guarantee(timestamp >= self.sorted, "no event is older than a sorted event before it");
        self.guarantee(timestamp >= time, "the events of a thread are in the order of time");
        // In V4 the number 1 begins another thread with the same id.
        self.guarantee(sequence > number || sequence == 1, "the numbers of a thread become larger");
        // TraceEvent relies on it.
        let is_expected = event.sorted || self.thread.is_none_or(|thread| thread == capture_thread);
        self.guarantee(
            is_expected,
            "in a block, only a sorted event is of another thread than the one before it",
        );
        self.guarantee(self.kinds.contains(&event.metadata_id), "an event has a description before it");
        let has_stack = event.stack_id == 0 || self.stacks.contains(&event.stack_id);
        self.guarantee(has_stack, "an event has its stack before it");
        let is_inside = self.times.is_none_or(|times| (times.first..=times.last).contains(&timestamp));
        self.guarantee(is_inside, TIMES);
        self.last.insert(capture_thread, (timestamp, sequence));
        if event.sorted {
            self.sorted = timestamp;
        }
        (self.thread, self.newest) = (Some(capture_thread), self.newest.max(timestamp));
    }
}

/// Returns the guarantees that a trace breaks.
fn broken(trace: &[u8]) -> BTreeSet<&'static str> {
    let (mut parser, mut place) = (Parser::new(Limits::default()), Place::default());
    loop {
        match parser.next(trace) {
            Record::Metadata(record) => {
                let described = Metadata::decode(parser.version(), record.payload);
                let is_new = described.is_ok_and(|described| place.kinds.insert(described.id));
                place.guarantee(is_new, "a description has an id of its own");
            }
            Record::Block(_) => (place.times, place.thread) = (None, None),
            Record::TimeRange(times) => place.times = Some(times),
            Record::Stack(stack) => {
                place.stacks.insert(stack.id);
            }
            // V3 has neither numbers nor stacks with an id.
            Record::Event(event) if parser.version() == Version::V3 => {
                place.guarantee(event.timestamp >= place.newest, "V3 is in the order of time");
                place.newest = place.newest.max(event.timestamp);
            }
            Record::Event(event) => place.event(&event),
            Record::SequencePoint(point) => {
                let is_later = point.timestamp >= place.newest.max(place.point);
                place.guarantee(is_later, POINTS);
                place.point = point.timestamp;
                place.stacks.clear();
                if point.flushes_threads() {
                    place.last.clear();
                }
                if point.flushes_metadata() {
                    place.kinds.clear();
                }
            }
            Record::ThreadSequence(row) => {
                if let Some((_, sequence)) = place.last.get_mut(&row.thread) {
                    let is_later = row.sequence >= *sequence;
                    *sequence = row.sequence;
                    place.guarantee(is_later, "a sequence point has the numbers of the threads");
                }
            }
            Record::RemoveThread(row) => {
                place.last.remove(&row.thread);
            }
            Record::Trace(_) | Record::Thread(_) | Record::LabelList(_) => {}
            Record::BadBlock(_) => place.guarantee(false, UNDAMAGED),
            Record::More { .. } => {
                place.guarantee(false, COMPLETE);
                return place.broken;
            }
            Record::End(end) => {
                place.guarantee(end == End::Complete, COMPLETE);
                return place.broken;
            }
        }
    }
}

fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            traces(&path, found);
        } else if path.extension().is_some_and(|end| end == "nettrace" || end == "netperf") {
            found.push(path);
        }
    }
}

#[test]
fn the_traces_keep_the_guarantees_of_the_format() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata"));
    let mut found = Vec::new();
    traces(folder, &mut found);
    assert!(found.len() > 50, "{found:?}");
    let mut differ = Vec::new();
    for path in found {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let expected = EXCEPTIONS.iter().find(|(trace, _)| *trace == name).map_or(&[][..], |found| found.1);
        let broken = broken(&fs::read(&path).unwrap());
        if broken != expected.iter().copied().collect() {
            differ.push((name.to_owned(), broken));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
