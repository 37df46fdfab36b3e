//! Rewriting keeps what it should, leaves out what it should, and tells as much loss as there was.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test says what it expects by unwrapping it"
)]

mod nettrace_steps;
mod nettrace_stream;

use std::collections::HashMap;

use ipc_proto::Guid;
use ipc_proto::nettrace::{
    BlockKind, End, Event, FieldType, Fields, Label, Limits, Loss, Metadata, Only, Parser, Rewrite,
    RewriteError, RewriteOptions, RewriteSpace, Rewritten, Scalar, SequencePoint, Slot, Stack, Step,
    ThreadEntry, ThreadSequence, Version, WriteError, Writer,
};
use nettrace_steps::picked;
use nettrace_stream::{descriptions, put, stream, written};

fn traces() -> Vec<(String, Vec<u8>)> {
    ipc_fuzz::traces().into_iter().map(|trace| (trace.name, trace.bytes)).collect()
}

/// The one of this name.
fn trace(name: &str) -> Vec<u8> {
    traces().into_iter().find(|(of, _)| of == name).unwrap().1
}

fn rewrite(bytes: &[u8], options: RewriteOptions<'_>) -> Result<(Vec<u8>, Rewritten), RewriteError> {
    rewrite_with(bytes, options, Writer::BUFFER, 1024)
}

fn rewrite_with(
    bytes: &[u8],
    options: RewriteOptions<'_>,
    buffer: usize,
    slots: usize,
) -> Result<(Vec<u8>, Rewritten), RewriteError> {
    let (mut metadata, mut threads) = (vec![Slot::default(); slots], vec![Slot::default(); slots]);
    let (mut buffer, mut labels) = (vec![0xa5; buffer], vec![Slot::default(); 1024]);
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let mut rewrite = Rewrite::new(options, space)?;
    let (mut parser, mut result) = (Parser::new(Limits::default()), Vec::new());
    loop {
        let step = parser.next(bytes);
        while let Some(bytes) = rewrite.step(&step)? {
            result.extend_from_slice(bytes);
        }
        if matches!(step, Step::More { .. } | Step::End(_)) {
            break;
        }
    }
    while let Some(bytes) = rewrite.finish()? {
        result.extend_from_slice(bytes);
    }
    Ok((result, *rewrite.so_far()))
}

/// An event with all that it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whole {
    provider: String,
    event_id: u32,
    name: String,
    about: String,
    capture_thread: u64,
    thread: u64,
    timestamp: u64,
    stack: Vec<u8>,
    activities: (Guid, Guid),
    sorted: bool,
    payload: Vec<u8>,
}

#[derive(Debug)]
struct Trace {
    version: Version,
    about: String,
    events: Vec<Whole>,
    /// What `Event` says in numbers.
    raw: Vec<Vec<u64>>,
    lost: u64,
    went_back: u64,
    end: End,
}

