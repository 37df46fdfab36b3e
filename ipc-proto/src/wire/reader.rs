use crate::{Decode, DecodeError, DecodeErrorKind};

/// A cursor over bytes whose end is known.
///
/// Running out is therefore malformed input, not a wish for more: see [`Parsed`](crate::Parsed) for that.
///
/// ```
/// use ipc_proto::{DecodeErrorKind, wire::Reader};
///
/// let mut r = Reader::new(&[1, 0, 7]);
/// assert_eq!(r.read::<u16>()?, 1);
/// assert_eq!(r.rest(), [7]);
/// let error = r.read::<u32>().unwrap_err();
/// assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnexpectedEnd, 2));
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The offset of the byte behind `rest`.
    end: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the front.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Reads `bytes`, which lie at `offset` of what the caller calls the whole: errors then point into that.
    #[must_use]
    pub const fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, end: offset.saturating_add(bytes.len()) }
    }

    /// The offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.end.saturating_sub(self.rest.len())
    }

    /// The bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error at the present offset.
    #[must_use]
    pub const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { kind, offset: self.offset() }
    }

    /// Takes the next `n` bytes.
    ///
    /// # Errors
    /// [`DecodeErrorKind::UnexpectedEnd`] if fewer are left.
    #[inline]
    pub const fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            return Err(self.error(DecodeErrorKind::UnexpectedEnd));
        };
        self.rest = rest;
        Ok(head)
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`DecodeErrorKind::UnexpectedEnd`] if fewer are left.
    #[inline]
    pub const fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(DecodeErrorKind::UnexpectedEnd));
        };
        self.rest = rest;
        Ok(*head)
    }

    /// Reads the next value.
    ///
    /// # Errors
    /// If the bytes are no valid `T`.
    #[inline]
    pub fn read<T: Decode<'a>>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }
}
