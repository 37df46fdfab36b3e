//! A thread of V6 with its own copy of the entries.
use alloc::boxed::Box;

use ipc_proto::wire::steps;

use crate::parse::{Thread, ThreadEntries};

/// A [`Thread`] that owns its entries. Its ids are read once, because many events can refer to the thread.
#[derive(Debug)]
pub(crate) struct ThreadBuf {
    index: u64,
    thread_id: Option<u64>,
    process_id: Option<u64>,
    entries: Box<[u8]>,
}

impl ThreadBuf {
    pub(crate) fn new(thread: &Thread<'_>) -> Self {
        let entries = thread.entries.as_bytes();
        steps::count(entries.len());
        let (thread_id, process_id) = (thread.thread_id(), thread.process_id());
        Self { index: thread.index, thread_id, process_id, entries: entries.into() }
    }

    /// Returns the operating system's id of the thread.
    pub(crate) const fn thread_id(&self) -> Option<u64> {
        self.thread_id
    }

    /// Returns the id of the thread's process, if that is not the process of the trace.
    pub(crate) const fn process_id(&self) -> Option<u64> {
        self.process_id
    }

    pub(crate) fn get(&self) -> Thread<'_> {
        Thread { index: self.index, entries: ThreadEntries::from_bytes(&self.entries) }
    }

    /// Returns the bytes of memory that the thread takes.
    pub(crate) const fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.entries.len())
    }
}
