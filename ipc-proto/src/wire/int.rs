use byteorder::{ByteOrder, LittleEndian};

use super::error::WireError;
use super::{PartValue, Reader, Writer};
use crate::{Decode, Encode, HResult};

macro_rules! little_endian {
    ($($int:ty, $read:ident, $write:ident;)*) => {$(
        impl Encode for $int {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                let mut bytes = [0; size_of::<$int>()];
                LittleEndian::$write(&mut bytes, *self);
                w.bytes(&bytes);
            }
        }
        impl<'a> Decode<'a> for $int {
            const MIN_LEN: usize = size_of::<$int>();

            #[inline]
            fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
                Ok(LittleEndian::$read(&r.array::<{ size_of::<$int>() }>()?))
            }

            fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
                PartValue::Number { number: (*self).into(), name: None }
            }
        }
    )*};
}
little_endian! {
    u16, read_u16, write_u16;
    u32, read_u32, write_u32;
    u64, read_u64, write_u64;
    i32, read_i32, write_i32;
}

/// Converts a length of the wire into one of memory. `usize` has at least 32 bits.
#[must_use]
#[inline]
pub const fn to_usize(number: u32) -> usize {
    number as usize
}

/// Converts a length of memory into a number. `usize` has at most 64 bits.
#[must_use]
#[inline]
pub const fn to_u64(number: usize) -> u64 {
    number as u64
}

/// Converts a length of memory into one of the wire: at most `u32::MAX`.
#[must_use]
#[inline]
pub fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the lowest 8 bits of a number.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the result")]
#[must_use]
#[inline]
pub const fn low_u8(number: u64) -> u8 {
    number as u8
}

/// Returns the lowest 16 bits of a number.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the result")]
#[must_use]
#[inline]
pub const fn low_u16(number: usize) -> u16 {
    number as u16
}

/// Returns the lowest 32 bits of a number.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the result")]
#[must_use]
#[inline]
pub const fn low_u32(number: u64) -> u32 {
    number as u32
}

impl Encode for u8 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(&[*self]);
    }
}
impl<'a> Decode<'a> for u8 {
    const MIN_LEN: usize = 1;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let [byte] = r.array()?;
        Ok(byte)
    }

    fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
        PartValue::Number { number: (*self).into(), name: None }
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        u8::from(*self).encode(w);
    }
}
impl<'a> Decode<'a> for bool {
    const MIN_LEN: usize = 1;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(r.read::<u8>()? != 0)
    }

    fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
        PartValue::Bool(*self)
    }
}

impl Encode for HResult {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}
impl<'a> Decode<'a> for HResult {
    const MIN_LEN: usize = 4;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        r.read().map(Self)
    }

    fn shown(&self, _: &'a [u8]) -> PartValue<'a> {
        PartValue::HResult(*self)
    }
}
