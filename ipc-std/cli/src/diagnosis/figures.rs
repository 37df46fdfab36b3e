//! The figures of a diagnosis: all measurements, also where nothing is wrong.
use std::io::{self, Write};

use nettrace_analysis::account::{Gauge, Measure, ThreadState};
use nettrace_analysis::requests::Direction;
use serde::Serialize;

use super::fact::{Fact, Wish};
use super::facts::Facts;
use crate::output::tables::write_fields;

/// The figures of a process. What neither the system nor the recording knows is null.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    process_id: Option<u64>,
    seconds: f64,
    processors: Option<u32>,
    cores: Option<f64>,
    samples: u64,
    running_samples: Fact<u64>,
    collections: Fact<u64>,
    full_collections: Fact<u64>,
    induced_collections: Fact<u64>,
    gc_paused_percent: Fact<f64>,
    longest_pause_ms: Option<f64>,
    heap_before_mb: Option<f64>,
    heap_after_mb: Option<f64>,
    allocated_mb_per_second: Fact<f64>,
    exceptions_per_second: Fact<f64>,
    lock_waits: Fact<u64>,
    threads_waiting_for_locks: Fact<f64>,
    longest_lock_wait_ms: Fact<f64>,
    thread_pool_threads: Option<f64>,
    thread_pool_queue: Option<f64>,
    timers: Option<f64>,
    threads: Option<usize>,
    descriptors: Option<usize>,
    descriptor_limit: Option<u64>,
    sockets: Option<usize>,
    compiled_methods: Fact<u64>,
    compilation_ms: Fact<f64>,
    requests_in_flight: Fact<u64>,
    finished_requests_per_second: Fact<f64>,
    outgoing_requests: Fact<u64>,
    new_connections: Fact<u64>,
}

