//! The processes of a trace, with their events and threads.
use std::collections::BTreeMap;

use nettrace::{Event, IdMap, Record, Slot, Version};
use serde::Serialize;

/// The processes of a trace.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The process of the trace.
    process_id: Option<u64>,
    has_indexes: bool,
    threads: IdMap<Vec<Slot<ThreadFacts>>>,
    counts: BTreeMap<Option<u64>, ProcessCounts>,
    /// The thread of the last events, and how many they are that `counts` does not have yet.
    last: (u64, u64),
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadFacts {
    /// The process, if the thread has another one than the trace.
    process_id: Option<u64>,
    /// The operating system's id, if the thread is declared with one.
    thread_id: Option<u64>,
    /// Whether there was an event of the thread.
    is_counted: bool,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct ProcessCounts {
    events: u64,
    threads: u64,
}

/// A process as JSON.
#[derive(Serialize)]
pub(super) struct ProcessRow {
    process_id: Option<u64>,
    #[serde(flatten)]
    counts: ProcessCounts,
}

/// The number of processes that the text names.
const SHOWN: usize = 20;

impl Processes {
    /// Takes the next record that is not an event.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        self.count_last();
        match record {
            Record::Trace(trace) => {
                self.process_id = trace.process_id.map(u64::from);
                self.has_indexes = trace.version == Version::V6;
            }
            Record::Thread(thread) => {
                let process_id = thread.process_id();
                // A thread that is declared twice is one thread.
                let before = self.threads.get(thread.index).filter(|before| before.process_id == process_id);
                let is_counted = before.is_some_and(|before| before.is_counted);
                let facts = ThreadFacts { process_id, thread_id: thread.thread_id(), is_counted };
                let _ = self.threads.insert(thread.index, facts);
            }
            Record::RemoveThread(row) => _ = self.threads.remove(row.thread),
            Record::SequencePoint(point) if point.flushes_threads() => self.threads.clear(),
            _ => {}
        }
    }

    /// Returns the process of an event's thread, or of the thread that has recorded it.
    pub(super) fn of_thread(&self, thread: u64) -> Option<u64> {
        let process = self.threads.get(thread).and_then(|facts| facts.process_id);
        process.or(self.process_id)
    }

    /// Returns the operating system's id of an event's thread, or of the thread that has recorded it.
    pub(super) fn thread_id(&self, thread: u64) -> u64 {
        match self.has_indexes {
            true => {
                self.threads.get(thread).and_then(|facts| facts.thread_id).unwrap_or(Event::UNKNOWN_THREAD)
            }
            false => thread,
        }
    }

    /// Counts an event.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let (thread, events) = &mut self.last;
        if *thread == event.thread {
            *events = events.saturating_add(1);
        } else {
            self.count_last();
            self.last = (event.thread, 1);
        }
    }

    /// Adds the last events, which are of one thread, to the counts. Must be called before the process of a thread
    /// changes, and before the counts are read.
    #[inline(never)]
    pub(super) fn count_last(&mut self) {
        let (thread, events) = core::mem::take(&mut self.last);
        if events == 0 {
            return;
        }
        let process = self.of_thread(thread);
        let counts = self.counts.entry(process).or_default();
        counts.events = counts.events.saturating_add(events);
        let is_new = match self.threads.get_mut(thread) {
            Some(facts) => !core::mem::replace(&mut facts.is_counted, true),
            // In version 6, an index that leads to no thread counts as none.
            None if self.has_indexes => false,
            None => {
                let facts = ThreadFacts { is_counted: true, ..ThreadFacts::default() };
                let _ = self.threads.insert(thread, facts);
                thread != Event::UNKNOWN_THREAD
            }
        };
        counts.threads = counts.threads.saturating_add(is_new.into());
    }

    pub(super) fn to_json(&self) -> Vec<ProcessRow> {
        self.counts.iter().map(|(id, counts)| ProcessRow { process_id: *id, counts: *counts }).collect()
    }

    /// Returns the processes with the most events, for people.
    pub(super) fn text(&self) -> String {
        let mut rows: Vec<_> = self.counts.iter().collect();
        rows.sort_by_key(|(_, counts)| core::cmp::Reverse(counts.events));
        let shown = rows.iter().take(SHOWN).map(|(id, counts)| {
            let id = id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
            format!("{id} ({} events, {} threads)", counts.events, counts.threads)
        });
        let shown: Vec<String> = shown.collect();
        match rows.len().saturating_sub(SHOWN) {
            0 if shown.is_empty() => "(none)".to_owned(),
            0 => shown.join(", "),
            more => format!("{}, and {more} more", shown.join(", ")),
        }
    }
}
