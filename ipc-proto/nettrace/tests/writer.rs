//! The writer writes a runtime's bytes from a runtime's records, and all records read back unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test states what it expects by unwrapping it"
)]

mod steps;
mod stream;

use ipc_proto::Guid;
use nettrace::{
    ArrayKind, BlockKind, End, Event, FieldType, Fields, Label, Limits, Metadata, Pairs, Parser, Record,
    Scalar, SequencePoint, Stack, Str, ThreadEntry, ThreadSequence, Trace, TraceBytes, TraceWriter, Version,
    WriteError,
};
use steps::picked;
use stream::{Stream, descriptions, put, stream, written};

/// Writes a record of a stream of the same version.
fn copy(stream: &mut Stream<'_>, step: &Record<'_>) {
    match step {
        Record::Block(_) => stream.flush(),
        Record::Metadata(record) => put!(stream.metadata(record)),
        Record::Event(event) => put!(stream.event(event)),
        Record::Stack(stack) => put!(stream.stack(stack)),
        Record::SequencePoint(point) => put!(stream.sequence_point(point)),
        Record::ThreadSequence(row) => put!(stream.thread_sequence(row)),
        Record::Thread(thread) => put!(stream.thread(thread.index, thread.entries)),
        Record::RemoveThread(row) => put!(stream.remove_thread(row)),
        Record::LabelList(list) => put!(stream.label_list(list.id, list.labels)),
        other => panic!("{other:?}"),
    }
}

fn reencode(bytes: &[u8], version: Version) -> Vec<u8> {
    let mut buf = vec![0xa5; TraceWriter::BUFFER];
    let mut parser = Parser::new(Limits::default());
    let trace = loop {
        if let Record::Trace(trace) = parser.next(bytes) {
            break trace;
        }
    };
    assert_eq!(trace.version, version);
    let mut stream = Stream::new(&trace, &mut buf);
    loop {
        match parser.next(bytes) {
            Record::End(_) | Record::More { .. } => return stream.finish(),
            Record::TimeRange(_) | Record::BadBlock(_) => {}
            step => copy(&mut stream, &step),
        }
    }
}

/// The bodies of all blocks.
fn blocks(bytes: &[u8]) -> Vec<(BlockKind, &[u8])> {
    let mut parser = Parser::new(Limits::default());
    let mut blocks = Vec::new();
    loop {
        match parser.next(bytes) {
            // The end mark of V6.
            Record::Block(block) if block.kind == BlockKind::EndOfStream => return blocks,
            Record::Block(block) => {
                let [body, len] = [block.body, block.len.into()].map(|n: u64| usize::try_from(n).unwrap());
                blocks.push((block.kind, &bytes[body..body + len]));
                parser.skip_block();
            }
            Record::End(End::Complete) => return blocks,
            other => panic!("{other:?}"),
        }
    }
}

/// The traces of `testdata/nettrace/` that a runtime, or one_collect, wrote.
fn traces() -> Vec<(String, Version, Vec<u8>)> {
    let version = |bytes: &[u8]| match (bytes[0], bytes[8]) {
        (b'N', 0) => Version::V6,
        (b'N', _) => Version::V4,
        _ => Version::V3,
    };
    let traces = ipc_testdata::TRACES.iter();
    traces.map(|trace| (trace.name.to_owned(), version(trace.bytes), trace.bytes.to_vec())).collect()
}

#[test]
fn a_runtimes_file_is_written_unchanged() {
    let (mut files, mut old_files) = (0, 0);
    for (name, version, bytes) in traces() {
        if !name.starts_with("gen-") || version == Version::V6 {
            continue;
        }
        let out = reencode(&bytes, version);
        for ((kind, body), (other_kind, other)) in blocks(&bytes).iter().zip(blocks(&out)) {
            assert_eq!(*kind, other_kind, "{name}");
            assert_eq!(*body, other, "{name}: {kind:?}");
        }
        assert!(out == bytes, "{name}");
        files += 1;
        old_files += u32::from(version == Version::V3);
    }
    assert!(files >= 11 && old_files >= 2, "{files} {old_files}");
}

