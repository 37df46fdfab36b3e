//! What a `FakeRuntime` streams is what a reader of any make may expect of a runtime.
#![cfg(feature = "fake")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

mod peer;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ipc_proto::nettrace::{
    End, Event, Fields, Item, Label, Limits, Loss, Metadata, Parser, Scalar, SequencePoint, Slot, Stack,
    Step, ThreadEntry, ThreadSequence, Trace, Value, Version, Writer,
};
use ipc_proto::types::{EventFilter, EventLevel, Format, Provider, SessionBufferMode};
use ipc_proto::{Array, Code, CollectTracing, CollectTracing2, Guid};
use ipc_std::fake::{FakeRuntime, Fault, Profile, Response};
use ipc_std::{Client, Connection, Timeouts, TraceConfig, TraceReader, TraceSession};

use peer::{connect, pair};

/// Everything of it.
const fn all(name: &str) -> Provider<'_> {
    Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: ipc_proto::Text::new(name),
        arguments: ipc_proto::Text::new(""),
    }
}

const APP: [Provider<'_>; 1] = [all("App")];
const MS: u64 = 1_000_000;

/// A kind of event: provider, id, keywords, level.
type Kind<'k> = (&'k str, u32, u64, u32);
/// An event: which kind, capture thread, its number there, milliseconds.
type Made = (usize, u64, u32, u64);

