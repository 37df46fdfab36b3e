use crate::EncodeError;

/// Appends bytes to a buffer, and goes on counting when they no longer fit.
///
/// That is why encoding cannot fail: whether it fitted, and what would have, is asked once, at the end.
///
/// ```
/// use ipc_proto::{Encode, EncodeError, wire::Writer};
///
/// let mut buf = [0; 4];
/// let mut w = Writer::new(&mut buf);
/// 7u32.encode(&mut w);
/// 1u8.encode(&mut w);
/// assert_eq!(w.finish(), Err(EncodeError::BufferTooSmall { needed: 5 }));
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut [u8],
    /// How many bytes of what is written lie before `buf`.
    skip: usize,
    len: usize,
}

impl<'b> Writer<'b> {
    /// Writes from the front of `buf`.
    #[must_use]
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self::window(buf, 0)
    }

    /// Keeps only the bytes from offset `skip` on: how a long value is sent through a short buffer.
    #[must_use]
    pub const fn window(buf: &'b mut [u8], skip: usize) -> Self {
        Self { buf, skip, len: 0 }
    }

    /// Bytes written, fitting or not.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `bytes`.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        let room = self.buf.get_mut(self.len..).and_then(|room| room.get_mut(..bytes.len()));
        if let (0, Some(room)) = (self.skip, room) {
            copy(room, bytes);
        } else {
            self.visible(bytes);
        }
        self.len = end;
    }

    /// Copies the part of `bytes` that falls into the window, at the present position.
    #[cold]
    fn visible(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(self.skip.saturating_sub(self.len)..).unwrap_or_default();
        let room = self.buf.get_mut(self.len.saturating_sub(self.skip)..).unwrap_or_default();
        copy(room, bytes);
    }

    /// Appends ASCII text as UTF-16 units.
    pub(super) fn ascii_units(&mut self, ascii: &[u8]) {
        let end = self.len.saturating_add(ascii.len().saturating_mul(2));
        if let (0, Some(room)) = (self.skip, self.buf.get_mut(self.len..end)) {
            for (to, from) in room.chunks_exact_mut(2).zip(ascii) {
                if let [low, high] = to {
                    (*low, *high) = (*from, 0);
                }
            }
            self.len = end;
        } else {
            ascii.iter().for_each(|byte| self.bytes(&[*byte, 0]));
        }
    }

    /// Overwrites bytes written before, where all of them fitted.
    pub(crate) fn patch(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(to) = self.buf.get_mut(offset..).and_then(|room| room.get_mut(..bytes.len())) {
            copy(to, bytes);
        }
    }

    /// The bytes written.
    ///
    /// # Errors
    /// [`EncodeError::BufferTooSmall`], with the length that would have been enough.
    pub fn finish(self) -> Result<&'b mut [u8], EncodeError> {
        let needed = self.len.saturating_sub(self.skip);
        self.buf.get_mut(..needed).ok_or(EncodeError::BufferTooSmall { needed })
    }
}

/// Copies what there is, as far as there is room. Not `copy_from_slice`, which panics where the compiler does not see that
/// both are of one length, and it does not always look.
#[inline]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}
