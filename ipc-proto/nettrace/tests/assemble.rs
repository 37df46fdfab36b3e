//! `EventAssembler` over recorded traces and traces made by hand: order, limits, ids that are assigned again, replaced
//! descriptions, and clocks.
#![cfg(feature = "alloc")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]

use std::collections::BTreeMap;

use nettrace::{
    AssemblerStep, End, Event, EventAssembler, EventOrder, Item, Label, Limits, Metadata, Parser,
    ReadOptions, Record, Rewrite, RewriteOptions, RewriteSpace, SequencePoint, Slot, Stack, ThreadEntry,
    ThreadSequence, Trace, TraceBytes, TraceEvent, TraceWriter, Value, Version, WriteError,
};

fn trace(name: &str) -> Vec<u8> {
    ipc_testdata::TRACES.iter().find(|trace| trace.name.starts_with(name)).unwrap().bytes.to_vec()
}

/// Returns an assembler that has received a whole trace.
fn received(bytes: &[u8], order: EventOrder, options: ReadOptions) -> EventAssembler {
    let mut assembler = EventAssembler::new(order, options);
    assembler.push(bytes);
    assembler.finish();
    assembler
}

fn assembler(bytes: &[u8]) -> EventAssembler {
    received(bytes, EventOrder::Stream, ReadOptions::default())
}

/// Returns an assembler that sorts a whole trace in this many bytes.
fn in_order(bytes: &[u8], limit: usize) -> EventAssembler {
    received(bytes, EventOrder::Time { limit }, ReadOptions::default())
}

fn next(assembler: &mut EventAssembler) -> Option<TraceEvent<'_>> {
    match assembler.step() {
        AssemblerStep::Event(event) => Some(event),
        AssemblerStep::More => panic!("the input has ended"),
        AssemblerStep::End(_) => None,
    }
}

/// Returns all events as text.
fn read(assembler: &mut EventAssembler) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = next(assembler) {
        events.push(text_of(&event));
    }
    events
}

/// Returns an event and everything that it refers to as text.
fn text_of(event: &TraceEvent<'_>) -> String {
    let header = event.header();
    let values: Vec<_> = event.values().collect();
    let stack: Vec<u64> = event.stack().collect();
    let (thread, activity) = (event.thread_id(), (event.activity_id(), event.related_activity_id()));
    let labels: Vec<_> = event.labels().collect();
    let metadata = event.metadata();
    let time = event.nanoseconds();
    format!("{time} {metadata:?} {values:?} {thread} {activity:?} {labels:?} {stack:?} {header:?}")
}

/// A trace in pieces of any size has the same events as the whole trace, and as the parser returns.
#[test]
fn pieces_of_any_size() {
    for ipc_testdata::RecordedTrace { name, bytes, .. } in ipc_testdata::TRACES {
        let mut whole = assembler(bytes);
        let mut events = Vec::new();
        let mut parser = Parser::new(Limits::default());
        while let Some(event) = next(&mut whole) {
            let expected = loop {
                if let Record::Event(event) = parser.next(bytes) {
                    break event;
                }
            };
            assert_eq!(event.header(), expected, "{name}");
            events.push(text_of(&event));
        }
        for piece in [1, 13, 5000] {
            let mut assembler = EventAssembler::new(EventOrder::Stream, ReadOptions::default());
            let (mut pieces, mut number) = (bytes.chunks(piece), 0);
            let end = loop {
                match assembler.step() {
                    AssemblerStep::Event(event) => {
                        assert!(text_of(&event) == events[number], "{name} {piece}");
                        number += 1;
                    }
                    AssemblerStep::More => match pieces.next() {
                        Some(piece) => assembler.push(piece),
                        None => assembler.finish(),
                    },
                    AssemblerStep::End(end) => break end,
                }
            };
            assert_eq!(
                (number, Some(end), assembler.summary().losses.lost),
                (events.len(), whole.summary().end, whole.summary().losses.lost),
                "{name}"
            );
        }
    }
}