/// A recording with these events, each with a stack of its capture thread, and with what threads had counted to.
fn recording(version: Version, kinds: &[Kind<'_>], events: &[Made], counted: &[(u64, u32)]) -> Vec<u8> {
    let (mut out, mut buf, mut space) = (Vec::new(), vec![0; Writer::BUFFER], [0; 32]);
    let mut writer = Writer::new(version, &mut buf).unwrap();
    let fields = Fields::build(&[("Number", Scalar::UInt32)], &mut space).unwrap();
    macro_rules! write {
        ($call:expr) => {
            while let Some(bytes) = $call.unwrap() {
                out.extend_from_slice(bytes);
            }
        };
    }
    let frequency = 1_000_000; // of microseconds, so that they have to be counted anew
    write!(writer.trace(&Trace { frequency, ..Trace::new(version) }));
    for (at, (provider, event_id, keywords, level)) in kinds.iter().enumerate() {
        let mut kind = Metadata::default();
        (kind.id, kind.provider, kind.event_id) = (at as u32 + 1, (*provider).into(), *event_id);
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
    if !counted.is_empty() {
        write!(writer.sequence_point(&SequencePoint { timestamp: 6_000_000, ..SequencePoint::default() }));
        for (thread, sequence) in counted {
            write!(writer.thread_sequence(&ThreadSequence { thread: *thread, sequence: *sequence }));
        }
    }
    while let Some(bytes) = writer.finish() {
        out.extend_from_slice(bytes);
    }
    out
}

/// A runtime that replays this, whichever command starts the session.
fn replaying(profile: Profile, recording: &[u8]) -> FakeRuntime {
    let runtime = FakeRuntime::start(profile).unwrap();
    for code in 0x0202..=0x0207 {
        let recording = recording.to_vec();
        runtime.on(Code(code), move |_| Response::Replay(recording.clone()));
    }
    runtime
}

/// An event as a reader has it.
#[derive(Debug, Clone, PartialEq)]
struct Read1 {
    provider: String,
    id: u32,
    thread: u64,
    sequence: u32,
    timestamp: u64,
    stack: Vec<u8>,
    payload: Vec<u8>,
    /// Sequence points before it.
    round: usize,
}

#[derive(Debug)]
struct Whole {
    events: Vec<Read1>,
    points: Vec<SequencePoint>,
    lost: u64,
    end: End,
    sync: (u64, u64),
    process_id: Option<u32>,
    pointer_size: u32,
    kinds: usize,
}

impl Whole {
    fn of(&self, provider: &str) -> Vec<&Read1> {
        self.events.iter().filter(|event| event.provider == provider).collect()
    }
    fn ids(&self, provider: &str) -> BTreeSet<u32> {
        self.of(provider).iter().map(|event| event.id).collect()
    }
}

/// Reads a stream, and checks what has to be true of any of a runtime: what is pointed to is there and was not there
/// already, threads count, and the flag of sorted events and the sequence points keep what they promise.
fn parse(stream: &[u8]) -> Whole {
    let mut parser = Parser::new(Limits::default());
    let (mut kinds, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    let mut slots = [Slot::default(); 64];
    let mut loss = Loss::new(&mut slots);
    let mut whole = Whole {
        events: Vec::new(),
        points: Vec::new(),
        lost: 0,
        end: End::Complete,
        sync: (0, 0),
        process_id: None,
        pointer_size: 0,
        kinds: 0,
    };
    let (mut oldest, mut newest, mut before) = (0, 0, None);
    loop {
        let step = parser.next(stream);
        loss.step(&step);
        match step {
            Step::Trace(trace) => {
                assert_eq!((trace.version, trace.frequency), (Version::V4, 1_000_000_000));
                let time = trace.sync_time;
                assert!(
                    time.month <= 12 && time.day <= 31 && time.millisecond < 1000 && time.day_of_week < 7,
                    "{time:?}"
                );
                // Enough to tell a day that is not today's.
                let days =
                    [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][usize::from(time.month) - 1];
                let leap = u64::from(time.year % 4 == 0 && time.month > 2);
                let years = u64::from(time.year) - 1970;
                let day = years * 365 + (years + 1) / 4 + days + leap + u64::from(time.day) - 1;
                let second =
                    u64::from(time.hour) * 3600 + u64::from(time.minute) * 60 + u64::from(time.second);
                whole.sync = (day * 86400 + second, trace.sync_ticks);
                (whole.process_id, whole.pointer_size) = (trace.process_id, trace.pointer_size);
                assert_eq!(u64::from(time.day_of_week), (day + 4) % 7, "1970 began on a Thursday");
                (oldest, newest) = (trace.sync_ticks, trace.sync_ticks);
            }
            Step::Metadata(record) => {
                let kind = Metadata::decode(parser.version(), record.payload).unwrap();
                assert!(kind.problem.is_none(), "{kind:?}");
                assert!(kinds.insert(kind.id, kind).is_none(), "described twice: {kind:?}");
            }
            Step::Stack(stack) => assert!(stacks.insert(stack.id, stack.bytes).is_none()),
            Step::Event(event) => {
                let kind = kinds[&event.metadata_id];
                assert!(event.timestamp >= oldest, "older than what nothing is older than");
                assert!(
                    event.sorted || before == Some(event.capture_thread),
                    "another thread, and not sorted"
                );
                if event.sorted {
                    oldest = event.timestamp;
                }
                (newest, before) = (newest.max(event.timestamp), Some(event.capture_thread));
                whole.events.push(Read1 {
                    provider: kind.provider.to_string(),
                    id: kind.event_id,
                    thread: event.capture_thread,
                    sequence: event.sequence,
                    timestamp: event.timestamp,
                    stack: stacks[&event.stack_id].to_vec(),
                    payload: event.payload.to_vec(),
                    round: whole.points.len(),
                });
            }
            Step::SequencePoint(point) => {
                assert!(point.timestamp >= newest, "a point before what is before it");
                (oldest, before) = (point.timestamp, None);
                stacks.clear();
                whole.points.push(point);
            }
            Step::More { .. } => {
                whole.end = parser.finish(stream);
                break;
            }
            Step::End(end) => {
                whole.end = end;
                break;
            }
            _ => {}
        }
    }
    (whole.lost, whole.kinds) = (loss.lost(), kinds.len());
    whole
}

/// Starts a session, reads until `enough`, stops it, and reads to the end.
fn trace(
    runtime: &FakeRuntime,
    config: &TraceConfig<'_>,
    enough: impl Fn(&Whole) -> bool,
) -> (Whole, Vec<u8>) {
    let mut session = Client::at(runtime.path()).start_tracing(config).unwrap();
    let mut stream = Vec::new();
    while !enough(&parse(&stream)) {
        read_some(&mut session, &mut stream);
    }
    session.stop();
    session.read_to_end(&mut stream).unwrap();
    assert!(session.is_complete());
    let whole = parse(&stream);
    assert_eq!(whole.end, End::Complete);
    (whole, stream)
}

fn read_some(session: &mut TraceSession, stream: &mut Vec<u8>) {
    let mut piece = [0; 4096];
    let n = session.read(&mut piece).unwrap();
    assert!(n > 0, "it ends by itself");
    stream.extend_from_slice(&piece[..n]);
}

const fn rounds(n: usize) -> impl Fn(&Whole) -> bool {
    move |whole| whole.points.len() >= n
}

/// Two threads that take turns.
fn turns(version: Version) -> Vec<u8> {
    let events = [(0, 7, 1, 0), (0, 9, 1, 10), (1, 7, 2, 20), (1, 9, 2, 30), (0, 7, 3, 40)];
    recording(version, &[("App", 1, 0, 4), ("App", 2, 0, 4)], &events, &[])
}

#[test]
fn events_go_on_until_the_session_is_stopped() {
    let runtime = replaying(Profile { process_id: 4711, ..Profile::net10() }, &turns(Version::V4));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (began, started) = (now(), Instant::now());
    let (whole, _) = trace(&runtime, &TraceConfig::new(&APP), rounds(4));
    let took = u64::try_from(started.elapsed().as_nanos()).unwrap();
    assert!((began..=now()).contains(&whole.sync.0), "{:?}", whole.sync);
    assert_eq!((whole.process_id, whole.pointer_size, whole.lost), (Some(4711), 8, 0));

    let full = whole.points.len() - 1;
    for round in 0..full {
        let events: Vec<_> = whole.events.iter().filter(|event| event.round == round).collect();
        assert_eq!(events.len(), 5, "{events:?}");
        for (thread, count) in [(7, 3), (9, 2)] {
            let of: Vec<_> = events.iter().filter(|event| event.thread == thread).collect();
            let numbers: Vec<u32> = of.iter().map(|event| event.sequence).collect();
            let first = round as u32 * count + 1;
            assert_eq!(numbers, (first..first + count).collect::<Vec<_>>(), "it counts on");
            assert!(of.iter().all(|event| event.stack == (thread * 16).to_le_bytes()));
            // What is in the payload stays as it was recorded.
            assert!(of.iter().zip(1u32..).all(|(event, n)| event.payload == n.to_le_bytes()));
        }
        let first = events.iter().map(|event| event.timestamp).min().unwrap();
        let mut offsets: Vec<_> = events.iter().map(|event| event.timestamp - first).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [0, 10 * MS, 20 * MS, 30 * MS, 40 * MS], "as it was recorded");
        assert_eq!(first + 100 * MS, whole.points[round].timestamp, "a point ends the round");
        // A round that nobody was there for is left out.
        let ended = round.checked_sub(1).map_or(whole.sync.1, |before| whole.points[before].timestamp);
        assert!(first == ended || round > 0 && first > ended + 1000 * MS, "round {round}: {first} {ended}");
    }
    // However slow the machine is, nothing is told that has not happened yet.
    let told = whole.events.iter().map(|event| event.timestamp).max().unwrap() - whole.sync.1;
    assert!(told >= full as u64 * 100 * MS && told <= took, "{told} of {took}");
    // Two kinds, and the one that is told in the end.
    assert_eq!(whole.kinds, 3);
    let last = whole.events.last().unwrap();
    assert_eq!((&*last.provider, last.id), ("Microsoft-DotNETCore-EventPipe", 1));
    let Profile { command_line, os, arch, .. } = runtime.profile();
    let text = [command_line, os, arch].map(|text| format!("{text}\0")).concat();
    assert_eq!(last.payload, text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
}

#[test]
fn a_recording_may_be_of_any_version() {
    let v4 = trace(&replaying(Profile::net8(), &turns(Version::V4)), &TraceConfig::new(&APP), rounds(1)).0;
    let v6 = trace(&replaying(Profile::net8(), &turns(Version::V6)), &TraceConfig::new(&APP), rounds(1)).0;
    let first = |whole: &Whole| {
        let sync = whole.sync.1;
        let plain = |event: &Read1| Read1 { timestamp: event.timestamp - sync, ..event.clone() };
        let mut events: Vec<_> = whole.events.iter().filter(|event| event.round == 0).map(plain).collect();
        // Which piece an event is in is a matter of luck.
        events.sort_by_key(|event| event.timestamp);
        events
    };
    assert_eq!(first(&v4).len(), 5);
    assert_eq!(first(&v4), first(&v6));
    // What is none has no events.
    let (none, _) = trace(&replaying(Profile::net8(), b"no recording"), &TraceConfig::new(&APP), rounds(1));
    assert_eq!(none.events.len(), 1);
}

#[test]
fn a_gap_is_a_loss_in_every_round() {
    // Thread 7 lost two events between, and four behind the last; of thread 9 nothing is asked for, nor lost.
    let events = [(0, 7, 11, 0), (1, 9, 1, 1), (0, 7, 14, 2), (1, 9, 5, 3)];
    let kinds = [("App", 1, 0, 4), ("Other", 1, 0, 4)];
    let recording = recording(Version::V4, &kinds, &events, &[(7, 18), (9, 5)]);
    let (whole, stream) = trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&APP), rounds(3));
    assert_eq!(whole.ids("Other"), BTreeSet::new());
    let numbers: Vec<u32> = whole.of("App").iter().take(6).map(|event| event.sequence).collect();
    assert_eq!(numbers, [1, 4, 9, 12, 17, 20]);
    let (sent, full) = (whole.of("App").len(), whole.points.len() - 1);
    let lost = match sent - full * 2 {
        0 | 1 => 0,
        2 => 2,
        more => panic!("{more} of a round that is not over"),
    };
    assert_eq!(whole.lost, full as u64 * 6 + lost, "{full} rounds");
    // Replayed itself, it is the same in one round, and tells of this process once.
    let (again, _) = trace(&replaying(Profile::net10(), &stream), &TraceConfig::new(&[all("*")]), rounds(1));
    let numbers = |whole: &Whole, round| {
        let events = whole.events.iter().filter(|event| event.provider == "App" && event.round <= round);
        events.map(|event| event.sequence).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&again, 0), numbers(&whole, full));
    assert_eq!(again.of("Microsoft-DotNETCore-EventPipe").len(), 1);
}

