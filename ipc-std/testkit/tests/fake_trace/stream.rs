//! Reads the streams of fake runtimes.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use ipc_std::{Client, TraceConfig, TraceSession};
use ipc_testkit::FakeRuntime;
use nettrace::{End, Limits, LossCounter, Metadata, Parser, Record, SequencePoint, Slot, Version};

/// An event that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadEvent {
    pub(crate) provider: String,
    pub(crate) id: u32,
    pub(crate) thread: u64,
    pub(crate) sequence: u32,
    pub(crate) timestamp: u64,
    pub(crate) stack: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// The number of sequence points before it.
    pub(crate) round: usize,
}

#[derive(Debug)]
pub(crate) struct ReadTrace {
    pub(crate) events: Vec<ReadEvent>,
    pub(crate) points: Vec<SequencePoint>,
    pub(crate) lost: u64,
    pub(crate) end: End,
    pub(crate) sync: (u64, u64),
    pub(crate) process_id: Option<u32>,
    pub(crate) pointer_size: u32,
    pub(crate) kinds: usize,
}

impl ReadTrace {
    pub(crate) fn events_of(&self, provider: &str) -> Vec<&ReadEvent> {
        self.events.iter().filter(|event| event.provider == provider).collect()
    }
    pub(crate) fn ids(&self, provider: &str) -> BTreeSet<u32> {
        self.events_of(provider).iter().map(|event| event.id).collect()
    }
}

/// Reads a stream, and checks the rules for every stream of a runtime: references lead to records that were written
/// once, threads count their events, and the order agrees with the flag of sorted events and with sequence points.
pub(crate) fn parse(stream: &[u8]) -> ReadTrace {
    let mut parser = Parser::new(Limits::default());
    let (mut kinds, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    let mut slots = [Slot::default(); 64];
    let mut loss = LossCounter::new(&mut slots);
    let mut whole = ReadTrace {
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
        let record = parser.next(stream);
        loss.record(&record);
        match record {
            Record::Trace(trace) => {
                assert_eq!((trace.version, trace.frequency), (Version::V4, 1_000_000_000));
                let time = trace.sync_time;
                assert!(
                    time.month <= 12 && time.day <= 31 && time.millisecond < 1000 && time.day_of_week < 7,
                    "{time:?}"
                );
                // Every fourth year counts as a leap year, which is right until 2099. A wrong day is detected.
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
            Record::Metadata(record) => {
                let kind = Metadata::decode(parser.version(), record.payload).unwrap();
                assert!(kind.problem.is_none(), "{kind:?}");
                assert!(kinds.insert(kind.id, kind).is_none(), "written twice: {kind:?}");
            }
            Record::Stack(stack) => assert!(stacks.insert(stack.id, stack.bytes).is_none()),
            Record::Event(event) => {
                let kind = kinds[&event.metadata_id];
                assert!(event.timestamp >= oldest, "older than an earlier sorted event");
                assert!(
                    event.sorted || before == Some(event.capture_thread),
                    "an unsorted event of another thread"
                );
                if event.sorted {
                    oldest = event.timestamp;
                }
                (newest, before) = (newest.max(event.timestamp), Some(event.capture_thread));
                whole.events.push(ReadEvent {
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
            Record::SequencePoint(point) => {
                assert!(point.timestamp >= newest, "the sequence point is older than an event before it");
                (oldest, before) = (point.timestamp, None);
                stacks.clear();
                whole.points.push(point);
            }
            Record::More { .. } => {
                whole.end = parser.finish(stream);
                break;
            }
            Record::End(end) => {
                whole.end = end;
                break;
            }
            _ => {}
        }
    }
    (whole.lost, whole.kinds) = (loss.lost_after_start(), kinds.len());
    whole
}

/// Starts a session, reads it until `enough` returns true, stops it, and reads it to its end.
pub(crate) fn trace(
    runtime: &FakeRuntime,
    config: &TraceConfig<'_>,
    enough: impl Fn(&ReadTrace) -> bool,
) -> (ReadTrace, Vec<u8>) {
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

pub(crate) fn read_some(session: &mut TraceSession, stream: &mut Vec<u8>) {
    let mut piece = [0; 4096];
    let n = session.read(&mut piece).unwrap();
    assert!(n > 0, "the stream ends before the session is stopped");
    stream.extend_from_slice(&piece[..n]);
}

pub(crate) const fn rounds(n: usize) -> impl Fn(&ReadTrace) -> bool {
    move |whole| whole.points.len() >= n
}
