//! `--names-first`: a recording that also has the names that the process had at the start.
use std::collections::BTreeSet;
use std::io::Read;
use std::thread::JoinHandle;

use ipc_std::{Client, Stopper, TraceConfig};
use nettrace::{
    End, Event, Limits, Metadata, MetadataState, ParserBuf, Record, Rewrite, RewriteOptions, RewriteSpace,
    Slot, ThreadState, Version,
};
use nettrace_analysis::{KnownProvider, RuntimeEvent};

use super::args::NAMES;
use super::output::TraceOutput;
use super::rundown;
use super::session_failure::{exited, read_failure};
use crate::input::source;
use crate::run::threads::spawn;
use crate::run::{Failure, Globals, Kind};

/// The maximum length of a rundown in bytes. The names of a program with 100,000 methods have about 50 MB.
const MAX_RUNDOWN: usize = 256 << 20;
/// The size of the buffer in bytes: two records of the maximum length, with their headers. The system provides memory
/// only for the part that is used.
const BUFFER: usize = 0x200_2000;
/// The number of slots for metadata records, and for threads.
const SLOTS: usize = 1 << 18;

/// Takes the names of a process whose session has started: its rundown. If this fails, the recording has its own names
/// only.
pub(crate) fn take_names(client: &Client, globals: &Globals) -> Vec<u8> {
    take_rundown(client).unwrap_or_else(|failure| {
        globals.note(&format!("the names of the process cannot be taken first: {}", failure.message()));
        Vec::new()
    })
}

/// Takes the rundown of a process. A suspended runtime has none: it has no methods yet.
fn take_rundown(client: &Client) -> Result<Vec<u8>, Failure> {
    let mut session = rundown::start(client, rundown::KEYWORDS)?;
    let (mut rundown, mut buf) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match session.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => rundown.extend_from_slice(buf.get(..n).unwrap_or_default()),
            Err(e) => read_failure(&session, e)?,
        }
        if rundown.len() > MAX_RUNDOWN {
            session.abandon();
            return Err(Failure::new(Kind::Other, "they are too long"));
        }
    }
    if session.is_complete() || rundown.is_empty() {
        return Ok(rundown);
    }
    Err(exited())
}

/// A session beside the recording. While it exists, the runtime sends the names of the methods that it compiles to all
/// sessions that ask for the compilations, not only to those of level verbose.
#[derive(Debug)]
pub(crate) struct CompiledNames {
    stopper: Stopper,
    reader: Option<JoinHandle<()>>,
}

impl CompiledNames {
    pub(crate) fn start(client: &Client) -> Result<Self, Failure> {
        let names = NAMES;
        let providers = [names.to_provider()];
        let config = TraceConfig { rundown_keyword: 0, ..TraceConfig::new(&providers) };
        let mut session = client.start_tracing(&config)?;
        let stopper = session.stopper();
        let reader = spawn("names", move || {
            // The bytes are dropped. Unread events would block the runtime. The recording itself reports why it ended.
            while session.read(&mut [0; 4096]).map_or_else(|e| read_failure(&session, e).is_ok(), |n| n > 0) {
            }
        })?;
        Ok(Self { stopper, reader: Some(reader) })
    }
}

impl Drop for CompiledNames {
    fn drop(&mut self) {
        self.stopper.stop();
        // A thread that has panicked has ended too.
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

/// The memory of a [`NamesFirst`].
#[derive(Debug)]
pub(super) struct Space {
    buffer: Vec<u8>,
    metadata: Vec<Slot<MetadataState>>,
    threads: Vec<Slot<ThreadState>>,
}

impl Space {
    pub(super) fn new() -> Self {
        let (metadata, threads) = (vec![Slot::default(); SLOTS], vec![Slot::default(); SLOTS]);
        Self { buffer: vec![0; BUFFER], metadata, threads }
    }
}

/// Copies a session to a file, and ends the file with the names of an earlier rundown if the session has none of its own.
///
/// The file is complete also after a session that the end of the process truncates.
#[derive(Debug)]
pub(super) struct NamesFirst<'s> {
    /// The trace of the rundown.
    rundown: Vec<u8>,
    records: ParserBuf,
    copy: Copy<'s>,
}

/// The file that is written.
#[derive(Debug)]
struct Copy<'s> {
    rewrite: Rewrite<'s>,
    /// The largest id of a metadata record.
    last_id: u32,
    /// The time of the last event, in ticks.
    last_time: u64,
    has_begun: bool,
    /// Whether the session has sent all of its own names.
    has_names: bool,
    end: Option<End>,
}

