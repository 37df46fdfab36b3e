//! A payload, read value by value. It does not matter in which form the fields are described.
use ipc_proto::wire::{Reader, to_usize};

use crate::describe::{ArrayKind, Scalar};
use crate::encoding::Str;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::values::value::Value;

/// The unread bytes of a payload, and the remaining work.
#[derive(Clone, Debug)]
pub(crate) struct PayloadReader<'a> {
    payload: &'a [u8],
    pub(crate) r: Reader<'a>,
    /// The place to continue after an array that lies elsewhere in the payload.
    back: Option<Reader<'a>>,
    /// The offset of the first byte to which an array refers, and the offset after the last one.
    referred: (usize, usize),
    /// The remaining work, in items.
    pub(crate) work: usize,
    /// The last number that counts the elements of following arrays.
    count: u32,
}

/// The elements of an array.
pub(crate) enum Elements<'a> {
    /// All of them are one value.
    Whole(Value<'a>),
    /// So many elements follow.
    Counted(u32),
    /// The elements are these bytes, which lie elsewhere in the payload.
    Elsewhere(Reader<'a>),
}

impl<'a> PayloadReader<'a> {
    #[inline]
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        let work = payload.len().saturating_mul(4).saturating_add(32);
        Self { payload, r: Reader::new(payload), back: None, referred: (usize::MAX, 0), work, count: 0 }
    }

    /// Returns the unread bytes up to those to which arrays refer or, if there are none, the bytes after both.
    pub(crate) fn rest(&self) -> &'a [u8] {
        let (read, (first, end)) = (self.r.offset(), self.referred);
        let range = if first > read {
            read..first.min(self.payload.len())
        } else {
            read.max(end)..self.payload.len()
        };
        self.payload.get(range).unwrap_or_default()
    }

    /// Returns an error of this kind at the next byte.
    #[inline]
    pub(crate) const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::at(&self.r, kind)
    }

    /// Takes this much from the remaining work.
    #[inline]
    pub(crate) fn spend(&mut self, work: usize) -> Result<(), DecodeError> {
        let Some(left) = self.work.checked_sub(work) else {
            return Err(self.error(DecodeErrorKind::TooManyItems));
        };
        self.work = left;
        Ok(())
    }

    /// Reads a number that counts the elements of following arrays.
    #[inline(never)]
    pub(crate) fn count(&mut self, scalar: Scalar) -> Result<Value<'a>, DecodeError> {
        let too_large = self.error(DecodeErrorKind::CountTooLarge);
        let value = Value::read(scalar, &mut self.r)?;
        if let Value::UInt(count) = value {
            self.count = u32::try_from(count).map_err(|_| too_large)?;
        }
        Ok(value)
    }

    /// Begins an array. `element` is the type of its elements, if they are scalars.
    #[inline]
    pub(crate) fn elements(
        &mut self,
        kind: ArrayKind,
        element: Option<Scalar>,
    ) -> Result<Elements<'a>, DecodeError> {
        // Arrays of these elements are one value.
        let unit = element.and_then(|unit| Some((unit, unit_size(unit)?)));
        let count = match kind {
            ArrayKind::Counted => u32::from(self.r.read::<u16>()?),
            ArrayKind::FixedLength(count) => count.into(),
            ArrayKind::CountedBefore => self.count,
            ArrayKind::RelLoc | ArrayKind::DataLoc => return self.elsewhere(kind, unit),
        };
        Ok(match unit {
            Some((unit, size)) => {
                Elements::Whole(whole(unit, self.r.bytes(to_usize(count).saturating_mul(size))?))
            }
            None => Elements::Counted(count),
        })
    }

    #[inline(never)]
    fn elsewhere(
        &mut self,
        kind: ArrayKind,
        unit: Option<(Scalar, usize)>,
    ) -> Result<Elements<'a>, DecodeError> {
        let outside = self.error(DecodeErrorKind::UnexpectedEnd);
        let [low, high, len_low, len_high] = self.r.array()?;
        let place = usize::from(u16::from_le_bytes([low, high]));
        let len = usize::from(u16::from_le_bytes([len_low, len_high]));
        let from = if kind == ArrayKind::RelLoc { self.r.offset() } else { 0 };
        let start = from.checked_add(place).ok_or(outside)?;
        let bytes = self.payload.get(start..).and_then(|rest| rest.get(..len)).ok_or(outside)?;
        if len != 0 {
            let (first, end) = self.referred;
            self.referred = (first.min(start), end.max(start.saturating_add(len)));
        }
        let Some((unit, size)) = unit else { return Ok(Elements::Elsewhere(Reader::at(bytes, start))) };
        if len.checked_rem(size) != Some(0) {
            return Err(outside);
        }
        // Several fields can refer to the same bytes, so each reference costs work.
        self.spend(len)?;
        Ok(Elements::Whole(whole(unit, bytes)))
    }

    /// Continues with the elements of an array that lies elsewhere. The elements contain no arrays of this kind, so one
    /// offset to return to is enough.
    pub(crate) fn enter(&mut self, elements: Reader<'a>) {
        self.back = Some(core::mem::replace(&mut self.r, elements));
    }

    /// Continues after the array that was entered.
    pub(crate) fn leave(&mut self) {
        if let Some(back) = self.back.take() {
            self.r = back;
        }
    }
}

/// Returns the size in bytes of elements of this type, if arrays of them are one value.
#[inline]
const fn unit_size(unit: Scalar) -> Option<usize> {
    match unit {
        Scalar::Byte | Scalar::Utf8CodeUnit => Some(1),
        Scalar::Utf16CodeUnit => Some(2),
        _ => None,
    }
}

/// Returns an array of these elements as one value.
const fn whole(unit: Scalar, bytes: &[u8]) -> Value<'_> {
    match unit {
        Scalar::Utf16CodeUnit => Value::Text(Str::Utf16(bytes)),
        Scalar::Utf8CodeUnit => Value::Text(Str::Utf8(bytes)),
        _ => Value::Bytes(bytes),
    }
}
