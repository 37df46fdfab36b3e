//! `TraceReader` over the recorded traces: whole, in pieces, with errors in between, cut, damaged, in order.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::time::SystemTime;

use ipc_proto::nettrace::{
    Corruption, End, Event, Label, Limits, Metadata, Parser, Rewrite, RewriteOptions, RewriteSpace,
    SequencePoint, Slot, Stack, Step, ThreadEntry, ThreadSequence, Trace, Truncation, Value, Version,
    WriteError, Writer,
};
use ipc_std::{StepReader, TraceEvent, TraceReader};

/// Name, bytes and what is expected of each trace.
fn traces() -> Vec<(String, Vec<u8>, serde_json::Value)> {
    let parsed = |trace: ipc_fuzz::RecordedTrace| {
        (trace.name, trace.bytes, serde_json::from_str(&trace.expected).unwrap())
    };
    ipc_fuzz::traces().into_iter().map(parsed).collect()
}

fn trace(name: &str) -> Vec<u8> {
    traces().into_iter().find(|(of, ..)| of.starts_with(name)).unwrap().1
}

/// All that an event says, as text.
fn told(event: &TraceEvent<'_>) -> String {
    let header = event.header.without_payload();
    let values: Vec<_> = event.values().collect();
    let stack: Vec<u64> = event.stack().collect();
    let (thread, activity) = (event.thread_id(), (event.activity_id(), event.related_activity_id()));
    let labels: Vec<_> = event.labels().collect();
    let about = event.metadata().map(|m| (m.provider.to_string(), m.event_id, m.version, m.name.to_string()));
    let payload = event.header.payload;
    let time = event.nanoseconds();
    format!("{time} {about:?} {values:?} {thread} {activity:?} {labels:?} {stack:?} {header:?} {payload:?}")
}

/// All events, and how often reading timed out.
fn read<R: Read>(trace: &mut TraceReader<R>) -> (Vec<String>, usize) {
    let (mut events, mut timeouts) = (Vec::new(), 0);
    loop {
        match trace.next_event() {
            Ok(Some(event)) => events.push(told(&event)),
            Ok(None) => break,
            Err(e) if e.kind() == ErrorKind::TimedOut => timeouts += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(trace.next_event().unwrap().is_none());
    (events, timeouts)
}

/// Gives so many bytes at a time, and an error of each kind that is no end before each.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
    errors: &'a [ErrorKind],
    turn: usize,
    /// The most that was asked for.
    asked: usize,
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], piece: usize, errors: &'a [ErrorKind]) -> Self {
        Self { bytes, piece, errors, turn: 0, asked: 0 }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.asked = self.asked.max(buf.len());
        let turn = self.turn % (self.errors.len() + 1);
        self.turn += 1;
        match self.errors.get(turn) {
            Some(kind) => Err((*kind).into()),
            None => {
                let n = self.piece.min(buf.len());
                self.bytes.read(&mut buf[..n])
            }
        }
    }
}

