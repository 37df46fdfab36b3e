//! The traces of `testdata/nettrace/`, whole, in pieces and truncated, against the counts of an independent reader.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
use std::collections::BTreeMap;

use ipc_testdata::RecordedTrace;
use nettrace::{
    BlockKind, Corruption, End, Event, Limits, LossCounter, Parser, Record, Slot, Truncation, Version,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The result of one pass over a stream.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    blocks: BTreeMap<String, u64>,
    events: u64,
    metadata: u64,
    stacks: u64,
    empty_stacks: u64,
    sequence_points: u64,
    sorted: u64,
    payload_bytes: u64,
    first: u64,
    last: u64,
    lost: u64,
    gaps: u64,
    bad_blocks: u64,
    end: End,
    digest: String,
}

struct Counting<'s> {
    version: Version,
    summary: Summary,
    digest: Sha256,
    loss: LossCounter<&'s mut [Slot<nettrace::Counter>]>,
}

impl<'s> Counting<'s> {
    fn new(slots: &'s mut [Slot<nettrace::Counter>]) -> Self {
        Self {
            version: Version::V4,
            summary: Summary {
                blocks: BTreeMap::new(),
                events: 0,
                metadata: 0,
                stacks: 0,
                empty_stacks: 0,
                sequence_points: 0,
                sorted: 0,
                payload_bytes: 0,
                first: u64::MAX,
                last: 0,
                lost: 0,
                gaps: 0,
                bad_blocks: 0,
                end: End::Complete,
                digest: String::new(),
            },
            digest: Sha256::new(),
            loss: LossCounter::new(slots),
        }
    }

    fn step(&mut self, parser: &Parser, step: &Record<'_>) {
        self.loss.record(step);
        let s = &mut self.summary;
        match step {
            Record::Block(block) => {
                let name = match block.kind {
                    BlockKind::Unknown(n) => format!("kind{n}"),
                    kind => kind.name(parser.version()).to_owned(),
                };
                *s.blocks.entry(name).or_default() += 1;
            }
            Record::Trace(trace) => {
                self.version = trace.version;
                assert_eq!(trace.version, parser.version());
            }
            Record::Metadata(_) => s.metadata += 1,
            Record::Stack(stack) => {
                s.stacks += 1;
                s.empty_stacks += u64::from(stack.bytes.is_empty());
            }
            Record::SequencePoint(_) => s.sequence_points += 1,
            Record::BadBlock(_) => s.bad_blocks += 1,
            Record::Event(event) => {
                s.events += 1;
                s.sorted += u64::from(event.sorted);
                s.payload_bytes += event.payload.len() as u64;
                s.first = s.first.min(event.timestamp);
                s.last = s.last.max(event.timestamp);
                digest_event(&mut self.digest, event);
            }
            _ => {}
        }
    }

    fn end(mut self, end: End) -> Summary {
        self.summary.lost = self.loss.lost_after_start();
        self.summary.gaps = self.loss.gaps();
        assert_eq!(self.loss.untracked(), 0);
        self.summary.end = end;
        self.summary.digest = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.summary
    }
}

fn digest_event(digest: &mut Sha256, event: &Event<'_>) {
    digest.update(event.metadata_id.to_le_bytes());
    digest.update(event.sequence.to_le_bytes());
    digest.update(event.thread.to_le_bytes());
    digest.update(event.capture_thread.to_le_bytes());
    digest.update(event.processor.to_le_bytes());
    digest.update(event.stack_id.to_le_bytes());
    digest.update(event.timestamp.to_le_bytes());
    digest.update(event.activity_id.0);
    digest.update(event.related_activity_id.0);
    digest.update([u8::from(event.sorted)]);
    digest.update((event.payload.len() as u32).to_le_bytes());
    digest.update(event.payload);
}

/// Reads a stream that lies in memory as a whole.
fn whole(bytes: &[u8]) -> Summary {
    let mut slots = [Slot::default(); 1024];
    let mut counting = Counting::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(bytes) {
            Record::More { .. } => return counting.end(parser.finish(bytes)),
            Record::End(end) => return counting.end(end),
            step => counting.step(&parser, &step),
        }
    }
}

/// Reads a stream that comes in pieces through a window that is never longer than it must be.
fn pieces(bytes: &[u8], piece: usize) -> (Summary, usize) {
    let mut slots = [Slot::default(); 1024];
    let mut counting = Counting::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let (mut window, mut pieces, mut largest) = (Vec::new(), bytes.chunks(piece), 0);
    loop {
        match parser.next(&window) {
            Record::More { needed } => {
                let used = parser.release();
                window.drain(..used);
                assert!(needed > window.len(), "{needed} bytes are there: {}", window.len());
                let Some(more) = pieces.next() else {
                    return (counting.end(parser.finish(&window)), largest);
                };
                window.extend_from_slice(more);
                largest = largest.max(window.len());
            }
            Record::End(end) => return (counting.end(end), largest),
            step => counting.step(&parser, &step),
        }
    }
}