/// What a type is, however it is written.
fn of_type(field_type: FieldType<'_>) -> String {
    match field_type {
        FieldType::Scalar(scalar) => format!("{scalar:?}"),
        FieldType::Array { kind, element } => format!("{kind:?}[{}]", of_type(element.field_type())),
        FieldType::Object(fields) => {
            let fields = fields.into_iter().map(|f| format!("{}: {}", f.name, of_type(f.field_type)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => panic!("{other:?}"),
    }
}

/// Everything that one sees in a stream, however it is written.
fn read(bytes: &[u8]) -> Trace {
    let mut slots = vec![Slot::default(); 4096];
    let mut loss = Loss::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let mut trace = Trace {
        version: Version::V3,
        about: String::new(),
        events: Vec::new(),
        raw: Vec::new(),
        lost: 0,
        went_back: 0,
        end: End::Complete,
    };
    let (mut metadata, mut stacks) = (HashMap::new(), HashMap::new());
    let (mut threads, mut labels) = (HashMap::new(), HashMap::new());
    let mut forget = 0;
    trace.end = loop {
        let step = parser.next(bytes);
        loss.step(&step);
        match step {
            Step::End(end) => break end,
            Step::More { .. } => break parser.finish(bytes),
            Step::Trace(t) => {
                trace.version = t.version;
                trace.about = format!(
                    "{:?} {} {} {} {:?} {:?} {:?}",
                    t.sync_time,
                    t.sync_ticks,
                    t.frequency,
                    t.pointer_size,
                    t.process_id.unwrap_or_default(),
                    t.processors.unwrap_or_default(),
                    t.sampling_interval.unwrap_or_default()
                );
            }
            Step::Block(_) if forget & 2 != 0 => {
                metadata.clear();
                forget = 0;
            }
            Step::Metadata(record) => {
                let Ok(m) = Metadata::decode(parser.version(), record.payload) else { continue };
                let about = format!(
                    "{} {} {} {:?} {:?}",
                    m.keywords,
                    m.version,
                    m.level,
                    m.opcode.unwrap_or_default(),
                    m.fields
                        .into_iter()
                        .map(|f| (f.name.to_string(), of_type(f.field_type)))
                        .collect::<Vec<_>>()
                );
                let before =
                    metadata.insert(m.id, (m.provider.to_string(), m.event_id, m.name.to_string(), about));
                assert!(before.is_none(), "{} is defined twice", m.id);
            }
            Step::Stack(stack) => drop(stacks.insert(stack.id, stack.bytes.to_vec())),
            Step::Thread(thread) => {
                let _ = threads.insert(thread.index, thread.thread_id().unwrap_or(thread.index));
            }
            Step::LabelList(list) => {
                let mut activities = (Guid::NIL, Guid::NIL);
                for label in list.labels {
                    match label {
                        Label::ActivityId(id) => activities.0 = id,
                        Label::RelatedActivityId(id) => activities.1 = id,
                        _ => {}
                    }
                }
                labels.insert(list.id, activities);
            }
            Step::SequencePoint(point) => {
                stacks.clear();
                labels.clear();
                forget = point.flags;
            }
            Step::Event(event) => {
                let about = metadata.get(&event.metadata_id).cloned().unwrap_or_default();
                let v6 = parser.version() == Version::V6;
                let os = |thread| if v6 { threads[&thread] } else { thread };
                let v3 = parser.version() == Version::V3;
                let stack = if v3 {
                    event.stack.to_vec()
                } else {
                    stacks.get(&event.stack_id).cloned().unwrap_or_default()
                };
                let activities = if v6 {
                    labels.get(&event.label_list).copied().unwrap_or_default()
                } else {
                    (event.activity_id, event.related_activity_id)
                };
                trace.events.push(Whole {
                    provider: about.0,
                    event_id: about.1,
                    name: about.2,
                    about: about.3,
                    capture_thread: os(if v3 { event.thread } else { event.capture_thread }),
                    thread: os(event.thread),
                    timestamp: event.timestamp,
                    stack,
                    activities,
                    sorted: event.sorted,
                    payload: event.payload.to_vec(),
                });
                let Event {
                    metadata_id,
                    sequence,
                    capture_thread,
                    processor,
                    thread,
                    stack_id,
                    label_list,
                    ..
                } = event;
                trace.raw.push(vec![
                    metadata_id.into(),
                    sequence.into(),
                    capture_thread,
                    processor.into(),
                    thread,
                    stack_id.into(),
                    label_list.into(),
                ]);
            }
            _ => {}
        }
    };
    trace.lost = loss.lost();
    trace.went_back = loss.went_back();
    assert_eq!(loss.untracked(), 0);
    trace
}

fn options() -> RewriteOptions<'static> {
    RewriteOptions::default()
}

fn to(version: Version) -> RewriteOptions<'static> {
    let mut options = options();
    options.version = Some(version);
    options
}

/// The events are the same, and so is what was lost.
#[track_caller]
fn same(name: &str, source: &Trace, result: &Trace) {
    assert_eq!(result.about, source.about, "{name}");
    assert_eq!(result.end, End::Complete, "{name}");
    for (at, (result, source)) in result.events.iter().zip(&source.events).enumerate() {
        assert_eq!(result, source, "{name}: event {at}");
    }
    assert_eq!(result.events.len(), source.events.len(), "{name}");
    assert_eq!(result.lost, source.lost, "{name}: lost");
}

#[test]
fn everything_stays_as_it_was() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let (result, said) = rewrite(&bytes, options()).unwrap();
        let result_trace = read(&result);
        same(&name, &source, &result_trace);
        let count = source.events.len() as u64;
        assert_eq!(
            (said.events, said.kept, said.command_lines, said.descriptions),
            (count, count, 0, 0),
            "{name}"
        );
        if source.version != Version::V3 {
            assert_eq!(result_trace.raw, source.raw, "{name}");
            assert_eq!(result_trace.went_back, source.went_back, "{name}");
        }
        if name.starts_with("gen-") && source.version == Version::V4 {
            assert!(result == bytes, "{name} is not as it was");
        }
    }
}

#[test]
fn another_version_says_the_same() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let mut before: Option<Vec<u8>> = None;
        for version in [Version::V6, Version::V4] {
            let (result, said) = rewrite(&bytes, to(version)).unwrap_or_else(|e| panic!("{name}: {e}"));
            let trace = read(&result);
            assert_eq!(trace.version, version, "{name}");
            if said.descriptions == 0 && said.labels == 0 {
                same(&format!("{name} to {version}"), &source, &trace);
            }
            // And there again.
            let (other, _) = rewrite(before.as_ref().unwrap_or(&result), to(version)).unwrap();
            if said.descriptions == 0 && said.labels == 0 {
                same(&format!("{name} to {version} again"), &source, &read(&other));
            }
            before = Some(result);
        }
    }
}

/// Whatever is left out, the rest is as it was, and as much was lost.
#[test]
fn filters() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        let mut kinds: Vec<_> = source.events.iter().map(|e| (e.provider.clone(), e.event_id)).collect();
        kinds.sort();
        kinds.dedup();
        let middle = source.events[source.events.len() / 2].timestamp;
        for version in [Version::V4, Version::V6] {
            for (provider, id) in &kinds {
                for event_id in [None, Some(*id)] {
                    let only = [Only { provider, event_id }];
                    let mut options = to(version);
                    options.only = &only;
                    check(&name, &bytes, &source, options, |e| {
                        e.provider == *provider && event_id.is_none_or(|id| id == e.event_id)
                    });
                }
            }
            let mut options = to(version);
            options.from = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp >= middle);
            options = to(version);
            options.to = middle;
            check(&name, &bytes, &source, options, |e| e.timestamp <= middle);
            let only = [Only { provider: "Nobody", event_id: None }];
            options.only = &only;
            check(&name, &bytes, &source, options, |_| false);
        }
    }
}

fn check(
    name: &str,
    bytes: &[u8],
    source: &Trace,
    options: RewriteOptions<'_>,
    keep: impl Fn(&Whole) -> bool,
) {
    let (result, said) = rewrite(bytes, options).unwrap();
    let trace = read(&result);
    assert_eq!(trace.end, End::Complete, "{name}");
    assert_eq!(trace.lost, source.lost, "{name} {options:?}");
    let want: Vec<_> = source.events.iter().filter(|e| keep(e)).collect();
    assert_eq!(said.kept, want.len() as u64, "{name} {options:?}");
    assert_eq!(trace.events.len(), want.len(), "{name} {options:?}");
    for (got, want) in trace.events.iter().zip(want) {
        if said.descriptions == 0 && said.labels == 0 {
            assert_eq!(got, want, "{name}");
        }
        assert_eq!((&got.payload, got.timestamp, got.thread), (&want.payload, want.timestamp, want.thread));
    }
}

