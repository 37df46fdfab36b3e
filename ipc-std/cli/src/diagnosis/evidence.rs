//! What the events of a recording show, event by event.
use std::collections::{BTreeMap, BTreeSet};

use nettrace::TraceEvent;
use nettrace_analysis::account::{Account, Gauge, TimeAccount};
use nettrace_analysis::counters::{CounterEvent, CounterReader, Sample};
use nettrace_analysis::gc::{Collection, Collections, Reason};
use nettrace_analysis::jit::{Compilation, Compilations, Tier};
use nettrace_analysis::names::Names;
use nettrace_analysis::{Analysis as _, Durations, KnownProvider, OwnCode, Part};

use super::fact::Wish;

/// Collects the evidence of a diagnosis.
#[derive(Debug)]
pub(crate) struct Evidence {
    part: Part,
    account: TimeAccount,
    collections: Collections,
    compilations: Compilations,
    counters: CounterReader,
    /// By [`TraceEvent::kind`].
    kinds: Vec<Option<EventUse>>,
    /// The process and the kind of the last event.
    seen: Option<(Option<u64>, u32)>,
    processes: BTreeMap<Option<u64>, ProcessEvidence>,
    /// Whether the tool records the process, and so knows what is recorded.
    is_live: bool,
}

/// The evidence of a recording after its end.
#[derive(Debug)]
pub(crate) struct CollectedEvidence {
    pub(super) account: Account,
    /// Whether an event was read.
    pub(crate) has_events: bool,
    pub(super) processes: BTreeMap<Option<u64>, ProcessEvidence>,
}

/// An event that says something by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// The recording has the start of the process.
    Start,
    Connection,
    Other,
}

/// What the events of a kind are for.
#[derive(Debug, Clone, Copy)]
struct EventUse {
    wish: Option<Wish>,
    mark: Mark,
    is_of_runtime: bool,
}

/// What is known of one process beside its threads, locks and requests.
#[derive(Debug, Default)]
pub(crate) struct ProcessEvidence {
    pub(super) recorded: BTreeSet<Wish>,
    /// Whether the events are those that the tool has requested.
    pub(super) is_live: bool,
    pub(super) gc: GcEvidence,
    pub(super) compiled: CompiledMethods,
    /// The counters of System.Runtime by their names.
    pub(super) counters: BTreeMap<&'static str, Gauge>,
    pub(super) connections: Gauge,
    pub(super) processors: Option<u32>,
    pub(super) is_start: bool,
}

/// The collections of a process.
#[derive(Debug, Default)]
pub(super) struct GcEvidence {
    /// Pauses in seconds, at their starts.
    pub(super) pauses: Gauge,
    pub(super) pause_times: Durations,
    /// 1 for each collection: of all, of generation 2, requested by the program, and of generation 2 by large objects.
    pub(super) all: Gauge,
    pub(super) full: Gauge,
    pub(super) induced: Gauge,
    pub(super) by_large_objects: Gauge,
    /// The sizes of the heap after collections, in bytes, and after those of generation 2.
    pub(super) heap: Gauge,
    pub(super) full_heap: Gauge,
}

/// The methods that were compiled for the first time: the runtime compiles busy methods again by itself.
#[derive(Debug, Default)]
pub(super) struct CompiledMethods {
    pub(super) count: u64,
    pub(super) nanoseconds: u64,
    /// The methods that the program made at run time, such as compiled regular expressions.
    pub(super) dynamic: Gauge,
}

/// Event counters of System.Runtime, which all versions have.
const COUNTERS: [&str; 11] = [
    "cpu-usage",
    "threadpool-queue-length",
    "threadpool-thread-count",
    "active-timer-count",
    "exception-count",
    "alloc-rate",
    "gen-0-gc-count",
    "gen-1-gc-count",
    "gen-2-gc-count",
    "monitor-lock-contention-count",
    "methods-jitted-count",
];

impl Evidence {
    /// How many processes are distinguished.
    const PROCESSES: usize = 1 << 12;

    /// Returns no evidence yet, of a part of the recording. `own` decides which methods belong to the program.
    pub(crate) fn new(part: &Part, own: &OwnCode, is_live: bool) -> Self {
        Self {
            account: TimeAccount::new(part.clone(), own.clone()),
            collections: Collections::default().of_part(part.clone()),
            compilations: Compilations::default().of_part(part.clone()),
            part: part.clone(),
            counters: CounterReader::new(),
            kinds: Vec::new(),
            seen: None,
            processes: BTreeMap::new(),
            is_live,
        }
    }

