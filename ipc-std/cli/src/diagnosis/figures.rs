//! The figures of a diagnosis: all measurements, also where nothing is wrong.
use std::io::{self, Write};

use nettrace_analysis::samples::Clock;
use serde_json::{Value, json};

use super::facts::{Facts, median};
use crate::output::tables::write_fields;

impl Facts {
    /// Returns the figures. What neither the system nor the recording knows is null.
    pub(crate) fn to_json(&self) -> Value {
        let evidence = &self.evidence;
        let (gc, heap) = (&evidence.gc, &evidence.heap);
        let last = |name| self.series(name).last().copied();
        let system = self.system.as_ref().map(|[_, end]| end);
        let megabytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / 1e6);
        let has_samples = evidence.samples.samples() > 0;
        json!({
            "process_id": evidence.process_id,
            "seconds": self.seconds,
            "processors": evidence.processors,
            "cores": self.cores,
            "samples": evidence.samples.samples(),
            "running_samples": has_samples.then_some(self.cpu.total),
            "collections": gc.all.count,
            "full_collections": heap.full,
            "induced_collections": gc.all.induced,
            "gc_paused_percent": self.per_second(gc.all.pauses.total()) / 1e7,
            "longest_pause_ms": (gc.all.count > 0).then(|| gc.all.pauses.longest() as f64 / 1e6),
            "heap_before_mb": megabytes(heap.first),
            "heap_after_mb": megabytes(heap.last),
            "allocated_mb_per_second": self.per_second(self.allocations.total) / 1e6,
            "exceptions_per_second": self.per_second(self.exceptions.total),
            "lock_waits": evidence.samples.count(&Clock::Contention),
            "threads_waiting_for_locks": self.waiting_threads(),
            "longest_lock_wait_ms": self.longest_wait() as f64 / 1e6,
            "thread_pool_threads": last("pool_threads"),
            "thread_pool_queue": median(self.series("queue")),
            "timers": last("timers"),
            "threads": system.and_then(|system| system.threads),
            "descriptors": system.and_then(|system| system.descriptors),
            "descriptor_limit": system.and_then(|system| system.descriptor_limit),
            "sockets": system.and_then(|system| system.sockets),
            "compiled_methods": evidence.compiled.count,
            "compilation_ms": evidence.compiled.nanoseconds as f64 / 1e6,
            "requests_in_flight": self.in_flight(),
            "finished_requests_per_second": self.per_second(self.finished()),
            "outgoing_requests": self.outgoing.total,
            "new_connections": evidence.connections,
        })
    }

    /// Returns how many incoming requests had not ended.
    fn in_flight(&self) -> u64 {
        self.requests.incoming().fold(0, |sum, group| sum.saturating_add(group.in_flight))
    }

    /// Returns how many incoming requests ended.
    fn finished(&self) -> u64 {
        self.requests.incoming().fold(0, |sum, group| sum.saturating_add(group.durations.count()))
    }

    /// Writes the figures for people.
    pub(crate) fn write_figures(&self, out: &mut dyn Write) -> io::Result<()> {
        let evidence = &self.evidence;
        let (gc, heap) = (&evidence.gc.all, &evidence.heap);
        let mut fields = Vec::new();
        let of = evidence.processors.map_or_else(String::new, |processors| format!(" of {processors}"));
        let cores =
            self.cores.map_or_else(|| "not known".to_owned(), |cores| format!("{cores:.2}{of} cores"));
        fields.push(("Processor", cores));
        let after = match (heap.first, heap.last) {
            (Some(first), Some(last)) => {
                format!("; heap {:.0} MB, then {:.0} MB", first as f64 / 1e6, last as f64 / 1e6)
            }
            _ => String::new(),
        };
        fields.push((
            "Collections",
            format!(
                "{} ({} of generation 2), paused for {:.1} % of the time{after}",
                gc.count,
                heap.full,
                self.per_second(gc.pauses.total()) / 1e7
            ),
        ));
        fields.push(("Allocations", format!("{:.1} MB/s", self.per_second(self.allocations.total) / 1e6)));
        fields.push(("Exceptions", format!("{:.1} a second", self.per_second(self.exceptions.total))));
        fields.push((
            "Lock waits",
            format!(
                "{}; {:.2} threads wait at any time",
                evidence.samples.count(&Clock::Contention),
                self.waiting_threads()
            ),
        ));
        if let (Some(threads), Some(queue)) =
            (self.series("pool_threads").last(), median(self.series("queue")))
        {
            fields.push(("Thread pool", format!("{threads:.0} threads, {queue:.0} items usually wait")));
        }
        if let Some([_, end]) = &self.system {
            let number =
                |value: Option<usize>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            fields.push((
                "System",
                format!(
                    "{} threads, {} descriptors, {} of them sockets",
                    number(end.threads),
                    number(end.descriptors),
                    number(end.sockets)
                ),
            ));
        }
        if self.in_flight() > 0 || self.finished() > 0 {
            let finished = self.per_second(self.finished());
            fields.push((
                "Requests",
                format!("{} in flight, {finished:.1} finished a second", self.in_flight()),
            ));
        }
        fields.push((
            "Compilation",
            format!(
                "{} methods, {:.0} ms",
                evidence.compiled.count,
                evidence.compiled.nanoseconds as f64 / 1e6
            ),
        ));
        write_fields(&fields, out)
    }
}
