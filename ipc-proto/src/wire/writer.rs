//! [`Writer`]: a position in a buffer, which counts on past the end of the buffer.
use byteorder::{ByteOrder, LittleEndian};

use super::error::BufferTooSmall;
use super::steps;

/// Appends bytes to a buffer, and counts the bytes that do not fit.
///
/// So encoding cannot fail: [`finish`](Self::finish) reports once, at the end, whether all bytes fitted, or which
/// length is required.
///
/// ```
/// use ipc_proto::{Encode, wire::{BufferTooSmall, Writer}};
///
/// let mut buf = [0; 4];
/// let mut w = Writer::new(&mut buf);
/// 7u32.encode(&mut w);
/// 1u8.encode(&mut w);
/// assert_eq!(w.finish(), Err(BufferTooSmall { needed: 5 }));
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut [u8],
    /// The number of bytes before the window, which are counted but not stored.
    skip: usize,
    len: usize,
}

impl<'b> Writer<'b> {
    /// Creates a writer to the front of `buf`.
    #[must_use]
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self::window(buf, 0)
    }

    /// Creates a writer that stores only the bytes from offset `skip` on, to send a long value through a short buffer.
    #[must_use]
    pub const fn window(buf: &'b mut [u8], skip: usize) -> Self {
        Self { buf, skip, len: 0 }
    }

    /// Returns the number of written bytes, including those that did not fit.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `bytes`.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        // A sum that wraps is below the start, and so not in the buffer.
        let end = self.len.wrapping_add(bytes.len());
        if let (0, Some(room)) = (self.skip, self.buf.get_mut(self.len..end)) {
            copy(room, bytes);
            self.len = end;
        } else {
            self.visible(bytes);
        }
    }

    /// Appends `bytes`, of which a part is outside the window or the buffer.
    #[cold]
    #[inline(never)]
    fn visible(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        let bytes = bytes.get(self.skip.saturating_sub(self.len)..).unwrap_or_default();
        let room = self.buf.get_mut(self.len.saturating_sub(self.skip)..).unwrap_or_default();
        copy(room, bytes);
        self.len = end;
    }

    /// Appends ASCII text as UTF-16 units.
    #[inline]
    pub fn ascii_units(&mut self, ascii: &[u8]) {
        let end = self.len.saturating_add(ascii.len().saturating_mul(2));
        if let (0, Some(room)) = (self.skip, self.buf.get_mut(self.len..end)) {
            widen(room, ascii);
            self.len = end;
        } else {
            ascii.iter().for_each(|byte| self.bytes(&[*byte, 0]));
        }
    }

    /// Appends a count, ASCII text as UTF-16 units, and a NUL unit, with one check for all of them. Returns `false` if
    /// they are not all inside the window and the buffer, and appends nothing then.
    #[inline]
    pub(super) fn ascii_text(&mut self, count: u32, ascii: &[u8]) -> bool {
        // A sum that wraps is below the start, and so not in the buffer.
        let end = self.len.wrapping_add(ascii.len().wrapping_mul(2)).wrapping_add(6);
        let room = self.buf.get_mut(self.len..end).and_then(<[u8]>::split_first_chunk_mut);
        let (0, Some((head, rest))) = (self.skip, room) else { return false };
        let Some((units, nul)) = rest.split_last_chunk_mut() else { return false };
        let mut number = [0; 4];
        LittleEndian::write_u32(&mut number, count);
        *head = number;
        widen(units, ascii);
        *nul = [0; 2];
        self.len = end;
        true
    }

    /// Overwrites the written bytes at `offset`, if they fitted into the buffer.
    pub fn patch(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(to) = self.buf.get_mut(offset..).and_then(|room| room.get_mut(..bytes.len())) {
            copy(to, bytes);
        }
    }

    /// Overwrites the written `u16` at `offset`, if it fitted into the buffer.
    pub fn patch_u16(&mut self, offset: usize, number: u16) {
        let mut bytes = [0; 2];
        LittleEndian::write_u16(&mut bytes, number);
        self.patch(offset, &bytes);
    }

    /// Overwrites the written `u32` at `offset`, if it fitted into the buffer.
    pub fn patch_u32(&mut self, offset: usize, number: u32) {
        let mut bytes = [0; 4];
        LittleEndian::write_u32(&mut bytes, number);
        self.patch(offset, &bytes);
    }

    /// Returns the written bytes.
    ///
    /// # Errors
    /// [`BufferTooSmall`] with the required length.
    pub fn finish(self) -> Result<&'b mut [u8], BufferTooSmall> {
        let needed = self.len.saturating_sub(self.skip);
        self.buf.get_mut(..needed).ok_or(BufferTooSmall { needed })
    }
}

/// Copies as many bytes as fit. Not `copy_from_slice`, which panics for different lengths: the compiler cannot always
/// prove that the lengths are equal.
pub fn copy(to: &mut [u8], from: &[u8]) {
    steps::count(from.len());
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Writes ASCII text as UTF-16 units to twice its length.
#[inline]
fn widen(to: &mut [u8], ascii: &[u8]) {
    let mut at = 0usize;
    while let (Some(room), Some(eight)) = (
        to.get_mut(at.wrapping_mul(2)..).and_then(<[u8]>::first_chunk_mut),
        ascii.get(at..).and_then(<[u8]>::first_chunk),
    ) {
        widen_eight(room, eight);
        at = at.wrapping_add(8);
        if at == ascii.len() {
            return;
        }
        // The last eight overlap those before them, so that only a short text is written one by one.
        at = at.min(ascii.len().wrapping_sub(8));
    }
    for (room, byte) in to.chunks_exact_mut(2).zip(ascii) {
        if let [low, high] = room {
            (*low, *high) = (*byte, 0);
        }
    }
}

#[inline]
const fn widen_eight(to: &mut [u8; 16], ascii: &[u8; 8]) {
    let [a, b, c, d, e, f, g, h] = *ascii;
    *to = [a, 0, b, 0, c, 0, d, 0, e, 0, f, 0, g, 0, h, 0];
}
