//! [`Decode`]: values that are read from bytes; and the typed functions of [`Reader`].
use super::error::WireError;
use super::{PartValue, Path, Reader, Visitor};
use crate::wire::steps;
use crate::{Guid, Text};

/// A value that can be decoded from its wire form, and borrows from it.
///
/// Decoding checks the layout only: a value that runtimes refuse, for example 0 providers, decodes.
pub trait Decode<'a>: Sized {
    /// The length of the shortest value in bytes. An [`Array`](super::Array) refuses a count of more values than fit.
    const MIN_LEN: usize;

    /// Reads one value.
    ///
    /// # Errors
    /// If the bytes are not a valid value. The position of the reader is then unspecified.
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError>;

    /// Returns the value for a [`Part`](super::Part). `bytes` is the wire form of the value.
    fn shown(&self, bytes: &'a [u8]) -> PartValue<'a> {
        PartValue::Bytes(bytes)
    }

    /// Reads one value and passes its parts to `visitor`. By default, the whole value is one part.
    ///
    /// # Errors
    /// As [`decode`](Self::decode). The parts before the error have been visited, and the field with the error has
    /// [failed](Visitor::failed).
    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        r.show(*path, visitor, Self::decode, Self::shown).map(|_| ())
    }
}

/// The type of the function [`Decode::inspect`].
pub(crate) type Inspect<'a> = fn(&mut Reader<'a>, &Path<'_>, &mut dyn Visitor) -> Result<(), WireError>;

/// Decodes one value from the front of `bytes`. Bytes after the value are ignored, as in runtimes.
///
/// # Errors
/// If the bytes are not a valid `T`. Offsets count from the start of `bytes`.
///
/// ```
/// assert_eq!(ipc_proto::wire::decode::<u32>(&[1, 0, 0, 0, 99])?, 1);
/// # Ok::<(), ipc_proto::wire::WireError>(())
/// ```
pub fn decode<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    T::decode(&mut Reader::new(bytes))
}

/// Decodes one value from the front of `bytes`, and returns the value and the bytes after it.
///
/// # Errors
/// As [`decode`].
///
/// ```
/// assert_eq!(ipc_proto::wire::decode_prefix::<u16>(&[1, 0, 99])?, (1, &[99][..]));
/// # Ok::<(), ipc_proto::wire::WireError>(())
/// ```
pub fn decode_prefix<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), WireError> {
    let mut r = Reader::new(bytes);
    Ok((r.read()?, r.rest()))
}

impl<'a> Reader<'a> {
    /// Reads the next value.
    ///
    /// # Errors
    /// If the bytes are not a valid `T`.
    #[inline]
    pub fn read<T: Decode<'a>>(&mut self) -> Result<T, WireError> {
        steps::count(1);
        T::decode(self)
    }

    /// Reads a count, visits it as the part `count` of `path`, and returns it.
    pub(crate) fn show_count(
        &mut self,
        path: &Path<'_>,
        visitor: &mut dyn Visitor,
    ) -> Result<u32, WireError> {
        self.show(Path::Field(path, "count"), visitor, u32::decode, u32::shown)
    }
}

impl<'a> Decode<'a> for Guid {
    const MIN_LEN: usize = 16;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        r.array().map(Self)
    }

    fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
        PartValue::Guid(*self)
    }
}

impl<'a> Decode<'a> for Text<'a> {
    const MIN_LEN: usize = 4;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = r.read()?;
        Self::counted(r, count)
    }

    fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
        PartValue::Text(*self)
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        let count = r.show_count(path, visitor)?;
        r.show(*path, visitor, |r| Self::counted(r, count), Self::shown).map(|_| ())
    }
}
