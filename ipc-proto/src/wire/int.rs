use byteorder::{ByteOrder, LittleEndian};

use super::{Reader, Value, Writer};
use crate::{Decode, DecodeError, Encode};

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
            fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(LittleEndian::$read(&r.array::<{ size_of::<$int>() }>()?))
            }

            fn shown(&self, _: &'a [u8]) -> Value<'a> {
                Value::Number { number: (*self).into(), name: None }
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

/// The little-endian `u16` of two bytes.
#[inline]
pub(super) fn unit([low, high]: [u8; 2]) -> u16 {
    LittleEndian::read_u16(&[low, high])
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
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [byte] = r.array()?;
        Ok(byte)
    }

    fn shown(&self, _: &'a [u8]) -> Value<'a> {
        Value::Number { number: (*self).into(), name: None }
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
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(r.read::<u8>()? != 0)
    }

    fn shown(&self, _: &'a [u8]) -> Value<'a> {
        Value::Bool(*self)
    }
}
