use std::collections::BTreeMap;
use std::io;
use std::time::{SystemTime as Clock, UNIX_EPOCH};

use ipc_proto::nettrace::{
    Event, Fields, FileTime, Metadata, Scalar, SequencePoint, Stack, SystemTime, ThreadSequence, Trace,
    Version, Writer, Written,
};

use super::Profile;
use super::recording::{EVENT_PIPE, RUNDOWN, Recorded, Recording};
use super::wishes::Wishes;

/// A recording, told again and again as if it happened now: the stream of a session, piece by piece.
///
/// Times are ticks of a nanosecond.
pub(super) struct Replay<'r, 'b> {
    recording: &'r Recording<'r>,
    profile: &'r Profile,
    writer: Writer<'b>,
    /// Written, but not yet taken.
    out: Vec<u8>,
    /// Which kinds of events are sent.
    wanted: Vec<bool>,
    /// The numbers that kinds have in this stream, if they have one.
    kinds: BTreeMap<usize, u32>,
    /// The same of stacks, since the last sequence point.
    stacks: BTreeMap<&'r [u8], u32>,
    stackwalk: bool,
    /// Capture threads that have sent something.
    threads: BTreeMap<u64, Counted>,
    /// When this round began.
    round: u64,
    /// How many events of it are done with.
    done: usize,
}

/// How far a capture thread has counted.
#[derive(Default)]
struct Counted {
    sequence: u32,
    /// Events that it has lost since.
    lost: u32,
}

impl<'r, 'b> Replay<'r, 'b> {
    /// No round is shorter: 100 ms.
    const SHORTEST: u64 = 100_000_000;
    /// If a round is over since this long, nobody has read, and the next begins when somebody does: 1 s.
    const LATE: u64 = 1_000_000_000;

    /// A buffer that every event of a recording of this length fits into.
    pub(super) fn buffer(recording: usize) -> Vec<u8> {
        // In V4 text has twice the length of V6, and a thread at a sequence point six times. The buffer has two halves.
        vec![0; recording.saturating_mul(12).saturating_add(Writer::BUFFER)]
    }

    /// Begins the stream.
    pub(super) fn new(
        recording: &'r Recording<'r>,
        wishes: &Wishes,
        profile: &'r Profile,
        now: u64,
        buf: &'b mut [u8],
    ) -> io::Result<Self> {
        let mut replay = Self {
            recording,
            profile,
            writer: Writer::new(Version::V4, buf).map_err(io::Error::other)?,
            out: Vec::new(),
            wanted: recording
                .kinds
                .iter()
                .map(
                    |kind| {
                        if kind.provider == RUNDOWN { wishes.want_rundown(kind) } else { wishes.want(kind) }
                    },
                )
                .collect(),
            kinds: BTreeMap::new(),
            stacks: BTreeMap::new(),
            stackwalk: wishes.stackwalk,
            threads: BTreeMap::new(),
            round: now,
            done: 0,
        };
        let recorded = &recording.trace;
        let trace = Trace {
            sync_time: utc(Clock::now()),
            sync_ticks: now,
            pointer_size: recorded.pointer_size,
            process_id: Some(profile.process_id),
            processors: Some(recorded.processors.unwrap_or(1)),
            sampling_interval: Some(recorded.sampling_interval.unwrap_or(1_000_000)),
            ..Trace::new(Version::V4)
        };
        replay.write(|writer| writer.trace(&trace))?;
        Ok(replay)
    }

    /// What has happened up to now.
    pub(super) fn advance(&mut self, now: u64) -> io::Result<Vec<u8>> {
        let recording = self.recording;
        loop {
            let since = now.saturating_sub(self.round);
            let left = recording.events.get(self.done..).unwrap_or_default();
            let due = left.partition_point(|recorded| recorded.at <= since);
            let (due, left) = left.split_at_checked(due).unwrap_or_default();
            self.done = self.done.saturating_add(due.len());
            self.write_events(due, self.round)?;
            let length = recording.length.saturating_add(1).max(Self::SHORTEST);
            if !left.is_empty() || since < length {
                return self.flush();
            }
            for (capture_thread, lost) in &recording.lost {
                self.lose(*capture_thread, *lost);
            }
            let end = self.round.saturating_add(length);
            self.write_sequence_point(end)?;
            self.round = if now.saturating_sub(end) > Self::LATE { now } else { end };
            self.done = 0;
        }
    }