#[test]
fn what_is_not_sent_does_not_order_what_is() {
    // Thread 7's oldest events are not asked for, one that is comes behind thread 9's. It loses two events before the
    // second, and two before its last.
    let events = [(0, 5, 1, 0), (1, 7, 1, 1), (1, 7, 4, 2), (0, 9, 1, 3), (0, 7, 5, 4), (1, 7, 8, 5)];
    let recording = recording(Version::V4, &[("App", 1, 0, 4), ("Other", 1, 0, 4)], &events, &[]);
    // That no event is older than a sorted one before it is checked of every stream.
    let (whole, stream) = trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&APP), rounds(3));
    let full = |event: &&Read1| event.thread == 7 && event.round < 3;
    let numbers: Vec<u32> = whole.events.iter().filter(full).map(|event| event.sequence).collect();
    // Of a thread that has sent nothing, the first loss is not known.
    assert_eq!(numbers, [1, 6, 11]);
    let mut reader = TraceReader::new(&*stream).in_order(TraceReader::<&[u8]>::HELD);
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        times.push(event.header.timestamp);
    }
    assert!(times.is_sorted() && times.len() == whole.events.len(), "{times:?}");
    assert_eq!(reader.late(), 0);
}

/// In V6, a thread with an event of an activity, which loses three events and ends.
fn with_activity() -> Vec<u8> {
    let (mut out, mut buf) = (Vec::new(), vec![0; Writer::BUFFER]);
    let mut writer = Writer::new(Version::V6, &mut buf).unwrap();
    macro_rules! write {
        ($call:expr) => {
            while let Some(bytes) = $call.unwrap() {
                out.extend_from_slice(bytes);
            }
        };
    }
    write!(writer.trace(&Trace::new(Version::V6)));
    let mut kind = Metadata::default();
    (kind.id, kind.provider, kind.event_id) = (1, "App".into(), 1);
    write!(writer.describe(&kind));
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
    while let Some(bytes) = writer.finish() {
        out.extend_from_slice(bytes);
    }
    out
}