/// The numbers of the events of one thread, and whether as many are lost as before.
fn numbers(
    events: &[(u64, u32, u32)],
    points: &[(u64, u32)],
    only: u32,
    version: Version,
) -> Vec<(u64, u32)> {
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        put!(stream.describe(&metadata(2, 2)));
        for (capture_thread, sequence, metadata_id) in events.iter().copied() {
            put!(stream.event(&Event {
                capture_thread,
                sequence,
                metadata_id,
                sorted: true,
                ..Event::default()
            }));
        }
        put!(stream.sequence_point(&SequencePoint::default()));
        for (thread, sequence) in points.iter().copied() {
            put!(stream.thread_sequence(&ThreadSequence { thread, sequence }));
        }
    });
    let only = [Only { provider: "P", event_id: Some(only) }];
    let mut options = to(version);
    options.only = &only;
    let (result, _) = rewrite(&source, options).unwrap();
    let (before, after) = (read(&source), read(&result));
    assert_eq!(after.lost, before.lost);
    after.raw.iter().map(|raw| (raw[2], u32::try_from(raw[1]).unwrap())).collect()
}

#[test]
fn numbers_close_up_and_losses_stay() {
    let v4 = |events: &[_], points: &[_]| numbers(events, points, 1, Version::V4);
    let v6 = |events: &[_], points: &[_]| numbers(events, points, 1, Version::V6);
    // 3 is left out, 5 and 6 are lost.
    let events = [(7, 1, 1), (7, 2, 1), (7, 3, 2), (7, 4, 1), (7, 7, 1), (7, 8, 1)];
    assert_eq!(v4(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 6), (7, 7)]);
    assert_eq!(v6(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 6), (7, 7)]);
    // What is left out hides a loss: it is told later.
    let events = [(7, 1, 1), (7, 4, 2), (7, 5, 1)];
    assert_eq!(v4(&events, &[(7, 9)]), [(7, 1), (7, 4)]);
    assert_eq!(v6(&events, &[(7, 9)]), [(7, 1), (7, 4)]);
    // A thread that began before the trace: its first number says nothing. In V6 it begins at 1.
    let events = [(7, 100, 2), (7, 102, 1), (7, 103, 1)];
    assert_eq!(v4(&events, &[]), [(7, 100), (7, 102)]);
    assert_eq!(v6(&events, &[]), [(7, 2), (7, 3)]);
    // Another thread has got the id.
    let events = [(7, 8, 1), (7, 9, 1), (7, 1, 1), (7, 3, 1), (7, 1, 2), (7, 3, 1)];
    assert_eq!(v4(&events, &[]), [(7, 8), (7, 9), (7, 1), (7, 3), (7, 5)]);
    assert_eq!(v6(&events, &[]), [(7, 1), (7, 2), (7, 3), (7, 5), (7, 7)]);
    // Nothing of a thread is kept but what it lost: behind its last event, between two of them.
    assert_eq!(v4(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (8, 1, 1)], &[(7, 5)]), [(8, 1)]);
    assert_eq!(v4(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    assert_eq!(v6(&[(7, 1, 2), (7, 5, 2), (8, 1, 1)], &[]), [(8, 1)]);
    // A number that went back, which is no loss.
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 2), (7, 6, 1)], &[]), [(7, 10), (7, 11)]);
    assert_eq!(v4(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[]), [(7, 10), (7, 5), (7, 6)]);
    assert_eq!(v6(&[(7, 10, 1), (7, 5, 1), (7, 6, 1)], &[(7, 3)]), [(7, 1), (7, 2), (7, 3)]);
    // More is lost than can be told at once.
    let (much, more) = (0x7fff_fff0, 0xffff_0000);
    let events = [(7, 1, 1), (7, much, 2), (7, more, 2), (7, more + 1, 1), (7, more + 2, 1)];
    assert_eq!(v4(&events, &[]), [(7, 1), (7, 0x8000_0001), (7, 0xffff_0000)]);
    // Numbers wrap.
    let events = [(7, u32::MAX - 1, 1), (7, u32::MAX, 2), (7, 1, 1), (7, 2, 1)];
    assert_eq!(v4(&events, &[(7, 3)]), [(7, u32::MAX - 1), (7, 1), (7, 2)]);
    // A gap that ends at 1 would be none: it is told later.
    let events = [(7, u32::MAX - 1, 1), (7, 1, 2), (7, 4, 1), (7, 5, 1)];
    assert_eq!(v4(&events, &[]), [(7, u32::MAX - 1), (7, u32::MAX), (7, 2)]);
}

/// The text is nowhere, and everything else is there.
#[test]
fn command_lines_go() {
    for name in [
        "gen-net10-lab-small.nettrace",
        "gen-net10-lab-v3-small.netperf",
        "gen-net9-windows-lab-small.nettrace",
    ] {
        let bytes = trace(name);
        let source = read(&bytes);
        let info = source.events.iter().find(|e| e.provider == "Microsoft-DotNETCore-EventPipe").unwrap();
        let end = info.payload.chunks(2).position(|unit| unit == [0, 0]).unwrap() * 2;
        let secret = &info.payload[..end];
        assert!(secret.len() > 20, "{name}");
        let is_in = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
        for version in [Version::V4, Version::V6] {
            let (kept, said) = rewrite(&bytes, to(version)).unwrap();
            assert!(is_in(&kept) && said.command_lines == 0, "{name}");
            let mut options = to(version);
            options.strip_command_line = true;
            let (result, said) = rewrite(&bytes, options).unwrap();
            assert!(!is_in(&result), "{name}");
            assert_eq!(said.command_lines, 1, "{name}");
            let mut want = source.events.clone();
            for event in &mut want {
                if event.provider == "Microsoft-DotNETCore-EventPipe" {
                    event.payload.drain(..end);
                }
            }
            let trace = read(&result);
            assert_eq!(trace.events, want, "{name}");
            assert_eq!(trace.lost, source.lost);
        }
    }
}

