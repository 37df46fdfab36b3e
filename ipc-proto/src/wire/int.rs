//! The wire forms of integers, of `bool` and of [`HResult`].
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