#[test]
fn threads_of_v6_have_the_numbers_of_the_system() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/nettrace/gen-v6-onecollect-small.nettrace");
    let recording = std::fs::read(file).unwrap();
    let threads = |stream: &[u8]| {
        let (mut reader, mut threads) = (TraceReader::new(stream), Vec::new());
        while let Some(event) = reader.next_event().unwrap() {
            threads.push(event.thread_id());
        }
        threads
    };
    let (_, stream) =
        trace(&replaying(Profile::net10(), &recording), &TraceConfig::new(&[all("*")]), rounds(1));
    let mut replayed = threads(&stream);
    replayed.pop(); // the thread that tells of the process
    assert_eq!(BTreeSet::from_iter(replayed), BTreeSet::from_iter(threads(&recording)));
}

#[test]
fn what_v6_tells_apart_is_told_in_v4() {
    let runtime = replaying(Profile::net10(), &with_activity());
    let (whole, stream) = trace(&runtime, &TraceConfig::new(&APP), rounds(2));
    let full = whole.points.len() as u64 - 1;
    assert_eq!(whole.lost, full * 3, "{full} rounds");
    assert!(whole.of("App").len() >= 2);
    let (mut parser, mut events) = (Parser::new(Limits::default()), 0);
    loop {
        match parser.next(&stream) {
            Step::Event(event) if event.activity_id != Guid::NIL => {
                assert_eq!((event.thread, event.capture_thread), (4242, 4242));
                assert_eq!(event.activity_id, Guid([7; 16]));
                assert_eq!(event.related_activity_id, Guid([8; 16]));
                events += 1;
            }
            Step::End(_) => break,
            _ => {}
        }
    }
    assert_eq!(events, whole.of("App").len());
}

