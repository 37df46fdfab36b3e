//! [`Array`]: a counted list, of checked wire bytes or of values.
use core::hash::{Hash, Hasher};
use core::{fmt, marker::PhantomData, slice};

use super::convert::{to_u32, to_usize};
use super::error::{WireError, WireErrorKind};
use super::{Path, Reader, Visitor, Writer};
use crate::{Decode, Encode};

/// A counted sequence of values.
///
/// ```text
///  0       4
/// | count | element | element | …
///   u32
/// ```
///
/// An `Array` is either a slice of the caller or checked bytes of a message: decoding checks every element, so
/// iterating cannot fail. Arrays compare by content, in either form.
///
/// Decoding allocates nothing for the count. A count that is too large for the remaining bytes is an error.
///
/// ```
/// use ipc_proto::{Array, wire::decode};
///
/// let array: Array<'_, u16> = decode(&[2, 0, 0, 0, 7, 0, 8, 0])?;
/// assert!(array.iter().eq([7, 8]));
/// assert_eq!(array, Array::from(&[7, 8]));
/// assert!(decode::<Array<'_, u16>>(&[255, 255, 255, 255, 7, 0]).is_err());
/// # Ok::<(), ipc_proto::wire::WireError>(())
/// ```
pub struct Array<'a, T>(ArrayRepr<'a, T>);

enum ArrayRepr<'a, T> {
    Slice(&'a [T]),
    /// The bytes of exactly `count` values, all of which decode.
    Wire {
        count: u32,
        bytes: &'a [u8],
    },
}

impl<'a, T> Array<'a, T> {
    /// The empty array.
    pub const EMPTY: Self = Self(ArrayRepr::Slice(&[]));

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            ArrayRepr::Slice(values) => values.len(),
            ArrayRepr::Wire { count, .. } => to_usize(count),
        }
    }

    /// Returns whether the array has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of elements and their bytes in a message; `None` for values of the caller. A
    /// [`Reader`] reads one element after the other, and can stop between them: for a caller that cannot keep an
    /// [`Iter`].
    ///
    /// ```
    /// use ipc_proto::Array;
    /// use ipc_proto::wire::{Reader, decode};
    ///
    /// let array: Array<'_, u16> = decode(&[2, 0, 0, 0, 7, 0, 8, 0])?;
    /// let (count, bytes) = array.as_wire().unwrap();
    /// let mut r = Reader::new(bytes);
    /// assert_eq!((count, r.read::<u16>()?, r.rest()), (2, 7, &[8, 0][..]));
    /// assert_eq!(Array::from(&[7u16, 8]).as_wire(), None);
    /// # Ok::<(), ipc_proto::wire::WireError>(())
    /// ```
    #[must_use]
    pub const fn as_wire(&self) -> Option<(u32, &'a [u8])> {
        match self.0 {
            ArrayRepr::Slice(_) => None,
            ArrayRepr::Wire { count, bytes } => Some((count, bytes)),
        }
    }

    /// Returns an iterator over the values.
    #[must_use]
    pub fn iter(&self) -> Iter<'a, T> {
        Iter(match self.0 {
            ArrayRepr::Slice(values) => IterRepr::Slice(values.iter()),
            ArrayRepr::Wire { count, bytes } => {
                IterRepr::Wire { left: count, reader: Reader::new(bytes), of: PhantomData }
            }
        })
    }
}

/// An iterator over an [`Array`].
#[derive(Debug, Clone)]
pub struct Iter<'a, T>(IterRepr<'a, T>);

#[derive(Debug, Clone)]
enum IterRepr<'a, T> {
    Slice(slice::Iter<'a, T>),
    Wire { left: u32, reader: Reader<'a>, of: PhantomData<T> },
}

impl<'a, T: Decode<'a> + Copy> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            IterRepr::Slice(values) => values.next().copied(),
            IterRepr::Wire { left, reader, .. } => {
                *left = left.checked_sub(1)?;
                reader.read().ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            IterRepr::Slice(values) => values.len(),
            IterRepr::Wire { left, .. } => to_usize(*left),
        };
        (len, Some(len))
    }
}
impl<'a, T: Decode<'a> + Copy> ExactSizeIterator for Iter<'a, T> {}

