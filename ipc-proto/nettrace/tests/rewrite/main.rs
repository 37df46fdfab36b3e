//! `Rewrite` keeps and removes the selected events, and reports the losses of the source.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects by unwrapping it"
)]

#[path = "../steps/mod.rs"]
mod steps;
#[path = "../stream/mod.rs"]
mod stream;

mod streams;
mod threads;

use std::collections::HashMap;

use ipc_proto::Guid;
use nettrace::{
    BlockKind, End, Event, EventSelector, FieldType, Fields, Label, Limits, LossCounter, Metadata, Parser,
    Record, Rewrite, RewriteCounts, RewriteError, RewriteOptions, RewriteSpace, Scalar, SequencePoint, Slot,
    Stack, ThreadEntry, ThreadSequence, TraceWriter, Version, WriteError,
};
use steps::picked;
use stream::{descriptions, put, stream, written};

fn traces() -> Vec<(String, Vec<u8>)> {
    ipc_testdata::TRACES.iter().map(|trace| (trace.name.to_owned(), trace.bytes.to_vec())).collect()
}

/// Returns the trace with this name.
fn trace(name: &str) -> Vec<u8> {
    traces().into_iter().find(|(of, _)| of == name).unwrap().1
}

fn rewrite(bytes: &[u8], options: RewriteOptions<'_>) -> Result<(Vec<u8>, RewriteCounts), RewriteError> {
    rewrite_with(bytes, options, TraceWriter::BUFFER, 1024)
}

fn rewrite_with(
    bytes: &[u8],
    options: RewriteOptions<'_>,
    buffer: usize,
    slots: usize,
) -> Result<(Vec<u8>, RewriteCounts), RewriteError> {
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
        result.extend_from_slice(&rewrite.record(&step)?);
        if matches!(step, Record::More { .. } | Record::End(_)) {
            break;
        }
    }
    let (counts, mut end) = (*rewrite.counts(), rewrite.finish());
    while let Some(bytes) = end.next_bytes()? {
        result.extend_from_slice(&bytes);
    }
    Ok((result, counts))
}

/// An event with the records that it refers to.
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
    /// The numbers of each `Event`.
    raw: Vec<Vec<u64>>,
    lost: u64,
    went_back: u64,
    end: End,
}

/// Describes a type independent of its encoding.
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

/// Reads the content of a stream independent of its version.
fn read(bytes: &[u8]) -> Trace {
    let mut slots = vec![Slot::default(); 4096];
    let mut loss = LossCounter::new(&mut slots);
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
    let unknown = Event::UNKNOWN_THREAD;
    let mut forget = 0;
    trace.end = loop {
        let step = parser.next(bytes);
        loss.record(&step);
        match step {
            Record::End(end) => break end,
            Record::More { .. } => break parser.finish(bytes),
            Record::Trace(t) => {
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
            Record::Block(_) if forget != 0 => {
                if forget & SequencePoint::FLUSH_METADATA != 0 {
                    metadata.clear();
                }
                if forget & SequencePoint::FLUSH_THREADS != 0 {
                    threads.clear();
                }
                forget = 0;
            }
            Record::Metadata(record) => {
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
            Record::Stack(stack) => drop(stacks.insert(stack.id, stack.bytes.to_vec())),
            Record::RemoveThread(row) => drop(threads.remove(&row.thread)),
            Record::Thread(thread) => {
                let _ = threads.insert(thread.index, thread.thread_id().unwrap_or(unknown));
            }
            Record::LabelList(list) => {
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
            Record::SequencePoint(point) => {
                stacks.clear();
                labels.clear();
                forget = point.flags;
            }
            Record::Event(event) => {
                let about = metadata.get(&event.metadata_id).cloned().unwrap_or_default();
                let v6 = parser.version() == Version::V6;
                let os = |thread| if v6 { threads.get(&thread).copied().unwrap_or(unknown) } else { thread };
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
                    capture_thread: if v3 { event.thread } else { event.capture_thread },
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
    trace.lost = loss.losses().lost;
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

/// Asserts that both traces have the same events and losses.
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

/// Returns the thread sequences of each sequence point of a stream.
fn points(bytes: &[u8]) -> Vec<Vec<(u64, u32)>> {
    let (mut parser, mut points) = (Parser::new(Limits::default()), Vec::<Vec<_>>::new());
    loop {
        match parser.next(bytes) {
            Record::SequencePoint(_) => points.push(Vec::new()),
            Record::ThreadSequence(row) => points.last_mut().unwrap().push((row.thread, row.sequence)),
            Record::End(_) | Record::More { .. } => return points,
            _ => {}
        }
    }
}

/// Returns the number of records of a complete stream that match.
#[track_caller]
fn count(bytes: &[u8], is_such: impl Fn(&Record<'_>) -> bool) -> usize {
    let (found, end) = picked(bytes, |step| is_such(&step).then_some(()));
    assert_eq!(end, End::Complete);
    found.len()
}

fn metadata(id: u32, event_id: u32) -> Metadata<'static> {
    Metadata::new(id, "p", event_id, "")
}

fn check(
    name: &str,
    bytes: &[u8],
    source: &Trace,
    options: RewriteOptions<'_>,
    keep: impl Fn(&Whole) -> bool,
) {
    let (result, report) = rewrite(bytes, options).unwrap();
    let trace = read(&result);
    assert_eq!(trace.end, End::Complete, "{name}");
    assert_eq!(trace.lost, source.lost, "{name} {options:?}");
    let want: Vec<_> = source.events.iter().filter(|e| keep(e)).collect();
    assert_eq!(report.kept, want.len() as u64, "{name} {options:?}");
    assert_eq!(trace.events.len(), want.len(), "{name} {options:?}");
    for (got, want) in trace.events.iter().zip(want) {
        if report.descriptions == 0 && report.labels == 0 {
            assert_eq!(got, want, "{name}");
        }
        assert_eq!((&got.payload, got.timestamp, got.thread), (&want.payload, want.timestamp, want.thread));
    }
}
