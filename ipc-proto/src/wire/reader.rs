//! [`Reader`]: a position in bytes, with the offset of errors. Its typed `read` is in `decode.rs`.
use super::error::{WireError, WireErrorKind};

/// A cursor over bytes with a known end.
///
/// Reading past the end is an error, because the input is complete: [`Parsed`](crate::Parsed) is for incomplete input.
///
/// ```
/// use ipc_proto::wire::{Reader, WireErrorKind};
///
/// let mut r = Reader::new(&[1, 0, 7]);
/// assert_eq!(r.read::<u16>()?, 1);
/// assert_eq!(r.rest(), [7]);
/// let error = r.read::<u32>().unwrap_err();
/// assert_eq!((error.kind, error.offset), (WireErrorKind::UnexpectedEnd, 2));
/// # Ok::<(), ipc_proto::wire::WireError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The offset of the byte after `rest`.
    end: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Creates a reader of `bytes`, which begin at `offset` of a larger input. Errors have offsets in that input.
    #[must_use]
    pub const fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, end: offset.saturating_add(bytes.len()) }
    }

    /// Returns the offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.end.saturating_sub(self.rest.len())
    }

    /// Returns the remaining bytes.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns an error at the current offset.
    #[must_use]
    pub const fn error(&self, kind: WireErrorKind) -> WireError {
        WireError { kind, offset: self.offset() }
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    /// [`WireErrorKind::UnexpectedEnd`] if fewer bytes remain.
    #[inline]
    pub const fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            return Err(self.error(WireErrorKind::UnexpectedEnd));
        };
        self.rest = rest;
        Ok(head)
    }

    /// Reads the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`WireErrorKind::UnexpectedEnd`] if fewer bytes remain.
    #[inline]
    pub const fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(WireErrorKind::UnexpectedEnd));
        };
        self.rest = rest;
        Ok(*head)
    }
}
