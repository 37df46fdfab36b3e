//! Threads of V6 and their properties.
use ipc_proto::wire::Reader;

use crate::encoding::{Str, Varint64, utf8};
use crate::error::DecodeError;

/// A thread that events refer to by its index; V6.
///
/// The index may be used again after the thread is removed, or after a sequence point that flushes threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thread<'a> {
    /// The index, as in [`Event::thread`](crate::Event::thread) and
    /// [`Event::capture_thread`](crate::Event::capture_thread).
    pub index: u64,
    /// The properties of the thread.
    pub entries: ThreadEntries<'a>,
}

impl<'a> Thread<'a> {
    /// Returns the name of the thread; empty if it has none.
    #[must_use]
    pub fn name(&self) -> Str<'a> {
        { self.entries }
            .find_map(|entry| if let ThreadEntry::Name(name) = entry { Some(name) } else { None })
            .unwrap_or_default()
    }

    /// Returns the id of the thread's process, if that is not the process of the trace.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        let mut entries = self.entries;
        entries.find_map(|entry| if let ThreadEntry::ProcessId(id) = entry { Some(id) } else { None })
    }

    /// Returns the operating system's id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> Option<u64> {
        let mut entries = self.entries;
        entries.find_map(|entry| if let ThreadEntry::ThreadId(id) = entry { Some(id) } else { None })
    }

    /// Reads a row without its size.
    pub(crate) fn row(row: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(row);
        let Varint64(index) = r.read()?;
        Ok(Self { index, entries: ThreadEntries { bytes: r.rest() } })
    }
}

/// A property of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadEntry<'a> {
    /// Kind 1: the name.
    Name(Str<'a>),
    /// Kind 2: the id of the thread's process.
    ProcessId(u64),
    /// Kind 3: the operating system's id of the thread.
    ThreadId(u64),
    /// Kind 4: any other property, a key and a value.
    Pair(Str<'a>, Str<'a>),
}

/// The properties of a thread in order, up to the first of an unknown kind, whose length is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadEntries<'a> {
    bytes: &'a [u8],
}

impl<'a> ThreadEntries<'a> {
    /// Reads entries as a stream has them: each is a kind and its content.
    #[must_use]
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the remaining entries as the stream has them, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for ThreadEntries<'a> {
    type Item = ThreadEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut r = Reader::new(self.bytes);
        let entry = match r.read::<u8>().ok()? {
            1 => ThreadEntry::Name(utf8(&mut r).ok()?),
            2 => ThreadEntry::ProcessId(r.read::<Varint64>().ok()?.0),
            3 => ThreadEntry::ThreadId(r.read::<Varint64>().ok()?.0),
            4 => ThreadEntry::Pair(utf8(&mut r).ok()?, utf8(&mut r).ok()?),
            _ => return None,
        };
        self.bytes = r.rest();
        Some(entry)
    }
}
