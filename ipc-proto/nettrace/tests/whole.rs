//! `WholeTrace`, and an `EventAssembler` by segment, return the events of an `EventAssembler` that sorts.
#![cfg(feature = "alloc")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]

#[allow(dead_code, reason = "other tests use the rest")]
mod steps;
#[allow(dead_code, reason = "other tests use the rest")]
mod stream;

use nettrace::{
    AssemblerStep, BytesOrder, End, Event, EventAssembler, EventOrder, Label, Metadata, ReadOptions,
    SequencePoint, Stack, ThreadEntry, TraceEvent, Version, WholeTrace,
};
use stream::{Stream, put, stream, written};

/// Returns an event and everything that it refers to as text.
fn text_of(event: &TraceEvent<'_>) -> String {
    let values: Vec<_> = event.values().collect();
    let stack: Vec<u64> = event.stack().collect();
    let labels: Vec<_> = event.labels().collect();
    let threads = (event.thread_id(), event.known_thread_id(), event.thread(), event.process_id());
    let ids = (event.activity_id(), event.related_activity_id(), event.trace_id(), event.span_id());
    let times = (event.timestamp(), event.nanoseconds(), event.unix_nanoseconds());
    let (header, metadata) = (event.header(), event.metadata());
    format!("{times:?} {metadata:?} {values:?} {threads:?} {ids:?} {labels:?} {stack:?} {header:?}")
}

#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<String>,
    late: u64,
    /// The losses and the end.
    numbers: String,
}

fn assembled(bytes: &[u8]) -> Seen {
    let assembler = EventAssembler::new(EventOrder::Time { limit: 1 << 30 }, ReadOptions::default());
    read(assembler, bytes, bytes.len())
}

/// Reads a trace segment by segment, in pieces of this size.
fn by_segment(bytes: &[u8], piece: usize) -> Seen {
    let assembler = EventAssembler::new(EventOrder::BY_SEGMENT, ReadOptions::default());
    read(assembler, bytes, piece)
}

fn read(mut assembler: EventAssembler, bytes: &[u8], piece: usize) -> Seen {
    let mut events = Vec::new();
    let mut pieces = bytes.chunks(piece.max(1));
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => events.push(text_of(&event)),
            AssemblerStep::More => match pieces.next() {
                Some(piece) => assembler.push(piece),
                None => assembler.finish(),
            },
            AssemblerStep::End(end) => {
                let numbers = format!("{:?} {end:?}", assembler.summary().losses);
                return Seen { events, late: assembler.summary().late, numbers };
            }
        }
    }
}

fn whole(bytes: &[u8]) -> Seen {
    let mut trace = WholeTrace::new(bytes, ReadOptions::default());
    let mut events = Vec::new();
    while let Some(segment) = trace.next_segment() {
        events.extend(segment.events().map(|event| text_of(&event)));
    }
    let numbers = format!("{:?} {:?}", trace.summary().losses, trace.summary().end.unwrap());
    Seen { events, late: trace.summary().late, numbers }
}

/// Returns the times of the events of each segment.
fn times(bytes: &[u8]) -> Vec<Vec<u64>> {
    let mut trace = WholeTrace::new(bytes, ReadOptions::default());
    let mut segments = Vec::new();
    while let Some(segment) = trace.next_segment() {
        segments.push(segment.events().map(|event| event.timestamp()).collect());
    }
    segments
}

/// Reads a trace in the order of the stream.
fn by_block(bytes: &[u8], piece: usize) -> Seen {
    read(EventAssembler::new(EventOrder::Block, ReadOptions::default()), bytes, piece)
}

fn in_stream(bytes: &[u8]) -> Seen {
    read(EventAssembler::new(EventOrder::Stream, ReadOptions::default()), bytes, bytes.len())
}

