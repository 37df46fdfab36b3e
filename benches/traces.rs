//! The operations of the benches on a trace in memory.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a benchmark"
)]
use core::hint::black_box;
use core::ops::ControlFlow;
use std::io::{self, Read, Write};

use nettrace::{
    AssemblerStep, Counter, Event, EventAssembler, EventOrder, Fields, Held, IdMap, Limits, LossCounter,
    Metadata, Order, Parser, ReadOptions, Record, Scalar, SequencePoint, Slot, Stack, ThreadSequence, Trace,
    TraceBytes, TraceEvent, TraceReader, TraceWriter, Version, WholeTrace, clr,
};

/// Room for the tables of [`joined`]: metadata with a count of its events, stacks, threads.
#[derive(Debug)]
pub struct Joins<'w> {
    metadata: Vec<Slot<(&'w [u8], u64)>>,
    stacks: Vec<Slot<&'w [u8]>>,
    threads: Vec<Slot<Counter>>,
}

impl Joins<'_> {
    /// Creates room for these numbers of records.
    #[must_use]
    pub fn new(metadata: usize, stacks: usize, threads: usize) -> Self {
        Self {
            metadata: vec![Slot::default(); metadata],
            stacks: vec![Slot::default(); stacks],
            threads: vec![Slot::default(); threads],
        }
    }
}

/// Reads blocks only, and returns the bytes of their bodies.
pub fn framing(bytes: &[u8]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut blocks = 0;
    loop {
        match parser.next(bytes) {
            Record::Block(block) => {
                blocks += u64::from(block.len);
                parser.skip_block();
            }
            Record::More { .. } | Record::End(_) => return blocks,
            _ => {}
        }
    }
}

/// Reads header and payload of each event, and returns the number of events.
pub fn events(bytes: &[u8]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let (mut events, mut sum) = (0, 0);
    loop {
        let _ = parser.try_for_each_event(bytes, |event| {
            events += 1;
            sum ^= event.payload.len() as u64 ^ event.timestamp ^ event.thread;
            ControlFlow::<()>::Continue(())
        });
        if let Record::More { .. } | Record::End(_) = parser.next(bytes) {
            break;
        }
    }
    black_box(sum);
    events
}

/// Reads each event with its metadata record, its stack, and the losses of its thread, from tables of the caller.
pub fn joined<'w>(bytes: &'w [u8], joins: &mut Joins<'w>) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let (mut metadata, mut stacks) = (IdMap::new(&mut joins.metadata), IdMap::new(&mut joins.stacks));
    let mut loss = LossCounter::new(&mut joins.threads);
    let (mut events, mut frames) = (0, 0);
    loop {
        let event = match parser.next(bytes) {
            Record::Event(event) => event,
            Record::Metadata(record) => {
                let id = u32::from_le_bytes(*record.payload.first_chunk().unwrap());
                metadata.insert(id.into(), (record.payload, 0)).unwrap();
                continue;
            }
            Record::Stack(stack) => {
                stacks.insert(stack.id.into(), stack.bytes).unwrap();
                continue;
            }
            Record::More { .. } | Record::End(_) => break,
            other => {
                loss.record(&other);
                if let Record::SequencePoint(_) = other {
                    stacks.clear();
                }
                continue;
            }
        };
        events += 1;
        loss.event(&event);
        if let Some((_, count)) = metadata.get_mut(event.metadata_id.into()) {
            *count += 1;
        }
        frames += stacks.get(event.stack_id.into()).map_or(0, |stack| stack.len());
    }
    black_box((loss.lost_after_start(), frames));
    events
}

