//! `Replay`: sends the events of a recording as a runtime streams them, without I/O and without a clock.
mod recording;
mod rounds;
mod session_buffer;

use std::collections::BTreeMap;

use ipc_proto::plan::{Flavour, TraceConfig};
use ipc_proto::types::{EventLevel, Format};
use nettrace::{
    CalendarTime, Event, Fields, Metadata, PayloadWriter, Scalar, SequencePoint, Stack, ThreadSequence,
    Trace, TraceBytes, TraceWriter, Version, WriteError,
};

use crate::profile::Profile;

pub use recording::Recording;

pub(crate) use recording::Recorded;
pub(crate) use rounds::Rounds;

use recording::{EVENT_PIPE, RUNDOWN};
use session_buffer::SessionBuffer;

/// The stream of a session that replays a recording again and again, written in pieces: NetTrace version 4, or version
/// 3 (NetPerf) if the session requests it.
///
/// Times are nanoseconds of any clock. `Response::Replay` describes the stream.
///
/// ```
/// use ipc_testkit::ipc_proto::plan::TraceConfig;
/// use ipc_testkit::ipc_proto::types::{EventLevel, Provider};
/// use ipc_testkit::{Profile, Recording, Replay};
/// use ipc_testkit::nettrace::CalendarTime;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fake/program.nettrace");
/// let file = std::fs::read(path)?; // NetTrace of any version
/// let mut buf = Replay::buffer(file.len());
/// let stream = Recording::in_v4(&file, &mut buf)?;
/// let recording = Recording::read(&stream);
///
/// let (level, name) = (EventLevel::VERBOSE, "System.Runtime".into());
/// let providers = [Provider { keywords: u64::MAX, level, name, arguments: "".into() }];
/// let (config, profile) = (TraceConfig::new(&providers), Profile::net10());
/// let mut replay = Replay::new(&recording, Some(config), &profile, CalendarTime::default(), 0, &mut buf)?;
/// let first_second = replay.advance(1_000_000_000)?;
/// let end = replay.finish(1_500_000_000)?;
/// assert!(first_second.starts_with(b"Nettrace") && !end.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay<'r, 'b> {
    recording: &'r Recording<'r>,
    profile: &'r Profile,
    writer: TraceWriter<'b>,
    /// Written bytes that were not returned yet.
    out: Vec<u8>,
    /// Whether events of each kind are sent.
    included: Vec<bool>,
    /// The metadata ids of kinds in this stream.
    kinds: BTreeMap<usize, u32>,
    /// The ids of stacks since the last sequence point.
    stacks: BTreeMap<&'r [u8], u32>,
    stackwalk: bool,
    /// The capture threads that have sent an event.
    threads: BTreeMap<u64, ThreadCounts>,
    /// `None` while the program is suspended.
    rounds: Option<Rounds>,
    buffer: SessionBuffer,
}

/// Returns whether a session has the events of a kind.
fn includes(config: &TraceConfig<'_>, kind: &Metadata<'_>) -> bool {
    if kind.provider == RUNDOWN {
        return config.includes_rundown(kind.keywords);
    }
    config.includes(&kind.provider.to_string(), kind.keywords, EventLevel(kind.level), kind.event_id)
}

/// The counts of a capture thread.
#[derive(Debug, Default)]
struct ThreadCounts {
    sequence: u32,
    /// The number of events lost since the event with this sequence number.
    lost: u32,
}

impl<'r, 'b> Replay<'r, 'b> {
    /// Returns a buffer that fits every event of a recording of this length.
    #[must_use]
    pub fn buffer(recording: usize) -> Vec<u8> {
        // In V4, a text has twice as many bytes as in V6, and a thread at a sequence point six times as many. A
        // `TraceWriter` divides its buffer into two halves, and a record must fit one: 12 times.
        vec![0; recording.saturating_mul(12).saturating_add(TraceWriter::BUFFER)]
    }

    /// Starts the stream of a session with this configuration; without a configuration the stream has no events.
    /// `sync_time` is the date at the time `now`.
    ///
    /// # Errors
    /// If the buffer is too small.
    pub fn new(
        recording: &'r Recording<'r>,
        config: Option<TraceConfig<'_>>,
        profile: &'r Profile,
        sync_time: CalendarTime,
        now: u64,
        buf: &'b mut [u8],
    ) -> Result<Self, WriteError> {
        let recorded = &recording.trace;
        let is_net_perf = config.is_some_and(|config| config.format == Format::NET_PERF);
        let trace = Trace {
            sync_time,
            sync_ticks: now,
            pointer_size: recorded.pointer_size,
            process_id: Some(profile.process_id),
            processors: Some(recorded.processors.unwrap_or(1)),
            sampling_interval: Some(recorded.sampling_interval.unwrap_or(1_000_000)),
            ..Trace::new(if is_net_perf { Version::V3 } else { Version::V4 })
        };
        Ok(Self {
            recording,
            profile,
            writer: TraceWriter::new(&trace, buf)?,
            out: Vec::new(),
            included: recording
                .kinds
                .iter()
                .map(|kind| config.is_some_and(|config| includes(&config, kind)))
                .collect(),
            kinds: BTreeMap::new(),
            stacks: BTreeMap::new(),
            stackwalk: config.is_some_and(|config| config.stackwalk),
            threads: BTreeMap::new(),
            rounds: Some(Rounds::new(now)),
            buffer: SessionBuffer::new(config.as_ref()),
        })
    }