/// Recorded traces, whole and cut. The property `assemble` also compares damaged ones.
#[test]
fn recorded_traces() {
    for trace in ipc_testdata::TRACES {
        let expected = assembled(trace.bytes);
        assert_eq!(whole(trace.bytes), expected, "{}", trace.name);
        let unsorted = in_stream(trace.bytes);
        let in_place =
            |order| read(EventAssembler::of_bytes(trace.bytes, order, ReadOptions::default()), b"ignored", 1);
        assert!(in_place(BytesOrder::Time) == expected, "{}, in place", trace.name);
        assert!(in_place(BytesOrder::Stream) == unsorted, "{}, in place", trace.name);
        for piece in [1009, 100_003, trace.bytes.len()] {
            assert!(by_segment(trace.bytes, piece) == expected, "{}, in pieces of {piece}", trace.name);
            assert!(by_block(trace.bytes, piece) == unsorted, "{}, in pieces of {piece}", trace.name);
        }
        for at in (0..trace.bytes.len()).step_by(trace.bytes.len() / 6 + 1) {
            let cut = &trace.bytes[..at];
            let expected = assembled(cut);
            assert_eq!(whole(cut), expected, "{}, cut at {at}", trace.name);
            assert!(by_segment(cut, 4099) == expected, "{}, cut at {at}, in pieces", trace.name);
            assert!(by_block(cut, 4099) == in_stream(cut), "{}, cut at {at}, in pieces", trace.name);
        }
    }
}

fn described(id: u32, name: &str) -> Metadata<'_> {
    Metadata::new(id, "Demo", id, name)
}

/// Writes an event with the metadata id 1, which has its number as payload.
fn put_event(stream: &mut Stream<'_>, sequence: u32, event: Event<'_>) {
    let payload = sequence.to_le_bytes();
    put!(stream.event(&Event { metadata_id: 1, sequence, payload: &payload, ..event }));
}

/// Returns a trace with events of these times; those of `sorted` are marked.
fn events_at(times: &[(u64, bool)]) -> Vec<u8> {
    written(Version::V4, |stream| {
        put!(stream.describe(&described(1, "Tick")));
        for (&(timestamp, sorted), sequence) in times.iter().zip(1..) {
            put_event(stream, sequence, Event { timestamp, sorted, ..Event::default() });
        }
    })
}

/// An event that is wrongly marked as sorted releases the events before it, as it does in an assembler.
#[test]
fn wrong_marks() {
    let bytes = events_at(&[(5, false), (9, true), (3, false), (7, false), (4, true), (2, false)]);
    assert_eq!(whole(&bytes), assembled(&bytes));
    assert_eq!(times(&bytes), [[5, 9, 3, 4, 2, 7]]);
    assert_eq!(whole(&bytes).late, 4);
    // Events of the time of a release that follow the release are released by the next one.
    let bytes = events_at(&[(9, true), (9, false), (9, false), (0, true), (0, true), (9, true), (1, false)]);
    assert_eq!(whole(&bytes), assembled(&bytes));
    assert_eq!(times(&bytes), [[9, 0, 0, 9, 9, 9, 1]]);
}

/// The events of segments are not mixed, and events of the same time keep their order.
#[test]
fn segments() {
    let bytes = written(Version::V4, |stream| {
        put!(stream.describe(&described(1, "Tick")));
        for (number, timestamp) in (1..).zip([7, 7, 3]) {
            put_event(stream, number, Event { timestamp, ..Event::default() });
        }
        put!(stream.sequence_point(&SequencePoint { timestamp: 8, ..SequencePoint::default() }));
        put!(stream.sequence_point(&SequencePoint { timestamp: 8, ..SequencePoint::default() }));
        put_event(stream, 5, Event { timestamp: 2, ..Event::default() });
    });
    assert_eq!(times(&bytes), [&[3, 7, 7][..], &[2]]);
    let seen = whole(&bytes);
    assert_eq!(seen, assembled(&bytes));
    assert_eq!((seen.late, WholeTrace::new(&bytes, ReadOptions::default()).summary().losses.lost), (1, 0));
}

