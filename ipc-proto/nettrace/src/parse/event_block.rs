//! The block loop: the compressed events of a block, decoded one after the other.
use core::ops::ControlFlow;

#[cfg(feature = "alloc")]
use ipc_proto::wire::Reader;
use ipc_proto::wire::{copy, steps, to_usize};

use crate::parse::event::{BlobReader, CHUNK, Changes, Chunk, Event};
use crate::parse::prefetch::prefetch;
#[cfg(feature = "alloc")]
use crate::parse::trace::Version;

/// An event of a block, the parts of its header that differ from the event before, and the place of its payload.
#[derive(Debug)]
pub(crate) struct BlockEvent<'h, 'w> {
    pub(crate) event: &'h Event<'w>,
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "only segments read it"))]
    pub(crate) changes: Changes,
    /// The offset of the payload in the window.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "only segments read it"))]
    pub(crate) payload: usize,
    /// The length of the payload. A reader that needs only the place takes it from here, and the compiler omits the rest.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "only segments read it"))]
    pub(crate) payload_size: u32,
}

/// The number of bytes that are loaded into the cache at a time, and how many bytes before they are read that happens.
/// Small steps that are early overlap with the work for the events before them.
const STEP: usize = 1 << 10;
const LEAD: usize = 1 << 10;

impl BlobReader {
    /// Passes the compressed events between `at` and `end` of the window to `take`, until it breaks or the next event is
    /// not complete. `is_cut` states that the block continues after `end`, which is then the end of the window.
    /// [`is_quick`](Self::is_quick) must be true.
    ///
    /// Then `at` and the state are those after the last event; or after the header of the next one, whose payload the
    /// window does not hold. [`next`](Self::next) continues from there, and reports what is wrong with an event.
    ///
    /// The position and the header are local variables, so that the compiler keeps their parts in registers.
    #[inline(always)]
    pub(crate) fn decode<'w, B>(
        &mut self,
        window: &'w [u8],
        at: &mut usize,
        end: usize,
        is_cut: bool,
        mut take: impl FnMut(BlockEvent<'_, 'w>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let has_labels = self.has_labels();
        let (mut header, mut next, mut loaded) = (self.header(), *at, *at);
        let flow = loop {
            if next >= end {
                break ControlFlow::Continue(());
            }
            steps::count(1);
            let rest = window.get(next..).unwrap_or_default();
            if next.wrapping_add(LEAD) >= loaded {
                let ahead = rest.get(loaded.saturating_sub(next)..).unwrap_or_default();
                prefetch(ahead.get(..STEP).unwrap_or(ahead));
                loaded = loaded.max(next).saturating_add(STEP);
            }
            let copy;
            let bytes = match rest.first_chunk() {
                Some(bytes) => bytes,
                // The header can continue after the window.
                None if is_cut => break ControlFlow::Continue(()),
                None => {
                    copy = padded(rest);
                    &copy
                }
            };
            let mut chunk = Chunk { bytes, at: 0 };
            let Ok(changes) = header.read(&mut chunk, has_labels) else { break ControlFlow::Continue(()) };
            let payload = next.wrapping_add(chunk.at);
            let end_of_event = payload.saturating_add(to_usize(header.payload_size));
            if end_of_event > end {
                // If the bytes end with the header, which states more, the block is invalid and not cut.
                if payload < end {
                    self.expect_payload();
                    next = payload;
                }
                break ControlFlow::Continue(());
            }
            header.event.payload = window.get(payload..end_of_event).unwrap_or_default();
            next = end_of_event;
            if let ControlFlow::Break(value) =
                take(BlockEvent { event: &header.event, changes, payload, payload_size: header.payload_size })
            {
                break ControlFlow::Break(value);
            }
        };
        *at = next;
        self.set_header(&header);
        flow
    }
}

/// The body of a block of compressed events that a window holds as a whole.
#[cfg(feature = "alloc")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventBlock<'w> {
    /// The window from the first byte of the body on.
    window: &'w [u8],
    /// The length of the body in bytes.
    len: usize,
    /// The offset in the body of the first event.
    start: usize,
    version: Version,
}

#[cfg(feature = "alloc")]
impl<'w> EventBlock<'w> {
    /// Returns the block whose body is the first `len` bytes of the window. `None` if the window ends before, if the
    /// header of the block is invalid, or if its events are not compressed.
    pub(crate) fn new(window: &'w [u8], len: usize, version: Version) -> Option<Self> {
        let mut r = Reader::new(window.get(..len)?);
        let (size, flags): (u16, u16) = (r.read().ok()?, r.read().ok()?);
        let start = usize::from(size);
        let is_valid = version != Version::V3 && flags & 1 != 0 && size >= 20 && start <= len;
        is_valid.then_some(Self { window, len, start, version })
    }

    /// Returns whether events have label lists, and no activities.
    pub(crate) const fn has_labels(&self) -> bool {
        matches!(self.version, Version::V6)
    }

    /// Returns the length of the body in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Calls `take` for each event. Returns whether the block has nothing but complete events, whose numbers count up if
    /// their headers do not state them.
    ///
    /// Otherwise, `take` was called for some events; the parser reads such a block again, and reports the error.
    #[inline(always)]
    pub(crate) fn decode(&self, mut take: impl FnMut(BlockEvent<'_, 'w>)) -> bool {
        let (mut blobs, mut at) = (BlobReader::new(self.version, true), self.start);
        let flow = blobs.decode(self.window, &mut at, self.len, false, |event| {
            // An event with the metadata id 0 can have the number of the event before.
            if event.event.metadata_id == 0 {
                return ControlFlow::Break(());
            }
            take(event);
            ControlFlow::Continue(())
        });
        flow.is_continue() && at == self.len
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