/// The fields of EventCounters are in a nested object.
#[test]
fn counters_by_path() {
    for name in ["gen-net9-small-counters", "gen-net10-small-counters"] {
        let (mut counters, mut with_mean) = (BTreeMap::<String, u32>::new(), 0);
        let bytes = trace(name);
        let mut reader = assembler(&bytes);
        while let Some(event) = next(&mut reader) {
            if event.metadata().is_none_or(|metadata| metadata.name != "EventCounters") {
                continue;
            }
            let field = |path| event.field(path);
            let counter = field("Payload.Name").unwrap().as_str().unwrap().to_string();
            *counters.entry(counter).or_default() += 1;
            let kind = field("Payload.CounterType").unwrap().as_str().unwrap();
            if kind == "Mean" {
                assert!(field("Payload.Mean").unwrap().as_f64().unwrap() >= 0.0);
                assert_eq!(field("Payload.Count").unwrap().as_u64(), Some(1));
                with_mean += 1;
            } else {
                assert_eq!(kind, "Sum");
                assert_eq!(field("Payload.Mean"), None);
                assert!(field("Payload.Increment").unwrap().as_f64().is_some());
            }
            assert_eq!((field("Payload"), field("Mean"), field("Payload.mean")), (None, None, None));
        }
        assert!(counters.contains_key("cpu-usage") && with_mean > 0, "{name}: {counters:?}");
    }
}

/// The events of the trace are in reverse order. Without enough room to sort them, all events are returned, and the
/// late ones are counted.
#[test]
fn too_little_room_for_order() {
    let bytes = shuffled();
    let mut whole = read(&mut assembler(&bytes));
    whole.sort();
    for limit in [0, 1, 1000, 100_000, 300_000] {
        let mut reader = in_order(&bytes, limit);
        let mut events = read(&mut reader);
        assert!(reader.summary().late > 0 && reader.summary().exceeded_limit, "{limit}");
        events.sort();
        assert!(events == whole, "{limit}");
    }
    let mut reader = in_order(&bytes, 16 << 20);
    assert_eq!((read(&mut reader).len(), reader.summary().late), (whole.len(), 0));
    assert!(!reader.summary().exceeded_limit);
}

/// A sorted event is returned from the window if no event waits: it needs no memory.
#[test]
fn sorted_events_need_no_room() {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buffer).unwrap();
    let mut out = Vec::new();
    for (sequence, timestamp) in (1..).zip([5, 6, 4, 7]) {
        let payload = [9; 100];
        let event = Event { sequence, timestamp, sorted: true, payload: &payload, ..Event::default() };
        put(&mut out, writer.event(&Event { metadata_id: 1, ..event }));
    }
    put(&mut out, Ok(writer.finish()));
    let mut sorted = in_order(&out, 0);
    assert_eq!(read(&mut sorted), read(&mut assembler(&out)));
    assert_eq!((sorted.summary().late, sorted.summary().exceeded_limit), (1, false));
}

/// A clock that went back makes events late, whatever the memory is.
#[test]
fn clock_that_went_back() {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buffer).unwrap();
    let mut out = Vec::new();
    for (sequence, timestamp) in [(1, 50), (2, 40)] {
        let event = Event { sequence, timestamp, sorted: true, ..Event::default() };
        put(&mut out, writer.event(&event));
    }
    put(&mut out, Ok(writer.finish()));
    let mut reader = in_order(&out, 16 << 20);
    assert_eq!(
        (read(&mut reader).len(), reader.summary().late, reader.summary().exceeded_limit),
        (2, 1, false)
    );
}

/// Returned events make room for later ones, so that a trace of any length fits.
#[test]
fn room_is_used_again() {
    let bytes = rounds(200, &[1; 1000]);
    let mut reader = in_order(&bytes, 100_000);
    let events = read(&mut reader);
    assert_eq!((events.len(), reader.summary().late), (2000, 0));
    // A round of these events has 600,000 bytes, which is more than the limit.
    let bytes = rounds(3, &[1; 60_000]);
    let mut reader = in_order(&bytes, 500_000);
    let events = read(&mut reader);
    assert_eq!(events.len(), 30);
    assert!(reader.summary().late > 0);
    let mut reader = in_order(&bytes, 1_200_000);
    assert_eq!((read(&mut reader).len(), reader.summary().late), (30, 0));
}

