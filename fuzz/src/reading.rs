//! The records of a stream, in a form that compares two readers.
use core::fmt::{Debug, Write};

use nettrace::{Counter, End, Event, Limits, LossCounter, Parser, Record, SequencePoint, Slot, Version};

/// The content of records as bytes, one record after another.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RecordBytes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RecordBytes {
    pub(crate) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}

/// The valid part of a stream.
#[derive(Debug)]
pub(crate) struct Seen {
    /// All records in the order of the stream.
    pub(crate) records: RecordBytes,
    /// The offset at which each record ends.
    pub(crate) offsets: Vec<u64>,
    pub(crate) events: RecordBytes,
    /// The records that are neither events nor records that a writer adds by itself.
    pub(crate) others: RecordBytes,
    pub(crate) plain: Vec<Plain>,
    pub(crate) lost: u64,
    pub(crate) end: End,
}

/// The part of an event that a rewrite keeps: metadata id, timestamp and payload.
pub(crate) type Plain = (u32, u64, Vec<u8>);

struct Reading<'s> {
    seen: Seen,
    loss: LossCounter<&'s mut [Slot<Counter>]>,
    version: Version,
}

impl<'s> Reading<'s> {
    fn new(slots: &'s mut [Slot<Counter>]) -> Self {
        let [records, events, others] = [(); 3].map(|()| RecordBytes::default());
        let (offsets, plain) = (Vec::new(), Vec::new());
        let seen = Seen { records, offsets, events, others, plain, lost: 0, end: End::Complete };
        Self { seen, loss: LossCounter::new(slots), version: Version::V4 }
    }

    fn step(&mut self, step: &Record<'_>, offset: u64) {
        self.loss.record(step);
        let Seen { records, offsets, events, others, plain, .. } = &mut self.seen;
        let bytes = match step {
            Record::Event(event) => of_event(event),
            Record::Metadata(record) if self.version == Version::V6 => [b"metadata", record.payload].concat(),
            Record::Metadata(record) => [b"metadata", &of_event(record)[..]].concat(),
            // Labels and entries are stored decoded: a number may have more bytes than it needs, and a copy of it fewer.
            Record::LabelList(list) => debug_bytes(&list.id, list.labels),
            Record::Thread(thread) => debug_bytes(&thread.index, thread.entries),
            step => debug_bytes(step, [(); 0]),
        };
        match step {
            Record::Event(event) => {
                events.push(&bytes);
                plain.push((event.metadata_id, event.timestamp, event.payload.to_vec()));
            }
            Record::Trace(trace) => self.version = trace.version,
            Record::Block(_) | Record::TimeRange(_) | Record::BadBlock(_) => {}
            // A writer counts the threads of a sequence point itself, so the count is not compared.
            Record::SequencePoint(point) => {
                others.push(&debug_bytes(&SequencePoint { threads: 0, ..*point }, [(); 0]));
            }
            _ => others.push(&bytes),
        }
        records.push(&bytes);
        offsets.push(offset);
    }

    fn end(mut self, end: End) -> Seen {
        self.seen.end = end;
        self.seen.lost = self.loss.losses().lost;
        self.seen
    }
}

/// Returns the debug text of a record and of its parts.
pub(crate) fn debug_bytes(whole: &impl Debug, parts: impl IntoIterator<Item = impl Debug>) -> Vec<u8> {
    let mut text = String::with_capacity(200);
    write!(text, "{whole:?}").expect("a string can be written to");
    parts.into_iter().for_each(|part| write!(text, "{part:?}").expect("a string can be written to"));
    text.into_bytes()
}

pub(crate) fn of_event(event: &Event<'_>) -> Vec<u8> {
    let mut numbers = [[0; 8]; 8];
    let values = [event.metadata_id, event.sequence, event.processor, event.stack_id, event.label_list]
        .map(u64::from)
        .into_iter()
        .chain([event.capture_thread, event.thread, event.timestamp]);
    numbers.iter_mut().zip(values).for_each(|(number, value)| *number = value.to_le_bytes());
    let (activity_id, related_activity_id) = (&event.activity_id.0, &event.related_activity_id.0);
    let sorted = [u8::from(event.sorted)];
    [
        numbers.as_flattened(),
        activity_id,
        related_activity_id,
        &sorted,
        event.stack,
        b" stack, payload ",
        event.payload,
    ]
    .concat()
}

pub(crate) fn read(bytes: &[u8]) -> Seen {
    let mut slots = vec![Slot::default(); 256];
    let mut reading = Reading::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(bytes) {
            Record::More { .. } => return reading.end(parser.finish(bytes)),
            Record::End(end) => return reading.end(end),
            step => reading.step(&step, parser.offset()),
        }
    }
}

pub(crate) fn read_in_pieces(mut bytes: &[u8], mut sizes: impl Iterator<Item = usize>) -> Seen {
    let mut slots = vec![Slot::default(); 256];
    let mut reading = Reading::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let mut window = Vec::new();
    loop {
        match parser.next(&window) {
            Record::More { needed } => {
                let used = parser.release();
                window.drain(..used);
                assert!(
                    needed > window.len(),
                    "{needed} bytes are requested, but the window has {}",
                    window.len()
                );
                if bytes.is_empty() {
                    return reading.end(parser.finish(&window));
                }
                let (now, later) = bytes.split_at(sizes.next().unwrap_or(usize::MAX).min(bytes.len()));
                window.extend_from_slice(now);
                bytes = later;
            }
            Record::End(end) => return reading.end(end),
            step => reading.step(&step, parser.offset()),
        }
    }
}