/// The writer does not write the bytes of one_collect, but the same records.
#[test]
fn each_file_keeps_its_content() {
    for (name, version, bytes) in traces() {
        let out = reencode(&bytes, version);
        let (source, result) = (records(&bytes), records(&out));
        for (result, source) in result.iter().zip(&source) {
            assert_eq!(result, source, "{name}");
        }
        assert_eq!(result.len(), source.len(), "{name}");
    }
}

/// Returns every record as text, without the positions of blocks.
fn records(bytes: &[u8]) -> Vec<String> {
    let mut parser = Parser::new(Limits::default());
    let mut records = Vec::new();
    loop {
        match parser.next(bytes) {
            Record::End(_) | Record::More { .. } => return records,
            Record::Block(_) | Record::TimeRange(_) | Record::BadBlock(_) => {}
            Record::Metadata(record) if parser.version() == Version::V6 => {
                records.push(format!("{:?}", record.payload));
            }
            step => records.push(format!("{step:?}")),
        }
    }
}

/// The descriptions of runtimes stay the same when their decoded form is encoded again.
#[test]
fn described_as_the_runtime_does() {
    let (mut with_fields, mut with_opcode) = (0, 0);
    for (name, version, bytes) in traces() {
        if !name.starts_with("gen-") || version == Version::V6 {
            continue;
        }
        for record in descriptions(&bytes) {
            let metadata = Metadata::decode(version, record.payload).unwrap();
            assert_eq!(metadata.problem, None);
            let stream = stream!(version, describe(&metadata));
            assert!(
                stream.windows(record.payload.len()).any(|w| w == record.payload),
                "{name}: {metadata:?}"
            );
            with_fields += u32::from(!metadata.fields.is_empty());
            with_opcode += u32::from(metadata.opcode.is_some());
        }
    }
    assert!(with_fields > 20 && with_opcode > 2, "{with_fields} {with_opcode}");
}

/// A description has the timestamp of the record before it, and no processor.
#[test]
fn descriptions_have_the_time_of_the_last_event() {
    let (mut buf, metadata) = (vec![0xa5; TraceWriter::BUFFER], Metadata::default());
    let trace = Trace { sync_ticks: 5, ..Trace::new(Version::V4) };
    let mut stream = Stream::new(&trace, &mut buf);
    put!(stream.describe(&metadata));
    put!(stream.event(&Event { timestamp: 77, ..Event::default() }));
    put!(stream.describe(&metadata));
    put!(stream.sequence_point(&SequencePoint { timestamp: 99, ..SequencePoint::default() }));
    put!(stream.describe(&metadata));
    let stream = stream.finish();
    let headers = descriptions(&stream).into_iter().map(|record| (record.timestamp, record.processor));
    const NONE: u32 = Event::UNKNOWN_PROCESSOR;
    assert_eq!(headers.collect::<Vec<_>>(), [(5, NONE), (77, NONE), (99, NONE)]);
}

/// Returns the kinds of the blocks of a stream and the lengths of their bodies.
fn shape(bytes: &[u8]) -> Vec<(BlockKind, usize)> {
    blocks(bytes).into_iter().map(|(kind, body)| (kind, body.len())).collect()
}

