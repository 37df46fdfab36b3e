//! Numbers, texts and objects of FastSerialization.
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::{Reader, WireError, to_usize};

use super::file::GcdumpError;

/// The bytes before a value, which state its type.
pub(super) mod tag {
    pub(in super::super) const NULL: u8 = 1;
    pub(in super::super) const REFERENCE: u8 = 2;
    pub(in super::super) const BEGIN: u8 = 4;
    pub(in super::super) const END: u8 = 6;
    pub(in super::super) const BYTE: u8 = 8;
    pub(in super::super) const SKIP: u8 = 12;
    pub(in super::super) const STRING: u8 = 13;
}

/// A position in a file.
pub(super) struct FileReader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) r: Reader<'a>,
}

/// The versions of the type of an object.
#[derive(Clone, Copy)]
pub(super) struct TypeVersion {
    pub(super) version: i32,
    /// The version of the oldest reader that can read the object.
    pub(super) oldest_reader: i32,
}

impl From<WireError> for GcdumpError {
    fn from(_: WireError) -> Self {
        Self::Truncated
    }
}

impl<'a> FileReader<'a> {
    pub(super) fn corrupt<T>(&self) -> Result<T, GcdumpError> {
        Err(GcdumpError::Corrupt(self.r.offset()))
    }

    pub(super) fn byte(&mut self) -> Result<u8, GcdumpError> {
        Ok(self.r.read::<u8>()?)
    }

    pub(super) fn i32(&mut self) -> Result<i32, GcdumpError> {
        Ok(i32::from_le_bytes(self.r.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, GcdumpError> {
        Ok(self.r.read()?)
    }

    pub(super) fn u64(&mut self) -> Result<u64, GcdumpError> {
        Ok(self.r.read()?)
    }

    pub(super) fn f32(&mut self) -> Result<f32, GcdumpError> {
        Ok(f32::from_le_bytes(self.r.array()?))
    }

    /// Reads a number of elements.
    pub(super) fn count(&mut self) -> Result<usize, GcdumpError> {
        let count = self.i32()?;
        u32::try_from(count).map(to_usize).or_else(|_| self.corrupt())
    }

    /// Reads the bytes of a column: a count, and so many elements.
    pub(super) fn column(&mut self, size: usize) -> Result<&'a [u8], GcdumpError> {
        let count = self.count()?;
        Ok(self.r.bytes(count.saturating_mul(size))?)
    }

    pub(super) fn expect(&mut self, expected: u8) -> Result<(), GcdumpError> {
        if self.byte()? == expected { Ok(()) } else { self.corrupt() }
    }

    /// Reads a text; `None` for null. Each UTF-16 unit is written as if it were a character.
    pub(super) fn string(&mut self) -> Result<Option<String>, GcdumpError> {
        let count = self.i32()?;
        let Ok(count) = u32::try_from(count) else {
            return if count == -1 { Ok(None) } else { self.corrupt() };
        };
        let mut units = Vec::new();
        for _ in 0..count {
            let mut next = || self.r.read::<u8>().map(u16::from);
            let first = next()?;
            units.push(match first {
                0..0x80 => first,
                0x80..0xE0 => (first & 0x1F) << 6 | next()? & 0x3F,
                _ => (first & 0xF) << 12 | (next()? & 0x3F) << 6 | next()? & 0x3F,
            });
        }
        Ok(Some(String::from_utf16_lossy(&units)))
    }

    /// Begins an object; `None` for null.
    pub(super) fn begin(&mut self) -> Result<Option<TypeVersion>, GcdumpError> {
        match self.byte()? {
            tag::NULL => return Ok(None),
            tag::BEGIN => {}
            _ => return self.corrupt(),
        }
        match self.byte()? {
            tag::BEGIN => {
                let version = self.type_version()?;
                self.string()?;
                self.expect(tag::END)?;
                Ok(Some(version))
            }
            tag::REFERENCE => {
                let at = self.count()?;
                let bytes = self.bytes.get(at..).unwrap_or_default();
                let mut defined = FileReader { bytes: self.bytes, r: Reader::at(bytes, at) };
                defined.expect(tag::BEGIN)?;
                defined.type_version().map(Some)
            }
            _ => self.corrupt(),
        }
    }

    fn type_version(&mut self) -> Result<TypeVersion, GcdumpError> {
        self.expect(tag::NULL)?;
        Ok(TypeVersion { version: self.i32()?, oldest_reader: self.i32()? })
    }
}

/// Takes the next compressed number from a blob. A negative number is its two's complement.
#[inline]
pub(super) fn next_compressed(blob: &mut &[u8]) -> Option<u32> {
    let (mut number, mut is_first) = (0_u32, true);
    for _ in 0..5 {
        let (byte, rest) = blob.split_first()?;
        *blob = rest;
        if core::mem::take(&mut is_first) {
            // The sign of 7 bits.
            number = ((u32::from(*byte) << 25) as i32 >> 25) as u32;
        } else {
            number = number << 7 | u32::from(byte & 0x7F);
        }
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a compressed number.
pub(super) fn push_compressed(blob: &mut Vec<u8>, number: u32) {
    let number = number as i32;
    // Another bit is the sign.
    let magnitude = if number < 0 { !number } else { number };
    let more = 32_u32.saturating_sub(magnitude.leading_zeros()) / 7;
    for group in (0..=more).rev() {
        let bits = number.wrapping_shr(group.saturating_mul(7).min(31)).to_le_bytes()[0] & 0x7F;
        blob.push(if group > 0 { bits | 0x80 } else { bits });
    }
}

/// Appends a text; `None` becomes null.
pub(super) fn push_string(to: &mut Vec<u8>, text: Option<&str>) {
    let Some(text) = text else { return to.extend((-1_i32).to_le_bytes()) };
    let units = text.encode_utf16().count();
    to.extend(ipc_proto::wire::to_u32(units).to_le_bytes());
    for unit in text.encode_utf16() {
        let [low, high] = unit.to_le_bytes();
        match unit {
            0..0x80 => to.push(low),
            0x80..0x800 => to.extend([0xC0 | high << 2 | low >> 6, 0x80 | low & 0x3F]),
            _ => to.extend([0xE0 | high >> 4, 0x80 | (high & 0xF) << 2 | low >> 6, 0x80 | low & 0x3F]),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{next_compressed, push_compressed};

    #[test]
    fn compressed_numbers_return() {
        let encoded = |number: i32| {
            let mut blob = Vec::new();
            push_compressed(&mut blob, number as u32);
            let mut rest = blob.as_slice();
            assert_eq!((next_compressed(&mut rest), rest.len()), (Some(number as u32), 0), "{blob:?}");
            blob
        };
        for bits in 0..32 {
            for near in -2..=2 {
                for number in [(1_i32 << bits).wrapping_add(near), (-1_i32 << bits).wrapping_add(near)] {
                    assert!(encoded(number).len() <= 5);
                }
            }
        }
        assert_eq!((encoded(63), encoded(64), encoded(-64)), ([63].into(), [0x80, 64].into(), [0x40].into()));
        assert_eq!(next_compressed(&mut [0xFF; 9].as_slice()), None);
    }
}