/// Reads all fields of the described events, those of the runtime by the table of the feature `clr`, and returns the
/// bytes of their payloads.
pub fn fields<'w>(bytes: &'w [u8], metadata: &mut [Slot<Metadata<'w>>]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut metadata = IdMap::new(metadata);
    let (mut payload, mut items, mut pointer_size) = (0, 0_u64, 8);
    loop {
        let event = match parser.next(bytes) {
            Record::Event(event) => event,
            Record::Trace(trace) => {
                pointer_size = trace.pointer_size;
                continue;
            }
            Record::Metadata(record) => {
                let record = Metadata::decode(parser.version(), record.payload).unwrap();
                let described = clr::describe(record, pointer_size);
                metadata.insert(described.id.into(), described).unwrap();
                continue;
            }
            Record::More { .. } | Record::End(_) => break,
            _ => continue,
        };
        let record = metadata.get(event.metadata_id.into());
        if let Some(record) = record.filter(|record| !record.fields.is_empty()) {
            payload += event.payload.len() as u64;
            items += record.fields.values(event.payload).map(black_box).count() as u64;
        }
    }
    black_box(items);
    payload
}

/// Reads the events in the order of time; `None` if more events wait than `slots` has room for.
pub fn ordered<'w>(bytes: &'w [u8], slots: &mut [Held<Event<'w>>]) -> Option<u64> {
    let mut parser = Parser::new(Limits::default());
    let mut order = Order::new(slots);
    let (mut events, mut sum) = (0, 0);
    loop {
        let step = parser.next(bytes);
        match step {
            Record::Event(event) => {
                order.push(event.timestamp, event).ok()?;
                if event.sorted {
                    order.release(event.timestamp);
                }
            }
            Record::SequencePoint(_) | Record::More { .. } | Record::End(_) => order.release_all(),
            _ => {}
        }
        while let Some(event) = order.pop() {
            events += 1;
            sum += event.timestamp ^ event.payload.len() as u64;
        }
        if let Record::More { .. } | Record::End(_) = step {
            break;
        }
    }
    black_box((sum, order.late()));
    Some(events)
}

/// As [`ordered`]. Doubles the slots until there are enough.
pub fn ordered_in<'w>(bytes: &'w [u8], slots: &mut Vec<Held<Event<'w>>>) -> u64 {
    loop {
        match ordered(bytes, slots) {
            Some(events) => return events,
            None => slots.resize(slots.len() * 2, Held::default()),
        }
    }
}

/// Finds the description, the stack, the thread and the time of an event. It is part of each loop, as the code of a
/// program is that has one loop.
#[inline(always)]
fn visited(event: &TraceEvent<'_>) -> u64 {
    let description = event.description().map_or(0, |description| u64::from(description.event_id()));
    event.nanoseconds().unsigned_abs() ^ event.thread_id() ^ event.stack().len() as u64 ^ description
}

/// Reads each event of a reader, with its description, its stack, its thread and its time, and returns the number of
/// events.
pub fn read_all<R: Read>(mut trace: TraceReader<R>) -> u64 {
    let (mut events, mut sum) = (0, 0);
    while let Some(event) = trace.next_event().unwrap() {
        events += 1;
        sum ^= visited(&event);
    }
    black_box(sum);
    events
}

/// Reads each event of a trace that is in memory in the order of time, with its description, its stack, its thread and
/// its time, and returns the number of events.
pub fn whole_trace(bytes: &[u8]) -> u64 {
    let mut trace = WholeTrace::new(bytes, ReadOptions::default());
    let (mut events, mut sum) = (0, 0);
    while let Some(segment) = trace.next_segment() {
        for event in segment.events() {
            events += 1;
            sum ^= visited(&event);
        }
    }
    black_box(sum);
    events
}

/// Reads each event with its description, its stack, its thread and its time from an [`EventAssembler`], and returns
/// the number of events.
pub fn assembled(mut bytes: &[u8], order: EventOrder) -> u64 {
    let mut assembler = EventAssembler::new(order, ReadOptions::default());
    let (mut events, mut sum) = (0, 0);
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => {
                events += 1;
                sum ^= visited(&event);
            }
            AssemblerStep::More => {
                let space = assembler.space();
                let n = space.len().min(bytes.len());
                let (now, later) = bytes.split_at(n);
                space[..n].copy_from_slice(now);
                assembler.advance(n);
                bytes = later;
            }
            AssemblerStep::End(_) => break,
        }
    }
    black_box(sum);
    events
}

