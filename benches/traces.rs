//! What the benches do with a trace that lies in memory.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a benchmark"
)]
use core::hint::black_box;
use std::io::{self, Write};

use ipc_proto::nettrace::{
    Counter, Event, Fields, Held, Limits, Loss, Metadata, Order, Parser, Scalar, SequencePoint, Slot, Stack,
    Step, Table, ThreadSequence, Trace, Version, Writer, clr,
};

/// Room for what [`joined`] keeps: metadata with how often it was pointed to, stacks, threads.
#[derive(Debug)]
pub struct Joins<'w> {
    metadata: Vec<Slot<(&'w [u8], u64)>>,
    stacks: Vec<Slot<&'w [u8]>>,
    threads: Vec<Slot<Counter>>,
}

impl Joins<'_> {
    /// Room for so many of each.
    #[must_use]
    pub fn new(metadata: usize, stacks: usize, threads: usize) -> Self {
        Self {
            metadata: vec![Slot::default(); metadata],
            stacks: vec![Slot::default(); stacks],
            threads: vec![Slot::default(); threads],
        }
    }
}

/// Blocks only.
pub fn framing(bytes: &[u8]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut blocks = 0;
    loop {
        match parser.next(bytes) {
            Step::Block(block) => {
                blocks += u64::from(block.len);
                parser.skip_block();
            }
            Step::More { .. } | Step::End(_) => return blocks,
            _ => {}
        }
    }
}

/// Every event's header and payload; how many there are.
pub fn events(bytes: &[u8]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let (mut events, mut sum) = (0, 0);
    loop {
        let event = match parser.next_event(bytes) {
            Some(event) => event,
            None => match parser.next(bytes) {
                Step::Event(event) => event,
                Step::More { .. } | Step::End(_) => break,
                _ => continue,
            },
        };
        events += 1;
        sum ^= event.payload.len() as u64 ^ event.timestamp ^ event.thread;
    }
    black_box(sum);
    events
}

/// Each event with its metadata record, its stack, and the loss of its thread.
pub fn joined<'w>(bytes: &'w [u8], joins: &mut Joins<'w>) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let (mut metadata, mut stacks) = (Table::new(&mut joins.metadata), Table::new(&mut joins.stacks));
    let mut loss = Loss::new(&mut joins.threads);
    let (mut events, mut frames) = (0, 0);
    loop {
        let event = match parser.next_event(bytes) {
            Some(event) => event,
            None => match parser.next(bytes) {
                Step::Event(event) => event,
                Step::Metadata(record) => {
                    let id = u32::from_le_bytes(*record.payload.first_chunk().unwrap());
                    metadata.insert(id.into(), (record.payload, 0)).unwrap();
                    continue;
                }
                Step::Stack(stack) => {
                    stacks.insert(stack.id.into(), stack.bytes).unwrap();
                    continue;
                }
                Step::More { .. } | Step::End(_) => break,
                other => {
                    loss.step(&other);
                    if let Step::SequencePoint(_) = other {
                        stacks.clear();
                    }
                    continue;
                }
            },
        };
        events += 1;
        loss.event(&event);
        if let Some((_, count)) = metadata.get_mut(event.metadata_id.into()) {
            *count += 1;
        }
        frames += stacks.get(event.stack_id.into()).map_or(0, |stack| stack.len());
    }
    black_box((loss.lost(), frames));
    events
}