fn traces() -> Vec<(String, Vec<u8>, Value)> {
    let parsed = |trace: &RecordedTrace| {
        (trace.name.to_owned(), trace.bytes.to_vec(), serde_json::from_str(trace.expected).unwrap())
    };
    ipc_testdata::TRACES.iter().map(parsed).collect()
}

#[test]
fn expected_numbers() {
    for (name, bytes, json) in traces() {
        let got = whole(&bytes);
        let number = |key: &str| json[key].as_u64().unwrap_or_else(|| panic!("{name}: {key}"));
        let blocks: BTreeMap<String, u64> = serde_json::from_value(json["blocks"].clone()).unwrap();
        assert_eq!(got.blocks, blocks, "{name}");
        assert_eq!(got.events, number("events"), "{name}: events");
        assert_eq!(got.metadata, number("metadata_rows"), "{name}: metadata");
        assert_eq!(got.stacks, number("stacks"), "{name}: stacks");
        assert_eq!(got.empty_stacks, number("empty_stacks"), "{name}: empty stacks");
        assert_eq!(got.sequence_points, number("seqpoints"), "{name}: sequence points");
        assert_eq!(got.sorted, number("sorted_events"), "{name}: sorted");
        assert_eq!(got.payload_bytes, number("payload_bytes"), "{name}: payload");
        assert_eq!(got.lost, number("dropped_strict"), "{name}: lost");
        assert_eq!(got.gaps, json["gaps"].as_u64().unwrap_or(got.gaps), "{name}: gaps");
        assert_eq!(Value::from(vec![got.first, got.last]), json["ts_range"], "{name}: timestamps");
        assert_eq!(got.digest, json["digest_sha256"], "{name}: digest");
        match got.end {
            End::Complete => {
                assert!(json["error"].is_null(), "{name}");
                let end = if number("version") == 6 { "EndOfStream" } else { "null tag" };
                assert_eq!(json["end"], end, "{name}");
            }
            End::Truncated { offset, reason: Truncation::Block { kind: BlockKind::Event, .. } } => {
                assert_eq!(offset, bytes.len() as u64, "{name}");
                assert_eq!(json["end"], "truncated: in EventBlock", "{name}");
            }
            End::Corrupt { offset, reason: Corruption::Block(bad) } => {
                assert_eq!((offset, bad.at), (0x1734, 0x19ca), "{name}: {bad:?}");
            }
            end => panic!("{name}: {end}"),
        }
    }
}

#[test]
fn pieces_give_the_same_records() {
    for (name, bytes, _) in traces() {
        let want = whole(&bytes);
        for piece in [1, 7, 4096] {
            let (got, window) = pieces(&bytes, piece);
            assert_eq!(got, want, "{name} in pieces of {piece}");
            assert!(window < (66 << 10) + piece, "{name}: a window of {window}");
        }
    }
}

/// Every record, and where in the stream it ends.
fn records(bytes: &[u8]) -> (Vec<(u64, Record<'_>)>, End) {
    let mut parser = Parser::new(Limits::default());
    let mut records = Vec::new();
    loop {
        match parser.next(bytes) {
            Record::More { .. } => return (records, parser.finish(bytes)),
            Record::End(end) => return (records, end),
            // The place of the cut decides when the parser detects a bad block, so these records are not compared.
            Record::BadBlock(_) => {}
            step => records.push((parser.offset(), step)),
        }
    }
}

/// The records before a cut are those of the whole stream.
#[test]
fn cut_anywhere() {
    for (name, bytes, _) in traces() {
        let (want, end) = records(&bytes);
        let step = if bytes.len() < 12_000 { 1 } else { 1 + bytes.len() / 400 };
        for cut in (0..bytes.len()).step_by(step) {
            let (got, got_end) = records(&bytes[..cut]);
            let last = want.iter().take_while(|(end, _)| *end <= cut as u64).count();
            assert!(got == want[..last], "{name} cut at {cut}: {} of {last} records", got.len());
            match got_end {
                End::Truncated { offset, .. } => assert_eq!(offset, cut as u64, "{name}"),
                // Bytes after the end mark are ignored.
                End::Complete => assert_eq!(end, End::Complete, "{name} cut at {cut}"),
                End::Corrupt { .. } => assert_eq!(got_end, end, "{name} cut at {cut}"),
            }
        }
    }
}

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Whatever is wrong with a stream, its records are the same whole and in pieces, and nothing panics.
#[test]
fn damaged() {
    let mut random = Random(1);
    for (name, bytes, _) in traces().into_iter().filter(|(_, bytes, _)| bytes.len() < 32_000) {
        for round in 0..150 {
            let mut bytes = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = 0xff,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => bytes.truncate(at + 1),
                    _ => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len() - 1).max(at))),
                }
            }
            let want = whole(&bytes);
            let (got, _) = pieces(&bytes, 1 + random.below(300));
            assert_eq!(got, want, "{name}, round {round}");
        }
    }
}