fn ids(enable: bool, event_ids: &[u32]) -> EventFilter<'_> {
    EventFilter { enable, event_ids: Array::from(event_ids) }
}

/// Events 1 to 4, of which 4 is always let through, and one of another provider.
fn choice() -> Vec<u8> {
    let kinds =
        [("App", 1, 0x1, 4), ("App", 2, 0x2, 4), ("App", 3, 0x3, 5), ("App", 4, 0, 0), ("Other", 1, 0, 0)];
    let events: Vec<Made> = (0..5).map(|kind| (kind, 7, kind as u32 + 1, 0)).collect();
    recording(Version::V4, &kinds, &events, &[])
}

#[test]
fn only_what_is_asked_for_is_sent() {
    let runtime = replaying(Profile::net10(), &choice());
    let informational = EventLevel::INFORMATIONAL;
    let none = EventFilter::ALL;
    for (keywords, level, filter, expected) in [
        (u64::MAX, EventLevel::VERBOSE, none, &[1, 2, 3, 4][..]),
        (u64::MAX, informational, none, &[1, 2, 4]),
        (u64::MAX, EventLevel::CRITICAL, none, &[4]),
        (u64::MAX, EventLevel::LOG_ALWAYS, none, &[1, 2, 3, 4]),
        (0x2, EventLevel::VERBOSE, none, &[2, 3, 4]),
        (0x4, EventLevel::VERBOSE, none, &[4]),
        (u64::MAX, EventLevel::VERBOSE, ids(true, &[2, 4]), &[2, 4]),
        (u64::MAX, EventLevel::VERBOSE, ids(false, &[2, 4]), &[1, 3]),
        (u64::MAX, EventLevel::VERBOSE, ids(true, &[]), &[]),
        (0x1, informational, ids(false, &[4]), &[1]),
    ] {
        let providers = [Provider { keywords, level, ..APP[0] }];
        let filters = [filter];
        let filters = if filter == none { &[][..] } else { &filters };
        let config = TraceConfig { filters, ..TraceConfig::new(&providers) };
        let (whole, _) = trace(&runtime, &config, rounds(1));
        assert_eq!(whole.ids("App"), expected.iter().copied().collect(), "{providers:?} {filters:?}");
        assert_eq!((whole.ids("Other"), whole.lost), (BTreeSet::new(), 0), "what is not sent is not lost");
        assert_eq!(whole.kinds, expected.len() + 1, "what is not sent is not described");
    }
    // By the number of the command: each carries its providers elsewhere.
    for (rundown_keyword, stackwalk, filters, command) in [
        (TraceConfig::DEFAULT_RUNDOWN, true, &[][..], 0x0203),
        (0, false, &[], 0x0204),
        (1, true, &[], 0x0205),
        (0, false, &[none][..], 0x0204),
        (0, true, &[ids(true, &[4])], 0x0206),
    ] {
        let config = TraceConfig { rundown_keyword, stackwalk, filters, ..TraceConfig::new(&APP) };
        let (whole, _) = trace(&runtime, &config, rounds(1));
        assert_eq!(runtime.requests().iter().rev().nth(1).unwrap().code(), Some(Code(command)));
        assert!(!whole.of("App").is_empty());
        let stacks = whole.of("App").iter().all(|event| event.stack.is_empty() != stackwalk);
        assert!(stacks, "stacks, if they are wanted: {command:x}");
    }
    let newer = replaying(Profile { version: 11, ..Profile::net10() }, &choice());
    let filters = [ids(true, &[1, 3])];
    let config =
        TraceConfig { filters: &filters, buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&APP) };
    assert_eq!(trace(&newer, &config, rounds(1)).0.ids("App"), [1, 3].into());
    assert_eq!(newer.requests()[0].code(), Some(Code(0x0207)));
    // The oldest one.
    let start = CollectTracing { buffer_mb: 1, format: Format::NET_TRACE, providers: APP[..].into() };
    let mut connection = connect(runtime.path());
    Connection::new(&mut connection).call(&start).unwrap();
    let mut stream = Vec::new();
    while parse(&stream).of("App").len() < 4 {
        let mut piece = [0; 4096];
        let n = connection.read(&mut piece).unwrap();
        stream.extend_from_slice(&piece[..n]);
    }
    assert!(parse(&stream).of("App").iter().all(|event| !event.stack.is_empty()));
    // The same provider twice, and everything there is.
    let twice =
        [Provider { keywords: 1, level: informational, ..APP[0] }, Provider { keywords: 2, ..APP[0] }];
    assert_eq!(trace(&runtime, &TraceConfig::new(&twice), rounds(1)).0.ids("App"), [1, 2, 3, 4].into());
    let whole = trace(&runtime, &TraceConfig::new(&[all("*")]), rounds(1)).0;
    assert_eq!((whole.ids("App").len(), whole.ids("Other").len()), (4, 1));
    let star = [Provider { keywords: 1, ..all("*") }];
    assert_eq!(trace(&runtime, &TraceConfig::new(&star), rounds(1)).0.events.len(), 1);
}

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

