//! Recordings for tests.
use std::collections::BTreeMap;

use ipc_proto::types::{EventLevel, Provider};
use ipc_proto::{Code, Guid};
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{
    Event, Fields, Label, Metadata, Scalar, SequencePoint, Stack, ThreadEntry, ThreadSequence, Trace,
    TraceWriter, Version,
};

/// Returns a provider with all its events.
pub(crate) const fn all(name: &str) -> Provider<'_> {
    Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: ipc_proto::Text::new(name),
        arguments: ipc_proto::Text::new(""),
    }
}

pub(crate) const APP: [Provider<'_>; 1] = [all("App")];
pub(crate) const MS: u64 = 1_000_000;

/// A kind of event: provider, id, keywords and level.
pub(crate) type Kind<'k> = (&'k str, u32, u64, u32);
/// An event: index of the kind, capture thread, sequence number and milliseconds.
pub(crate) type RecordedEvent = (usize, u64, u32, u64);

/// Writes a recording with these events, each with the stack of its capture thread. It ends with the sequence numbers
/// that threads had reached.
pub(crate) fn recording(
    version: Version,
    kinds: &[Kind<'_>],
    events: &[RecordedEvent],
    sequences: &[(u64, u32)],
) -> Vec<u8> {
    let (mut out, mut buf, mut space) = (Vec::new(), vec![0; TraceWriter::BUFFER], [0; 32]);
    let frequency = 1_000_000; // in microseconds, so that the replay must convert them
    let trace = Trace { frequency, ..Trace::new(version) };
    let mut writer = TraceWriter::new(&trace, &mut buf).unwrap();
    let fields = Fields::build(&[("Number", Scalar::UInt32)], &mut space).unwrap();
    macro_rules! write {
        ($call:expr) => {
            out.extend_from_slice(&$call.unwrap())
        };
    }
    for (at, (provider, event_id, keywords, level)) in kinds.iter().enumerate() {
        let mut kind = Metadata::new(at as u32 + 1, provider, *event_id, "");
        (kind.keywords, kind.level, kind.fields) = (*keywords, *level, fields);
        write!(writer.describe(&kind));
    }
    let mut stacks = BTreeMap::new();
    for (kind, thread, sequence, ms) in events {
        let next = stacks.len() as u32 + 1;
        let stack_id = *stacks.entry(*thread).or_insert(next);
        if stack_id == next {
            write!(writer.stack(&Stack { id: stack_id, bytes: &(thread * 16).to_le_bytes() }));
        }
        let event = Event {
            metadata_id: *kind as u32 + 1,
            sequence: *sequence,
            capture_thread: *thread,
            thread: *thread,
            stack_id,
            timestamp: 5_000_000 + ms * 1000,
            sorted: true,
            payload: &sequence.to_le_bytes(),
            ..Event::default()
        };
        write!(writer.event(&event));
    }
    if !sequences.is_empty() {
        write!(writer.sequence_point(&SequencePoint { timestamp: 6_000_000, ..SequencePoint::default() }));
        for (thread, sequence) in sequences {
            write!(writer.thread_sequence(&ThreadSequence { thread: *thread, sequence: *sequence }));
        }
    }
    out.extend_from_slice(&writer.finish());
    out
}

/// Starts a runtime that replays this recording, whichever command starts the session.
pub(crate) fn replaying(profile: Profile, recording: &[u8]) -> FakeRuntime {
    let runtime = FakeRuntime::start(profile).unwrap();
    for code in 0x0202..=0x0207 {
        let recording = recording.to_vec();
        runtime.on(Code(code), move |_| Response::Replay(recording.clone()));
    }
    runtime
}

/// Returns a recording of two threads that alternate.
pub(crate) fn alternating(version: Version) -> Vec<u8> {
    let events = [(0, 7, 1, 0), (0, 9, 1, 10), (1, 7, 2, 20), (1, 9, 2, 30), (0, 7, 3, 40)];
    recording(version, &[("App", 1, 0, 4), ("App", 2, 0, 4)], &events, &[])
}

/// Returns a V6 recording of one thread. The thread sends one event of an activity, loses three events, and ends.
pub(crate) fn with_activity() -> Vec<u8> {
    let (mut out, mut buf) = (Vec::new(), vec![0; TraceWriter::BUFFER]);
    let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buf).unwrap();
    macro_rules! write {
        ($call:expr) => {
            out.extend_from_slice(&$call.unwrap())
        };
    }
    write!(writer.describe(&Metadata::new(1, "App", 1, "")));
    write!(writer.thread(1, [ThreadEntry::ThreadId(4242)]));
    write!(writer.label_list(1, [Label::ActivityId(Guid([7; 16])), Label::RelatedActivityId(Guid([8; 16]))]));
    let event = Event {
        metadata_id: 1,
        sequence: 1,
        capture_thread: 1,
        thread: 1,
        label_list: 1,
        ..Event::default()
    };
    write!(writer.event(&event));
    write!(writer.remove_thread(&ThreadSequence { thread: 1, sequence: 4 }));
    out.extend_from_slice(&writer.finish());
    out
}

/// The number of events in a round of [`flood`].
pub(crate) const FLOOD: u32 = 80;

/// Returns a recording of 16 MB, more than the buffer of any socket, with events that are longer than those of a
/// runtime.
pub(crate) fn flood() -> Vec<u8> {
    let (mut out, mut buf) = (Vec::new(), vec![0; 2 * TraceWriter::BUFFER]);
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let payload = vec![0; 200_000];
    out.extend_from_slice(&writer.describe(&Metadata::new(1, "App", 0, "")).unwrap());
    for sequence in 1..=FLOOD {
        let event = Event { metadata_id: 1, sequence, payload: &payload, ..Event::default() };
        out.extend_from_slice(&writer.event(&event).unwrap());
    }
    out.extend_from_slice(&writer.finish());
    out
}