/// Returns all records of a trace.
#[must_use]
pub fn steps(bytes: &[u8]) -> Vec<Record<'_>> {
    let mut parser = Parser::new(Limits::default());
    let mut steps = Vec::new();
    loop {
        match parser.next(bytes) {
            Record::More { .. } | Record::End(_) => return steps,
            step => steps.push(step),
        }
    }
}

/// Writes records as version 4, and returns the number of bytes.
pub fn written(steps: &[Record<'_>], buf: &mut [u8]) -> u64 {
    let mut len = 0;
    let mut count = |bytes: TraceBytes<'_>| len += black_box(bytes).len() as u64;
    let mut steps = steps.iter();
    let trace = steps.find_map(|step| if let Record::Trace(trace) = step { Some(trace) } else { None });
    let mut writer = TraceWriter::new(trace.unwrap(), buf).unwrap();
    for step in steps {
        match step {
            Record::Metadata(record) => count(writer.metadata(record).unwrap()),
            Record::Stack(stack) => count(writer.stack(stack).unwrap()),
            Record::Event(event) => count(writer.event(event).unwrap()),
            Record::SequencePoint(point) => count(writer.sequence_point(point).unwrap()),
            Record::ThreadSequence(row) => count(writer.thread_sequence(row).unwrap()),
            _ => {}
        }
    }
    count(writer.finish());
    len
}

/// Writes a trace of many threads and small payloads, like that of the program of 200 threads: a burst of each thread
/// in turn, with times that overlap, and a sequence point after each 100,000 events. If `sorted`, the first event of a
/// burst is marked so; otherwise all events must wait for the next sequence point.
///
/// # Errors
/// Returns the error of `out`.
pub fn threads(out: &mut impl Write, threads: u64, events: u32, sorted: bool) -> io::Result<()> {
    const BURST: u32 = 25;
    let mut buf = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut space = [0; 64];
    let mut tick = Metadata::new(1, "Made", 1, "");
    tick.fields =
        Fields::build(&[("Number", Scalar::UInt32), ("Worker", Scalar::UInt64)], &mut space).unwrap();
    out.write_all(&writer.describe(&tick).unwrap())?;
    let mut sequences = vec![0; usize::try_from(threads).unwrap()];
    for number in 0..events {
        if number % 100_000 == 0 {
            out.write_all(
                &writer.stack(&Stack { id: 1, bytes: &0x7f00_0000_1000_u64.to_le_bytes() }).unwrap(),
            )?;
        }
        let thread = u64::from(number / BURST) % threads;
        let sequence = &mut sequences[usize::try_from(thread).unwrap()];
        *sequence += 1;
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        payload[4..].copy_from_slice(&thread.to_le_bytes());
        let event = Event {
            metadata_id: 1,
            sequence: *sequence,
            thread: 4000 + thread,
            capture_thread: 4000 + thread,
            stack_id: 1,
            // Bursts of neighbours overlap by half, but no event is older than the first one of an earlier burst; no
            // burst overlaps a sequence point.
            timestamp: u64::from(1 + number / 100_000) * 10_000
                + u64::from(number / BURST) * 1250
                + u64::from(number % BURST) * 100,
            sorted: sorted && number % BURST == 0,
            payload: &payload,
            ..Event::default()
        };
        out.write_all(&writer.event(&event).unwrap())?;
        if number % 100_000 == 99_999 {
            let threads = u32::try_from(threads).unwrap();
            let timestamp = event.timestamp;
            out.write_all(
                &writer
                    .sequence_point(&SequencePoint { timestamp, threads, ..SequencePoint::default() })
                    .unwrap(),
            )?;
            for (thread, sequence) in (4000..).zip(&sequences) {
                out.write_all(
                    &writer.thread_sequence(&ThreadSequence { thread, sequence: *sequence }).unwrap(),
                )?;
            }
        }
    }
    out.write_all(&writer.finish())
}