#[test]
fn records_precede_the_events_that_refer_to_them() {
    for version in [Version::V4, Version::V6] {
        let stream = written(version, |stream| {
            for id in 1..=3u32 {
                let mut metadata = Metadata::default();
                metadata.id = id;
                put!(stream.describe(&metadata));
                put!(stream.stack(&Stack { id, bytes: &[id as u8; 8] }));
                let event = Event { metadata_id: id, stack_id: id, sequence: id, ..Event::default() };
                put!(stream.event(&event));
            }
            put!(stream.stack(&Stack { id: 4, bytes: &[] }));
            // A stack id that does not follow the last one begins another block.
            put!(stream.stack(&Stack { id: 7, bytes: &[7] }));
            put!(stream.stack(&Stack { id: 8, bytes: &[8] }));
            put!(stream.sequence_point(&SequencePoint { timestamp: 9, flags: 1, threads: 99 }));
            put!(stream.thread_sequence(&ThreadSequence { thread: 5, sequence: 3 }));
            put!(stream.thread_sequence(&ThreadSequence { thread: 5, sequence: 4 }));
            put!(stream.event(&Event { metadata_id: 1, sequence: 4, ..Event::default() }));
        });
        let kinds: Vec<_> = shape(&stream).into_iter().map(|(kind, _)| format!("{kind:?}")).collect();
        let want = "Trace Metadata Stack Metadata Stack Metadata Stack Stack Event SequencePoint Event";
        assert_eq!(
            kinds.iter().filter(|kind| *kind != "EndOfStream").cloned().collect::<Vec<_>>().join(" "),
            want
        );
        let found = records(&stream);
        let events = found.iter().filter(|record| record.starts_with("Event")).count();
        assert_eq!(events, 4);
        assert!(found.iter().any(|r| r.contains("Stack { id: 8, bytes: [8] }")));
        let flags = u8::from(version == Version::V6);
        let point = format!("SequencePoint(SequencePoint {{ timestamp: 9, flags: {flags}, threads: 2 }})");
        assert!(found.contains(&point), "{found:?}");
    }
}

/// All thread records between two events are in one block.
#[test]
fn threads_that_end_together_are_one_block() {
    let row = |thread| ThreadSequence { thread, sequence: 1 };
    let stream = stream!(Version::V6,
        thread(1, []);
        thread(2, []);
        event(&Event { capture_thread: 1, sequence: 1, ..Event::default() });
        remove_thread(&row(1));
        remove_thread(&row(2));
        thread(3, []);
        remove_thread(&row(3));
        sequence_point(&SequencePoint::default());
        sequence_point(&SequencePoint::default());
    );
    let kinds: Vec<_> = shape(&stream).into_iter().map(|(kind, _)| format!("{kind:?}")).collect();
    let want = "Trace Thread Event RemoveThread Thread RemoveThread SequencePoint SequencePoint";
    assert_eq!(kinds.join(" "), want);
}

/// Blocks are no longer than a runtime's, and a record that is longer than such a block is a block of its own.
#[test]
fn blocks_end_where_a_runtimes_do() {
    for version in [Version::V4, Version::V6] {
        let stream = written(version, |stream| {
            for sequence in 1..=4000 {
                let event = Event { metadata_id: 1, sequence, payload: &[3; 100], ..Event::default() };
                put!(stream.event(&event));
                put!(stream.stack(&Stack { id: sequence, bytes: &[1; 80] }));
            }
            put!(stream.event(&Event { metadata_id: 1, payload: &[3; 65_536], ..Event::default() }));
            put!(stream.event(&Event { metadata_id: 1, payload: &[3; 110_000], ..Event::default() }));
        });
        let shape = shape(&stream);
        let longest =
            |kind| shape.iter().filter(|(k, _)| *k == kind).map(|(_, len)| *len).collect::<Vec<_>>();
        let mut events = longest(BlockKind::Event);
        assert!(events.pop().unwrap() > 110_000, "{shape:?}");
        assert!(events.iter().all(|len| *len <= 102_419), "{events:?}");
        assert!(events.iter().filter(|len| **len > 102_419 - 110).count() >= 3, "{events:?}");
        let stacks = longest(BlockKind::Stack);
        assert!(stacks.iter().all(|len| *len <= 102_419), "{stacks:?}");
        assert_eq!(records(&stream).iter().filter(|record| record.starts_with("Event")).count(), 4002);
    }
}

/// Blocks of stacks also end where a runtime's do. A sequence point with all its threads is one record.
#[test]
fn other_blocks_end_where_a_runtimes_do() {
    for version in [Version::V4, Version::V6] {
        let stream = written(version, |stream| {
            for id in 1..=4000 {
                put!(stream.stack(&Stack { id, bytes: &[1; 80] }));
            }
            put!(stream.sequence_point(&SequencePoint::default()));
            for thread in 1 << 40..(1 << 40) + 10_000 {
                put!(stream.thread_sequence(&ThreadSequence { thread, sequence: 1 }));
            }
        });
        // As many stacks of 84 bytes as fit into a body of 102,419 bytes after its header of 8 bytes.
        let stacks = [8 + 1219 * 84; 3].into_iter().chain([8 + (4000 - 3 * 1219) * 84]);
        let point = if version == Version::V6 { 16 + 10_000 * 7 } else { 12 + 10_000 * 12 };
        let want: Vec<_> =
            stacks.map(|len| (BlockKind::Stack, len)).chain([(BlockKind::SequencePoint, point)]).collect();
        assert_eq!(shape(&stream)[1..], want, "{version}");
    }
}

