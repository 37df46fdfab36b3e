//! Traces that tests write: mostly events of the runtime's provider.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ipc_proto::Guid;
use nettrace::{
    AssemblerStep, Event, EventAssembler, EventOrder, Fields, Label, Metadata, ReadOptions, Scalar, Stack,
    ThreadEntry, Trace, TraceEvent, TraceWriter, Version,
};

/// Returns the path of a file in `testdata`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Passes the events of a trace in the order of time.
pub(crate) fn each_event(trace: &[u8], mut take: impl FnMut(&TraceEvent<'_>)) {
    let mut assembler = EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default());
    let mut pieces = trace.chunks(64 << 10);
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => take(&event),
            AssemblerStep::More => match pieces.next() {
                Some(piece) => assembler.push(piece),
                None => assembler.finish(),
            },
            AssemblerStep::End(_) => return,
        }
    }
}

/// A trace with ticks of a nanosecond.
pub(crate) struct Written {
    buf: Vec<u8>,
    trace: Vec<u8>,
    events: Vec<(u64, u64, u32, Vec<u8>, u32)>,
    /// The activity of each event and the one that started it, by its index among the events.
    activities: BTreeMap<usize, (Guid, Guid)>,
    /// The threads of a trace of V6, each with its process and its id: their indexes begin with 1.
    threads: Vec<(u64, u64)>,
    /// The process of the next events; the trace has version 6 then.
    process: Option<u64>,
    /// The timestamp at the start of the trace.
    clock: u64,
    /// The stacks of events. The first one has the id 1.
    stacks: Vec<Vec<u8>>,
    described: Vec<(&'static str, u32, u32)>,
    /// The names and the fields of events that the trace describes.
    fields: BTreeMap<(&'static str, u32, u32), NameAndFields>,
}

type NameAndFields = (&'static str, Vec<(&'static str, Scalar)>);

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

impl Written {
    pub(crate) fn new() -> Self {
        let buf = vec![0; TraceWriter::BUFFER];
        Self {
            buf,
            trace: Vec::new(),
            events: Vec::new(),
            activities: BTreeMap::new(),
            threads: Vec::new(),
            process: None,
            clock: 0,
            stacks: Vec::new(),
            described: Vec::new(),
            fields: BTreeMap::new(),
        }
    }

    /// Sets the process of the next events. A trace has a process for all events or for none.
    pub(crate) fn process(&mut self, process: u64) -> &mut Self {
        self.process = Some(process);
        self
    }

    /// Sets the timestamp at the start of the trace.
    pub(crate) fn clock(&mut self, ticks: u64) -> &mut Self {
        self.clock = ticks;
        self
    }

    /// Describes events: their name, and the names of their fields, which are texts.
    pub(crate) fn describe(
        &mut self,
        provider: &'static str,
        (event_id, version): (u32, u32),
        name: &'static str,
        fields: &'static [&'static str],
    ) -> &mut Self {
        let fields: Vec<_> = fields.iter().map(|field| (*field, Scalar::Utf16String)).collect();
        self.describe_fields(provider, (event_id, version), name, &fields)
    }

