//! The evidence of a recording, event by event.
use std::collections::{BTreeMap, BTreeSet};

use nettrace::{Str, TraceEvent};
use nettrace_analysis::counters::{CounterEvent, CounterReader};
use nettrace_analysis::gc::{Collection, Collections, GcStatistics, Reason};
use nettrace_analysis::jit::{Compilation, Compilations, Tier};
use nettrace_analysis::locks::Locks;
use nettrace_analysis::requests::Requests;
use nettrace_analysis::samples::{Clock, Samples};
use nettrace_analysis::{Analysis as _, KnownProvider, OwnCode, Part, RuntimeEvent};

/// Returns the clock that counts events of the runtime.
pub(super) fn runtime_events(event: RuntimeEvent) -> Clock {
    Clock::Events { provider: KnownProvider::Runtime.name().to_owned(), event_id: Some(event.id()) }
}

/// Returns the clock that counts the HTTP requests that the program sends.
pub(super) fn outgoing_requests() -> Clock {
    Clock::Events { provider: "System.Net.Http".to_owned(), event_id: Some(1) }
}

/// Collects the evidence of a diagnosis.
#[derive(Debug)]
pub(crate) struct Evidence {
    part: Part,
    pub(super) requests: Requests,
    pub(super) locks: Locks,
    pub(super) samples: Samples,
    collections: Collections,
    /// The statistics of the collections, after the end.
    pub(super) gc: GcStatistics,
    pub(super) heap: HeapGrowth,
    compilations: Compilations,
    pub(super) compiled: CompiledMethods,
    counters: CounterReader,
    pub(super) series: BTreeMap<&'static str, Vec<f64>>,
    pub(super) exceptions: BTreeMap<String, u64>,
    /// The threads whose waits for a lock have ended.
    pub(super) ended_waits: BTreeSet<u64>,
    pub(super) connections: u64,
    pub(super) processors: Option<u32>,
    pub(super) process_id: Option<u32>,
    pub(super) is_start: bool,
    /// The times of the first and the last event before the rundown.
    span: Option<[i64; 2]>,
}

/// The heap after collections.
#[derive(Debug, Default)]
pub(super) struct HeapGrowth {
    /// Bytes after the first and the last complete collection.
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    /// Complete collections, collections of generation 2, and those of generation 2 that large objects caused.
    pub(super) complete: u64,
    pub(super) full: u64,
    pub(super) by_large_objects: u64,
}

/// The methods that were compiled for the first time: the runtime compiles busy methods again by itself.
#[derive(Debug, Default)]
pub(super) struct CompiledMethods {
    pub(super) count: u64,
    pub(super) nanoseconds: u64,
    /// The methods that the program made at run time, such as compiled regular expressions.
    pub(super) dynamic: u64,
}

/// Event counters of System.Runtime, which all versions have, and the names of their series here.
const COUNTERS: [(&str, &str); 4] = [
    ("cpu-usage", "cpu"),
    ("threadpool-queue-length", "queue"),
    ("threadpool-thread-count", "pool_threads"),
    ("active-timer-count", "timers"),
];

impl Evidence {
    /// How many samples of a counter, and how many types and threads, are stored.
    const LIMIT: usize = 1 << 12;
    /// How many characters of a type's name are stored.
    const NAME: usize = 200;

    /// Returns the clocks whose samples are the evidence.
    fn clocks() -> Vec<Clock> {
        // Their stacks show who starts a thread, a collection or a compilation.
        let events =
            [RuntimeEvent::ThreadCreating, RuntimeEvent::GCTriggered, RuntimeEvent::MethodJittingStarted]
                .map(runtime_events);
        let clocks = [Clock::Cpu, Clock::Wall, Clock::Allocations, Clock::Exceptions, Clock::Contention];
        clocks.into_iter().chain(events).chain([outgoing_requests()]).collect()
    }