/// The last byte of a runtime's buffer stays free.
#[test]
fn blocks_end_where_a_runtimes_do_to_the_byte() {
    let (payload, mut longest) = ([3; 65_536], 0);
    for len in 62_300..62_500 {
        let stream = written(Version::V4, |stream| {
            for sequence in 1..=2 {
                let payload = &payload[..if sequence == 1 { 40_000 } else { len }];
                put!(stream.event(&Event { metadata_id: 1, sequence, payload, ..Event::default() }));
            }
        });
        let shape = shape(&stream);
        assert_eq!(shape.len(), if shape[1].1 > 62_000 { 2 } else { 3 }, "{shape:?}");
        longest = longest.max(shape[1].1);
    }
    assert_eq!(longest, 102_419);
}

/// Microsoft's reader looks for another capture thread only at sorted events and at the beginning of a block.
#[test]
fn an_unsorted_event_of_another_thread_begins_a_block() {
    let of = |capture_thread, sorted| Event { metadata_id: 1, capture_thread, sorted, ..Event::default() };
    let stream = written(Version::V4, |stream| {
        for event in
            [of(1, false), of(1, false), of(2, true), of(1, true), of(2, false), of(2, false), of(0, false)]
        {
            put!(stream.event(&event));
        }
    });
    let (steps, end) = picked(&stream, |step| match step {
        Record::Block(block) if block.kind == BlockKind::Event => Some("block"),
        Record::Event(_) => Some("event"),
        _ => None,
    });
    // The events before the first block, of which there are none, then those of each block.
    let events: Vec<_> = steps.split(|step| *step == "block").map(<[_]>::len).collect();
    assert_eq!((&events[..], end), (&[0, 4, 2, 1][..], End::Complete));
}

/// Gives a record to a writer.
type Try<'t> = &'t dyn for<'w> Fn(&'w mut TraceWriter<'_>) -> Result<TraceBytes<'w>, WriteError>;