/// In places that no runtime of `testdata/` has it in.
#[test]
fn command_lines_go_wherever_they_are() {
    let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let secret = utf16("--password=1234");
    let strip = |provider: &'static str, event_id, fields: &[(&str, Scalar)], payload: &[u8]| {
        let (mut metadata, mut space) = (metadata(1, event_id), [0; 200]);
        metadata.provider = provider.into();
        metadata.fields = Fields::build(fields, &mut space).unwrap();
        let source = stream!(Version::V6,
            describe(&metadata);
            thread(0, []);
            event(&Event { metadata_id: 1, sequence: 1, payload, ..Event::default() });
        );
        let mut options = options();
        options.strip_command_line = true;
        let (result, said) = rewrite(&source, options).unwrap();
        let payload = read(&result).events.pop().unwrap().payload;
        (payload, said.command_lines)
    };
    let text = Scalar::Utf16String;
    // No stream describes this one.
    let head = [5; 25];
    let tail = [&[9; 16][..], &utf16("/usr/share/dotnet/libcoreclr.so")].concat();
    let payload = [&head[..], &secret, &tail].concat();
    let (got, lines) = strip("Microsoft-Windows-DotNETRuntimeRundown", 187, &[], &payload);
    assert_eq!((got, lines), ([&head[..], &[0, 0], &tail].concat(), 1));
    // The same from another provider is something else.
    assert_eq!(strip("Elsewhere", 187, &[], &payload), (payload.clone(), 0));
    // Behind a string and numbers, whatever the case.
    let fields =
        [("Name", text), ("Id", Scalar::UInt64), ("B", Scalar::Boolean8), ("commandline", text), ("X", text)];
    let name = utf16("a name");
    let payload = [&name[..], &[1; 9], &secret, &name].concat();
    let want = [&name[..], &[1; 9], &[0, 0], &name].concat();
    assert_eq!(strip("Elsewhere", 1, &fields, &payload), (want.clone(), 1));
    // It is gone already.
    assert_eq!(strip("Elsewhere", 1, &fields, &want), (want, 0));
    // Without its end; and not what it says it is.
    let (got, lines) = strip("Elsewhere", 1, &fields, &payload[..name.len() + 9 + 4]);
    assert_eq!((got, lines), ([&name[..], &[1; 9]].concat(), 1));
    assert_eq!(strip("Elsewhere", 1, &fields, &payload[..5]), (vec![], 1));
    // Behind what cannot be passed over.
    let fields = [("n", Scalar::VarUInt), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&[7][..], &secret].concat()), (vec![], 1));
    // Twice, and once as something else.
    let fields = [("CommandLine", Scalar::UInt32), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&[1; 4][..], &secret].concat()), (vec![], 1));
    let fields = [("CommandLine", text), ("CommandLine", text)];
    assert_eq!(strip("Elsewhere", 1, &fields, &[&secret[..], &secret].concat()), (vec![], 1));
}

/// What V4 has no place for is counted.
#[test]
fn what_is_lost_is_told() {
    let bytes = trace("synth-v6-all.nettrace");
    let (_, said) = rewrite(&bytes, to(Version::V6)).unwrap();
    assert_eq!((said.labels, said.pairs, said.thread_entries, said.descriptions), (0, 0, 0, 0));
    let (_, said) = rewrite(&bytes, to(Version::V4)).unwrap();
    assert!(
        said.labels > 0 && said.pairs > 0 && said.thread_entries > 0 && said.descriptions > 0,
        "{said:?}"
    );
}

/// A stream that was cut becomes a whole one, and so does one with a bad block.
#[test]
fn damaged_streams_are_mended() {
    let bytes = trace("gen-net10-lab-small.nettrace");
    for at in (0..bytes.len()).step_by(97) {
        let source = read(&bytes[..at]);
        for version in [Version::V4, Version::V6] {
            let (result, _) = rewrite(&bytes[..at], to(version)).unwrap();
            let trace = read(&result);
            assert_eq!(trace.events, source.events, "cut at {at}");
            assert_eq!(trace.lost, source.lost, "cut at {at}");
            if !source.about.is_empty() {
                assert_eq!(trace.end, End::Complete, "cut at {at}");
                // Whoever holds events back for order lets go of them.
                assert!(points(&result).len() > points(&bytes[..at]).len(), "cut at {at}");
            }
        }
    }
}

