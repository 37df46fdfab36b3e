//! Finds the garbage collections in events.
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use nettrace::TraceEvent;

use super::process_collections::ProcessCollections;
use super::{Collection, GcStatistics};
use crate::trace::elapsed;
use crate::{Analysis, Part, RuntimeEvent};

/// Finds the garbage collections of each process in the events of a trace, which must come in the order of time: see
/// [`EventOrder::Time`](nettrace::EventOrder::Time).
///
/// Take collections with [`pop`](Self::pop) after each event. Then at most 16,384 collections wait for the end of one
/// that began before them, in about 4 MB. The events of at most 65,536 processes are taken. The work for each event is
/// logarithmic in the number of processes.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::gc::Collections;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-mixed.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut collections = Collections::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     collections.event(&event);
///     while let Some(collection) = collections.pop() {
///         println!("{}: paused for {:?} ns", collection.number, collection.pause);
///     }
/// }
/// let report = collections.finish();
/// assert_eq!(report.collections, []); // there is no incomplete one
/// assert_eq!((report.statistics.all.count, report.statistics.all.pauses.longest()), (2, 20_599_334));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Collections {
    part: Part,
    processes: BTreeMap<Option<u64>, ProcessCollections>,
    /// Collections that no later event can change.
    ready: VecDeque<Collection>,
    /// The number of collections that a later event can change, of all processes together.
    waiting: usize,
    /// The time of the first event of the trace.
    first_time: Option<i64>,
    statistics: GcStatistics,
    /// The time of the last event.
    end: i64,
}

/// The report on the collections of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GcReport {
    /// The collections that [`Collections::pop`] has not returned, complete or not.
    pub collections: Vec<Collection>,
    /// The statistics of all complete collections.
    pub statistics: GcStatistics,
    /// The programs that are suspended for a collection after the last event, if the trace has the start of the
    /// suspension, not after the part of the trace: at most one suspension of each process.
    pub open_suspensions: Vec<OpenSuspension>,
    /// The time of the last event, in nanoseconds from the start of the trace.
    pub end: i64,
}

/// A suspension of a program for a collection that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenSuspension {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The time at which the runtime began to suspend the program.
    pub start: i64,
}

/// The number of collections that wait at most.
const MAX_WAITING: usize = 16_384;

/// The number of processes whose events are taken.
const MAX_PROCESSES: usize = 1 << 16;

impl Collections {
    /// Returns only the collections of a part of the trace: collections that overlap its times, on any thread. Takes
    /// all events of the trace nevertheless.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// Takes an event of the runtime. The time of the event does not extend the span of the statistics.
    pub(crate) fn runtime_event(&mut self, event: &TraceEvent<'_>, of_runtime: RuntimeEvent) {
        if !ProcessCollections::is_needed(of_runtime) {
            return;
        }
        let process_id = event.process_id();
        if self.processes.len() >= MAX_PROCESSES && !self.processes.contains_key(&process_id) {
            return;
        }
        let process = self.processes.entry(process_id).or_default();
        let waited = process.waiting();
        process.event(event, of_runtime);
        self.waiting = self.waiting.saturating_add(process.waiting()).saturating_sub(waited);
        while self.waiting > 0 {
            let Some((collection, (first, last))) = process.pop(self.waiting > MAX_WAITING) else { return };
            self.waiting = self.waiting.saturating_sub(1);
            if self.part.overlap(first, last).is_some() {
                add(&mut self.ready, &mut self.statistics, Collection { process_id, ..collection }, process);
            }
        }
    }

    /// Returns the next collection that no later event can change. Those of a process come in the order of their start.
    pub fn pop(&mut self) -> Option<Collection> {
        self.ready.pop_front()
    }
}

impl Analysis for Collections {
    type Report = GcReport;

    fn event(&mut self, event: &TraceEvent<'_>) {
        self.part.includes(event);
        let now = event.nanoseconds();
        self.end = now;
        let first = *self.first_time.get_or_insert(now);
        if let Some((first, now)) = self.part.overlap(first, now) {
            self.statistics.span = self.statistics.span.max(elapsed(first, now));
        }
        if let Some(of_runtime) = RuntimeEvent::of(event) {
            self.runtime_event(event, of_runtime);
        }
    }

    fn finish(self) -> GcReport {
        let Self { part, processes, mut ready, mut statistics, end, .. } = self;
        let mut open_suspensions = Vec::new();
        for (process_id, mut process) in processes {
            let suspended = process.suspended_since();
            let suspended = suspended.filter(|start| part.overlap(*start, i64::MAX).is_some());
            open_suspensions.extend(suspended.map(|start| OpenSuspension { process_id, start }));
            while let Some((collection, (first, last))) = process.pop(true) {
                if part.overlap(first, last).is_some() {
                    let collection = Collection { process_id, ..collection };
                    add(&mut ready, &mut statistics, collection, &mut process);
                }
            }
        }
        GcReport { collections: ready.into(), statistics, open_suspensions, end }
    }
}

/// Adds a collection that no later event can change.
fn add(
    ready: &mut VecDeque<Collection>,
    statistics: &mut GcStatistics,
    collection: Collection,
    process: &mut ProcessCollections,
) {
    ready.push_back(collection);
    if collection.is_complete {
        let is_first = !core::mem::replace(&mut process.has_complete, true);
        statistics.processes = statistics.processes.saturating_add(is_first.into());
        statistics.add(&collection);
    }
}