    /// Suspends the program before its first event, and returns the header of the stream.
    #[must_use]
    pub fn suspend(&mut self) -> Vec<u8> {
        self.rounds = None;
        self.flush()
    }

    /// Resumes the program: the first event happens now.
    pub fn resume(&mut self, now: u64) {
        self.rounds = Some(Rounds::new(now));
    }

    /// Returns the bytes of all events up to now that the buffer of the session has room for. The remaining events are
    /// lost, or the program waits, if the session [blocks](ipc_proto::types::SessionBufferMode::BLOCK).
    ///
    /// # Errors
    /// If an event does not fit the [buffer](Self::buffer).
    pub fn advance(&mut self, now: u64) -> Result<Vec<u8>, WriteError> {
        let recording = self.recording;
        self.buffer.clear();
        loop {
            let Self { rounds, buffer, included, .. } = self;
            let Some(rounds) = rounds else { return Ok(self.flush()) };
            let includes = |recorded: &Recorded<'_>| included.get(recorded.kind) == Some(&true);
            let mut room = 0;
            let due = rounds.due(recording, now, |events| {
                room = buffer.buffer(events, includes);
                if buffer.blocks { room } else { events.len() }
            });
            let (events, lost) = due.events.split_at_checked(room).unwrap_or((due.events, &[]));
            self.write_events(events, due.start)?;
            for recorded in lost {
                let events = u32::from(self.includes(recorded));
                self.lose(recorded.event.capture_thread, recorded.lost.saturating_add(events));
            }
            let Some(end) = due.end else { return Ok(self.flush()) };
            for (capture_thread, lost) in &recording.lost {
                self.lose(*capture_thread, *lost);
            }
            self.write_sequence_point(end)?;
        }
    }