/// However small the buffer and the tables, what comes out is right or an error.
#[test]
fn little_room() {
    for (name, bytes) in traces() {
        let source = read(&bytes);
        for version in [Version::V4, Version::V6] {
            for buffer in [0, 3, 4, 100, 300, 1000, 2500, 9999, 70_000, 300_000] {
                match rewrite_with(&bytes, to(version), buffer, 256) {
                    Ok((result, said)) => {
                        let trace = read(&result);
                        assert_eq!(trace.events.len(), source.events.len(), "{name}, {buffer} bytes");
                        assert_eq!(trace.lost, source.lost, "{name}, {buffer} bytes");
                        if said.descriptions == 0 && said.labels == 0 {
                            same(&name, &source, &trace);
                        }
                    }
                    Err(RewriteError::Write(WriteError::BufferTooSmall { needed })) => {
                        assert!(
                            needed > buffer && buffer < 300_000,
                            "{name}: {buffer} bytes, {needed} needed"
                        );
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            match rewrite_with(&bytes, to(version), Writer::BUFFER, 0) {
                Err(RewriteError::TooManyMetadata | RewriteError::TooManyThreads) => {}
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    let refused = rewrite(&[], to(Version::V3));
    assert_eq!(refused, Err(RewriteError::Write(WriteError::Version(Version::V3))));
}

/// What thread sequences a stream has, point by point.
fn points(bytes: &[u8]) -> Vec<Vec<(u64, u32)>> {
    let (mut parser, mut points) = (Parser::new(Limits::default()), Vec::<Vec<_>>::new());
    loop {
        match parser.next(bytes) {
            Step::SequencePoint(_) => points.push(Vec::new()),
            Step::ThreadSequence(row) => points.last_mut().unwrap().push((row.thread, row.sequence)),
            Step::End(_) | Step::More { .. } => return points,
            _ => {}
        }
    }
}

/// How many of the steps of a stream, which is complete, are such.
#[track_caller]
fn count(bytes: &[u8], is_such: impl Fn(&Step<'_>) -> bool) -> usize {
    let (found, end) = picked(bytes, |step| is_such(&step).then_some(()));
    assert_eq!(end, End::Complete);
    found.len()
}

fn metadata(id: u32, event_id: u32) -> Metadata<'static> {
    let mut metadata = Metadata::default();
    (metadata.id, metadata.provider, metadata.event_id) = (id, "p".into(), event_id);
    metadata
}

/// A thread of which nothing is left but what it lost is introduced first, and not with 0: Microsoft's reader would take
/// that for nothing.
#[test]
fn threads_are_introduced() {
    let event = |capture_thread, sequence, metadata_id| Event {
        capture_thread,
        sequence,
        metadata_id,
        sorted: true,
        ..Event::default()
    };
    let row = |thread, sequence| ThreadSequence { thread, sequence };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        event(&event(7, 1, 2));
        event(&event(7, 5, 2));
        event(&event(8, 1, 2));
        event(&event(8, 3, 2));
        event(&event(9, 1, 1));
        sequence_point(&SequencePoint::default());
        thread_sequence(&row(7, 5));
        thread_sequence(&row(9, 1));
    );
    let only = [Only { provider: "p", event_id: Some(1) }];
    for (version, want) in [
        (Version::V4, vec![vec![(7, 1), (9, 1)], vec![(8, 1)], vec![(7, 4), (8, 2)]]),
        (Version::V6, vec![vec![(9, 1)], vec![(7, 3), (8, 1)]]),
    ] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, _) = rewrite(&source, options).unwrap();
        let mut got = points(&result);
        got.iter_mut().for_each(|rows| rows.sort_unstable());
        assert_eq!(got, want, "{version}");
        assert_eq!((read(&result).lost, read(&source).lost), (4, 4));
    }
}

/// What begins anew behind a sequence point does so in the result, or gets other numbers there.
#[test]
fn what_begins_anew() {
    let (a, b) = (Guid([1; 16]), Guid([2; 16]));
    let event = |sequence, timestamp| Event {
        metadata_id: 1,
        sequence,
        timestamp,
        stack_id: 1,
        label_list: 1,
        sorted: true,
        ..Event::default()
    };
    let point = SequencePoint { timestamp: 5, flags: 3, threads: 0 };
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(0, [ThreadEntry::ThreadId(70)]);
        stack(&Stack { id: 1, bytes: &[1; 8] });
        label_list(1, [Label::ActivityId(a)]);
        event(&event(1, 2));
        sequence_point(&point);
        describe(&metadata(1, 2));
        thread(0, [ThreadEntry::ThreadId(80)]);
        stack(&Stack { id: 1, bytes: &[2; 8] });
        label_list(1, [Label::ActivityId(b)]);
        event(&event(1, 6));
        sequence_point(&SequencePoint { timestamp: 7, ..SequencePoint::default() });
        stack(&Stack { id: 1, bytes: &[3; 8] });
        label_list(1, [Label::ActivityId(b), Label::RelatedActivityId(a)]);
        event(&event(2, 8));
        sequence_point(&point);
        describe(&metadata(1, 3));
        thread(0, [ThreadEntry::ThreadId(80)]);
        // No list of labels is there, so it points to none.
        event(&event(1, 9));
    );
    let before = read(&source);
    let ids: Vec<_> = before.events.iter().map(|e| (e.event_id, e.thread, e.activities)).collect();
    let none = (Guid::NIL, Guid::NIL);
    assert_eq!(ids, [(1, 70, (a, Guid::NIL)), (2, 80, (b, Guid::NIL)), (2, 80, (b, a)), (3, 80, none)]);
    let (v4, _) = rewrite(&source, to(Version::V4)).unwrap();
    same("V6 to V4", &before, &read(&v4));
    let (v6, _) = rewrite(&v4, to(Version::V6)).unwrap();
    same("V6 to V4 to V6", &before, &read(&v6));
    let (v6, _) = rewrite(&source, to(Version::V6)).unwrap();
    assert!(v6 == source);
    for id in 1..=4 {
        let only = [Only { provider: "p", event_id: Some(id) }];
        for version in [Version::V4, Version::V6] {
            let options = RewriteOptions { only: &only, version: Some(version), ..options() };
            check("V6", &source, &before, options, |event| event.event_id == id);
        }
    }
    // The same activity on both sides of a sequence point.
    let event =
        |sequence| Event { metadata_id: 1, sequence, activity_id: a, sorted: true, ..Event::default() };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&event(1));
        sequence_point(&SequencePoint::default());
        event(&event(2));
    );
    let (v6, _) = rewrite(&source, to(Version::V6)).unwrap();
    same("V4 to V6", &read(&source), &read(&v6));
}