impl<'s> NamesFirst<'s> {
    /// Creates a copy of a session to a file. `rundown` has the names of the process at the start of the session.
    pub(super) fn new(rundown: Vec<u8>, space: &'s mut Space) -> Result<Self, Failure> {
        let Space { buffer, metadata, threads } = space;
        let space = RewriteSpace { buffer, metadata, threads, labels: &mut [] };
        let rewrite = Rewrite::new(RewriteOptions::default(), space).map_err(failed)?;
        let copy = Copy { rewrite, last_id: 0, last_time: 0, has_begun: false, has_names: false, end: None };
        Ok(Self { rundown, records: ParserBuf::new(Limits::default()), copy })
    }

    /// Writes bytes of the session.
    pub(super) fn write(&mut self, bytes: &[u8], output: &TraceOutput) -> Result<(), Failure> {
        self.records.push(bytes);
        self.copy_records(output)
    }

    fn copy_records(&mut self, output: &TraceOutput) -> Result<(), Failure> {
        let version = self.records.version();
        while self.copy.end.is_none() {
            match self.records.next_record() {
                Record::More { .. } => return Ok(()),
                record => {
                    // `until` sees the record here, because the copy writes the block of the record only when the block
                    // is full.
                    output.see(&record, version);
                    self.copy.record(&record, version, output)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the end of the file. A corrupt session is a failure, and the file has its valid part.
    pub(super) fn finish(mut self, output: &TraceOutput) -> Result<(), Failure> {
        self.records.advance(0);
        self.copy_records(output)?;
        if self.copy.has_begun && !self.copy.has_names && self.records.version() == Version::V4 {
            self.write_rundown(output)?;
        }
        let mut rest = self.copy.rewrite.finish();
        while let Some(bytes) = rest.next_bytes().map_err(failed)? {
            output.write(&bytes)?;
        }
        match self.copy.end {
            Some(end @ End::Corrupt { .. }) => source::check(end, "the runtime"),
            _ => Ok(()),
        }
    }

    /// Writes the events of the rundown, as a runtime does at the end of a session: at the time of the last event.
    fn write_rundown(&mut self, output: &TraceOutput) -> Result<(), Failure> {
        let (mut records, mut rows) = (ParserBuf::new(Limits::default()), BTreeSet::new());
        let (first_id, timestamp) = (self.copy.last_id, self.copy.last_time);
        let mut sequence = 0_u32;
        for bytes in self.rundown.chunks(64 << 10) {
            records.push(bytes);
            loop {
                match records.next_record() {
                    Record::More { .. } | Record::End(_) => break,
                    Record::Metadata(record) => {
                        let Ok(metadata) = Metadata::decode(Version::V4, record.payload) else { continue };
                        if KnownProvider::of(metadata.provider) != Some(KnownProvider::Rundown) {
                            continue;
                        }
                        // A metadata record begins with its id. The recording uses the same ids for other events, so
                        // the rundown gets larger ones.
                        let id = first_id.saturating_add(metadata.id).to_le_bytes();
                        let payload = [&id, record.payload.get(id.len()..).unwrap_or_default()].concat();
                        rows.insert(metadata.id);
                        let record = Record::Metadata(Event { payload: &payload, ..record });
                        self.copy.record(&record, Version::V4, output)?;
                    }
                    Record::Event(event) if rows.contains(&event.metadata_id) => {
                        sequence = sequence.saturating_add(1);
                        let event = Event {
                            metadata_id: first_id.saturating_add(event.metadata_id),
                            sequence,
                            // A real thread would not do, because its numbers would have to continue those of the
                            // session.
                            capture_thread: NO_THREAD,
                            stack_id: 0,
                            timestamp,
                            ..event
                        };
                        self.copy.record(&Record::Event(event), Version::V4, output)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The thread that captures the events of the rundown: no thread has this id.
const NO_THREAD: u64 = 0;

impl Copy<'_> {
    fn record(&mut self, record: &Record<'_>, version: Version, output: &TraceOutput) -> Result<(), Failure> {
        match record {
            Record::Trace(trace) => (self.has_begun, self.last_time) = (true, trace.sync_ticks),
            Record::Metadata(record) => {
                if let Ok(metadata) = Metadata::decode(version, record.payload) {
                    let provider = KnownProvider::of(metadata.provider);
                    let event = provider.and_then(|of| RuntimeEvent::new(of, metadata.event_id));
                    self.has_names |= event == Some(RuntimeEvent::DCEndComplete);
                    self.last_id = self.last_id.max(metadata.id);
                }
            }
            Record::Event(event) => self.last_time = self.last_time.max(event.timestamp),
            Record::End(end) => self.end = Some(*end),
            _ => {}
        }
        output.write(&self.rewrite.record(record).map_err(failed)?)
    }
}

fn failed(e: impl core::fmt::Display) -> Failure {
    Failure::new(Kind::Other, format!("cannot write the trace: {e}"))
}
