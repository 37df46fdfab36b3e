//! The threads that were seen, and what they are called.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};
use nettrace::TraceEvent;

use crate::Stacks;
use crate::event::push_text;
use crate::names::{Names, ThreadRow, at_mut, process_of};

/// The number of a thread: its index in [`Samples::threads`](super::Samples::threads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadNumber(pub(super) u32);

impl ThreadNumber {
    pub(crate) fn of(number: u16) -> Self {
        Self(number.into())
    }

    /// Returns the index of the thread in [`Samples::threads`](super::Samples::threads).
    #[must_use]
    pub const fn number(self) -> usize {
        to_usize(self.0)
    }
}

/// A thread of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledThread {
    /// The process of the thread; 0 is the process of a trace of a runtime.
    pub process: u64,
    /// The operating system's id. In a trace of version 6, a later thread can have the same one.
    pub id: u64,
    /// The thread in the trace's own numbers: [`TraceEvent::thread_index`].
    pub index: u64,
    /// The name of the thread (V6), or its purpose in the runtime; empty if neither is known.
    pub name: String,
}

/// The threads that were seen.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    pub(crate) list: Vec<SampledThread>,
    numbers: BTreeMap<ThreadKey, u32>,
}

/// What all analyses of the same events share: the names of methods, the stacks and the threads.
#[derive(Debug)]
pub(crate) struct TraceTables<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) stacks: &'a mut Stacks,
    pub(crate) threads: &'a mut Threads,
}

/// The process, the operating system's id, and the index of a thread.
type ThreadKey = (u64, u64, u64);

/// The index of a thread that has a name, but no event until now.
const NO_INDEX: u64 = u64::MAX;

impl Threads {
    /// How many threads are distinguished at most.
    pub(crate) const LIMIT: usize = 1 << 16;

    /// Returns the number of the thread of an event; `None` if there is no room for it.
    pub(crate) fn of(&mut self, event: &TraceEvent<'_>) -> Option<ThreadNumber> {
        let key = (process_of(event), event.thread_id(), event.thread_index());
        if let Some(number) = self.numbers.get(&key) {
            return Some(ThreadNumber(*number));
        }
        let named = self.numbers.remove(&(key.0, key.1, NO_INDEX));
        let number = named.or_else(|| self.add(key))?;
        self.numbers.insert(key, number);
        let name = event.thread().map(|thread| thread.name());
        if let Some(thread) = at_mut(&mut self.list, number) {
            thread.index = key.2;
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                thread.name.clear();
                push_text(&mut thread.name, name);
            }
        }
        Some(ThreadNumber(number))
    }

    /// Returns the number of the thread of an event, if it has one.
    pub(super) fn known(&self, event: &TraceEvent<'_>) -> Option<ThreadNumber> {
        let key = (process_of(event), event.thread_id(), event.thread_index());
        self.numbers.get(&key).map(|number| ThreadNumber(*number))
    }

    fn add(&mut self, (process, id, index): ThreadKey) -> Option<u32> {
        if self.list.len() >= Self::LIMIT {
            return None;
        }
        let number = to_u32(self.list.len());
        self.list.push(SampledThread { process, id, index, name: String::new() });
        Some(number)
    }

    /// Takes a row that states the purpose of a thread.
    pub(super) fn row(&mut self, event: &TraceEvent<'_>) {
        let Ok(row) = ThreadRow::decode(event.payload()) else { return };
        if !row.name().is_empty() {
            let number = self.of_row(event, &row);
            self.name(number, row.name());
        }
    }

    /// Returns the number of the thread that a row is about; `None` if there is no room for it.
    pub(crate) fn of_row(&mut self, event: &TraceEvent<'_>, row: &ThreadRow) -> Option<ThreadNumber> {
        let id = row.id.into();
        // A thread sends the event about itself, and the rundown those about the threads that run.
        let own = if event.thread_id() == id { self.of(event) } else { None };
        own.or_else(|| self.of_id(process_of(event), id))
    }

    /// Returns the number of the latest thread with an id of the operating system, which is added if there is none.
    pub(crate) fn of_id(&mut self, process: u64, id: u64) -> Option<ThreadNumber> {
        self.latest(process, id).or_else(|| {
            let key = (process, id, NO_INDEX);
            let number = self.add(key)?;
            self.numbers.insert(key, number);
            Some(ThreadNumber(number))
        })
    }

    /// Returns the number of the latest thread with an id of the operating system.
    pub(crate) fn latest(&self, process: u64, id: u64) -> Option<ThreadNumber> {
        let of_id = self.numbers.range((process, id, 0)..=(process, id, NO_INDEX));
        of_id.map(|(_, number)| *number).max().map(ThreadNumber)
    }

    /// Takes an event that only the finalizer thread sends.
    pub(super) fn finalizer(&mut self, event: &TraceEvent<'_>) {
        let number = self.of(event);
        self.name(number, ThreadRow::FINALIZER);
    }

    /// Names a thread that has no name.
    fn name(&mut self, number: Option<ThreadNumber>, name: &str) {
        if let Some(thread) = number.and_then(|number| at_mut(&mut self.list, number.0)) {
            if thread.name.is_empty() {
                thread.name.push_str(name);
            }
        }
    }
}