fn numbered(capture_thread: u64, sequence: u32, metadata_id: u32) -> Event<'static> {
    Event { capture_thread, thread: capture_thread, sequence, metadata_id, sorted: true, ..Event::default() }
}

/// A sequence point that makes threads begin anew is the last place to tell what they lost, whether or not the source
/// says anything of them there.
#[test]
fn losses_are_told_before_threads_are_forgotten() {
    let point = SequencePoint { timestamp: 5, flags: SequencePoint::FLUSH_THREADS, threads: 0 };
    let flushed = stream!(Version::V6,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        thread(0, [ThreadEntry::ThreadId(70)]);
        thread(1, [ThreadEntry::ThreadId(71)]);
        event(&numbered(0, 1, 1));
        event(&numbered(0, 5, 2));
        event(&numbered(1, 3, 2));
        sequence_point(&point);
        thread_sequence(&ThreadSequence { thread: 1, sequence: 4 });
    );
    let more = stream!(Version::V6,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        thread(0, [ThreadEntry::ThreadId(70)]);
        event(&numbered(0, 5, 2));
        sequence_point(&point);
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 2, 2));
        event(&numbered(0, 3, 1));
        sequence_point(&point);
    );
    // The last four bytes are the end mark.
    let cut = &flushed[..flushed.len() - 4];
    for (source, lost, rows) in [
        (&flushed[..], 6, vec![vec![(0, 4), (1, 3)]]),
        (cut, 6, vec![vec![(0, 4), (1, 3)], vec![]]),
        (&more, 5, vec![vec![(0, 4)], vec![]]),
    ] {
        let before = read(source);
        assert_eq!(before.lost, lost);
        let only = [Only { provider: "p", event_id: Some(1) }];
        let options = RewriteOptions { only: &only, ..options() };
        check("flush", source, &before, options, |event| event.event_id == 1);
        let mut got = points(&rewrite(source, options).unwrap().0);
        got.iter_mut().for_each(|rows| rows.sort_unstable());
        assert_eq!(got, rows);
    }
}

/// Blocks end where they did, but where something is left out or the version is another, they are as long as they may be.
#[test]
fn blocks_close_up() {
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for sequence in 1..=3 {
            put!(stream.event(&Event { timestamp: sequence.into(), ..numbered(7, sequence, 1) }));
            stream.flush();
        }
    });
    let blocks = |bytes: &[u8]| {
        assert_eq!(count(bytes, |step| matches!(step, Step::Event(_))), 3);
        count(bytes, |step| matches!(step, Step::Block(block) if block.kind == BlockKind::Event))
    };
    assert_eq!(blocks(&source), 3);
    let only = [Only { provider: "p", event_id: None }];
    for (options, want) in [
        (options(), 3),
        (to(Version::V4), 3),
        (to(Version::V6), 1),
        (RewriteOptions { only: &only, ..options() }, 1),
        (RewriteOptions { from: 1, ..options() }, 1),
        (RewriteOptions { to: 3, ..options() }, 1),
    ] {
        assert_eq!(blocks(&rewrite(&source, options).unwrap().0), want, "{options:?}");
    }
}

/// A record that cannot be read at all goes only where it can go as it is; events that nothing describes stay, unless
/// only some are wanted.
#[test]
fn what_is_not_described() {
    for version in [Version::V4, Version::V6] {
        let record = Event { payload: &[1], processor: 3, ..Event::default() };
        let source = if version == Version::V4 {
            stream!(version,
                metadata(&record);
                event(&numbered(7, 1, 9));
            )
        } else {
            stream!(version,
                metadata(&record);
                thread(7, [ThreadEntry::ThreadId(7)]);
                event(&numbered(7, 1, 9));
            )
        };
        let records = |bytes: &[u8]| {
            let records = descriptions(bytes).into_iter();
            records.map(|record| (record.payload.to_vec(), record.processor)).collect::<Vec<_>>()
        };
        let processor = if version == Version::V4 { 3 } else { 0 };
        assert_eq!(records(&source), [(vec![1], processor)]);
        let only = [Only { provider: "p", event_id: None }];
        for to in [Version::V4, Version::V6] {
            let mut options = self::to(to);
            let (result, said) = rewrite(&source, options).unwrap();
            let want = if to == version { vec![(vec![1], processor)] } else { vec![] };
            assert_eq!((records(&result), said.descriptions), (want, u64::from(to != version)));
            assert_eq!((said.kept, read(&result).events.len()), (1, 1), "{version} to {to}");
            options.only = &only;
            let (result, said) = rewrite(&source, options).unwrap();
            assert_eq!((records(&result), said.descriptions, said.kept), (vec![], 1, 0), "{version} to {to}");
        }
    }
}

/// A description that V4 has room for and V6 has not: its event is there, and what it is called.
#[test]
fn fields_that_are_too_many() {
    for (fields, want) in [(16_000, 16_000), (17_000, 0), (70_000, 0)] {
        let field = [&9u32.to_le_bytes()[..], &[0; 2]].concat();
        let head = [&[1, 0, 0, 0, b'p', 0, 0, 0, 7, 0, 0, 0, b'n', 0, 0, 0][..], &[0; 16]].concat();
        let payload =
            [head, u32::to_le_bytes(fields).to_vec(), field.repeat(fields.try_into().unwrap())].concat();
        let (mut buf, mut source) = (vec![0; 0x20_0000], Vec::new());
        let mut writer = Writer::new(Version::V4, &mut buf).unwrap();
        assert_eq!(writer.trace(&ipc_proto::nettrace::Trace::new(Version::V4)), Ok(None));
        assert_eq!(writer.metadata(&Event { payload: &payload, ..Event::default() }), Ok(None));
        assert_eq!(writer.event(&numbered(7, 1, 1)), Ok(None));
        while let Some(bytes) = writer.finish() {
            source.extend_from_slice(bytes);
        }
        let (result, said) = rewrite(&source, to(Version::V6)).unwrap();
        assert_eq!((said.kept, said.descriptions), (1, u64::from(want == 0)), "{fields}");
        let metadata = Metadata::decode(Version::V6, descriptions(&result)[0].payload).unwrap();
        assert_eq!((metadata.provider, metadata.name), ("p".into(), "n".into()));
        assert_eq!((metadata.fields.len(), metadata.problem), (want, None));
    }
}

