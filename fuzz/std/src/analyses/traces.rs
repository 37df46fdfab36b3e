//! The traces of the properties, and the events and samples in them.
use nettrace::{AssemblerStep, EventAssembler, EventOrder, Limits, ReadOptions, TraceEvent, Version};
use nettrace_analysis::Analysis;
use nettrace_analysis::samples::{Clock, Samples};

use super::made_up_events::{self, MadeUp, Naming};

/// The clocks of all units.
pub(super) fn clocks() -> Vec<Clock> {
    let provider = "Shop".to_owned();
    vec![
        Clock::Cpu,
        Clock::Wall,
        Clock::ThreadTime,
        Clock::SampledTime,
        Clock::Allocations,
        Clock::AllocatedTypes,
        Clock::Exceptions,
        Clock::Contention,
        Clock::AllEvents,
        Clock::Events { provider, event_id: None },
    ]
}

/// Returns a trace, and its events if they are known.
pub(super) fn trace_of(bytes: &[u8]) -> (Vec<u8>, Option<Vec<(MadeUp, Naming)>>) {
    let Some((choice, bytes)) = bytes.split_first() else { return (Vec::new(), None) };
    if choice & 7 == 7 {
        return (bytes.to_vec(), None);
    }
    let version = if choice & 1 == 0 { Version::V4 } else { Version::V6 };
    let events = made_up_events::events(bytes, version);
    let trace = made_up_events::trace(&events, version);
    // The model of names knows one process, and a trace of V6 can have several. So the events count as unknown.
    (trace, (version == Version::V4).then_some(events))
}

pub(super) fn each_event(trace: &[u8], in_order: bool, mut take: impl FnMut(&TraceEvent<'_>)) {
    let limits = Limits { block: 1 << 16, ..Limits::default() };
    let order = if in_order { EventOrder::BY_TIME } else { EventOrder::Stream };
    let mut assembler = EventAssembler::new(order, ReadOptions { limits, ..ReadOptions::default() });
    assembler.push(trace);
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => take(&event),
            AssemblerStep::More => assembler.finish(),
            AssemblerStep::End(_) => return,
        }
    }
}

pub(super) fn samples_of(trace: &[u8]) -> Samples {
    report_of(trace, Samples::new(clocks()))
}

/// Returns the report of an analysis of a trace, in the order of time.
pub(super) fn report_of<A: Analysis>(trace: &[u8], mut analysis: A) -> A::Report {
    each_event(trace, true, |event| analysis.event(event));
    analysis.finish()
}