    /// Describes events: their name, and their fields.
    pub(crate) fn describe_fields(
        &mut self,
        provider: &'static str,
        (event_id, version): (u32, u32),
        name: &'static str,
        fields: &[(&'static str, Scalar)],
    ) -> &mut Self {
        self.fields.insert((provider, event_id, version), (name, fields.to_vec()));
        self
    }

    /// Adds an event by its id and version.
    pub(crate) fn event(&mut self, time: u64, thread: u64, id: (u32, u32), payload: &[u8]) -> &mut Self {
        self.event_of(RUNTIME, time, thread, id, payload)
    }

    /// Adds an event of another provider.
    pub(crate) fn event_of(
        &mut self,
        provider: &'static str,
        time: u64,
        thread: u64,
        (event_id, version): (u32, u32),
        payload: &[u8],
    ) -> &mut Self {
        let description = (provider, event_id, version);
        let known = self.described.iter().position(|described| *described == description);
        let place = known.unwrap_or_else(|| {
            self.described.push(description);
            self.described.len() - 1
        });
        let thread = match self.process {
            Some(process) => {
                let known = self.threads.iter().position(|known| *known == (process, thread));
                let index = known.unwrap_or_else(|| {
                    self.threads.push((process, thread));
                    self.threads.len() - 1
                });
                u64::try_from(index + 1).unwrap()
            }
            None => thread,
        };
        self.events.push((time, thread, u32::try_from(place + 1).unwrap(), payload.to_vec(), 0));
        self
    }

    /// Gives the last event a stack, the innermost address first.
    pub(crate) fn stack(&mut self, addresses: &[u64]) -> &mut Self {
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        let known = self.stacks.iter().position(|stack| *stack == bytes);
        let place = known.unwrap_or_else(|| {
            self.stacks.push(bytes);
            self.stacks.len() - 1
        });
        self.events.last_mut().unwrap().4 = u32::try_from(place + 1).unwrap();
        self
    }

    /// Gives the last event an activity, and the one that started it; 0 is none.
    pub(crate) fn activity(&mut self, activity: u8, parent: u8) -> &mut Self {
        self.activities.insert(self.events.len() - 1, (Guid([activity; 16]), Guid([parent; 16])));
        self
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let mut out = core::mem::take(&mut self.trace);
        let version = if self.process.is_some() { Version::V6 } else { Version::V4 };
        let mut trace = Trace::new(version);
        trace.sync_ticks = self.clock;
        let mut writer = TraceWriter::new(&trace, &mut self.buf).unwrap();
        for (id, described) in (1..).zip(&self.described) {
            let (provider, event_id, version) = described;
            let (name, fields) = self.fields.get(described).cloned().unwrap_or_default();
            let mut fields_buf = [0; 1024];
            let mut metadata = Metadata::new(id, provider, *event_id, name);
            metadata.version = *version;
            metadata.fields = Fields::build(&fields, &mut fields_buf).unwrap();
            out.extend_from_slice(&writer.describe(&metadata).unwrap());
        }
        for (index, (process, thread)) in (1..).zip(&self.threads) {
            let entries = [ThreadEntry::ProcessId(*process), ThreadEntry::ThreadId(*thread)];
            out.extend_from_slice(&writer.thread(index, entries).unwrap());
        }
        for (id, bytes) in (1..).zip(&self.stacks) {
            out.extend_from_slice(&writer.stack(&Stack { id, bytes }).unwrap());
        }
        for (place, (timestamp, thread, metadata_id, payload, stack_id)) in self.events.iter().enumerate() {
            let sequence = u32::try_from(place + 1).unwrap();
            let (mut activity_id, related_activity_id) =
                self.activities.get(&place).copied().unwrap_or_default();
            let mut label_list = 0;
            if version == Version::V6 && activity_id != Guid::NIL {
                label_list = sequence;
                let labels = [Label::ActivityId(activity_id)];
                out.extend_from_slice(&writer.label_list(label_list, labels).unwrap());
                activity_id = Guid::NIL;
            }
            let event = Event {
                metadata_id: *metadata_id,
                sequence,
                thread: *thread,
                capture_thread: 1,
                timestamp: self.clock + *timestamp,
                payload,
                stack_id: *stack_id,
                activity_id,
                related_activity_id,
                label_list,
                ..Event::default()
            };
            out.extend_from_slice(&writer.event(&event).unwrap());
        }
        out.extend_from_slice(&writer.finish());
        out
    }
}

/// The thread id of [`two_processes`] that has more than 32 bits.
pub(crate) const LARGE_ID: u64 = 1 << 40;

/// Returns a trace in which two processes have a thread 7, and one of them a thread with a large id. Each thread waits
/// for a lock. The trace has the name of one process.
pub(crate) fn two_processes() -> Vec<u8> {
    const SYSTEM: &str = "Universal.System";
    let mut trace = Written::new();
    trace.describe(SYSTEM, (1, 0), "ExistingProcess", &["Name"]);
    let name: Vec<u8> = "Shop".encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    trace.process(100).event_of(SYSTEM, 1, 0, (1, 0), &name);
    for (start, process, thread) in [(1_000, 100, 7), (1_100, 200, 7), (1_200, 100, LARGE_ID)] {
        trace.process(process).event(start, thread, (81, 1), &[0; 3]).stack(&[0x1000]);
        trace.event(start + 10_000, thread, (91, 1), &[0; 11]);
    }
    trace.bytes()
}

/// Returns a payload of 32-bit numbers.
pub(crate) fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns a text as in a payload: UTF-16 and NUL.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Passes the events of a trace in the order of the stream.
pub(crate) fn each_event_of_stream(trace: &[u8], mut take: impl FnMut(&TraceEvent<'_>)) {
    let mut assembler = EventAssembler::new(EventOrder::Stream, ReadOptions::default());
    assembler.push(trace);
    while let AssemblerStep::Event(event) = assembler.step() {
        take(&event);
    }
}