impl Figures {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let of = facts.of;
        let events = |wish: Wish, value: f64| Fact::new(facts.is_recorded(wish).then_some(value), wish);
        let counts = |wish: Wish, value: u64| Fact::new(facts.is_recorded(wish).then_some(value), wish);
        let system = facts.system.as_ref().map(|[_, end]| end);
        let last = |name| facts.counter(name).and_then(Gauge::last);
        let samples: u64 = facts.rows(Measure::Samples).map(|row| row.count).sum();
        let running = facts.samples(ThreadState::Runs, |_| true).iter().map(|of| of.weight).sum();
        let in_flight = facts.groups(Direction::Incoming).map(|group| group.in_flight).sum();
        let finished: u64 = facts.groups(Direction::Incoming).map(|group| group.durations.count()).sum();
        let outgoing = facts.rows(Measure::Sent).map(|row| row.count).sum();
        let longest = facts.locks().map(|lock| lock.waits.longest).max().unwrap_or_default();
        let waits: u64 = facts.rows(Measure::Contention).map(|row| row.count).sum();
        // A counter is a number a second.
        let sum = |wish: Wish, count: u64, counters: &[&str]| match facts.is_recorded(wish) {
            true => Fact::Known(count),
            false => {
                let rate = facts.fact(wish, || 0.0, counters).known();
                Fact::new(rate.map(|rate| whole(rate * facts.seconds)), wish)
            }
        };
        let megabytes = |gauge: Option<f64>| gauge.map(|bytes| bytes / 1e6);
        let paused = facts.per_second(of.gc.pauses.sum()) * 100.0;
        let allocated = facts.fact(
            Wish::Allocations,
            || facts.per_second(facts.total(Measure::Allocations)),
            Wish::Allocations.counters(),
        );
        Self {
            process_id: facts.process_id,
            seconds: facts.seconds,
            processors: of.processors,
            cores: facts.cores(),
            samples,
            running_samples: Fact::new((samples > 0).then_some(running), Wish::Samples),
            collections: sum(Wish::Collections, of.gc.all.count(), Wish::Collections.counters()),
            full_collections: sum(Wish::Collections, of.gc.full.count(), &["gen-2-gc-count"]),
            induced_collections: counts(Wish::Collections, of.gc.induced.count()),
            gc_paused_percent: events(Wish::Collections, paused),
            longest_pause_ms: (of.gc.all.count() > 0).then(|| of.gc.pause_times.longest() as f64 / 1e6),
            heap_before_mb: megabytes(of.gc.heap.first()),
            heap_after_mb: megabytes(of.gc.heap.last()),
            allocated_mb_per_second: Fact::new(megabytes(allocated.known()), Wish::Allocations),
            exceptions_per_second: facts.fact(
                Wish::Exceptions,
                || facts.per_second(facts.total(Measure::Exceptions)),
                Wish::Exceptions.counters(),
            ),
            lock_waits: sum(Wish::Locks, waits, Wish::Locks.counters()),
            threads_waiting_for_locks: events(
                Wish::Locks,
                facts.per_second(facts.total(Measure::Contention)) / 1e9,
            ),
            longest_lock_wait_ms: events(Wish::Locks, longest as f64 / 1e6),
            thread_pool_threads: last("threadpool-thread-count"),
            thread_pool_queue: facts.counter("threadpool-queue-length").and_then(Gauge::median),
            timers: last("active-timer-count"),
            threads: system.and_then(|system| system.threads),
            descriptors: system.and_then(|system| system.descriptors),
            descriptor_limit: system.and_then(|system| system.descriptor_limit),
            sockets: system.and_then(|system| system.sockets),
            compiled_methods: sum(Wish::Compilations, of.compiled.count, Wish::Compilations.counters()),
            compilation_ms: events(Wish::Compilations, of.compiled.nanoseconds as f64 / 1e6),
            requests_in_flight: counts(Wish::Requests, in_flight),
            finished_requests_per_second: events(Wish::Requests, facts.per_second(finished as f64)),
            outgoing_requests: counts(Wish::Requests, outgoing),
            new_connections: counts(Wish::Requests, of.connections.count()),
        }
    }

    /// Writes the figures for people.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut fields = Vec::new();
        let of = self.processors.map_or_else(String::new, |processors| format!(" of {processors}"));
        let cores = self.cores.map(|cores| format!("{cores:.2}{of} cores"));
        fields.push(("Processor", cores.unwrap_or_else(|| "not known".to_owned())));
        let heap = self.heap_before_mb.zip(self.heap_after_mb);
        let heap =
            heap.map_or_else(String::new, |(first, last)| format!("; heap {first:.0} MB, then {last:.0} MB"));
        let full = self.full_collections.known().unwrap_or_default();
        let paused = self.gc_paused_percent.text(|percent| format!("paused for {percent:.1} % of the time"));
        let collections =
            self.collections.text(|count| format!("{count} ({full} of generation 2), {paused}{heap}"));
        fields.push(("Collections", collections.replace("), not recorded", "), by counters")));
        let allocated = self.allocated_mb_per_second.text(|rate| format!("{rate:.1} MB/s"));
        fields.push(("Allocations", allocated));
        fields.push(("Exceptions", self.exceptions_per_second.text(|rate| format!("{rate:.1} a second"))));
        let waiting = self.threads_waiting_for_locks.known();
        let waiting = waiting.map_or_else(
            || ", by a counter".to_owned(),
            |threads| format!("; {threads:.2} threads wait at any time"),
        );
        fields.push(("Lock waits", self.lock_waits.text(|count| format!("{count}{waiting}"))));
        if let (Some(threads), Some(queue)) = (self.thread_pool_threads, self.thread_pool_queue) {
            fields.push(("Thread pool", format!("{threads:.0} threads, {queue:.0} items usually wait")));
        }
        if let Some(threads) = self.threads {
            let number =
                |value: Option<usize>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            let (descriptors, sockets) = (number(self.descriptors), number(self.sockets));
            let text = format!("{threads} threads, {descriptors} descriptors, {sockets} of them sockets");
            fields.push(("System", text));
        }
        let finished = self.finished_requests_per_second.known().unwrap_or_default();
        let requests = |in_flight| format!("{in_flight} in flight, {finished:.1} finished a second");
        fields.push(("Requests", self.requests_in_flight.text(requests)));
        let time = self.compilation_ms.known().map_or_else(String::new, |time| format!(", {time:.0} ms"));
        fields.push(("Compilation", self.compiled_methods.text(|count| format!("{count} methods{time}"))));
        write_fields(&fields, out)
    }
}

/// Returns a count that is not negative as a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
fn whole(count: f64) -> u64 {
    count.round() as u64
}