/// Returns rounds of ten events, each from the youngest to the oldest; the first event of a round is marked as sorted.
fn rounds(rounds: u64, payload: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buffer).unwrap();
    let mut out = Vec::new();
    let mut sequence = 0;
    for round in 0..rounds {
        for n in 0..10 {
            sequence += 1;
            let (timestamp, sorted) =
                if n == 0 { (100 * round, true) } else { (100 * round + 20 - n, false) };
            let event = Event { metadata_id: 1, sequence, timestamp, sorted, payload, ..Event::default() };
            put(&mut out, writer.event(&event));
        }
    }
    put(&mut out, Ok(writer.finish()));
    out
}

/// Appends the bytes that the writer returns.
fn put(out: &mut Vec<u8>, written: Result<TraceBytes<'_>, WriteError>) {
    out.extend_from_slice(&written.unwrap());
}

/// V6 assigns numbers of threads and descriptions again. Each event has the thread and the description of its position
/// in the stream.
#[test]
fn numbers_that_v6_assigns_again() {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buffer).unwrap();
    let mut out = Vec::new();
    macro_rules! write {
        ($($call:tt)*) => { put(&mut out, writer.$($call)*) };
    }
    let described = |name: &'static str| Metadata::new(1, "P", 1, name);
    write!(describe(&described("first")));
    write!(thread(1, [ThreadEntry::ThreadId(100)]));
    // The index 65 does not follow 1, so the map of threads does not count it but searches for it.
    write!(thread(65, [ThreadEntry::ThreadId(200)]));
    let event = |metadata_id, thread, sequence, timestamp| Event {
        metadata_id,
        thread,
        capture_thread: thread,
        sequence,
        timestamp,
        ..Event::default()
    };
    write!(event(&event(1, 1, 1, 50)));
    write!(remove_thread(&ThreadSequence { thread: 1, sequence: 1 }));
    write!(thread(1, [ThreadEntry::ThreadId(101)]));
    write!(event(&event(1, 1, 1, 40)));
    write!(event(&event(1, 65, 1, 30)));
    write!(remove_thread(&ThreadSequence { thread: 65, sequence: 1 }));
    write!(event(&event(1, 65, 1, 45)));
    write!(sequence_point(&SequencePoint { timestamp: 60, flags: 3, threads: 0 }));
    write!(event(&event(1, 1, 1, 70)));
    write!(sequence_point(&SequencePoint { timestamp: 75, flags: 0, threads: 0 }));
    write!(describe(&described("second")));
    write!(thread(1, [ThreadEntry::ThreadId(102)]));
    write!(event(&event(1, 1, 1, 80)));
    put(&mut out, Ok(writer.finish()));

    for limit in [None, Some(1 << 20)] {
        let mut reader = assembler(&out);
        if let Some(limit) = limit {
            reader = in_order(&out, limit);
        }
        let mut found = Vec::new();
        while let Some(event) = next(&mut reader) {
            let name = event.metadata().map(|metadata| metadata.name.to_string());
            found.push((event.timestamp(), event.thread_id(), name.unwrap_or_default()));
        }
        if limit.is_none() {
            assert!(!found.is_sorted());
            found.sort();
        }
        let expected = [
            (30, 200, "first"),
            (40, 101, "first"),
            (45, 65, "first"),
            (50, 100, "first"),
            (70, 1, ""),
            (80, 102, "second"),
        ];
        let found: Vec<_> =
            found.iter().map(|(time, thread, name)| (*time, *thread, name.as_str())).collect();
        assert_eq!(found, expected, "{limit:?}");
        assert_eq!(reader.summary().end, Some(End::Complete));
    }
}