/// An event refers to the stack that was known when it was read.
#[test]
fn a_stack_that_is_assigned_again() {
    let stacks = [1u64, 2].map(u64::to_le_bytes);
    let bytes = written(Version::V4, |stream| {
        for (sequence, bytes) in (1..).zip(&stacks) {
            put!(stream.stack(&Stack { id: 1, bytes }));
            put_event(stream, sequence, Event { stack_id: 1, ..Event::default() });
            stream.flush();
        }
        put_event(stream, 3, Event { stack_id: 7, ..Event::default() });
        put!(stream.sequence_point(&SequencePoint::default()));
        put_event(stream, 4, Event { stack_id: 1, ..Event::default() });
    });
    let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
    let mut seen = Vec::new();
    while let Some(segment) = trace.next_segment() {
        seen.extend(segment.events().map(|event| (event.header().stack_id, event.stack().collect())));
    }
    assert_eq!(seen, [(1, vec![1]), (1, vec![2]), (7, vec![]), (1, vec![])]);
}

/// A kind stays the same as long as its description does, also if ids start again.
#[test]
fn kinds() {
    let bytes = written(Version::V6, |stream| {
        let mut sequence = 0;
        let mut event = |stream: &mut Stream<'_>, metadata_id| {
            sequence += 1;
            put!(stream.event(&Event { metadata_id, sequence, ..Event::default() }));
            stream.flush();
        };
        event(stream, 1);
        put!(stream.describe(&described(1, "One")));
        event(stream, 1);
        put!(stream.describe(&described(2, "Two")));
        event(stream, 2);
        put!(stream.describe(&described(1, "Other")));
        event(stream, 1);
        let flags = SequencePoint::FLUSH_METADATA;
        put!(stream.sequence_point(&SequencePoint { flags, ..SequencePoint::default() }));
        event(stream, 1);
        put!(stream.describe(&described(2, "Two")));
        event(stream, 2);
    });
    let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
    let mut kinds = Vec::new();
    while let Some(segment) = trace.next_segment() {
        for event in segment.events() {
            kinds.push((event.kind(), event.description().map_or(String::new(), |m| m.name().to_string())));
        }
    }
    let [undescribed, one, two, other, flushed, two_again] = &kinds[..] else { unreachable!() };
    assert_eq!(
        [undescribed, one, two, other, flushed].map(|(_, name)| &name[..]),
        ["", "One", "Two", "Other", ""]
    );
    assert_eq!(two, two_again);
    let mut different: Vec<u32> = kinds.iter().map(|(kind, _)| *kind).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different, [0, 1, 2, 3], "{kinds:?}");
    assert_eq!(whole(&bytes), assembled(&bytes));
}

/// Labels of an event replace parts of its description; the description stays the same.
#[test]
fn labels() {
    let labels = [Label::Keywords(5), Label::Level(2), Label::Opcode(7), Label::Version(3)];
    let bytes = written(Version::V6, |stream| {
        put!(stream.describe(&described(1, "Tick")));
        put!(stream.label_list(4, labels));
        put!(stream.thread(3, [ThreadEntry::ThreadId(77), ThreadEntry::ProcessId(9)]));
        put_event(stream, 1, Event { label_list: 4, thread: 3, ..Event::default() });
        put_event(stream, 2, Event { thread: 4, ..Event::default() });
    });
    let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
    let segment = trace.next_segment().unwrap();
    let events: Vec<_> = segment.events().collect();
    let of = |metadata: Metadata<'_>| (metadata.keywords, metadata.level, metadata.opcode, metadata.version);
    let [with, without] = [0, 1].map(|at| of(events[at].metadata().unwrap()));
    assert_eq!((with, without), ((5, 2, Some(7), 3), (0, 0, None, 0)));
    assert_eq!(of(events[0].description().unwrap().get()), without);
    assert_eq!((events[0].known_thread_id(), events[0].process_id()), (Some(77), Some(9)));
    assert_eq!(whole(&bytes), assembled(&bytes));
}

/// Returns a trace of events that are older one by one, and of which the last one of each group is marked as sorted.
fn many(events: u32, group: u32) -> Vec<u8> {
    written(Version::V4, |stream| {
        for number in 0..events {
            let (begin, place) = (number / group * group, number % group);
            let timestamp = u64::from(begin + if place + 1 == group { group } else { group - place });
            let sorted = place + 1 == group;
            let event = Event { metadata_id: 1, sequence: number + 1, timestamp, sorted, ..Event::default() };
            put!(stream.event(&event));
        }
    })
}

