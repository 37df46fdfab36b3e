//! A range of bytes in a buffer or in a window, in half the memory of two `usize`.
use core::ops::Range;

use ipc_proto::wire::{to_u32, to_usize};

/// A part of a buffer or of a window of less than 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByteRange {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl ByteRange {
    /// Returns the range of `len` bytes that begins at `start`. A number that does not fit into 32 bits counts as the
    /// largest one.
    #[inline]
    pub(crate) fn new(start: usize, len: usize) -> Self {
        Self { start: to_u32(start), len: to_u32(len) }
    }

    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        let start = to_usize(self.start);
        start..start.saturating_add(to_usize(self.len))
    }

    /// Returns the bytes of this range in `bytes`; none if the range is not in them.
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.range()).unwrap_or_default()
    }
}