/// Descriptions and threads are replaced while events wait. Each event has the description and the thread that precede
/// it in the stream.
#[test]
fn replaced_descriptions_and_threads() {
    // The thread of the first event begins after this event and ends, and its index goes to another thread. The kind of
    // event is described three times, each time with a longer name.
    let long = ["long"; 5_000].concat();
    let stream = |name: &str| {
        let mut buffer = vec![0; TraceWriter::BUFFER];
        let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buffer).unwrap();
        let mut out = Vec::new();
        macro_rules! write {
            ($($call:tt)*) => { put(&mut out, writer.$($call)*) };
        }
        let mut sequence = 0;
        let mut event = |timestamp| {
            sequence += 1;
            Event {
                metadata_id: 1,
                thread: 1,
                capture_thread: 2,
                sequence,
                timestamp,
                sorted: false,
                ..Event::default()
            }
        };
        write!(thread(2, [ThreadEntry::ThreadId(200)]));
        for time in [90, 80, 70] {
            let event = event(time);
            write!(event(&event));
            write!(describe(&Metadata::new(1, "P", 1, &format!("{name}{time}"))));
            write!(remove_thread(&ThreadSequence { thread: 1, sequence: 0 }));
            write!(thread(1, [ThreadEntry::ThreadId(time)]));
        }
        let last = event(60);
        write!(event(&last));
        put(&mut out, Ok(writer.finish()));
        out
    };
    for name in ["", &long] {
        let bytes = stream(name);
        let mut whole = read(&mut assembler(&bytes));
        assert_eq!(whole.len(), 4);
        let mut reader = in_order(&bytes, 1 << 20);
        let ordered = read(&mut reader);
        whole.reverse();
        assert!(ordered == whole, "{ordered:#.300?}");
        assert_eq!(reader.summary().late, 0);
    }
}

/// Returns a trace of 20 rounds of events in reverse order, with one sequence point after all of them.
fn shuffled() -> Vec<u8> {
    let source = trace("gen-net10-lab-small");
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let (mut metadata, mut threads) = ([Slot::default(); 256], [Slot::default(); 256]);
    let space =
        RewriteSpace { buffer: &mut buffer, metadata: &mut metadata, threads: &mut threads, labels: &mut [] };
    let mut rewrite = Rewrite::new(RewriteOptions::default(), space).unwrap();
    let (mut out, mut parser) = (Vec::new(), Parser::new(Limits::default()));
    let mut late = Vec::new();
    let mut step = |step: &Record<'_>, out: &mut Vec<u8>| {
        out.extend_from_slice(&rewrite.record(step).unwrap());
    };
    loop {
        match parser.next(&source) {
            Record::Event(event) => late.push(event),
            Record::SequencePoint(_) | Record::End(_) => break,
            Record::Stack(_) => {}
            other => step(&other, &mut out),
        }
    }
    for round in 0..20 {
        for event in late.iter().rev() {
            let timestamp = event.timestamp + round;
            let event = Event { timestamp, sorted: false, stack_id: 0, ..*event };
            step(&Record::Event(event), &mut out);
        }
    }
    let mut end = rewrite.finish();
    while let Some(bytes) = end.next_bytes().unwrap() {
        out.extend_from_slice(&bytes);
    }
    out
}

#[test]
fn threads_and_activities_of_v6() {
    let bytes = trace("synth-v6-all");
    let mut reader = assembler(&bytes);
    let (mut names, mut labels) = (Vec::new(), 0);
    while let Some(event) = next(&mut reader) {
        names.extend(event.thread().map(|thread| (thread.name().to_string(), event.thread_id())));
        labels += event.labels().count();
        if let Some(Label::ActivityId(id)) = event.labels().next() {
            assert_eq!(event.activity_id(), id);
            assert_eq!(event.header().activity_id.0, [0; 16]);
        }
    }
    names.dedup();
    assert!(names.iter().any(|(name, id)| !name.is_empty() && *id == 1_099_511_627_776), "{names:?}");
    assert!(labels > 0);
}

/// An id is unknown if no thread has the index, if the thread has no id, and if V4 states that.
#[test]
fn unknown_threads() {
    let event =
        |thread, sequence| Event { thread, metadata_id: 1, sequence, sorted: true, ..Event::default() };
    let ids = |bytes: &[u8]| {
        let (mut reader, mut ids) = (assembler(bytes), Vec::new());
        while let Some(event) = next(&mut reader) {
            ids.push(event.known_thread_id());
        }
        ids
    };
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buffer).unwrap();
    put(&mut out, writer.thread(1, [ThreadEntry::ThreadId(70)]));
    put(&mut out, writer.thread(2, [ThreadEntry::ProcessId(5)]));
    for (sequence, thread) in (1..).zip([1, 2, 3]) {
        put(&mut out, writer.event(&event(thread, sequence)));
    }
    put(&mut out, writer.remove_thread(&ThreadSequence { thread: 1, sequence: 1 }));
    put(&mut out, writer.event(&event(1, 4)));
    put(&mut out, Ok(writer.finish()));
    assert_eq!(ids(&out), [Some(70), None, None, None]);
    out.clear();
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buffer).unwrap();
    put(&mut out, writer.event(&event(0, 1)));
    put(&mut out, writer.event(&event(Event::UNKNOWN_THREAD, 2)));
    put(&mut out, writer.event(&event(i64::MAX as u64, 3)));
    put(&mut out, Ok(writer.finish()));
    assert_eq!(ids(&out), [Some(0), None, Some(i64::MAX as u64)]);
}