#[test]
fn what_is_recorded_of_a_program_is_whole() {
    let names = [
        "Lab-Workload",
        "Lab-Rich",
        "System.Runtime",
        "Microsoft-Windows-DotNETRuntime",
        "Microsoft-DotNETCore-SampleProfiler",
    ];
    let providers = names.map(all);
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (whole, stream) = trace(&runtime, &TraceConfig::new(&providers), rounds(1));
    assert_eq!(whole.lost, 0);
    for name in names {
        assert!(!whole.ids(name).is_empty(), "{name}");
    }
    // The rundown is last but for the end, and one piece of time.
    let rundown = whole.of(RUNDOWN);
    assert_eq!(
        rundown.len(),
        whole.events.iter().rev().take_while(|event| event.provider == RUNDOWN).count()
    );
    assert!(rundown.len() > 10);
    let samples = whole.of("Microsoft-DotNETCore-SampleProfiler");
    assert!(samples.iter().any(|event| !event.stack.is_empty()));

    // Every payload that is described is what it should be.
    let mut parser = Parser::new(Limits::default());
    let (mut kinds, mut texts) = (BTreeMap::new(), BTreeSet::new());
    loop {
        match parser.next(&stream) {
            Step::Metadata(record) => {
                let kind = Metadata::decode(parser.version(), record.payload).unwrap();
                kinds.insert(kind.id, kind);
            }
            Step::Event(event) if !kinds[&event.metadata_id].fields.is_empty() => {
                let kind = kinds[&event.metadata_id];
                let mut values = kind.fields.values(event.payload);
                for item in values.by_ref() {
                    if let Item::Value { value: Value::Text(text), .. } = item {
                        texts.insert(text.to_string());
                    }
                }
                assert_eq!(values.finish(), Ok(&[][..]), "{kind:?}");
            }
            Step::End(_) => break,
            _ => {}
        }
    }
    assert!(texts.contains("cpu-usage") && texts.contains("/app/Fake --of-a runtime"), "{texts:?}");

    for (rundown_keyword, some) in [(0, false), (0x8, true), (0x1, false)] {
        let config = TraceConfig { rundown_keyword, ..TraceConfig::new(&providers) };
        let (whole, _) = trace(&runtime, &config, |whole| !whole.events.is_empty());
        let modules = whole.ids(RUNDOWN).contains(&154);
        assert_eq!(modules, some, "rundown {rundown_keyword:#x}: {:?}", whole.ids(RUNDOWN));
    }
}