/// With a buffer of the requested size, writing succeeds.
#[test]
fn needed_is_exact() {
    let payload = [7; 3000];
    let event =
        |len: usize| Event { metadata_id: 1, thread: u64::MAX, payload: &payload[..len], ..Event::default() };
    let labels = |n: usize| (0..n).map(|_| Label::ActivityId(Guid([1; 16])));
    for version in [Version::V3, Version::V4, Version::V6] {
        for len in [0, 1, 2, 3, 100, 129, 3000] {
            let mut metadata = Metadata::default();
            let name = "n".repeat(len);
            metadata.name = name.as_str().into();
            let tries: [Try<'_>; 6] = [
                &|w| w.event(&event(len)),
                &|w| w.stack(&Stack { id: 1, bytes: &payload[..len] }),
                &|w| w.metadata(&event(len)),
                &|w| w.describe(&metadata),
                &|w| w.label_list(1, labels(len)),
                &|w| w.thread(len as u64, [ThreadEntry::Name(name.as_str().into())]),
            ];
            let (trace, mut buf) = (Trace::new(version), vec![0xa5; 20_000 * 6]);
            let header = match TraceWriter::new(&trace, &mut buf[..4]) {
                Err(WriteError::BufferTooSmall { needed }) => needed,
                other => panic!("{version}: {other:?}"),
            };
            let refused = TraceWriter::new(&trace, &mut buf[..header - 1]).err();
            assert_eq!(refused, Some(WriteError::BufferTooSmall { needed: header }));
            for (i, attempt) in tries.into_iter().enumerate() {
                let mut with = |size: usize| {
                    let (mut writer, mut stream) =
                        (TraceWriter::new(&trace, &mut buf[..size]).unwrap(), Vec::new());
                    let written = attempt(&mut writer).map(|bytes| stream.extend_from_slice(&bytes));
                    // The stream must be valid with its header and its end, with or without the record.
                    stream.extend_from_slice(&writer.finish());
                    let (records, end) = picked(&stream, |step| match step {
                        Record::Block(block) => {
                            Some(block.kind).filter(|kind| *kind != BlockKind::EndOfStream)
                        }
                        _ => None,
                    });
                    let empty = i == 4 && len == 0;
                    assert_eq!(end, End::Complete);
                    assert!(records.len() == 1 + usize::from(written.is_ok()) || empty, "{records:?}");
                    written
                };
                let needed = match with(header) {
                    Err(WriteError::BufferTooSmall { needed }) => needed,
                    Err(WriteError::Version(refused)) => {
                        let is_unknown = i > 3 && version != Version::V6 || i == 1 && version == Version::V3;
                        assert!(refused == version && is_unknown, "{version}, {i}");
                        continue;
                    }
                    Ok(()) => continue,
                    other => panic!("{version}, {i}, {len}: {other:?}"),
                };
                assert_eq!(with(needed), Ok(()), "{version}, {i}, {len}");
                assert!(i > 2 || needed <= 2 * len + 400, "{version}, {i}, {len}: {needed}");
                // The padding of a block in V4 has 0 to 3 bytes, so the reported size can be a few bytes too large.
                for less in header..needed - 6 {
                    let error = WriteError::BufferTooSmall { needed };
                    assert_eq!(with(less), Err(error), "{version}, {i}, {len}: {less} bytes");
                    if less > header + 300 && less + 300 < needed {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn records_that_cannot_be_written() {
    let mut buf = vec![0; 0x40_0000];
    let (trace4, trace6) = (Trace::new(Version::V4), Trace::new(Version::V6));
    let row = ThreadSequence { thread: 1, sequence: 1 };
    let mut v3 = TraceWriter::new(&Trace::new(Version::V3), &mut buf).unwrap();
    let refused = Err(WriteError::Version(Version::V3));
    assert_eq!(v3.stack(&Stack::default()), refused);
    assert_eq!(v3.sequence_point(&SequencePoint::default()), refused);
    assert_eq!(v3.thread_sequence(&row), refused);
    assert_eq!(v3.thread(1, []), refused);
    assert_eq!(v3.remove_thread(&row), refused);
    assert_eq!(v3.label_list(1, [Label::Level(1)]), refused);
    let mut v4 = TraceWriter::new(&trace4, &mut buf).unwrap();
    let refused = Err(WriteError::Version(Version::V4));
    assert_eq!(v4.thread(1, []), refused);
    assert_eq!(v4.remove_thread(&row), refused);
    assert_eq!(v4.label_list(1, [Label::Level(1)]), refused);
    // A row of a thread without a sequence point before it is refused.
    let none = Ok(TraceBytes::default());
    assert_eq!(v4.thread_sequence(&row), Err(WriteError::Misplaced));
    assert!(!v4.sequence_point(&SequencePoint::default()).unwrap().is_empty());
    assert_eq!(v4.thread_sequence(&row), none);
    assert_eq!(v4.stack(&Stack::default()), none);
    assert_eq!(v4.thread_sequence(&row), Err(WriteError::Misplaced));
    assert!(!v4.sequence_point(&SequencePoint::default()).unwrap().is_empty());
    assert_eq!(v4.event(&Event::default()), none);
    assert_eq!(v4.thread_sequence(&row), Err(WriteError::Misplaced));
    // Records that only V6 has.
    let mut space = [0; 64];
    let mut metadata = Metadata::default();
    metadata.fields = Fields::build(&[("n", Scalar::VarInt)], &mut space).unwrap();
    assert_eq!(v4.describe(&metadata), refused);
    // The texts are too long for lengths of 16 and of 24 bits.
    let mut v6 = TraceWriter::new(&trace6, &mut buf).unwrap();
    let long = vec![0; 65_536];
    let row = |len: usize| Event { payload: &long[..len], ..Event::default() };
    assert_eq!(v6.metadata(&row(65_535)), none);
    assert!(!v6.flush().is_empty());
    assert!(matches!(v6.metadata(&row(65_536)), Err(WriteError::TooLong { .. })));
    // A thread's row has a byte for its index, and five in front of its name.
    let name = "n".repeat(65_531);
    let thread = |len: usize| [ThreadEntry::Name(Str::from(&name[..len]))];
    assert_eq!(v6.thread(1, thread(65_530)), none);
    assert!(!v6.flush().is_empty());
    assert_eq!(v6.thread(1, thread(65_531)), Err(WriteError::TooLong { len: 65_538 }));
    // No other record has a length of 16 bits.
    assert_eq!(v6.stack(&Stack { id: 1, bytes: &long }), none);
    assert_eq!(v6.label_list(1, [Label::Text("k".into(), Str::Utf8(&long))]), none);
    let mut v4 = TraceWriter::new(&trace4, &mut buf).unwrap();
    assert_eq!(v4.metadata(&row(65_536)), none);
    assert_eq!(v4.stack(&Stack { id: 1, bytes: &long }), none);
    let mut v6 = TraceWriter::new(&trace6, &mut buf).unwrap();
    let longer = vec![0; 0x100_0000];
    let event = Event { payload: &longer, ..Event::default() };
    assert!(matches!(v6.event(&event), Err(WriteError::TooLong { .. })));
    // The longest: after the block's header, flags, a time and a size of four bytes.
    let longest = |more: usize| Event { payload: &longer[..0xff_ffff - 20 - 6 + more], ..Event::default() };
    assert!(matches!(v6.event(&longest(0)), Err(WriteError::BufferTooSmall { .. })));
    assert_eq!(v6.event(&longest(1)), Err(WriteError::TooLong { len: 0x100_0000 }));
    let mut enough = vec![0; 0x210_0000];
    let mut v6 = TraceWriter::new(&trace6, &mut enough).unwrap();
    let header = v6.flush().len();
    assert_eq!(v6.event(&longest(1)), Err(WriteError::TooLong { len: 0x100_0000 }));
    assert_eq!(v6.event(&longest(0)), none);
    assert_eq!(v6.flush().len(), 4 + 0xff_ffff);
    assert!(header > 60);
    let mut v4 = TraceWriter::new(&trace4, &mut buf).unwrap();
    assert!(matches!(v4.event(&event), Err(WriteError::BufferTooSmall { .. })));
}

/// The longest header, differences that wrap, and payloads of all lengths around powers of two.
#[test]
fn odd_events() {
    for version in [Version::V4, Version::V6] {
        let payload = vec![9; 65_536];
        let mut events = Vec::new();
        for (i, n) in
            [0u64, u64::MAX, 1, 1 << 63, u64::from(u32::MAX), 0, u64::MAX - 1].into_iter().enumerate()
        {
            let small = n as u32;
            events.push(Event {
                metadata_id: small,
                sequence: small,
                capture_thread: n,
                processor: small ^ 1,
                thread: !n,
                stack_id: small,
                timestamp: n,
                activity_id: if version == Version::V4 { Guid([i as u8; 16]) } else { Guid::NIL },
                related_activity_id: if version == Version::V4 { Guid([!i as u8; 16]) } else { Guid::NIL },
                label_list: if version == Version::V6 { small } else { 0 },
                sorted: i % 2 == 0,
                payload: &payload[..[0, 1, 127, 128, 16_383, 16_384, 65_536][i]],
                ..Event::default()
            });
        }
        let stream = written(version, |stream| {
            for event in &events {
                put!(stream.event(event));
            }
        });
        let found = picked(&stream, |step| if let Record::Event(event) = step { Some(event) } else { None });
        assert_eq!(found, (events, End::Complete), "{version}");
    }
}

/// V3: each blob ends at a multiple of 4, whatever the lengths of payload and stack. A thread has more than 32 bits.
#[test]
fn events_of_the_old_format() {
    let bytes = vec![9; 65_536];
    let mut events = Vec::new();
    for payload in [0, 1, 2, 3, 4, 127, 65_536] {
        for stack in [0, 8, 12, 65_527] {
            events.push(Event {
                metadata_id: u32::MAX,
                processor: Event::UNKNOWN_PROCESSOR,
                thread: u32::MAX.into(),
                timestamp: u64::MAX - payload as u64,
                activity_id: Guid([1; 16]),
                related_activity_id: Guid([2; 16]),
                sorted: true,
                payload: &bytes[..payload],
                stack: &bytes[..stack],
                ..Event::default()
            });
        }
    }
    let stream = written(Version::V3, |stream| {
        for (n, event) in events.iter().enumerate() {
            // Values that V3 cannot state are left out.
            let numbers =
                Event { sequence: 7, capture_thread: n as u64, processor: 3, stack_id: 5, ..*event };
            put!(stream.event(&Event { thread: event.thread + (n as u64 & 1), sorted: false, ..numbers }));
        }
    });
    let found = picked(&stream, |step| if let Record::Event(event) = step { Some(event) } else { None });
    assert_eq!(found, (events, End::Complete));
    assert_eq!(stream.len() % 4, 2, "the last block ends at a multiple of 4, then its tag and the end mark");
}

/// V3: descriptions and events share blocks, which are no longer than a runtime's unless a record is.
#[test]
fn blocks_of_the_old_format() {
    let stream = written(Version::V3, |stream| {
        for number in 1..=4000u32 {
            let mut metadata = Metadata::default();
            metadata.id = number;
            put!(stream.describe(&metadata));
            put!(stream.event(&Event { metadata_id: number, payload: &[3; 100], ..Event::default() }));
        }
        put!(stream.event(&Event { metadata_id: 1, stack: &[3; 110_000], ..Event::default() }));
    });
    let shape = shape(&stream);
    let (last, others) = shape[1..].split_last().unwrap();
    assert!(last.1 > 110_000, "{shape:?}");
    assert!(others.iter().all(|(kind, len)| *kind == BlockKind::Event && *len <= 102_419), "{shape:?}");
    let (kinds, end) = picked(&stream, |step| match step {
        Record::Metadata(_) => Some(0),
        Record::Event(event) => Some(event.metadata_id),
        _ => None,
    });
    assert_eq!((kinds.len(), end), (8001, End::Complete));
    assert!(kinds.chunks(2).zip(1..=4000).all(|(pair, number)| pair == [0, number]));
}

/// The only kind of array that a description can have before V6, and types of V6 that V4 describes as other types.
#[test]
fn arrays_are_described_in_a_tag() {
    let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let row = [
        &[1, 1, b'p', 2, 1, b'n'][..],
        &[3, 0],
        &[4, 0, 1, b'a', 19, 9],
        // An object with a code unit of UTF-8, and an array of arrays of booleans of a byte.
        &[17, 0, 1, b'o', 1, 2, 0, 3, 0, 1, b'u', 23, 5, 0, 1, b'b', 19, 19, 26],
        &[3, 0, 1, b's', 18],
        &[2, 0, 1, 5],
    ];
    let metadata = row.concat();
    let metadata = Metadata::decode(Version::V6, &metadata).unwrap();
    assert_eq!(metadata.problem, None);
    let u = |n: u32| n.to_le_bytes();
    let (a, s) = ([&utf16("a")[..], &u(19), &u(9)].concat(), [&utf16("s")[..], &u(18)].concat());
    let (in_u, in_b) = ([&utf16("u")[..], &u(6)].concat(), [&utf16("b")[..], &u(19), &u(19), &u(6)].concat());
    let field = |body: &[u8]| [&u(body.len() as u32 + 4)[..], body].concat();
    let o = [&utf16("o")[..], &u(1), &u(2), &field(&in_u), &field(&in_b)].concat();
    let parameters = [&u(3)[..], &field(&a), &field(&o), &field(&s)].concat();
    let record = [&u(1)[..], &utf16("p"), &u(2), &utf16("n"), &[0; 16], &u(0)].concat();
    let tags = [&u(1)[..], &[1, 5], &u(parameters.len() as u32), &[2], &parameters].concat();
    let want = [record, tags].concat();
    for version in [Version::V3, Version::V4] {
        let stream = stream!(version, describe(&metadata));
        assert!(stream.windows(want.len()).any(|window| window == want));
    }
    // V6 writes the description without a change.
    let stream = stream!(Version::V6, describe(&metadata));
    let want = row.concat();
    assert!(stream.windows(want.len()).any(|window| window == want));
}

/// A string of bytes, as the providers `Universal.*` have it, is an array of bytes before V6.
#[test]
fn strings_of_bytes() {
    let row = [&[1, 11][..], b"Universal.X", &[2, 1, b'n', 1, 0, 3, 0, 1, b's', 23, 0, 0]].concat();
    let metadata = Metadata::decode(Version::V6, &row).unwrap();
    assert_eq!(metadata.problem, None);
    for version in [Version::V4, Version::V6] {
        let stream = stream!(version, describe(&metadata));
        let found = Metadata::decode(version, descriptions(&stream)[0].payload).unwrap();
        assert_eq!(found.problem, None);
        let mut fields = found.fields.iter().map(|field| field.field_type);
        match (version, fields.next(), fields.next()) {
            (Version::V6, Some(FieldType::Scalar(Scalar::Utf8String)), None) => {}
            (Version::V4, Some(FieldType::Array { kind: ArrayKind::Counted, element }), None) => {
                assert!(matches!(element.field_type(), FieldType::Scalar(Scalar::Byte)));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// V6 states the numbers of V4 in pairs, but not twice.
#[test]
fn pairs_of_the_trace() {
    let trace = Trace {
        process_id: Some(7),
        processors: Some(4_294_967_295),
        sampling_interval: Some(0),
        pairs: Pairs::from_bytes(b"\x09ProcessId\x038:9\x01k\x01v"),
        ..Trace::new(Version::V6)
    };
    let mut buf = vec![0xa5; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&trace, &mut buf).unwrap();
    let stream = writer.flush();
    let (found, _) = picked(&stream, |step| if let Record::Trace(trace) = step { Some(trace) } else { None });
    let found = found[0];
    let pairs: Vec<_> = found.pairs.map(|(key, value)| format!("{key}={value}")).collect();
    let known = ["HardwareThreadCount=4294967295", "ExpectedCPUSamplingRate=0"];
    assert_eq!(pairs, [&["ProcessId=8:9", "k=v"][..], &known].concat());
    // A text that is not a number is not a value.
    let numbers = (found.process_id, found.processors, found.sampling_interval);
    assert_eq!(numbers, (None, Some(4_294_967_295), Some(0)));
}

/// Types that only V6 has: arrays in arrays, each with the length after its elements' type, objects in them, and text
/// that is stored elsewhere. And an opcode of 0, which V4 does not state.
#[test]
fn described_in_v6() {
    let row = [
        &[1, 1, b'p', 2, 1, b'n'][..],
        &[4, 0],
        &[9, 0, 1, b'm', 22, 22, 5, 3, 0, 4, 0],
        &[13, 0, 1, b'o', 22, 1, 1, 0, 3, 0, 1, b'x', 20, 7, 0],
        &[31, 0, 1, b'z', 22, 1, 2, 0, 6, 0, 1, b'a', 22, 5, 2, 0],
        &[13, 0, 1, b'c', 22, 1, 1, 0, 3, 0, 1, b'd', 5, 3, 0, 9, 0],
        &[4, 0, 1, b'r', 24, 4],
        &[2, 0, 1, 0],
    ];
    let row = row.concat();
    let mut metadata = Metadata::decode(Version::V6, &row).unwrap();
    assert_eq!((metadata.problem, metadata.opcode), (None, Some(0)));
    let describe = |version, metadata: &Metadata<'_>| stream!(version, describe(metadata));
    assert!(describe(Version::V6, &metadata).windows(row.len()).any(|window| window == row));
    metadata.fields = Fields::EMPTY;
    let silent = describe(Version::V4, &metadata);
    metadata.opcode = None;
    assert_eq!(describe(Version::V4, &metadata), silent);
    metadata.opcode = Some(1);
    assert_ne!(describe(Version::V4, &metadata), silent);
}
