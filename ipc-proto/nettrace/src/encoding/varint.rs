//! Integers of variable length: LEB128 and zigzag.
use ipc_proto::wire::{Reader, WireError, WireErrorKind, Writer, low_u8, low_u32};
use ipc_proto::{Decode, Encode};

/// A `u32` in LEB128: seven bits a byte, the lowest first, bit 7 set in every byte but the last; at most 5 bytes.
///
/// Decoding accepts zero-padded encodings and rejects bits that do not fit. Encoding writes the shortest form.
///
/// ```
/// use nettrace::Varint32;
/// use ipc_proto::{Encode, wire};
///
/// let mut buf = [0; 5];
/// let mut w = wire::Writer::new(&mut buf);
/// Varint32(300).encode(&mut w);
/// assert_eq!(w.finish()?, [0xac, 0x02]);
/// assert_eq!(wire::decode::<Varint32>(&[0xac, 0x82, 0x00])?, Varint32(300));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Varint32(pub u32);

/// A `u64` in LEB128, at most 10 bytes; otherwise as [`Varint32`].
///
/// A timestamp can be smaller than the one before. The difference wraps, so -1 takes all ten bytes.
///
/// ```
/// use ipc_proto::Encode;
/// use nettrace::Varint64;
///
/// assert_eq!(Varint64(u64::MAX).encoded_len(), 10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Varint64(pub u64);

/// An `i64` whose sign is in bit 0 (0, -1, 1, -2, …), then as [`Varint64`]. Only V6 has it, and its documentation calls
/// it `varint`.
///
/// ```
/// use nettrace::Zigzag64;
/// use ipc_proto::wire;
///
/// assert_eq!(wire::decode::<Zigzag64>(&[3])?, Zigzag64(-2));
/// # Ok::<(), ipc_proto::wire::WireError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zigzag64(pub i64);

/// Reads an integer of `bits` bits.
fn read(r: &mut Reader<'_>, bits: u32) -> Result<u64, WireError> {
    let start = r.clone();
    let (mut value, mut shift) = (0u64, 0u32);
    loop {
        let byte = r.read::<u8>()?;
        let low = u64::from(byte & 0x7f);
        let room = bits.wrapping_sub(shift);
        if low.checked_shr(room).is_some_and(|beyond| beyond != 0) {
            return Err(start.error(WireErrorKind::BadValue));
        }
        value |= low.wrapping_shl(shift);
        if byte < 0x80 {
            return Ok(value);
        }
        shift = shift.wrapping_add(7);
        if shift >= bits {
            return Err(start.error(WireErrorKind::BadValue));
        }
    }
}

impl<'a> Decode<'a> for Varint64 {
    const MIN_LEN: usize = 1;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        read(r, 64).map(Self)
    }
}
impl<'a> Decode<'a> for Varint32 {
    const MIN_LEN: usize = 1;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        // `read` accepted at most 32 bits, so the upper half of the value is zero.
        read(r, 32).map(|value| Self(low_u32(value)))
    }
}
impl<'a> Decode<'a> for Zigzag64 {
    const MIN_LEN: usize = 1;

    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let Varint64(value) = r.read()?;
        let sign = (value & 1).wrapping_neg();
        Ok(Self((value.wrapping_shr(1) ^ sign) as i64))
    }
}

impl Encode for Varint64 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        let mut value = self.0;
        while value >= 0x80 {
            w.bytes(&[low_u8(value) | 0x80]);
            value = value.wrapping_shr(7);
        }
        w.bytes(&[low_u8(value)]);
    }
}
impl Encode for Varint32 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        Varint64(self.0.into()).encode(w);
    }
}
impl Encode for Zigzag64 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        // Shifted right, the sign fills all bits.
        let value = self.0.wrapping_shl(1) ^ self.0.wrapping_shr(63);
        Varint64(value as u64).encode(w);
    }
}