#[test]
fn every_trace_in_every_way() {
    for (name, bytes, expected) in traces() {
        let mut reader = TraceReader::new(&bytes[..]);
        let (whole, _) = read(&mut reader);
        assert_eq!(whole.len() as u64, expected["events"].as_u64().unwrap(), "{name}");
        assert_eq!(reader.lost(), expected["dropped_strict"].as_u64().unwrap(), "{name}");
        assert_eq!(reader.late(), 0);
        let (end, lost) = (reader.end().unwrap(), reader.lost());
        match expected["end"].as_str().unwrap() {
            "null tag" | "EndOfStream" if expected["error"].is_null() => {
                assert_eq!(end, End::Complete, "{name}")
            }
            "null tag" => assert!(matches!(end, End::Corrupt { offset: 0x1734, .. }), "{name}: {end}"),
            _ => assert!(
                matches!(end, End::Truncated { offset, .. } if offset == bytes.len() as u64),
                "{name}: {end}"
            ),
        }
        let trace = reader.trace().unwrap();
        assert_eq!(u64::from(trace.version.number()), expected["version"].as_u64().unwrap());
        assert_eq!(trace.frequency, expected["trace"]["freq"].as_u64().unwrap());
        assert_eq!(
            trace.pairs.count(),
            expected["trace"]["kv"].as_object().map_or(0, |kv| kv.len()),
            "{name}"
        );

        let mut events: Vec<String> = Vec::new();
        for (piece, errors) in [
            (1, &[][..]),
            (7, &[ErrorKind::Interrupted]),
            (1000, &[ErrorKind::TimedOut]),
            (4096, &[ErrorKind::TimedOut, ErrorKind::Interrupted, ErrorKind::TimedOut]),
        ] {
            let mut reader = TraceReader::new(Pieces::new(&bytes, piece, errors));
            let (read, timeouts) = read(&mut reader);
            assert!(read == whole, "{name} in pieces of {piece}");
            assert_eq!((reader.end(), reader.lost()), (Some(end), lost), "{name}");
            assert_eq!(timeouts > 0, errors.contains(&ErrorKind::TimedOut));
            events = read;
        }

        let mut reader = TraceReader::new(Pieces::new(&bytes, 100, &[ErrorKind::TimedOut]))
            .in_order(TraceReader::<&[u8]>::HELD);
        let mut last = i64::MIN;
        let mut ordered = Vec::new();
        loop {
            match reader.next_event() {
                Ok(Some(event)) => {
                    assert!(event.nanoseconds() >= last, "{name}");
                    last = event.nanoseconds();
                    ordered.push(told(&event));
                }
                Ok(None) => break,
                Err(_) => {}
            }
        }
        assert_eq!((reader.end(), reader.lost(), reader.late()), (Some(end), lost, 0), "{name}");
        // Each as it was, whatever had become of stacks and threads by the time it was delivered; those of the same
        // time as they came.
        events.sort_by_key(|told| told.split(' ').next().unwrap().parse::<i64>().unwrap());
        assert!(ordered == events, "{name}");
    }
}

/// Whatever a parser finds in the first bytes is delivered before there are more, and nothing is asked for twice.
#[test]
fn nothing_waits_for_what_comes_after_it() {
    for name in ["gen-net8-aot-lab-small", "synth-v6-all", "synth-v5-corners", "synth-cut"] {
        let bytes = trace(name);
        let step = if bytes.len() > 2000 { 37 } else { 1 };
        let (whole, _) = read(&mut TraceReader::new(&bytes[..]));
        for len in (0..=bytes.len()).step_by(step) {
            let mut parser = Parser::new(Limits::default());
            let mut there = 0;
            let end = loop {
                match parser.next(&bytes[..len]) {
                    Step::Event(_) => there += 1,
                    Step::More { .. } => break parser.finish(&bytes[..len]),
                    Step::End(end) => break end,
                    _ => {}
                }
            };

            /// Gives all at once, then fails for ever.
            struct Once<'a>(&'a [u8]);
            impl Read for Once<'_> {
                fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                    if self.0.is_empty() { Err(ErrorKind::TimedOut.into()) } else { self.0.read(buf) }
                }
            }
            let mut reader = TraceReader::new(Once(&bytes[..len]));
            let mut events = Vec::new();
            while let Ok(Some(event)) = reader.next_event() {
                events.push(told(&event));
            }
            assert_eq!(events.len(), there, "{name} {len}");
            assert!(whole.starts_with(&events), "{name} {len}");

            // The same, cut there.
            let mut reader = TraceReader::new(&bytes[..len]);
            let (cut, _) = read(&mut reader);
            assert!(cut == events, "{name} {len}");
            assert_eq!(reader.end(), Some(end), "{name} {len}");
            // In order, what was held comes too.
            let mut reader = TraceReader::new(&bytes[..len]).in_order(1 << 20);
            assert_eq!(read(&mut reader).0.len(), there, "{name} {len}");
        }
    }
}

#[test]
fn empty_and_foreign() {
    let mut reader = TraceReader::new(&[][..]);
    assert!(reader.next_event().unwrap().is_none());
    let truncated = End::Truncated { offset: 0, reason: Truncation::Header };
    assert_eq!((reader.end(), reader.trace()), (Some(truncated), None));
    let mut reader = TraceReader::new(&b"PK\x03\x04 an archive"[..]);
    assert!(reader.next_event().unwrap().is_none());
    assert_eq!(reader.end(), Some(End::Corrupt { offset: 0, reason: Corruption::NotNetTrace }));
}