/// V3 states no processor. In V4 it is an `int`: the smallest and the largest are known, and -1 is not.
#[test]
fn unknown_processors() {
    const LARGEST: u32 = i32::MAX as u32;
    for (version, processor, expected) in [
        (Version::V3, 0, None),
        (Version::V4, 0, Some(0)),
        (Version::V4, LARGEST, Some(LARGEST)),
        (Version::V4, Event::UNKNOWN_PROCESSOR, None),
    ] {
        let mut buffer = vec![0; TraceWriter::BUFFER];
        let mut out = Vec::new();
        let mut writer = TraceWriter::new(&Trace::new(version), &mut buffer).unwrap();
        let event = Event { metadata_id: 1, sequence: 1, sorted: true, processor, ..Event::default() };
        put(&mut out, writer.event(&event));
        put(&mut out, Ok(writer.finish()));
        let mut reader = assembler(&out);
        assert_eq!(next(&mut reader).map(|event| event.processor()), Some(expected), "{version:?}");
    }
}

/// The version decides on the fields of an event of the runtime. It can be in the description or in a label, or be
/// lost.
#[cfg(feature = "clr")]
#[test]
fn versions_of_native_events() {
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let third = [&[1; 26][..], &[0; 14]].concat();
    let fourth = [&third[..], &8024u64.to_le_bytes()].concat();
    // The ends of two texts, an address, and numbers.
    let thrown = [&[0; 4][..], &[1; 16]].concat();
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buffer).unwrap();
    for (id, event_id, version) in [(1, 10, 4), (2, 10, 0), (3, 80, 0), (4, 10, 2)] {
        let mut metadata = Metadata::new(id, runtime, event_id, "");
        metadata.version = version;
        put(&mut out, writer.describe(&metadata));
    }
    let labels =
        [Label::Text("Version".into(), "3".into()), Label::Version(4), Label::Number("version".into(), 3)];
    for (id, label) in (1..).zip(labels) {
        put(&mut out, writer.label_list(id, [label]));
    }
    put(&mut out, writer.thread(0, [ThreadEntry::ThreadId(7)]));
    let rows: [(u32, &[u8], u32); 8] = [
        (1, &fourth, 0),
        (2, &fourth, 0),
        (2, &third, 0),
        (2, &third[..20], 0),
        (3, &thrown, 0),
        (2, &fourth, 2),
        (1, &fourth, 1),
        (4, &fourth, 3),
    ];
    for (sequence, (metadata_id, payload, label_list)) in (1..).zip(rows) {
        let event = Event { metadata_id, sequence, payload, label_list, ..Event::default() };
        put(&mut out, writer.event(&event));
    }
    put(&mut out, Ok(writer.finish()));
    let (mut reader, mut found) = (assembler(&out), Vec::new());
    while let Some(event) = next(&mut reader) {
        let metadata = event.metadata().unwrap();
        let size = event.field("ObjectSize").and_then(|value| value.as_u64());
        assert_eq!(
            size,
            metadata.fields.values(event.payload()).field("ObjectSize").and_then(|v| v.as_u64())
        );
        found.push((metadata.name.to_string(), metadata.version, metadata.fields.len(), size));
    }
    let tick = |version, fields, size| ("GCAllocationTick".to_owned(), version, fields, size);
    let expected = [
        tick(4, 9, Some(8024)),
        tick(0, 9, Some(8024)),
        tick(0, 8, None),
        tick(0, 0, None),
        ("ExceptionThrown".to_owned(), 0, 6, None),
        tick(4, 9, Some(8024)),
        tick(3, 8, None),
        tick(3, 8, None),
    ];
    assert_eq!(found, expected);
}