#[test]
fn format_0_is_answered_by_v4() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let start =
        CollectTracing2 { buffer_mb: 1, format: Format::NET_PERF, rundown: false, providers: APP[..].into() };
    let mut stream = connect(runtime.path());
    Connection::new(&mut stream).call(&start).unwrap();
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).unwrap();
    assert_eq!(&magic, b"Nettrace");
}

#[test]
fn what_is_stopped_before_the_runtime_runs_has_not_a_byte() {
    let runtime = replaying(Profile { suspended: true, ..Profile::net10() }, &turns(Version::V4));
    let client = Client::at(runtime.path());
    let mut early = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut late = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    early.stop();
    let mut stream = Vec::new();
    early.read_to_end(&mut stream).unwrap();
    assert_eq!(stream.len(), 0);

    client.resume().unwrap();
    while parse(&stream).events.is_empty() {
        read_some(&mut late, &mut stream);
    }
    // From when it ran, not from when it was asked.
    let whole = parse(&stream);
    assert_eq!(whole.events[0].timestamp, whole.sync.1);
    late.stop();
    late.read_to_end(&mut stream).unwrap();
    assert_eq!(parse(&stream).end, End::Complete);
    assert!(late.is_complete());
}

#[test]
fn sessions_are_apart() {
    let runtime = replaying(Profile::net10(), &turns(Version::V4));
    let other = [Provider { keywords: 1, ..all("Nobody") }];
    std::thread::scope(|scope| {
        let nothing = scope.spawn(|| trace(&runtime, &TraceConfig::new(&other), rounds(2)).0.events.len());
        let (whole, _) = trace(&runtime, &TraceConfig::new(&APP), rounds(2));
        assert!(whole.of("App").len() >= 10);
        assert_eq!(nothing.join().unwrap(), 1);
    });
}