/// What is behind the end is left to whoever reads on.
#[test]
fn what_follows_the_end_is_no_part_of_it() {
    let bytes = trace("gen-net10-lab-small");
    let mut source = Pieces::new(&bytes, bytes.len(), &[]);
    let mut reader = TraceReader::new(&mut source);
    assert_eq!(read(&mut reader).0.len(), 142);
    assert_eq!(source.turn, 1, "the end was there with the first bytes");
    let longer = [&bytes[..], b"whatever"].concat();
    let mut reader = TraceReader::new(&longer[..]);
    assert_eq!((read(&mut reader).0.len(), reader.end()), (142, Some(End::Complete)));
}

/// In the file each event stands in the block of its thread. Not enough room to sort that: all come, and it is said.
#[test]
fn too_little_room_for_order() {
    let bytes = shuffled();
    let (mut whole, _) = read(&mut TraceReader::new(&bytes[..]));
    whole.sort();
    for limit in [0, 1, 1000, 300_000, 600_000] {
        let mut reader = TraceReader::new(&bytes[..]).in_order(limit);
        let (mut events, _) = read(&mut reader);
        assert!(reader.late() > 0, "{limit}");
        events.sort();
        assert!(events == whole, "{limit}");
    }
    let mut reader = TraceReader::new(&bytes[..]).in_order(TraceReader::<&[u8]>::HELD);
    assert_eq!((read(&mut reader).0.len(), reader.late()), (whole.len(), 0));
}

/// What was delivered makes room for what comes, however long the trace is.
#[test]
fn room_is_used_again() {
    let bytes = rounds(200, &[1; 1000]);
    let mut reader = TraceReader::new(&bytes[..]).in_order(100_000);
    let (events, _) = read(&mut reader);
    assert_eq!((events.len(), reader.late()), (2000, 0));
    // A round of these does not fit.
    let bytes = rounds(3, &[1; 60_000]);
    let mut reader = TraceReader::new(&bytes[..]).in_order(500_000);
    let (events, _) = read(&mut reader);
    assert_eq!(events.len(), 30);
    assert!(reader.late() > 0);
    let mut reader = TraceReader::new(&bytes[..]).in_order(1_200_000);
    assert_eq!((read(&mut reader).0.len(), reader.late()), (30, 0));
}

/// Rounds of ten events, each round from the youngest to the oldest, and before each the word that all before is past.
fn rounds(rounds: u64, payload: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; Writer::BUFFER];
    let mut writer = Writer::new(Version::V4, &mut buffer).unwrap();
    let mut out = Vec::new();
    put(&mut out, || writer.trace(&Trace::new(Version::V4)).map(|b| b.map(<[u8]>::to_vec)));
    let mut sequence = 0;
    for round in 0..rounds {
        for n in 0..10 {
            sequence += 1;
            let (timestamp, sorted) =
                if n == 0 { (100 * round, true) } else { (100 * round + 20 - n, false) };
            let event = Event { metadata_id: 1, sequence, timestamp, sorted, payload, ..Event::default() };
            put(&mut out, || writer.event(&event).map(|b| b.map(<[u8]>::to_vec)));
        }
    }
    put(&mut out, || Ok(writer.finish().map(<[u8]>::to_vec)));
    out
}

/// Takes all that has to go out.
fn put(out: &mut Vec<u8>, mut write: impl FnMut() -> Result<Option<Vec<u8>>, WriteError>) {
    while let Some(bytes) = write().unwrap() {
        out.extend(bytes);
    }
}