/// The clock of the trace has a frequency of 10 MHz.
#[test]
fn other_clocks() {
    let recorded = ipc_testdata::TRACES.iter().find(|trace| trace.name.contains("windows")).unwrap();
    let (bytes, expected) = (recorded.bytes, recorded.expected.parse::<serde_json::Value>().unwrap());
    assert_eq!(expected["trace"]["freq"], 10_000_000);
    let mut reader = in_order(bytes, 1 << 20);
    let nanoseconds = next(&mut reader).unwrap().nanoseconds();
    let ticks = expected["ts_range"][0].as_i64().unwrap() - expected["trace"]["qpc"].as_i64().unwrap();
    assert_eq!(nanoseconds, ticks * 100);
}

/// Without sequence points, a stack that has the id of an earlier one uses its room again, and stacks with new ids
/// exceed the limit.
#[test]
fn stacks_have_a_limit() {
    for (distinct, frames) in [(false, 1), (true, 0)] {
        let mut buffer = vec![0; TraceWriter::BUFFER];
        let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buffer).unwrap();
        let mut out = Vec::new();
        let bytes = [1; 40_000];
        put(&mut out, writer.stack(&Stack { id: 5000, bytes: &bytes[..8] }));
        for n in 0..1000 {
            let stack = Stack { id: if distinct { n + 1 } else { 1 }, bytes: &bytes };
            put(&mut out, writer.stack(&stack));
        }
        let event = Event { metadata_id: 1, sequence: 1, stack_id: 5000, ..Event::default() };
        put(&mut out, writer.event(&event));
        put(&mut out, Ok(writer.finish()));
        let mut reader = assembler(&out);
        let event = next(&mut reader).unwrap();
        assert_eq!(event.stack().count(), frames, "{distinct}");
    }
}

#[test]
fn descriptions_have_a_limit() {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buffer).unwrap();
    let mut out = Vec::new();
    // V4 has the name in UTF-16; V6 has it in UTF-8, which takes less time.
    let name = "a name that is long ".repeat(2000);
    const RECORDS: u32 = 1000;
    for n in 1..=RECORDS {
        put(&mut out, writer.describe(&Metadata::new(n, "Long", n, name.as_str())));
    }
    for n in 1..=RECORDS {
        let event = Event { metadata_id: n, sequence: n, ..Event::default() };
        put(&mut out, writer.event(&event));
    }
    put(&mut out, Ok(writer.finish()));
    let mut reader = assembler(&out);
    let mut described = Vec::new();
    while let Some(event) = next(&mut reader) {
        described.push(event.metadata().is_some());
    }
    // A name has about 40,000 bytes, so only the first descriptions fit into the limit.
    let stored = described.iter().filter(|described| **described).count();
    assert!((700..840).contains(&stored), "{stored}");
    assert!(described[..stored].iter().all(|described| *described));
    assert_eq!((described.len(), reader.summary().end), (RECORDS as usize, Some(End::Complete)));
}

#[test]
fn without_stacks() {
    let bytes = trace("gen-net10-lab-small");
    let frames = |mut reader: EventAssembler| {
        let mut frames = 0;
        while let Some(event) = next(&mut reader) {
            frames += event.stack().count();
        }
        frames
    };
    assert!(frames(assembler(&bytes)) > 1000);
    assert_eq!(
        frames(received(&bytes, EventOrder::Stream, ReadOptions { stacks: false, ..ReadOptions::default() })),
        0
    );
}

/// The stream does not describe the runtime's own events, but the feature `clr` names them.
#[test]
fn names_of_the_runtime() {
    let bytes = trace("gen-net10-small-mixed");
    let mut reader = assembler(&bytes);
    let mut names = BTreeMap::new();
    while let Some(event) = next(&mut reader) {
        let metadata = event.metadata().unwrap();
        if metadata.provider == "Microsoft-Windows-DotNETRuntime" {
            let numbers = event
                .values()
                .filter(|item| matches!(item, Item::Value { value: Value::UInt(_) | Value::Int(_), .. }));
            names.insert(metadata.event_id, (metadata.name.to_string(), numbers.count()));
        }
    }
    let (name, numbers) = &names[&1];
    if cfg!(feature = "clr") {
        assert_eq!((name.as_str(), *numbers), ("GCStart", 6));
    } else {
        assert_eq!((name.as_str(), *numbers), ("", 0));
    }
}