/// The processor of a metadata record stays; V3 says none.
#[test]
fn processors_of_descriptions() {
    let mut v3 = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\0\0\0\0\x05\0\0\0Trace\x06".to_vec();
    v3.extend([0; 48]);
    v3.extend(b"\x06\x04\x04\x01\x01\0\0\0\0\0\0\0\x0a\0\0\0EventBlock\x06");
    // An id, no provider, an event's id, no name, and four numbers.
    let payload = [&[1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0][..], &[0; 16]].concat();
    let blob =
        [&[0; 48][..], &u32::try_from(payload.len()).unwrap().to_le_bytes(), &payload, &[0; 4]].concat();
    v3.extend(u32::try_from(blob.len() + 4).unwrap().to_le_bytes());
    v3.resize(v3.len().next_multiple_of(4), 0);
    v3.extend(u32::try_from(blob.len()).unwrap().to_le_bytes());
    v3.extend(&blob);
    v3.extend([6, 1]);
    let v4 = stream!(Version::V4,
        metadata(&Event { payload: &payload, processor: 3, ..Event::default() });
    );
    for (source, want) in [(v3, Event::UNKNOWN_PROCESSOR), (v4, 3)] {
        let (result, said) = rewrite(&source, to(Version::V4)).unwrap();
        assert_eq!(said.descriptions, 0);
        let record = descriptions(&result)[0];
        assert_eq!((record.payload, record.processor), (&payload[..], want));
    }
}

/// Points that are added are of the time of the last event.
#[test]
fn points_that_are_added() {
    let event = |sequence, timestamp| Event { timestamp, ..numbered(7, sequence, 1) };
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&event(1, 50));
        event(&event(4, 70));
        event(&event(5, 60));
    );
    let times = |bytes: &[u8]| {
        let (times, end) = picked(bytes, |step| match step {
            Step::SequencePoint(point) => Some(point.timestamp),
            _ => None,
        });
        assert_eq!(end, End::Complete);
        times
    };
    assert!(times(&rewrite(&source, options()).unwrap().0).is_empty());
    // Without its end.
    assert_eq!(times(&rewrite(&source[..source.len() - 1], options()).unwrap().0), [70]);
    // Where a loss is still to be told, of a thread that has to be introduced.
    let only = [Only { provider: "Nobody", event_id: None }];
    let options = RewriteOptions { only: &only, ..options() };
    assert_eq!(times(&rewrite(&source, options).unwrap().0), [70, 70]);
}

/// Activities that take turns have one list of labels each.
#[test]
fn one_list_for_the_same_activities() {
    let of = |activity: u8, related: u8| {
        let id = |n: u8| if n == 0 { Guid::NIL } else { Guid([n; 16]) };
        (id(activity), id(related))
    };
    let pairs = [of(1, 0), of(2, 0), of(0, 1), of(1, 2), of(2, 1), of(1, 1)];
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for (sequence, (activity_id, related_activity_id)) in (1..=60).zip(pairs.into_iter().cycle()) {
            put!(stream.event(&Event { activity_id, related_activity_id, ..numbered(7, sequence, 1) }));
        }
    });
    let (result, _) = rewrite(&source, to(Version::V6)).unwrap();
    same("V4 to V6", &read(&source), &read(&result));
    assert_eq!(count(&result, |step| matches!(step, Step::LabelList(_))), pairs.len());
}

/// What V4 has no place for, item by item.
#[test]
fn what_is_lost_is_counted() {
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(7, [ThreadEntry::Name("n".into()), ThreadEntry::ThreadId(70), ThreadEntry::ProcessId(1)]);
        thread(8, [ThreadEntry::ThreadId(80), ThreadEntry::Pair("k".into(), "v".into())]);
        label_list(1, [Label::ActivityId(Guid([1; 16])), Label::Opcode(1), Label::Level(2)]);
        label_list(2, [Label::RelatedActivityId(Guid([1; 16])), Label::Keywords(3)]);
        event(&numbered(7, 1, 1));
    );
    let (_, said) = rewrite(&source, to(Version::V4)).unwrap();
    assert_eq!((said.thread_entries, said.labels, said.label_lists, said.pairs), (3, 3, 0, 0));
    let (_, said) = rewrite(&source, to(Version::V6)).unwrap();
    assert_eq!((said.thread_entries, said.labels, said.label_lists, said.pairs), (0, 0, 0, 0));
}

#[test]
fn errors_have_their_source() {
    use core::error::Error;
    let error = RewriteError::from(WriteError::Misplaced);
    assert_eq!(error.source().unwrap().to_string(), WriteError::Misplaced.to_string());
    assert!(RewriteError::TooManyThreads.source().is_none());
}

/// A thread may be known by a sequence point alone: its numbers go on from there.
#[test]
fn known_by_a_sequence_point() {
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        event(&numbered(6, 1, 1));
        sequence_point(&SequencePoint::default());
        thread_sequence(&ThreadSequence { thread: 5, sequence: 100 });
        thread_sequence(&ThreadSequence { thread: 6, sequence: 1 });
        event(&numbered(5, 103, 1));
    );
    let before = read(&source);
    assert_eq!(before.lost, 2);
    assert!(rewrite(&source, options()).unwrap().0 == source);
    same("to V6", &before, &read(&rewrite(&source, to(Version::V6)).unwrap().0));
}

