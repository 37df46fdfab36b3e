//! A whole block of compressed events, decoded in one loop.
use ipc_proto::wire::{Reader, copy, steps, to_usize};

use crate::parse::event::{CHUNK, Changes, Chunk, Event, Header};
use crate::parse::prefetch::prefetch;
use crate::parse::trace::Version;

/// The body of a block of compressed events that a window holds as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventBlock<'w> {
    /// The window from the first byte of the body on.
    window: &'w [u8],
    /// The length of the body in bytes.
    len: usize,
    /// The offset in the body of the first event.
    start: usize,
    /// Whether the events have label lists: V6.
    has_labels: bool,
}

/// An event of a block: its header, the parts that differ from the event before, and the place of its payload.
#[derive(Debug)]
pub(crate) struct BlockEvent<'h> {
    pub(crate) header: &'h Event<'static>,
    pub(crate) changes: Changes,
    /// The offset of the payload in the body.
    pub(crate) payload: usize,
    pub(crate) payload_size: u32,
}

/// The number of bytes that are loaded into the cache at a time, and how many bytes before they are read that happens.
/// Small steps that are early overlap with the work for the events before them.
const STEP: usize = 1 << 10;
const LEAD: usize = 1 << 10;

impl<'w> EventBlock<'w> {
    /// Returns the block whose body is the first `len` bytes of the window. `None` if the window ends before, if the
    /// header of the block is invalid, or if its events are not compressed.
    pub(crate) fn new(window: &'w [u8], len: usize, version: Version) -> Option<Self> {
        let mut r = Reader::new(window.get(..len)?);
        let (size, flags): (u16, u16) = (r.read().ok()?, r.read().ok()?);
        let start = usize::from(size);
        let is_valid = version != Version::V3 && flags & 1 != 0 && size >= 20 && start <= len;
        is_valid.then_some(Self { window, len, start, has_labels: version == Version::V6 })
    }

    /// Returns whether events have label lists, and no activities.
    pub(crate) const fn has_labels(&self) -> bool {
        self.has_labels
    }

    /// Returns the length of the body in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Calls `take` for each event. Returns whether the block has nothing but complete events, whose numbers count up if
    /// their headers do not state them.
    ///
    /// Otherwise, `take` was called for some events; the parser reads such a block again, and reports the error. The
    /// header of the last event is a local variable, so that the compiler keeps its parts in registers.
    #[inline(always)]
    pub(crate) fn decode(&self, mut take: impl FnMut(BlockEvent<'_>)) -> bool {
        let (mut header, mut at, mut loaded) = (Header::default(), self.start, self.start);
        while at < self.len {
            steps::count(1);
            let rest = self.window.get(at..).unwrap_or_default();
            if at.wrapping_add(LEAD) >= loaded {
                let ahead = rest.get(loaded.saturating_sub(at)..).unwrap_or_default();
                prefetch(ahead.get(..STEP).unwrap_or(ahead));
                loaded = loaded.max(at).saturating_add(STEP);
            }
            let copy;
            let bytes = match rest.first_chunk() {
                Some(bytes) => bytes,
                None => {
                    copy = padded(rest);
                    &copy
                }
            };
            let mut chunk = Chunk { bytes, at: 0 };
            let Ok(changes) = header.read(&mut chunk, self.has_labels) else { return false };
            let payload = at.wrapping_add(chunk.at);
            at = payload.saturating_add(to_usize(header.payload_size));
            // An event with the metadata id 0 can have the number of the event before.
            if at > self.len || header.event.metadata_id == 0 {
                return false;
            }
            take(BlockEvent { header: &header.event, changes, payload, payload_size: header.payload_size });
        }
        true
    }
}

/// Returns the last bytes of a window, followed by zeros. A header that continues in the zeros ends after the window.
#[cold]
#[inline(never)]
fn padded(rest: &[u8]) -> [u8; CHUNK] {
    let mut chunk = [0; CHUNK];
    copy(&mut chunk, rest);
    chunk
}