/// Every field of every event that is described, the runtime's own by the table of the feature `clr`; how many bytes of
/// payload that were.
pub fn fields<'w>(bytes: &'w [u8], metadata: &mut [Slot<Metadata<'w>>]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut metadata = Table::new(metadata);
    let (mut payload, mut items, mut pointer_size) = (0, 0_u64, 8);
    loop {
        let event = match parser.next_event(bytes) {
            Some(event) => event,
            None => match parser.next(bytes) {
                Step::Event(event) => event,
                Step::Trace(trace) => {
                    pointer_size = trace.pointer_size;
                    continue;
                }
                Step::Metadata(record) => {
                    let record = Metadata::decode(parser.version(), record.payload).unwrap();
                    let described = clr::describe(record, pointer_size);
                    metadata.insert(described.id.into(), described).unwrap();
                    continue;
                }
                Step::More { .. } | Step::End(_) => break,
                _ => continue,
            },
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

/// Events in the order of time.
pub fn ordered<'w>(bytes: &'w [u8], slots: &mut [Held<Event<'w>>]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut order = Order::new(slots);
    let (mut events, mut sum) = (0, 0);
    loop {
        let step = parser.next(bytes);
        match step {
            Step::Event(event) => {
                order.push(event.timestamp, event).unwrap();
                if event.sorted {
                    order.release(event.timestamp);
                }
            }
            Step::SequencePoint(_) | Step::More { .. } | Step::End(_) => order.release_all(),
            _ => {}
        }
        while let Some(event) = order.pop() {
            events += 1;
            sum += event.timestamp ^ event.payload.len() as u64;
        }
        if let Step::More { .. } | Step::End(_) = step {
            break;
        }
    }
    black_box((sum, order.late()));
    events
}

/// All that a trace holds.
#[must_use]
pub fn steps(bytes: &[u8]) -> Vec<Step<'_>> {
    let mut parser = Parser::new(Limits::default());
    let mut steps = Vec::new();
    loop {
        match parser.next(bytes) {
            Step::More { .. } | Step::End(_) => return steps,
            step => steps.push(step),
        }
    }
}

/// Writes them, as version 4; how many bytes that made.
pub fn written(steps: &[Step<'_>], buf: &mut [u8]) -> u64 {
    let mut writer = Writer::new(Version::V4, buf).unwrap();
    let mut len = 0;
    macro_rules! put {
        ($written:expr) => {
            while let Some(bytes) = $written.unwrap() {
                len += black_box(bytes).len() as u64;
            }
        };
    }
    for step in steps {
        match step {
            Step::Trace(trace) => put!(writer.trace(trace)),
            Step::Metadata(record) => put!(writer.metadata(record)),
            Step::Stack(stack) => put!(writer.stack(stack)),
            Step::Event(event) => put!(writer.event(event)),
            Step::SequencePoint(point) => put!(writer.sequence_point(point)),
            Step::ThreadSequence(row) => put!(writer.thread_sequence(row)),
            _ => {}
        }
    }
    while let Some(bytes) = writer.finish() {
        len += black_box(bytes).len() as u64;
    }
    len
}

/// Writes a trace of many threads and small payloads, as the program of 200 threads gives: a burst of one thread, then of
/// the next, times that overlap, a sequence point every 100,000 events. The first of a burst is `sorted` if that is
/// wanted: without, all of them are to be held up to the next point.
///
/// # Errors
/// What `out` says.
pub fn threads(out: &mut impl Write, threads: u64, events: u32, sorted: bool) -> io::Result<()> {
    const BURST: u32 = 25;
    let mut buf = vec![0; Writer::BUFFER];
    let mut writer = Writer::new(Version::V4, &mut buf).unwrap();
    macro_rules! put {
        ($written:expr) => {
            while let Some(bytes) = $written.unwrap() {
                out.write_all(bytes)?;
            }
        };
    }
    put!(writer.trace(&Trace::new(Version::V4)));
    let mut space = [0; 64];
    let mut tick = Metadata::default();
    (tick.id, tick.provider, tick.event_id) = (1, "Made".into(), 1);
    tick.fields =
        Fields::build(&[("Number", Scalar::UInt32), ("Worker", Scalar::UInt64)], &mut space).unwrap();
    put!(writer.describe(&tick));
    let mut sequences = vec![0; usize::try_from(threads).unwrap()];
    for number in 0..events {
        if number % 100_000 == 0 {
            put!(writer.stack(&Stack { id: 1, bytes: &0x7f00_0000_1000_u64.to_le_bytes() }));
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
            // Bursts of neighbours overlap by half, but nothing behind the first of one is older; and nothing overlaps over
            // a sequence point.
            timestamp: u64::from(1 + number / 100_000) * 10_000
                + u64::from(number / BURST) * 1250
                + u64::from(number % BURST) * 100,
            sorted: sorted && number % BURST == 0,
            payload: &payload,
            ..Event::default()
        };
        put!(writer.event(&event));
        if number % 100_000 == 99_999 {
            let threads = u32::try_from(threads).unwrap();
            let timestamp = event.timestamp;
            put!(writer.sequence_point(&SequencePoint { timestamp, threads, ..SequencePoint::default() }));
            for (thread, sequence) in (4000..).zip(&sequences) {
                put!(writer.thread_sequence(&ThreadSequence { thread, sequence: *sequence }));
            }
        }
    }
    while let Some(bytes) = writer.finish() {
        out.write_all(bytes)?;
    }
    Ok(())
}