    /// Returns no evidence yet, of a part of the recording. `own` decides which methods belong to the program.
    pub(crate) fn new(part: Part, own: OwnCode) -> Self {
        let mut samples = Samples::new(Self::clocks()).of_part(part.clone());
        samples.names_mut().set_own_code(own.clone());
        Self {
            samples,
            requests: Requests::default().of_part(part.clone()).with_own_code(own.clone()),
            locks: Locks::default().of_part(part.clone()).with_own_code(own),
            collections: Collections::default().of_part(part.clone()),
            gc: GcStatistics::default(),
            heap: HeapGrowth::default(),
            compilations: Compilations::default().of_part(part.clone()),
            part,
            compiled: CompiledMethods::default(),
            counters: CounterReader::new(),
            series: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            ended_waits: BTreeSet::new(),
            connections: 0,
            processors: None,
            process_id: None,
            is_start: false,
            span: None,
        }
    }

    /// Takes the next event of the recording, in the part or not.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(metadata) = event.metadata() else { return };
        let provider = KnownProvider::of(metadata.provider);
        let is_inside = self.part.includes(event);
        if is_inside && provider != Some(KnownProvider::Rundown) {
            let time = event.nanoseconds();
            let [_, end] = self.span.get_or_insert_with(|| {
                let trace = event.trace();
                self.processors = trace.and_then(|trace| trace.processors);
                self.process_id = trace.and_then(|trace| trace.process_id);
                [time, time]
            });
            *end = time.max(*end);
        }
        self.samples.event(event);
        self.requests.event(event);
        self.locks.event(event);
        self.collections.event(event);
        while let Some(collection) = self.collections.pop() {
            self.heap.add(&collection);
        }
        self.compilations.event(event);
        while let Some(compilation) = self.compilations.pop() {
            self.compiled.add(&compilation);
        }
        if let Some(CounterEvent::Sample(sample)) = self.counters.event(event) {
            let is_used = is_inside && sample.provider == "System.Runtime";
            if let (true, Some(value)) = (is_used, sample.value()) {
                self.counter(sample.name, value);
            }
        }
        if !is_inside {
            return;
        }
        match provider.and_then(|provider| RuntimeEvent::new(provider, metadata.event_id)) {
            Some(RuntimeEvent::ExceptionThrown) => {
                let name = event.field("ExceptionType").and_then(|field| field.as_str());
                let name = name.map(|name| name.chars().take(Self::NAME).collect()).unwrap_or_default();
                if self.exceptions.len() < Self::LIMIT || self.exceptions.contains_key(&name) {
                    let count = self.exceptions.entry(name).or_default();
                    *count = count.saturating_add(1);
                }
            }
            Some(RuntimeEvent::ContentionStop) if self.ended_waits.len() < Self::LIMIT => {
                self.ended_waits.insert(event.thread_id());
            }
            // The recording has the start of the process.
            Some(RuntimeEvent::RuntimeInformationStart) => self.is_start = true,
            None if metadata.event_id == 4 && metadata.provider == "System.Net.Http" => {
                self.connections = self.connections.saturating_add(1);
            }
            _ => {}
        }
    }

    fn counter(&mut self, name: Str<'_>, value: f64) {
        let Some((_, series)) = COUNTERS.iter().find(|(counter, _)| name == *counter) else { return };
        let series = self.series.entry(series).or_default();
        if series.len() < Self::LIMIT {
            series.push(value);
        }
    }

    /// Ends the recording.
    pub(crate) fn finish(&mut self) {
        self.samples.finish_with(&mut |_, _| {});
        let gc = core::mem::take(&mut self.collections).finish();
        gc.collections.iter().for_each(|collection| self.heap.add(collection));
        self.gc = gc.statistics;
        let jit = core::mem::take(&mut self.compilations).finish();
        jit.compilations.iter().for_each(|compilation| self.compiled.add(compilation));
    }

    /// Returns the length of the recording.
    pub(super) fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |[start, end]| end.saturating_sub(start) as f64 / 1e9)
    }
}

impl HeapGrowth {
    fn add(&mut self, collection: &Collection) {
        let (true, Some(heap)) = (collection.is_complete, &collection.heap) else { return };
        self.complete = self.complete.saturating_add(1);
        self.first.get_or_insert_with(|| heap.total_after());
        self.last = Some(heap.total_after());
        if collection.generation == 2 {
            self.full = self.full.saturating_add(1);
            let is_large = collection.reason == Some(Reason::ALLOC_LARGE);
            self.by_large_objects = self.by_large_objects.saturating_add(is_large.into());
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
        let is_dynamic = compilation.method.starts_with("dynamicClass");
        self.dynamic = self.dynamic.saturating_add(is_dynamic.into());
    }
}
