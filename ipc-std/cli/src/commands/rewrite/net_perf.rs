//! The copy of a trace in NetPerf, version 3 of the format.
use nettrace::{
    AssemblerStep, Event, EventAssembler, EventOrder, Limits, ParserBuf, ReadOptions, Record, RewriteError,
    Trace, TraceSummary, TraceWriter, Version, WriteError,
};

use crate::output::atomic_output::AtomicOutput;
use crate::output::failure::{Failure, Kind};

/// Converts a stream of version 4 to version 3, piece by piece: events in the order of time, as readers of version 3
/// expect them, each with its stack.
///
/// The descriptions of events are copied as they are, so they come from the records, and the events from an assembler,
/// which returns the events of a segment once it has read the segment.
#[derive(Debug)]
pub(super) struct NetPerf<'b> {
    buffer: Option<&'b mut [u8]>,
    /// The writer, after the `Trace` of the stream.
    writer: Option<TraceWriter<'b>>,
    records: ParserBuf,
    events: EventAssembler,
    pointer_size: usize,
    stack: Vec<u8>,
    /// The number of stacks that were cut.
    cut_stacks: u64,
}

/// The number of addresses of a stack: the innermost ones. Each event repeats its stack, and runtimes write 100.
const MAX_FRAMES: usize = 1024;

impl<'b> NetPerf<'b> {
    /// Creates a converter. `buffer` is that of a [`TraceWriter`].
    pub(super) fn new(buffer: &'b mut [u8]) -> Self {
        Self {
            buffer: Some(buffer),
            writer: None,
            records: ParserBuf::new(Limits::default()),
            events: EventAssembler::new(EventOrder::BY_SEGMENT, ReadOptions::default()),
            pointer_size: 8,
            stack: Vec::new(),
            cut_stacks: 0,
        }
    }

    /// Converts the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8], output: &mut AtomicOutput) -> Result<(), Failure> {
        let failed = |e: WriteError| failed(e.into());
        self.records.push(bytes);
        loop {
            match self.records.next_record() {
                Record::Trace(trace) => {
                    self.pointer_size = if trace.pointer_size == 4 { 4 } else { 8 };
                    if let Some(buffer) = self.buffer.take() {
                        let trace = Trace { version: Version::V3, ..trace };
                        self.writer = Some(TraceWriter::new(&trace, buffer).map_err(failed)?);
                    }
                }
                Record::Metadata(record) => {
                    if let Some(writer) = &mut self.writer {
                        output.write(&writer.metadata(&record).map_err(failed)?)?;
                    }
                }
                Record::More { .. } | Record::End(_) => break,
                _ => {}
            }
        }
        self.events.push(bytes);
        while let AssemblerStep::Event(event) = self.events.step() {
            let Some(writer) = &mut self.writer else { continue };
            self.stack.clear();
            for address in event.stack().take(MAX_FRAMES) {
                let address = address.to_le_bytes();
                self.stack.extend_from_slice(address.get(..self.pointer_size).unwrap_or_default());
            }
            self.cut_stacks = self.cut_stacks.saturating_add((event.stack().len() > MAX_FRAMES).into());
            let event = Event { stack: &self.stack, ..event.header() };
            output.write(&writer.event(&event).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Returns the last bytes of the copy, and what it cannot state.
    pub(super) fn finish(self) -> (Vec<u8>, Unstated) {
        let TraceSummary { losses, late, .. } = self.events.summary();
        let rest = self.writer.map(|writer| writer.finish().to_vec()).unwrap_or_default();
        (rest, Unstated { lost: losses.lost, late, cut_stacks: self.cut_stacks })
    }
}

/// Returns the failure of a copy.
pub(super) fn failed(e: RewriteError) -> Failure {
    Failure::new(Kind::Other, format!("cannot rewrite the trace: {e}"))
}

/// What a copy in version 3 cannot state.
#[derive(Debug)]
pub(super) struct Unstated {
    /// The number of lost events.
    pub(super) lost: u64,
    /// The number of events that are not in the order of time.
    pub(super) late: u64,
    /// The number of stacks without their outermost addresses.
    pub(super) cut_stacks: u64,
}
