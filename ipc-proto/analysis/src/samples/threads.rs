//! The threads that were seen, and what they are called.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};
use nettrace::TraceEvent;

use crate::event::push_text;
use crate::names::{ThreadRow, at_mut, process_of};

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
    /// The operating system's id.
    pub id: u64,
    /// The name of the thread (V6), or its purpose in the runtime; empty if neither is known.
    pub name: String,
}

/// The threads that were seen.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) list: Vec<SampledThread>,
    numbers: BTreeMap<(u64, u64), u32>,
}

impl Threads {
    /// How many threads are distinguished at most.
    pub(super) const LIMIT: usize = 1 << 16;

    /// Returns the number of the thread of an event; `None` if there is no room for it.
    pub(super) fn of(&mut self, event: &TraceEvent<'_>) -> Option<ThreadNumber> {
        let key = (process_of(event), event.thread_id());
        if let Some(number) = self.numbers.get(&key) {
            return Some(ThreadNumber(*number));
        }
        let number = self.add(key)?;
        let name = event.thread().map(|thread| thread.name());
        if let (Some(name), Some(thread)) = (name, at_mut(&mut self.list, number)) {
            push_text(&mut thread.name, name);
        }
        Some(ThreadNumber(number))
    }

    /// Returns the number of the thread of an event, if it has one.
    pub(super) fn known(&self, event: &TraceEvent<'_>) -> Option<ThreadNumber> {
        self.numbers.get(&(process_of(event), event.thread_id())).map(|number| ThreadNumber(*number))
    }

    fn add(&mut self, key: (u64, u64)) -> Option<u32> {
        if self.list.len() >= Self::LIMIT {
            return None;
        }
        let number = to_u32(self.list.len());
        self.list.push(SampledThread { process: key.0, id: key.1, name: String::new() });
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Takes a row that states the purpose of a thread.
    pub(super) fn row(&mut self, event: &TraceEvent<'_>) {
        let Ok(row) = ThreadRow::decode(event.payload()) else { return };
        if !row.name().is_empty() {
            self.name((process_of(event), row.id.into()), row.name());
        }
    }

    /// Takes an event that only the finalizer thread sends.
    pub(super) fn finalizer(&mut self, event: &TraceEvent<'_>) {
        self.name((process_of(event), event.thread_id()), ThreadRow::FINALIZER);
    }

    /// Names a thread that has no name.
    fn name(&mut self, key: (u64, u64), name: &str) {
        let number = self.numbers.get(&key).copied().or_else(|| self.add(key));
        if let Some(thread) = number.and_then(|number| at_mut(&mut self.list, number)) {
            if thread.name.is_empty() {
                thread.name.push_str(name);
            }
        }
    }
}