/// Of a thread that lost nothing and of which no event is kept, nothing need be said.
#[test]
fn threads_left_out() {
    let source = stream!(Version::V4,
        describe(&metadata(1, 1));
        describe(&metadata(2, 2));
        event(&numbered(7, 1, 2));
        event(&numbered(8, 1, 1));
        event(&numbered(7, 2, 2));
    );
    let only = [Only { provider: "p", event_id: Some(1) }];
    for version in [Version::V4, Version::V6] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, _) = rewrite(&source, options).unwrap();
        assert_eq!(points(&result), Vec::<Vec<_>>::new(), "{version}");
        let threads =
            picked(&result, |step| if let Step::Thread(thread) = step { Some(thread.index) } else { None });
        assert_eq!(threads, (if version == Version::V6 { vec![8] } else { vec![] }, End::Complete));
    }
}

/// As many as can be told from a number that went back.
#[test]
fn the_most_that_can_be_lost() {
    for (gap, lost) in [(0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0)] {
        let source = stream!(Version::V4,
            describe(&metadata(1, 1));
            event(&numbered(7, 1, 1));
            event(&numbered(7, 2 + gap, 1));
        );
        for version in [Version::V4, Version::V6] {
            let (result, _) = rewrite(&source, to(version)).unwrap();
            assert_eq!((read(&source).lost, read(&result).lost), (lost, lost), "{version}");
        }
    }
}

/// An index may be given to another thread, or to the same once more, without a word of its end: numbers begin anew.
#[test]
fn an_index_given_again_counts_anew() {
    let source = stream!(Version::V6,
        describe(&metadata(1, 1));
        thread(0, [ThreadEntry::ThreadId(70)]);
        event(&numbered(0, 1, 1));
        event(&numbered(0, 2, 1));
        sequence_point(&SequencePoint::default());
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 3, 1));
        sequence_point(&SequencePoint::default());
        thread(0, [ThreadEntry::ThreadId(80)]);
        event(&numbered(0, 1, 1));
    );
    let before = read(&source);
    assert_eq!(before.lost, 2);
    for version in [Version::V4, Version::V6] {
        same(&version.to_string(), &before, &read(&rewrite(&source, to(version)).unwrap().0));
    }
}

/// From V6 to V4, a thread that has ended takes no slot, unless something it lost is still to be told.
#[test]
fn threads_that_ended_make_room() {
    let threads = 3000;
    let source = |lost_by: &dyn Fn(u64) -> u32| {
        written(Version::V6, |stream| {
            put!(stream.describe(&metadata(1, 1)));
            for thread in 1..=threads {
                put!(stream.thread(thread, [ThreadEntry::ThreadId(thread + 10)]));
                put!(stream.event(&numbered(thread, 1, 1)));
                let sequence = 1 + lost_by(thread);
                put!(stream.remove_thread(&ThreadSequence { thread, sequence }));
            }
        })
    };
    let bytes = source(&|thread| u32::from(thread % 50 == 0));
    let before = read(&bytes);
    assert_eq!(before.lost, 60);
    let (result, _) = rewrite(&bytes, to(Version::V4)).unwrap();
    same("V6 to V4", &before, &read(&result));
    let (result, said) = rewrite(&source(&|_| 0), to(Version::V4)).unwrap();
    assert_eq!((said.kept, read(&result).lost), (threads, 0));
    assert_eq!(rewrite(&source(&|_| 1), to(Version::V4)), Err(RewriteError::TooManyThreads));
}

/// However many threads have nothing left but what they lost, it does not take forever.
#[test]
fn many_threads_that_lost() {
    let threads = 50_000;
    let source = written(Version::V4, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        for thread in 1..=threads {
            put!(stream.event(&numbered(thread, 1, 1)));
            put!(stream.event(&numbered(thread, 3, 1)));
        }
    });
    let only = [Only { provider: "Nobody", event_id: None }];
    for version in [Version::V4, Version::V6] {
        let options = RewriteOptions { only: &only, version: Some(version), ..options() };
        let (result, said) = rewrite_with(&source, options, 1 << 21, 1 << 16).unwrap();
        assert_eq!((said.events, said.kept), (2 * threads, 0));
        let mut slots = vec![Slot::default(); 1 << 16];
        let mut loss = Loss::new(&mut slots);
        let (_, end) = picked(&result, |step| Some(loss.step(&step)));
        assert_eq!(end, End::Complete);
        assert_eq!((loss.lost(), loss.went_back(), loss.untracked()), (threads, 0, 0), "{version}");
    }
}

/// Lists of labels that there is no slot for are counted, and are no labels that V4 has no place for.
#[test]
fn lists_of_labels_without_room() {
    let source = written(Version::V6, |stream| {
        put!(stream.describe(&metadata(1, 1)));
        put!(stream.thread(7, [ThreadEntry::ThreadId(7)]));
        for id in 1..=1000 {
            put!(stream.label_list(id, [Label::ActivityId(Guid([1; 16]))]));
            put!(stream.event(&Event { label_list: id, ..numbered(7, id, 1) }));
        }
    });
    // Of 1024 slots an eighth stays free.
    let (result, said) = rewrite(&source, to(Version::V4)).unwrap();
    assert_eq!((said.kept, said.label_lists, said.labels), (1000, 104, 0));
    let with = read(&result).events.iter().filter(|event| event.activities.0 == Guid([1; 16])).count();
    assert_eq!(with, 896);
}
