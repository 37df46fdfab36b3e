//! Handmade streams that are unusual and legal, or have one fault.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

#[path = "../steps/mod.rs"]
mod steps;

mod events;
mod framing;
mod loss;
mod objects;

use ipc_proto::Guid;
use nettrace::DecodeErrorKind;
use nettrace::{
    BadBlock, Block, BlockKind, Corruption, End, Event, Label, Labels, Limits, LossCounter, Pairs, Parser,
    Record, Slot, Str, Thread, ThreadEntries, ThreadEntry, Truncation, Version, frames,
};
use steps::picked;

/// A stream under construction.
struct Stream(Vec<u8>);

const V3: u32 = 3;
const V4: u32 = 4;

impl Stream {
    fn v3() -> Self {
        let mut stream = Self(b"\x14\0\0\0!FastSerialization.1".to_vec());
        stream.object_with(4, "Trace", [3, 0], &trace_body(), &[6]);
        stream
    }
    fn v4() -> Self {
        let mut stream = Self(b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec());
        stream.object_with(5, "Trace", [4, 4], &trace_body(), &[6]);
        stream
    }
    fn v6() -> Self {
        let mut stream = Self(b"Nettrace\0\0\0\0\x06\0\0\0\x63\0\0\0".to_vec());
        let mut body = trace_body()[..36].to_vec();
        body.extend(2u32.to_le_bytes());
        body.extend(b"\x09ProcessId\x0277\x01x\0");
        stream.block(1, &body);
        stream
    }
    /// A block of V6.
    fn block(&mut self, kind: u8, body: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend((body.len() as u32 | u32::from(kind) << 24).to_le_bytes());
        self.0.extend(body);
        at
    }
    fn object_with(&mut self, tag: u8, name: &str, versions: [u32; 2], body: &[u8], tail: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend([tag, tag, 1]);
        versions.iter().for_each(|version| self.0.extend(version.to_le_bytes()));
        self.0.extend((name.len() as u32).to_le_bytes());
        self.0.extend(name.as_bytes());
        self.0.push(6);
        // `Trace` has no size, and an object of an unknown name has tagged values only.
        if !["Trace", "NewBlock", ""].contains(&name) {
            self.0.extend((body.len() as u32).to_le_bytes());
            while self.0.len() % 4 != 0 {
                self.0.push(0xee);
            }
        }
        self.0.extend(body);
        self.0.extend(tail);
        at
    }
    /// A block of V4.
    fn object(&mut self, name: &str, body: &[u8]) -> u64 {
        self.object_with(5, name, [2, 2], body, &[6])
    }
    /// A block of compressed blobs.
    fn blobs(&mut self, name: &str, blobs: &[u8]) -> u64 {
        self.object(name, &[&blob_header(20, 1), blobs].concat())
    }
    fn end(mut self) -> Vec<u8> {
        self.0.push(1);
        self.0
    }
}

fn trace_body() -> [u8; 48] {
    let mut body = [0; 48];
    body[16] = 7;
    body[24] = 10;
    body[32] = 8;
    body[36] = 42;
    body
}

fn blob_header(size: u16, flags: u16) -> Vec<u8> {
    let mut header = size.to_le_bytes().to_vec();
    header.extend(flags.to_le_bytes());
    // The first timestamp is after the last one, so there is no range.
    header.extend([0xff; 8]);
    header.resize(usize::from(size).max(20), 0x55);
    header
}

/// A compressed event of metadata 1 that states all parts but activity ids.
fn event(sequence_delta: u8, thread: u8, payload: &[u8]) -> Vec<u8> {
    let mut blob = vec![0x8f, 1, sequence_delta, thread, 3, thread, 0, 1];
    blob.extend(match payload.len() {
        len @ 0..128 => vec![len as u8],
        len => vec![len as u8 | 0x80, (len >> 7) as u8],
    });
    blob.extend(payload);
    blob
}

/// Returns the text of every record, and the end. Reads in three ways, which must agree: all at once, through a window
/// of the least length, and through a window that grows and is never released.
fn read(bytes: &[u8]) -> (Vec<String>, End) {
    let mut whole = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let end = loop {
        match parser.next(bytes) {
            Record::More { .. } => break parser.finish(bytes),
            Record::End(end) => break end,
            step => whole.push(show(parser.version(), &step)),
        }
    };
    let mut pieces = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let (mut window, mut rest) = (Vec::new(), bytes.iter());
    let end_of_pieces = loop {
        match parser.next(&window) {
            Record::More { needed } => {
                window.drain(..parser.release());
                assert!(needed > window.len());
                let Some(byte) = rest.next() else { break parser.finish(&window) };
                window.push(*byte);
            }
            Record::End(end) => break end,
            step => pieces.push(show(parser.version(), &step)),
        }
    };
    assert_eq!((&whole, end), (&pieces, end_of_pieces));
    let mut grown = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let mut len = 0;
    let end_of_grown = loop {
        match parser.next(&bytes[..len]) {
            Record::More { .. } if len == bytes.len() => break parser.finish(bytes),
            Record::More { .. } => len += 1,
            Record::End(end) => break end,
            step => grown.push(show(parser.version(), &step)),
        }
    };
    assert_eq!((&whole, end), (&grown, end_of_grown));
    (whole, end)
}

fn show(version: Version, step: &Record<'_>) -> String {
    match step {
        Record::Block(block) => match block.kind {
            BlockKind::Unknown(n) => format!("unknown {n}"),
            kind => kind.name(version).to_owned(),
        },
        Record::Trace(trace) => format!("trace {}.{} pid {:?}", trace.version, trace.minor, trace.process_id),
        Record::Event(e) => format!("event {} #{} {:?}", e.capture_thread, e.sequence, e.payload),
        Record::Metadata(m) => format!("metadata {:?}", m.payload),
        Record::Stack(s) => format!("stack {} {}", s.id, s.bytes.len()),
        Record::SequencePoint(p) => format!("point {} {}", p.timestamp, p.threads),
        Record::ThreadSequence(t) => format!("at {} #{}", t.thread, t.sequence),
        Record::RemoveThread(t) => format!("removed {} #{}", t.thread, t.sequence),
        Record::Thread(t) => format!("thread {} {:?}", t.index, t.entries.collect::<Vec<_>>()),
        Record::LabelList(l) => format!("labels {} {:?}", l.id, l.labels.collect::<Vec<_>>()),
        Record::BadBlock(bad) => format!("bad {:?}", bad.error),
        other => format!("{other:?}"),
    }
}

fn after_trace(bytes: &[u8]) -> (Vec<String>, End) {
    let (mut steps, end) = read(bytes);
    assert!(steps.len() >= 2, "{end}");
    assert_eq!(steps.drain(..2).next().unwrap(), "Trace");
    (steps, end)
}

/// Reads a stream that is in memory as a whole with `limits`, and returns its end.
fn end_of(bytes: &[u8], limits: Limits) -> End {
    let mut parser = Parser::new(limits);
    loop {
        match parser.next(bytes) {
            Record::More { .. } => return parser.finish(bytes),
            Record::End(end) => return end,
            _ => {}
        }
    }
}
