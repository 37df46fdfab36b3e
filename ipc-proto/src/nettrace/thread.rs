use super::field::utf8;
use super::{Str, Varint64};
use crate::DecodeError;
use crate::wire::Reader;

/// A thread that events point to by its index; V6.
///
/// The index is free again once the thread is removed, or a sequence point says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thread<'a> {
    /// What [`Event::thread`](super::Event::thread) and its capture thread say.
    pub index: u64,
    /// What is known of it.
    pub entries: ThreadEntries<'a>,
}

impl<'a> Thread<'a> {
    /// Its name; none is empty.
    #[must_use]
    pub fn name(&self) -> Str<'a> {
        { self.entries }
            .find_map(|entry| if let ThreadEntry::Name(name) = entry { Some(name) } else { None })
            .unwrap_or_default()
    }

    /// The process that it belongs to, if that is not the trace's.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        { self.entries }
            .find_map(|entry| if let ThreadEntry::ProcessId(id) = entry { Some(id) } else { None })
    }

    /// The system's number of it.
    #[must_use]
    pub fn thread_id(&self) -> Option<u64> {
        { self.entries }.find_map(|entry| if let ThreadEntry::ThreadId(id) = entry { Some(id) } else { None })
    }

    /// Reads the row, its size left out.
    pub(super) fn row(row: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(row);
        let Varint64(index) = r.read()?;
        Ok(Self { index, entries: ThreadEntries { bytes: r.rest() } })
    }
}

/// Something that is known of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadEntry<'a> {
    /// Kind 1: its name.
    Name(Str<'a>),
    /// Kind 2: the process that it belongs to.
    ProcessId(u64),
    /// Kind 3: the system's number of it.
    ThreadId(u64),
    /// Kind 4: anything else, a key and a value.
    Pair(Str<'a>, Str<'a>),
}

/// What is known of a thread, one after the other, up to the first entry of a kind unknown here: nothing says how long
/// that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadEntries<'a> {
    bytes: &'a [u8],
}

impl<'a> ThreadEntries<'a> {
    /// Entries as they lie in a stream: a kind, and what belongs to it.
    #[must_use]
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The entries that are left as they lie in the stream, for whoever has to keep them.
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