/// V6 gives numbers of threads and descriptions anew: each event has those of its time, whenever it is delivered.
#[test]
fn what_v6_forgets() {
    let mut buffer = vec![0; Writer::BUFFER];
    let mut writer = Writer::new(Version::V6, &mut buffer).unwrap();
    let mut out = Vec::new();
    macro_rules! write {
        ($($call:tt)*) => { put(&mut out, || writer.$($call)*.map(|b| b.map(<[u8]>::to_vec))) };
    }
    write!(trace(&Trace::new(Version::V6)));
    let described = |name: &'static str| {
        let mut metadata = Metadata::default();
        (metadata.id, metadata.provider, metadata.event_id, metadata.name) = (1, "P".into(), 1, name.into());
        metadata
    };
    write!(describe(&described("first")));
    write!(thread(1, [ThreadEntry::ThreadId(100)]));
    write!(thread(2, [ThreadEntry::ThreadId(200)]));
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
    write!(event(&event(1, 2, 1, 30)));
    write!(sequence_point(&SequencePoint { timestamp: 60, flags: 3, threads: 0 }));
    write!(event(&event(1, 1, 1, 70)));
    write!(sequence_point(&SequencePoint { timestamp: 75, flags: 0, threads: 0 }));
    write!(describe(&described("second")));
    write!(thread(1, [ThreadEntry::ThreadId(102)]));
    write!(event(&event(1, 1, 1, 80)));
    put(&mut out, || Ok(writer.finish().map(<[u8]>::to_vec)));

    for limit in [None, Some(1 << 20)] {
        let mut reader = TraceReader::new(&out[..]);
        if let Some(limit) = limit {
            reader = reader.in_order(limit);
        }
        let mut found = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            let name = event.metadata().map(|metadata| metadata.name.to_string());
            found.push((event.header.timestamp, event.thread_id(), name.unwrap_or_default()));
        }
        if limit.is_none() {
            assert!(!found.is_sorted());
            found.sort();
        }
        let expected =
            [(30, 200, "first"), (40, 101, "first"), (50, 100, "first"), (70, 1, ""), (80, 102, "second")];
        let found: Vec<_> =
            found.iter().map(|(time, thread, name)| (*time, *thread, name.as_str())).collect();
        assert_eq!(found, expected, "{limit:?}");
        assert_eq!(reader.end(), Some(End::Complete));
    }
}

/// Descriptions and threads that are replaced while events are held: each event has those that were there before it.
#[test]
fn what_is_replaced_before_it_is_delivered() {
    // The thread of the first event begins behind it, ends, and gives its number to another; its kind is described
    // three times, each time at greater length.
    let long = ["long"; 5_000].concat();
    let stream = |name: &str| {
        let mut buffer = vec![0; Writer::BUFFER];
        let mut writer = Writer::new(Version::V6, &mut buffer).unwrap();
        let mut out = Vec::new();
        macro_rules! write {
            ($($call:tt)*) => { put(&mut out, || writer.$($call)*.map(|b| b.map(<[u8]>::to_vec))) };
        }
        write!(trace(&Trace::new(Version::V6)));
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
            let mut metadata = Metadata::default();
            (metadata.id, metadata.provider, metadata.event_id) = (1, "P".into(), 1);
            let name = format!("{name}{time}");
            metadata.name = name.as_str().into();
            write!(describe(&metadata));
            write!(remove_thread(&ThreadSequence { thread: 1, sequence: 0 }));
            write!(thread(1, [ThreadEntry::ThreadId(time)]));
        }
        let last = event(60);
        write!(event(&last));
        put(&mut out, || Ok(writer.finish().map(<[u8]>::to_vec)));
        out
    };
    for name in ["", &long] {
        let bytes = stream(name);
        let (mut whole, _) = read(&mut TraceReader::new(&bytes[..]));
        assert_eq!(whole.len(), 4);
        let mut reader = TraceReader::new(&bytes[..]).in_order(1 << 20);
        let (ordered, _) = read(&mut reader);
        whole.reverse();
        assert!(ordered == whole, "{ordered:#.300?}");
        assert_eq!(reader.late(), 0);
    }
    // The descriptions that are held have a limit, too.
    let bytes = stream(&long);
    let mut reader = TraceReader::new(&bytes[..]).in_order(100_000);
    let (mut ordered, _) = read(&mut reader);
    let (mut whole, _) = read(&mut TraceReader::new(&bytes[..]));
    assert!(reader.late() > 0);
    ordered.sort();
    whole.sort();
    assert!(ordered == whole);
}