impl<'a, T: Decode<'a> + Copy> IntoIterator for Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}
impl<'a, T: Decode<'a> + Copy> IntoIterator for &Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Clone for Array<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Array<'_, T> {}
impl<T> Clone for ArrayRepr<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ArrayRepr<'_, T> {}

impl<T> Default for Array<'_, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}
impl<'a, T> From<&'a [T]> for Array<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self(ArrayRepr::Slice(values))
    }
}
impl<'a, T, const N: usize> From<&'a [T; N]> for Array<'a, T> {
    fn from(values: &'a [T; N]) -> Self {
        Self(ArrayRepr::Slice(values))
    }
}

impl<'a, T: Decode<'a> + Copy + PartialEq> PartialEq for Array<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl<'a, T: Decode<'a> + Copy + Eq> Eq for Array<'a, T> {}
impl<'a, T: Decode<'a> + Copy + Hash> Hash for Array<'a, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|value| value.hash(state));
    }
}
impl<'a, T: Decode<'a> + Copy + fmt::Debug> fmt::Debug for Array<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Encode> Encode for Array<'_, T> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self.0 {
            ArrayRepr::Slice(values) => {
                to_u32(values.len()).encode(w);
                values.iter().for_each(|value| value.encode(w));
            }
            ArrayRepr::Wire { count, bytes } => {
                count.encode(w);
                w.bytes(bytes);
            }
        }
    }
}
impl<'a, T: Decode<'a>> Decode<'a> for Array<'a, T> {
    const MIN_LEN: usize = 4;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = Self::count(r)?;
        let all = r.rest();
        for _ in 0..count {
            r.read::<T>()?;
        }
        let len = all.len().saturating_sub(r.rest().len());
        Ok(Self(ArrayRepr::Wire { count, bytes: all.get(..len).unwrap_or_default() }))
    }

    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, visitor: &mut dyn Visitor) -> Result<(), WireError> {
        if let Err(error @ WireError { kind: WireErrorKind::CountTooLarge, .. }) = Self::count(&mut r.clone())
        {
            // The offset of the error is that of the count, but the path of the error is that of the list.
            visitor.failed(path, error);
            return Err(error);
        }
        let count = r.show(Path::Field(path, "count"), visitor, Self::count, u32::shown)?;
        (0..count).try_for_each(|index| T::inspect(r, &Path::Index(path, index), visitor))
    }
}

impl<'a, T: Decode<'a>> Array<'a, T> {
    /// Reads the count. Fails if the count is too large for the remaining bytes.
    fn count(r: &mut Reader<'a>) -> Result<u32, WireError> {
        const { assert!(T::MIN_LEN > 0, "elements without bytes could be counted without end") };
        let too_large = r.error(WireErrorKind::CountTooLarge);
        let count: u32 = r.read()?;
        let least = to_usize(count).checked_mul(T::MIN_LEN);
        if least.is_none_or(|least| least > r.rest().len()) { Err(too_large) } else { Ok(count) }
    }
}

/// Decodes arbitrary bytes, so that the array borrows from the input and needs no allocated elements.
#[cfg(feature = "arbitrary")]
impl<'a, T: Decode<'a>> arbitrary::Arbitrary<'a> for Array<'a, T> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let n = u.arbitrary_len::<u8>()?;
        let all = u.bytes(n)?;
        let mut r = Reader::new(all);
        let (mut count, mut len) = (0u32, 0);
        while r.read::<T>().is_ok() && r.offset() > len {
            count = count.saturating_add(1);
            len = r.offset();
        }
        Ok(Self(ArrayRepr::Wire { count, bytes: all.get(..len).unwrap_or_default() }))
    }
}