    /// The rest of the stream.
    pub(super) fn finish(mut self, now: u64) -> io::Result<Vec<u8>> {
        self.out = self.advance(now)?;
        self.write_process_info(now)?;
        for recorded in &self.recording.rundown {
            self.write_event(recorded, now, true)?;
        }
        self.write_sequence_point(now)?;
        while let Some(bytes) = self.writer.finish() {
            self.out.extend_from_slice(bytes);
        }
        Ok(self.out)
    }

    /// Events of a round that began at `round`, as a runtime writes what its threads have buffered: all of the thread
    /// that has the oldest event, then all of the one that has the oldest of the rest.
    fn write_events(&mut self, events: &'r [Recorded<'r>], round: u64) -> io::Result<()> {
        let mut threads: Vec<Vec<&Recorded<'_>>> = Vec::new();
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for recorded in events {
            let thread = recorded.event.capture_thread;
            match places.get(&thread).and_then(|place| threads.get_mut(*place)) {
                Some(thread) => thread.push(recorded),
                // What is not sent was never buffered, and gives its thread no place.
                None if !self.wants(recorded) => self.lose(thread, recorded.lost),
                None => {
                    places.insert(thread, threads.len());
                    threads.push(vec![recorded]);
                }
            }
        }
        for thread in threads {
            for (at, recorded) in thread.into_iter().enumerate() {
                self.write_event(recorded, round.saturating_add(recorded.at), at == 0)?;
            }
        }
        Ok(())
    }

    /// Whether it was asked for.
    fn wants(&self, recorded: &Recorded<'_>) -> bool {
        self.wanted.get(recorded.kind) == Some(&true)
    }

    /// Of one that was not asked for, only the loss before it is told.
    fn write_event(&mut self, recorded: &Recorded<'r>, timestamp: u64, sorted: bool) -> io::Result<()> {
        let Recorded { kind, event, stack, lost, .. } = recorded;
        self.lose(event.capture_thread, *lost);
        let Some(metadata) = self.recording.kinds.get(*kind).filter(|_| self.wants(recorded)) else {
            return Ok(());
        };
        let event = Event {
            metadata_id: self.kind(*kind, metadata)?,
            sequence: self.count(event.capture_thread),
            stack_id: self.stack(stack)?,
            timestamp,
            sorted,
            ..*event
        };
        self.write(|writer| writer.event(&event))
    }

    /// The number of a kind of event, which is described if it was not.
    fn kind(&mut self, kind: usize, metadata: &Metadata<'_>) -> io::Result<u32> {
        if let Some(id) = self.kinds.get(&kind) {
            return Ok(*id);
        }
        let id = next(self.kinds.len());
        let mut metadata = *metadata;
        metadata.id = id;
        self.write(|writer| writer.describe(&metadata))?;
        self.kinds.insert(kind, id);
        Ok(id)
    }

    /// The number of a stack, which is written if it was not.
    fn stack(&mut self, stack: &'r [u8]) -> io::Result<u32> {
        let bytes = if self.stackwalk { stack } else { &[] };
        if let Some(id) = self.stacks.get(bytes) {
            return Ok(*id);
        }
        let id = next(self.stacks.len());
        self.write(|writer| writer.stack(&Stack { id, bytes }))?;
        self.stacks.insert(bytes, id);
        Ok(id)
    }

    /// The next number of a capture thread.
    fn count(&mut self, capture_thread: u64) -> u32 {
        let Counted { sequence, lost } = self.threads.entry(capture_thread).or_default();
        *sequence = sequence.wrapping_add(core::mem::take(lost)).wrapping_add(1);
        *sequence
    }

    /// Of a thread that has sent nothing yet, nobody could tell.
    fn lose(&mut self, capture_thread: u64, events: u32) {
        if let Some(Counted { lost, .. }) = self.threads.get_mut(&capture_thread) {
            *lost = lost.wrapping_add(events);
        }
    }

    fn write_sequence_point(&mut self, timestamp: u64) -> io::Result<()> {
        self.write(|writer| writer.sequence_point(&SequencePoint { timestamp, ..SequencePoint::default() }))?;
        let mut threads = core::mem::take(&mut self.threads);
        for (thread, Counted { sequence, lost }) in &mut threads {
            *sequence = sequence.wrapping_add(core::mem::take(lost));
            let row = ThreadSequence { thread: *thread, sequence: *sequence };
            self.write(|writer| writer.thread_sequence(&row))?;
        }
        self.threads = threads;
        self.stacks.clear();
        Ok(())
    }

    /// What every session is told at its end.
    fn write_process_info(&mut self, timestamp: u64) -> io::Result<()> {
        const FIELDS: [(&str, Scalar); 3] = [
            ("CommandLine", Scalar::Utf16String),
            ("OSInformation", Scalar::Utf16String),
            ("ArchInformation", Scalar::Utf16String),
        ];
        let mut space = [0; 128];
        let mut metadata = Metadata::default();
        metadata.provider = EVENT_PIPE.into();
        (metadata.event_id, metadata.name, metadata.version) = (1, "ProcessInfo".into(), 1);
        metadata.fields = Fields::build(&FIELDS, &mut space).map_err(io::Error::other)?;
        let Profile { command_line, os, arch, process_id, .. } = self.profile;
        let units = [command_line, os, arch].into_iter().flat_map(|text| text.encode_utf16().chain([0]));
        let payload: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        // The main thread's number is the process's.
        let thread = u64::from(*process_id);
        let event = Event {
            metadata_id: self.kind(usize::MAX, &metadata)?,
            sequence: self.count(thread),
            capture_thread: thread,
            processor: Event::UNKNOWN_PROCESSOR,
            thread,
            stack_id: self.stack(&[])?,
            timestamp,
            sorted: true,
            payload: &payload,
            ..Event::default()
        };
        self.write(|writer| writer.event(&event))
    }

    fn write(&mut self, mut record: impl for<'w> FnMut(&'w mut Writer<'b>) -> Written<'w>) -> io::Result<()> {
        while let Some(bytes) = record(&mut self.writer).map_err(io::Error::other)? {
            self.out.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Ends the blocks, and takes what was written.
    fn flush(&mut self) -> io::Result<Vec<u8>> {
        while let Some(bytes) = self.writer.flush() {
            self.out.extend_from_slice(bytes);
        }
        Ok(core::mem::take(&mut self.out))
    }
}

/// The number behind the last, from 1.
fn next(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1)
}

fn utc(clock: Clock) -> SystemTime {
    /// 1970 in FILETIME, and its ticks.
    const UNIX: u64 = 116_444_736_000_000_000;
    const PER_SECOND: u64 = 10_000_000;
    const PER_DAY: u64 = 86_400 * PER_SECOND;
    let since = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = u64::from(since.subsec_nanos() / 100);
    let ticks = since.as_secs().saturating_mul(PER_SECOND).saturating_add(ticks).saturating_add(UNIX);
    // Its text is the date and the time, in seven numbers.
    let text = FileTime(ticks).to_string();
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.get(..4.min(part.len())));
    let mut part = || parts.next().flatten().and_then(|part| part.parse().ok()).unwrap_or_default();
    // 1601 began on a Monday.
    let day_of_week = u16::try_from((ticks / PER_DAY).wrapping_add(1) % 7).unwrap_or_default();
    let (year, month, day, hour, minute, second) = (part(), part(), part(), part(), part(), part());
    let millisecond = part() / 10;
    SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond }
}