/// A trace whose second half comes first, with one sequence point behind all.
fn shuffled() -> Vec<u8> {
    let source = trace("gen-net10-lab-small");
    let mut buffer = vec![0; Writer::BUFFER];
    let (mut metadata, mut threads) = ([Slot::default(); 256], [Slot::default(); 256]);
    let space =
        RewriteSpace { buffer: &mut buffer, metadata: &mut metadata, threads: &mut threads, labels: &mut [] };
    let mut rewrite = Rewrite::new(RewriteOptions::default(), space).unwrap();
    let (mut out, mut parser) = (Vec::new(), Parser::new(Limits::default()));
    let mut late = Vec::new();
    let mut step = |step: &Step<'_>, out: &mut Vec<u8>| {
        while let Some(bytes) = rewrite.step(step).unwrap() {
            out.extend_from_slice(bytes);
        }
    };
    loop {
        match parser.next(&source) {
            Step::Event(event) => late.push(event),
            Step::SequencePoint(_) | Step::End(_) => break,
            Step::Stack(_) => {}
            other => step(&other, &mut out),
        }
    }
    for round in 0..20 {
        for event in late.iter().rev() {
            let timestamp = event.timestamp + round;
            let event = Event { timestamp, sorted: false, stack_id: 0, ..*event };
            step(&Step::Event(event), &mut out);
        }
    }
    while let Some(bytes) = rewrite.finish().unwrap() {
        out.extend_from_slice(bytes);
    }
    out
}

#[test]
fn what_v6_says_of_threads_and_activities() {
    let bytes = trace("synth-v6-all");
    let mut reader = TraceReader::new(&bytes[..]);
    let (mut names, mut labels) = (Vec::new(), 0);
    while let Some(event) = reader.next_event().unwrap() {
        names.extend(event.thread().map(|thread| (thread.name().to_string(), event.thread_id())));
        labels += event.labels().count();
        if let Some(Label::ActivityId(id)) = event.labels().next() {
            assert_eq!(event.activity_id(), id);
            assert_eq!(event.header.activity_id.0, [0; 16]);
        }
    }
    names.dedup();
    assert!(names.iter().any(|(name, id)| !name.is_empty() && *id == 1_099_511_627_776), "{names:?}");
    assert!(labels > 0);
}

#[test]
fn times() {
    let bytes = trace("gen-net10-lab-small");
    let mut reader = TraceReader::new(&bytes[..]);
    let event = reader.next_event().unwrap().unwrap();
    let (nanoseconds, time) = (event.nanoseconds(), event.time());
    let expected = traces().into_iter().find(|(name, ..)| name == "gen-net10-lab-small.nettrace").unwrap().2;
    let ticks = expected["ts_range"][0].as_i64().unwrap() - expected["trace"]["qpc"].as_i64().unwrap();
    assert_eq!(nanoseconds, ticks, "the first event is the oldest, and its clock has nanoseconds");
    let sync: Vec<u64> =
        expected["trace"]["sync_utc"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let start = time - Duration::from_nanos(nanoseconds.unsigned_abs());
    let since = start.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    // 20,000 days after 1970-01-01 is 2024-10-04.
    assert_eq!((sync[0], sync[1]), (2026, 11), "{sync:?}");
    let days = 20_000 + 27 + 30 + 31 + 365 + 304 + sync[3];
    let seconds = (sync[4] * 60 + sync[5]) * 60 + sync[6];
    assert_eq!(since, Duration::from_secs(days * 86_400 + seconds) + Duration::from_millis(sync[7]));
}

/// A clock of 10 MHz.
#[test]
fn other_clocks() {
    let (_, bytes, expected) = traces().into_iter().find(|(name, ..)| name.contains("windows")).unwrap();
    assert_eq!(expected["trace"]["freq"], 10_000_000);
    let mut reader = TraceReader::new(&bytes[..]).in_order(1 << 20);
    let nanoseconds = reader.next_event().unwrap().unwrap().nanoseconds();
    let ticks = expected["ts_range"][0].as_i64().unwrap() - expected["trace"]["qpc"].as_i64().unwrap();
    assert_eq!(nanoseconds, ticks * 100);
}

/// Stacks without a sequence point that ends them: one of a number that was there takes its room, others are too many in
/// the end.
#[test]
fn stacks_have_a_limit() {
    for (distinct, frames) in [(false, 1), (true, 0)] {
        let mut buffer = vec![0; Writer::BUFFER];
        let mut writer = Writer::new(Version::V4, &mut buffer).unwrap();
        let mut out = Vec::new();
        put(&mut out, || writer.trace(&Trace::new(Version::V4)).map(|b| b.map(<[u8]>::to_vec)));
        let bytes = [1; 40_000];
        put(&mut out, || {
            writer.stack(&Stack { id: 5000, bytes: &bytes[..8] }).map(|b| b.map(<[u8]>::to_vec))
        });
        for n in 0..1000 {
            let stack = Stack { id: if distinct { n + 1 } else { 1 }, bytes: &bytes };
            put(&mut out, || writer.stack(&stack).map(|b| b.map(<[u8]>::to_vec)));
        }
        let event = Event { metadata_id: 1, sequence: 1, stack_id: 5000, ..Event::default() };
        put(&mut out, || writer.event(&event).map(|b| b.map(<[u8]>::to_vec)));
        put(&mut out, || Ok(writer.finish().map(<[u8]>::to_vec)));
        let mut reader = TraceReader::new(&out[..]);
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(event.stack().count(), frames, "{distinct}");
    }
}

#[test]
fn descriptions_have_a_limit() {
    let mut buffer = vec![0; Writer::BUFFER];
    let mut writer = Writer::new(Version::V4, &mut buffer).unwrap();
    let mut out = Vec::new();
    put(&mut out, || writer.trace(&Trace::new(Version::V4)).map(|b| b.map(<[u8]>::to_vec)));
    let name = "a name that is long ".repeat(1000);
    const RECORDS: u32 = 1000;
    for n in 1..=RECORDS {
        let mut record = Metadata::default();
        (record.id, record.provider, record.event_id, record.name) =
            (n, "Long".into(), n, name.as_str().into());
        put(&mut out, || writer.describe(&record).map(|b| b.map(<[u8]>::to_vec)));
    }
    for n in 1..=RECORDS {
        let event = Event { metadata_id: n, sequence: n, ..Event::default() };
        put(&mut out, || writer.event(&event).map(|b| b.map(<[u8]>::to_vec)));
    }
    put(&mut out, || Ok(writer.finish().map(<[u8]>::to_vec)));
    let mut reader = TraceReader::new(&out[..]);
    let mut described = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        described.push(event.metadata().is_some());
    }
    // A name has 40,000 bytes; the first are kept.
    let kept = described.iter().filter(|described| **described).count();
    assert!((700..840).contains(&kept), "{kept}");
    assert!(described[..kept].iter().all(|described| *described));
    assert_eq!((described.len(), reader.end()), (RECORDS as usize, Some(End::Complete)));
}