    /// Takes the next event of the recording, in the part or not.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>) {
        let place = usize::try_from(event.kind()).unwrap_or_default();
        let known = self.kinds.get(place).copied().flatten();
        let Some(EventUse { wish, mark, is_of_runtime }) = known.or_else(|| self.find(event, place)) else {
            return;
        };
        self.account.event(event);
        if is_of_runtime {
            self.collections.event(event);
            self.compilations.event(event);
            while let Some(collection) = self.collections.pop() {
                self.process(collection.process_id).gc.add(&collection);
            }
            while let Some(compilation) = self.compilations.pop() {
                self.process(compilation.process_id).compiled.add(&compilation);
            }
        }
        if !self.part.includes(event) || (wish.is_none() && mark == Mark::Other) {
            return;
        }
        if wish == Some(Wish::Counters) {
            if let Some(CounterEvent::Sample(sample)) = self.counters.event(event) {
                let process = self.processes.entry(sample.process_id).or_default();
                process.counter(&sample);
            }
        }
        // Most events are of the kind and the process of the one before.
        let seen = Some((event.process_id(), event.kind()));
        if mark == Mark::Other && core::mem::replace(&mut self.seen, seen) == seen {
            return;
        }
        let processors = event.trace().and_then(|trace| trace.processors);
        let process = self.process(event.process_id());
        process.processors = processors;
        process.recorded.extend(wish);
        match mark {
            Mark::Start => process.is_start = true,
            Mark::Connection => process.connections.add(event.nanoseconds(), 1.0),
            Mark::Other => {}
        }
    }

    pub(crate) const fn names_mut(&mut self) -> &mut Names {
        self.account.names_mut()
    }

    /// Finds which analyses need the events of a kind.
    #[cold]
    fn find(&mut self, event: &TraceEvent<'_>, place: usize) -> Option<EventUse> {
        let metadata = event.metadata()?;
        let (provider, event_id) = (metadata.provider.to_string(), metadata.event_id);
        let mark = match (provider.as_str(), event_id) {
            ("Microsoft-Windows-DotNETRuntime", 187) => Mark::Start,
            ("System.Net.Http", 4) => Mark::Connection,
            _ => Mark::Other,
        };
        let known = KnownProvider::of(metadata.provider);
        let wish = Wish::of(&provider, event_id);
        let is_of_runtime = matches!(known, Some(KnownProvider::Runtime | KnownProvider::Rundown));
        let of = EventUse { wish, mark, is_of_runtime };
        if place >= self.kinds.len() {
            self.kinds.resize(place.saturating_add(1), None);
        }
        if let Some(kind) = self.kinds.get_mut(place) {
            *kind = Some(of);
        }
        Some(of)
    }

    fn process(&mut self, id: Option<u64>) -> &mut ProcessEvidence {
        let is_full = self.processes.len() >= Self::PROCESSES && !self.processes.contains_key(&id);
        let process = self.processes.entry(if is_full { None } else { id }).or_default();
        process.is_live = self.is_live;
        process
    }

    /// Ends the recording of a process, or of several, which lasts up to the last sequence point at least.
    pub(crate) fn finish(mut self, process_id: Option<u64>, last_point: Option<i64>) -> CollectedEvidence {
        let has_events = !self.kinds.is_empty();
        if self.processes.is_empty() {
            self.process(process_id);
        }
        if let Some(time) = last_point {
            self.account.extend_to(time);
        }
        for collection in core::mem::take(&mut self.collections).finish().collections {
            self.process(collection.process_id).gc.add(&collection);
        }
        for compilation in core::mem::take(&mut self.compilations).finish().compilations {
            self.process(compilation.process_id).compiled.add(&compilation);
        }
        CollectedEvidence { account: self.account.finish(), has_events, processes: self.processes }
    }
}

impl CollectedEvidence {
    /// Returns the processes of which something was recorded, or else the one of which nothing was.
    pub(crate) fn processes(&self) -> Vec<(Option<u64>, &ProcessEvidence)> {
        let is_recorded = |process: &ProcessEvidence| !process.recorded.is_empty();
        let is_any = self.processes.values().any(is_recorded);
        let processes = self.processes.iter().filter(|(_, process)| is_recorded(process) || !is_any);
        processes.map(|(id, process)| (*id, process)).collect()
    }
}

impl ProcessEvidence {
    fn counter(&mut self, sample: &Sample<'_>) {
        let Some(name) = COUNTERS.iter().find(|counter| sample.name == **counter) else { return };
        if let Some(value) = sample.value().filter(|_| sample.provider == "System.Runtime") {
            self.counters.entry(name).or_default().add(sample.nanoseconds, value);
        }
    }
}

impl GcEvidence {
    fn add(&mut self, collection: &Collection) {
        let Some(time) = collection.pause_start.or(collection.start).filter(|_| collection.is_complete)
        else {
            return;
        };
        self.all.add(time, 1.0);
        if let Some(pause) = collection.pause {
            self.pauses.add(time, pause as f64 / 1e9);
            self.pause_times.add(pause);
        }
        if collection.reason.is_some_and(Reason::is_induced) {
            self.induced.add(time, 1.0);
        }
        let is_full = collection.generation == 2;
        if is_full {
            self.full.add(time, 1.0);
            if collection.reason == Some(Reason::ALLOC_LARGE) {
                self.by_large_objects.add(time, 1.0);
            }
        }
        if let Some(heap) = &collection.heap {
            let heaps = [Some(&mut self.heap), Some(&mut self.full_heap).filter(|_| is_full)];
            heaps.into_iter().flatten().for_each(|to| to.add(time, heap.total_after() as f64));
        }
    }
}

impl CompiledMethods {
    fn add(&mut self, compilation: &Compilation) {
        let is_again = compilation.tier.is_some_and(|tier| {
            [Tier::OPTIMIZED_TIER1, Tier::OPTIMIZED_TIER1_OSR, Tier::OPTIMIZED_TIER1_INSTRUMENTED]
                .contains(&tier)
        });
        let Some(duration) = compilation.duration.filter(|_| !is_again) else { return };
        self.count = self.count.saturating_add(1);
        self.nanoseconds = self.nanoseconds.saturating_add(duration);
        if compilation.method.starts_with("dynamicClass") {
            self.dynamic.add(compilation.start, 1.0);
        }
    }
}