#[test]
fn it_goes_wrong_as_it_is_told_to() {
    let runtime = replaying(Profile::net10(), &turns(Version::V4));
    let timeouts = Timeouts { silence: Duration::from_millis(300), ..Timeouts::default() };
    let client = Client::at(runtime.path()).with_timeouts(timeouts);
    // Behind the first piece, so that there is one that is whole, and one that is cut.
    let (_, stream) = trace(&runtime, &TraceConfig::new(&APP), rounds(1));
    let n = stream.len();
    runtime.set_fault(Fault::StallStream(n));
    let mut session = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut stalled = vec![0; n];
    session.read_exact(&mut stalled).unwrap();
    assert!(stalled.starts_with(b"Nettrace"));
    assert_eq!(session.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    session.abandon();
    runtime.set_fault(Fault::CloseAfter(28 + n));
    let mut session = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    let mut cut = Vec::new();
    session.read_to_end(&mut cut).unwrap();
    assert_eq!(cut.len(), n);
    assert!(!session.is_complete());
    runtime.set_fault(Fault::Drip(Duration::from_micros(1)));
    trace(&runtime, &TraceConfig::new(&APP), |whole| !whole.of("App").is_empty());
}

/// Events of a round.
const FLOOD: u32 = 80;

/// 16 MB a round, more than any socket holds, in events longer than a runtime's.
fn flood() -> Vec<u8> {
    let (mut out, mut buf) = (Vec::new(), vec![0; 2 * Writer::BUFFER]);
    let mut writer = Writer::new(Version::V4, &mut buf).unwrap();
    let payload = vec![0; 200_000];
    let mut kind = Metadata::default();
    (kind.id, kind.provider) = (1, "App".into());
    while let Some(bytes) = writer.trace(&Trace::new(Version::V4)).unwrap() {
        out.extend_from_slice(bytes);
    }
    while let Some(bytes) = writer.describe(&kind).unwrap() {
        out.extend_from_slice(bytes);
    }
    for sequence in 1..=FLOOD {
        let event = Event { metadata_id: 1, sequence, payload: &payload, ..Event::default() };
        while let Some(bytes) = writer.event(&event).unwrap() {
            out.extend_from_slice(bytes);
        }
    }
    while let Some(bytes) = writer.finish() {
        out.extend_from_slice(bytes);
    }
    out
}

#[test]
fn who_does_not_read_holds_up_nobody_else() {
    let runtime = replaying(Profile::net10(), &flood());
    let client = Client::at(runtime.path());
    let mut lazy = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    // Somebody else's session goes on, and whatever else is asked is answered.
    let nobody = [all("Nobody")];
    let (other, _) = trace(&runtime, &TraceConfig::new(&nobody), rounds(2));
    assert_eq!(other.events.len(), 1);
    client.process_info().unwrap();
    // Stopped, it has all that was sent to it.
    let stopper = lazy.stopper();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(move || stopper.stop());
        let mut stream = Vec::new();
        lazy.read_to_end(&mut stream).unwrap();
        stopping.join().unwrap();
        let whole = parse(&stream);
        assert_eq!((whole.end, whole.lost), (End::Complete, 0));
        assert_eq!(whole.of("App").len() % FLOOD as usize, 0);
    });

    // The runtime goes, though one is held up.
    let mut lazy = client.start_tracing(&TraceConfig::new(&APP)).unwrap();
    drop(runtime);
    let mut stream = Vec::new();
    lazy.read_to_end(&mut stream).unwrap();
    assert!(!lazy.is_complete() && parse(&stream).end != End::Complete);
}

#[test]
fn who_goes_ends_the_session() {
    let runtime = replaying(Profile::net10(), &turns(Version::V4));
    let client = Client::at(runtime.path());
    let id = client.start_tracing(&TraceConfig::new(&APP)).unwrap().session_id();
    // Answered only once the session is over.
    client.stop_tracing(id).unwrap();
    // Over a stream that is no socket of the runtime's, too.
    let (ours, theirs) = pair();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| runtime.serve(theirs));
        let start = CollectTracing2 {
            buffer_mb: 1,
            format: Format::NET_TRACE,
            rundown: false,
            providers: APP[..].into(),
        };
        Connection::new(ours).call(&start).unwrap();
        serving.join().unwrap();
    });
}