    /// Returns the rest of the stream: the events up to now, the rundown, which a suspended program and NativeAOT before
    /// .NET 10 do not have, and the end mark.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn finish(mut self, now: u64) -> Result<Vec<u8>, WriteError> {
        self.out = self.advance(now)?;
        self.write_process_info(now)?;
        let has_rundown = self.profile.flavour != Flavour::NativeAot || self.profile.version >= 10;
        let rundown = if has_rundown && self.rounds.is_some() { &*self.recording.rundown } else { &[] };
        for recorded in rundown {
            self.write_event(recorded, now, true)?;
        }
        self.write_sequence_point(now)?;
        self.out.extend_from_slice(&self.writer.finish());
        Ok(self.out)
    }

    /// Returns whether the stream is NetPerf: events in the order of time, each with its stack, and no sequence points.
    fn is_net_perf(&self) -> bool {
        self.writer.version() == Version::V3
    }

    /// Writes events of a round that began at `round`, in the order of a runtime's buffers: all events of the thread
    /// with the oldest event, then all events of the thread with the oldest remaining event. NetPerf: in the order of
    /// time.
    fn write_events(&mut self, events: &'r [Recorded<'r>], round: u64) -> Result<(), WriteError> {
        if self.is_net_perf() {
            return events.iter().try_for_each(|recorded| {
                self.write_event(recorded, round.saturating_add(recorded.at), true)
            });
        }
        let mut threads: Vec<Vec<&Recorded<'_>>> = Vec::new();
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for recorded in events {
            let thread = recorded.event.capture_thread;
            match places.get(&thread).and_then(|place| threads.get_mut(*place)) {
                Some(thread) => thread.push(recorded),
                // Events that are not sent were never buffered, and do not affect the order of threads.
                None if !self.includes(recorded) => self.lose(thread, recorded.lost),
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

    /// Returns whether the event is sent.
    fn includes(&self, recorded: &Recorded<'_>) -> bool {
        self.included.get(recorded.kind) == Some(&true)
    }

    /// Writes an event, or only records the loss before it if the event is not sent.
    fn write_event(
        &mut self,
        recorded: &Recorded<'r>,
        timestamp: u64,
        sorted: bool,
    ) -> Result<(), WriteError> {
        let Recorded { kind, event, stack, lost, .. } = recorded;
        self.lose(event.capture_thread, *lost);
        let Some(metadata) = self.recording.kinds.get(*kind).filter(|_| self.includes(recorded)) else {
            return Ok(());
        };
        let event = Event {
            metadata_id: self.kind(*kind, metadata)?,
            sequence: self.count(event.capture_thread),
            stack_id: self.stack(stack)?,
            timestamp,
            sorted,
            stack: if self.stackwalk { stack } else { &[] },
            ..*event
        };
        self.write(|writer| writer.event(&event))
    }

    /// Returns the metadata id of a kind, whose metadata is written before the first use.
    fn kind(&mut self, kind: usize, metadata: &Metadata<'_>) -> Result<u32, WriteError> {
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

    /// Returns the id of a stack, which is written before the first use. NetPerf has stacks in events only.
    fn stack(&mut self, stack: &'r [u8]) -> Result<u32, WriteError> {
        if self.is_net_perf() {
            return Ok(0);
        }
        let bytes = if self.stackwalk { stack } else { &[] };
        if let Some(id) = self.stacks.get(bytes) {
            return Ok(*id);
        }
        let id = next(self.stacks.len());
        self.write(|writer| writer.stack(&Stack { id, bytes }))?;
        self.stacks.insert(bytes, id);
        Ok(id)
    }

    /// Returns the next sequence number of a capture thread.
    fn count(&mut self, capture_thread: u64) -> u32 {
        let ThreadCounts { sequence, lost } = self.threads.entry(capture_thread).or_default();
        *sequence = sequence.wrapping_add(core::mem::take(lost)).wrapping_add(1);
        *sequence
    }

    /// Counts lost events. A reader cannot notice the losses of a thread that has sent no event yet.
    fn lose(&mut self, capture_thread: u64, events: u32) {
        if let Some(ThreadCounts { lost, .. }) = self.threads.get_mut(&capture_thread) {
            *lost = lost.wrapping_add(events);
        }
    }

    fn write_sequence_point(&mut self, timestamp: u64) -> Result<(), WriteError> {
        if self.is_net_perf() {
            return Ok(());
        }
        self.write(|writer| writer.sequence_point(&SequencePoint { timestamp, ..SequencePoint::default() }))?;
        let mut threads = core::mem::take(&mut self.threads);
        for (thread, ThreadCounts { sequence, lost }) in &mut threads {
            *sequence = sequence.wrapping_add(core::mem::take(lost));
            let row = ThreadSequence { thread: *thread, sequence: *sequence };
            self.write(|writer| writer.thread_sequence(&row))?;
        }
        self.threads = threads;
        self.stacks.clear();
        Ok(())
    }

    /// Writes the event `ProcessInfo`, which every session has at its end.
    fn write_process_info(&mut self, timestamp: u64) -> Result<(), WriteError> {
        const FIELDS: [(&str, Scalar); 3] = [
            ("CommandLine", Scalar::Utf16String),
            ("OSInformation", Scalar::Utf16String),
            ("ArchInformation", Scalar::Utf16String),
        ];
        let mut space = [0; 128];
        let mut metadata = Metadata::new(0, EVENT_PIPE, 1, "ProcessInfo");
        metadata.version = 1;
        metadata.fields = Fields::build(&FIELDS, &mut space)?;
        let Profile { command_line, os, arch, process_id, .. } = self.profile;
        // Each text is cut at its first NUL, as in the event of a real process.
        let texts = [command_line, os, arch].map(|text| text.split('\0').next().unwrap_or_default());
        // A byte of UTF-8 becomes at most two bytes of UTF-16, and each text has a NUL.
        let mut space =
            vec![0; texts.iter().map(|text| text.len().saturating_add(1).saturating_mul(2)).sum()];
        let payload = texts.into_iter().fold(PayloadWriter::new(&mut space), PayloadWriter::utf16_string);
        // The id of the main thread is the id of the process.
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
            payload: payload.finish()?,
            ..Event::default()
        };
        self.write(|writer| writer.event(&event))
    }

    fn write(
        &mut self,
        record: impl for<'w> FnOnce(&'w mut TraceWriter<'b>) -> Result<TraceBytes<'w>, WriteError>,
    ) -> Result<(), WriteError> {
        self.out.extend_from_slice(&record(&mut self.writer)?);
        Ok(())
    }

    /// Ends the blocks, and returns the written bytes.
    fn flush(&mut self) -> Vec<u8> {
        self.out.extend_from_slice(&self.writer.flush());
        core::mem::take(&mut self.out)
    }
}

/// Returns the id that follows `count` ids; the first id is 1.
fn next(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1)
}