#[test]
fn stacks_may_be_left_out() {
    let bytes = trace("gen-net10-lab-small");
    let frames = |mut reader: TraceReader<&[u8]>| {
        let mut frames = 0;
        while let Some(event) = reader.next_event().unwrap() {
            frames += event.stack().count();
        }
        frames
    };
    assert!(frames(TraceReader::new(&bytes[..])) > 1000);
    assert_eq!(frames(TraceReader::new(&bytes[..]).without_stacks()), 0);
}

/// The runtime's own events say nothing of themselves.
#[test]
fn names_of_the_runtime() {
    let bytes = trace("gen-net10-small-mixed");
    let mut reader = TraceReader::new(&bytes[..]);
    let mut names = BTreeMap::new();
    while let Some(event) = reader.next_event().unwrap() {
        let metadata = event.metadata().unwrap();
        if metadata.provider == "Microsoft-Windows-DotNETRuntime" {
            let numbers = event.values().filter(|item| {
                matches!(item, ipc_proto::nettrace::Item::Value { value: Value::UInt(_) | Value::Int(_), .. })
            });
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

/// A length of 15 MB in a block that has it, of which little comes: room is made for what comes.
#[test]
fn room_is_made_for_what_comes() {
    let mut bytes = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    bytes.extend([44, 0, 0, 1]);
    bytes.extend([0; 44]);
    bytes.extend([0, 0, 0xf0, 5]);
    bytes.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend(0x00ef_ff00_u32.to_le_bytes());
    bytes.extend(vec![0; 1_000_000]);
    let mut source = Pieces::new(&bytes, 1000, &[]);
    let mut steps = StepReader::new(&mut source);
    let mut more = 0;
    let end = loop {
        match steps.next_step() {
            Step::More { .. } => {
                more += 1;
                steps.read_more().unwrap();
            }
            Step::End(end) => break end,
            _ => {}
        }
    };
    assert!(matches!(end, End::Truncated { reason: Truncation::Block { have: 1_000_012, .. }, .. }), "{end}");
    assert!(more >= 1000);
    assert!(source.asked <= 2_000_000, "{}", source.asked);
}
