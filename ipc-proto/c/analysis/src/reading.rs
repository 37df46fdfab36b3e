//! An analysis that takes the bytes of a trace.
use nettrace_analysis::Analysis as _;
use nettrace_analysis::counters::{CounterEvent, CounterReader, OwnedSample};
use nettrace_analysis::gc::Collections;
use nettrace_analysis::heap::Snapshots;
use nettrace_analysis::nettrace::{AssemblerStep, EventAssembler, EventOrder, ReadOptions};
use nettrace_analysis::samples::{Clock, Samples};

/// The analyses that take each event.
pub(super) struct Reading {
    pub(super) clock: Clock,
    pub(super) assembler: EventAssembler,
    pub(super) samples: Samples,
    pub(super) collections: Collections,
    counter_reader: CounterReader,
    pub(super) counters: Vec<OwnedSample>,
    pub(super) snapshots: Snapshots,
    pub(super) events: u64,
}

impl Reading {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            assembler: EventAssembler::new(EventOrder::BY_SEGMENT, ReadOptions::default()),
            samples: Samples::new(clock.recorded()),
            collections: Collections::default(),
            counter_reader: CounterReader::new().preferring_meters(),
            counters: Vec::new(),
            snapshots: Snapshots::default(),
            events: 0,
            clock,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        // In pieces, so that the assembler does not store what it can pass on.
        for piece in bytes.chunks(1 << 16) {
            self.assembler.push(piece);
            self.take_events();
        }
    }

    fn take_events(&mut self) {
        while let AssemblerStep::Event(event) = self.assembler.step() {
            self.events = self.events.saturating_add(1);
            self.samples.event(&event);
            self.collections.event(&event);
            self.snapshots.event(&event);
            if let Some(CounterEvent::Sample(sample)) = self.counter_reader.event(&event) {
                self.counters.push((&sample).into());
            }
        }
    }

    /// Ends the trace.
    pub(super) fn finish(&mut self) {
        self.assembler.finish();
        self.take_events();
        if let Some(time) = self.assembler.summary().last_point {
            self.samples.extend_to(time);
            self.collections.extend_to(time);
        }
    }
}
