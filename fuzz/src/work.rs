//! The property of the work of all readers: it is proportional to the bytes of the trace.
use ipc_proto::wire::steps;
use nettrace::{
    AssemblerStep, EventAssembler, EventOrder, Limits, LossCounter, Metadata, Parser, ParserBuf, ReadOptions,
    Record, Rewrite, RewriteOptions, RewriteSpace, Slot, Version, WholeTrace,
};

use crate::repetition::repetition;

/// Checks that the work of each reader of traces is at most proportional to the bytes of the trace.
///
/// The work is counted in steps: values that are read, turns of loops, bytes that are copied or searched. Bytes that
/// begin like a trace are the trace itself. Other bytes describe a trace in which everything is repeated, see
/// `repetition.rs`. A trace arrives at once, and byte by byte.
pub fn work(bytes: &[u8]) {
    let is_trace = [&b"Nettrace"[..], b"\x14\0\0\0!"].iter().any(|magic| bytes.starts_with(magic));
    if is_trace {
        check(bytes);
    } else {
        check(&repetition(bytes));
    }
}

/// The number of steps that a reader may take in addition to those for the bytes.
const FREE: u64 = 20_000;

fn check(trace: &[u8]) {
    for (name, reader, per_byte) in READERS {
        let before = steps::counted();
        reader(trace);
        let taken = steps::counted() - before;
        let allowed = per_byte * trace.len() as u64 + FREE;
        assert!(taken <= allowed, "{name}: {taken} steps for {} bytes; {allowed} are allowed", trace.len());
    }
}

type Reader = fn(&[u8]);

/// The readers, each with the steps that it may take for a byte. An event has two bytes or more, and may refer to a
/// description of which its reader reads up to 2 KiB, whatever its payload is.
const READERS: [(&str, Reader, u64); 15] = [
    ("parser", |trace| parse(trace, |_, _| ()), 10),
    ("parser, byte by byte", byte_by_byte, 40),
    ("descriptions", descriptions, 40),
    ("losses", losses, 40),
    ("events", |trace| events(EventOrder::Stream, trace, trace.len()), 150),
    ("events, byte by byte", |trace| events(EventOrder::Stream, trace, 1), 150),
    ("events, sorted", |trace| events(EventOrder::BY_TIME, trace, 1000), 150),
    (
        "events, sorted in little memory",
        |trace| events(EventOrder::Time { limit: 4000 }, trace, trace.len()),
        150,
    ),
    ("events by segment", |trace| events(EventOrder::BY_SEGMENT, trace, 1000), 150),
    (
        "events by segment in little memory",
        |trace| events(EventOrder::Segment { limit: 4000 }, trace, 97),
        150,
    ),
    ("events by block", |trace| events(EventOrder::Block, trace, 1000), 150),
    ("events of the whole trace", whole, 150),
    ("rewrite", |trace| rewrite(trace, None), 150),
    ("rewrite to V4", |trace| rewrite(trace, Some(Version::V4)), 150),
    ("rewrite to V6", |trace| rewrite(trace, Some(Version::V6)), 150),
];

pub(crate) fn parse(trace: &[u8], mut take: impl FnMut(&Record<'_>, Version)) {
    let mut parser = Parser::new(Limits::default());
    loop {
        let record = parser.next(trace);
        take(&record, parser.version());
        if matches!(record, Record::More { .. } | Record::End(_)) {
            return;
        }
    }
}

fn byte_by_byte(trace: &[u8]) {
    let mut records = ParserBuf::new(Limits::default());
    for byte in trace {
        records.push(&[*byte]);
        while !matches!(records.next_record(), Record::More { .. } | Record::End(_)) {}
    }
}

fn descriptions(trace: &[u8]) {
    parse(trace, |record, version| {
        if let Record::Metadata(record) = record {
            if let Ok(metadata) = Metadata::decode(version, record.payload) {
                metadata.fields.iter().for_each(drop);
            }
        }
    });
}

fn losses(trace: &[u8]) {
    let mut slots = vec![Slot::default(); 1 << 14];
    let mut loss = LossCounter::new(&mut slots);
    parse(trace, |record, _| _ = loss.record(record));
}

/// Reads the events and their values.
fn events(order: EventOrder, trace: &[u8], piece: usize) {
    let mut assembler = EventAssembler::new(order, ReadOptions::default());
    let mut pieces = trace.chunks(piece.max(1));
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => {
                let _ = (event.metadata(), event.thread_id(), event.activity_id(), event.nanoseconds());
                event.values().for_each(drop);
            }
            AssemblerStep::More => match pieces.next() {
                Some(piece) => assembler.push(piece),
                None => assembler.finish(),
            },
            AssemblerStep::End(_) => return,
        }
    }
}

/// Reads the events of the whole trace and their values.
fn whole(bytes: &[u8]) {
    let mut trace = WholeTrace::new(bytes, ReadOptions::default());
    while let Some(segment) = trace.next_segment() {
        for event in segment.events() {
            let _ = (event.header(), event.metadata(), event.thread_id(), event.nanoseconds());
            event.values().for_each(drop);
        }
    }
}

fn rewrite(trace: &[u8], version: Option<Version>) {
    let (mut metadata, mut threads) = (vec![Slot::default(); 1 << 14], vec![Slot::default(); 1 << 14]);
    let (mut buffer, mut labels) = (vec![0; 1 << 20], vec![Slot::default(); 1 << 14]);
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let options = RewriteOptions { version, strip_command_line: true, ..RewriteOptions::default() };
    let mut rewrite = Rewrite::new(options, space).expect("a version that can be written");
    let mut failed = false;
    parse(trace, |record, _| failed = failed || rewrite.record(record).is_err());
    let mut end = rewrite.finish();
    while !failed && matches!(end.next_bytes(), Ok(Some(_))) {}
}