/// If many events wait, those that a sorted event follows are returned before the next sequence point.
#[test]
fn many_events() {
    let bytes = many(600_000, 100);
    let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
    let (mut segments, mut events, mut last) = (0, 0, 0);
    while let Some(segment) = trace.next_segment() {
        segments += 1;
        for event in segment.events() {
            assert!(last <= event.timestamp());
            last = event.timestamp();
            events += 1;
        }
    }
    assert_eq!(
        (segments, events, trace.summary().late, trace.summary().exceeded_limit),
        (3, 600_000, 0, false)
    );
    assert_eq!((trace.summary().losses.lost, trace.summary().end), (0, Some(End::Complete)));
}

/// The buffer of a segment keeps the bytes to which events and stacks refer, and drops others.
#[test]
fn a_segment_longer_than_the_limit() {
    let frames = [7u64, 8, 9].map(u64::to_le_bytes).concat();
    let long = [5; 300];
    let bytes = written(Version::V4, |stream| {
        put!(stream.describe(&described(1, "Tick")));
        put!(stream.stack(&Stack { id: 3, bytes: &frames }));
        for number in 0..20_000u32 {
            let (begin, place) = (number / 100 * 100, number % 100);
            let timestamp = u64::from(begin + if place == 99 { 100 } else { 99 - place });
            let (sorted, stack_id) = (place == 99, 3);
            let event = Event {
                metadata_id: 1,
                sequence: number + 1,
                timestamp,
                sorted,
                stack_id,
                ..Event::default()
            };
            put!(stream.event(&Event { payload: &long, ..event }));
        }
    });
    let mut expected = assembled(&bytes);
    assert_eq!(expected.late, 0);
    for limit in [700_000, 2_000_000, 64 << 20] {
        let mut assembler = EventAssembler::new(EventOrder::Segment { limit }, ReadOptions::default());
        for piece in [10_007, 400_000] {
            assert!(read(assembler, &bytes, piece) == expected, "{limit} bytes, in pieces of {piece}");
            assembler = EventAssembler::new(EventOrder::Segment { limit }, ReadOptions::default());
        }
    }
    assert!(by_block(&bytes, 30_011) == in_stream(&bytes));
    // Bytes that arrive together need room whatever the limit is.
    let all = |limit| {
        read(EventAssembler::new(EventOrder::Segment { limit }, ReadOptions::default()), &bytes, bytes.len())
    };
    assert_eq!(all(0).numbers, expected.numbers);
    // Without room, events come too early, and none is lost.
    let bytes = written(Version::V4, |stream| {
        for number in 0..10_000u32 {
            let event =
                Event { sequence: number + 1, timestamp: u64::from(10_000 - number), ..Event::default() };
            put!(stream.event(&Event { metadata_id: 1, payload: &long, ..event }));
        }
    });
    let mut early =
        read(EventAssembler::new(EventOrder::Segment { limit: 0 }, ReadOptions::default()), &bytes, 100_000);
    expected = assembled(&bytes);
    assert!(early.late > 0);
    for events in [&mut early.events, &mut expected.events] {
        events.sort_unstable();
    }
    assert!(early.events == expected.events && early.numbers == expected.numbers);
}

/// If too many events wait and none is released, all are returned.
#[test]
fn too_many_events() {
    let bytes = many(1_200_000, 1_200_000);
    let segments = times(&bytes);
    assert_eq!(segments.len(), 2);
    assert_eq!(segments.iter().map(Vec::len).sum::<usize>(), 1_200_000);
    assert!(segments.iter().all(|times| times.is_sorted()));
    let mut trace = WholeTrace::new(&bytes, ReadOptions::default());
    while trace.next_segment().is_some() {}
    assert!(trace.summary().exceeded_limit);
    assert!(trace.summary().late > 0);
}

/// A trace without events has no segment.
#[test]
fn no_events() {
    for bytes in
        [&b""[..], b"Nettrace", b"something else", &stream!(Version::V4, describe(&described(1, "Tick")))]
    {
        let mut trace = WholeTrace::new(bytes, ReadOptions::default());
        assert!(trace.next_segment().is_none());
        assert!(trace.summary().end.is_some());
    }
}
