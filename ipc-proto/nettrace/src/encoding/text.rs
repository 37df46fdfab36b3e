//! Strings in the bytes of a stream: UTF-16 and UTF-8, read without a copy.
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use ipc_proto::wire::{Reader, Utf16, steps, to_usize};

use crate::encoding::varint::Varint32;
use crate::error::{DecodeError, DecodeErrorKind};

/// A string of a trace, in the bytes of the stream.
///
/// Versions 3 to 5 write names and payload strings as UTF-16 with a NUL at the end, version 6 writes its names as UTF-8
/// after a length. Invalid text (a lone surrogate, a stray byte) is kept, and displayed as U+FFFD. Strings of both
/// encodings compare by their UTF-16 code units.
///
/// ```
/// use nettrace::Str;
///
/// let wide = Str::Utf16(b"G\0C\0");
/// assert_eq!(wide, "GC");
/// assert_eq!(wide, Str::Utf8(b"GC"));
/// assert_eq!(Str::Utf8(b"\xff!").to_string(), "\u{fffd}!");
/// ```
#[derive(Clone, Copy)]
pub enum Str<'a> {
    /// Little-endian UTF-16 code units, without the NUL, not aligned. An odd last byte is ignored.
    Utf16(&'a [u8]),
    /// UTF-8, without its length.
    Utf8(&'a [u8]),
}

impl<'a> Str<'a> {
    /// The empty string.
    pub const EMPTY: Self = Self::Utf8(&[]);

    /// Returns whether the string has no characters.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Utf16([] | [_]) | Self::Utf8([]))
    }

    /// Returns the UTF-16 code units; U+FFFD for invalid UTF-8.
    pub fn units(&self) -> impl Iterator<Item = u16> + Clone + use<'a> {
        let (wide, narrow): (&[u8], &[u8]) = match *self {
            Self::Utf16(bytes) => (bytes, &[]),
            Self::Utf8(bytes) => (&[], bytes),
        };
        // The text has one form, so one of the two iterators is empty.
        wide.chunks_exact(2)
            .filter_map(|unit| unit.first_chunk())
            .map(|unit: &[u8; 2]| u16::from_le_bytes(*unit))
            .chain(narrow.utf8_chunks().flat_map(|chunk| {
                let stray = (!chunk.invalid().is_empty()).then_some(0xfffd);
                chunk.valid().encode_utf16().chain(stray)
            }))
    }

    /// Returns the characters; U+FFFD for each lone surrogate and for invalid UTF-8.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        Utf16(self.units()).chars()
    }
}

impl Default for Str<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}
impl<'a> From<&'a str> for Str<'a> {
    fn from(s: &'a str) -> Self {
        Self::Utf8(s.as_bytes())
    }
}
impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Utf16(a), Self::Utf16(b)) => a == b || a.chunks_exact(2).eq(b.chunks_exact(2)),
            // Different bytes can be the same text only if both are invalid UTF-8. ASCII is valid, and quick to find.
            (Self::Utf8(a), Self::Utf8(b)) => {
                a == b || !a.is_ascii() && !b.is_ascii() && self.units().eq(other.units())
            }
            (Self::Utf16(wide), Self::Utf8(narrow)) | (Self::Utf8(narrow), Self::Utf16(wide)) => {
                is_same(wide, narrow)
            }
        }
    }
}
impl Eq for Str<'_> {}

/// Returns whether UTF-16 and UTF-8 are the same text. ASCII, as in almost all names, is compared without decoding it.
fn is_same(mut wide: &[u8], mut narrow: &[u8]) -> bool {
    // The bits of four UTF-16 units that are zero if all of them are ASCII.
    const OTHER: u64 = 0xff80_ff80_ff80_ff80;
    // A text has at most as many UTF-16 units as bytes of UTF-8, so a UTF-16 text with more units than `narrow` has
    // bytes is not equal.
    if wide.len() / 2 > narrow.len() {
        return false;
    }
    while let (Some((units, wide_rest)), Some((bytes, narrow_rest))) =
        (wide.split_first_chunk::<8>(), narrow.split_first_chunk::<4>())
    {
        let [a, b, c, d] = *bytes;
        let (units, bytes) = (u64::from_le_bytes(*units), u64::from_le_bytes([a, 0, b, 0, c, 0, d, 0]));
        if (units | bytes) & OTHER != 0 {
            break;
        }
        if units != bytes {
            return false;
        }
        (wide, narrow) = (wide_rest, narrow_rest);
    }
    while let ([unit, 0, wide_rest @ ..], [byte @ ..=0x7f, narrow_rest @ ..]) = (wide, narrow) {
        if unit != byte {
            return false;
        }
        (wide, narrow) = (wide_rest, narrow_rest);
    }
    if narrow.is_empty() {
        return Str::Utf16(wide).is_empty();
    }
    Str::Utf16(wide).units().eq(Str::Utf8(narrow).units())
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Str::from(other)
    }
}
impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}
impl PartialOrd for Str<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
/// Compares by UTF-16 code units.
impl Ord for Str<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.units().cmp(other.units())
    }
}
impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.units().for_each(|unit| unit.hash(state));
        state.write_u8(0xff);
    }
}
impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Utf16(self.units()), f)
    }
}
/// Writes `"text"`, escaped as Rust would, with a lone surrogate as `\u{d800}`.
impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Utf16(self.units()), f)
    }
}

/// Reads UTF-16 up to and including its NUL.
#[inline]
pub(crate) fn utf16_z<'a>(r: &mut Reader<'a>) -> Result<Str<'a>, DecodeError> {
    let Some(len) = find_nul(r.rest()) else {
        steps::count(r.rest().len());
        return Err(DecodeError::at(r, DecodeErrorKind::Unterminated));
    };
    steps::count(len);
    let text = r.bytes(len)?;
    r.bytes(2)?;
    Ok(Str::Utf16(text))
}

/// Returns the length in bytes of the UTF-16 text before the first NUL unit.
#[inline]
fn find_nul(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0001_0001_0001_0001;
    const HIGH: u64 = 0x8000_8000_8000_8000;
    let fours = bytes.chunks_exact(8);
    let rest = fours.remainder();
    let mut at = 0usize;
    for four in fours {
        let units = four.first_chunk().map_or(0, |four: &[u8; 8]| u64::from_le_bytes(*four));
        // The lowest bit set belongs to the first zero unit. Higher bits can be set for units that are not zero.
        let zero = units.wrapping_sub(LOW) & !units & HIGH;
        if zero != 0 {
            // Bit 15, 31, 47 or 63 is unit 0, 1, 2 or 3.
            let unit = usize::try_from(zero.trailing_zeros().wrapping_shr(4)).ok()?;
            return Some(at.wrapping_add(unit.wrapping_mul(2)));
        }
        at = at.wrapping_add(8);
    }
    let units = rest.chunks_exact(2).position(|unit| unit == [0, 0])?;
    Some(at.wrapping_add(units.wrapping_mul(2)))
}

/// Reads a V6 string: its length as a varint, then UTF-8.
#[inline]
pub(crate) fn utf8<'a>(r: &mut Reader<'a>) -> Result<Str<'a>, DecodeError> {
    let Varint32(len) = r.read()?;
    Ok(Str::Utf8(r.bytes(to_usize(len))?))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Tests every position of the NUL in every length, with filler units of which one byte is zero.
    #[test]
    fn nul() {
        for filler in [[1u8, 0], [0, 1], [0xff, 0xff], [0, 0x80], [0x80, 0]] {
            for len in 0..40 {
                for place in 0..len {
                    let mut bytes = [0u8; 80];
                    let bytes = &mut bytes[..2 * len];
                    bytes.chunks_exact_mut(2).for_each(|unit| unit.copy_from_slice(&filler));
                    assert_eq!(find_nul(bytes), None);
                    bytes[2 * place..2 * place + 2].fill(0);
                    assert_eq!(find_nul(bytes), Some(2 * place), "{filler:?} {len} {place}");
                    bytes[2 * len - 2..].fill(0);
                    assert_eq!(find_nul(bytes), Some(2 * place), "{filler:?} {len} {place}");
                    assert_eq!(find_nul(&bytes[..2 * place + 1]), None);
                }
            }
        }
    }

    /// Compares texts of 0 to 14 units, with each unit changed in turn. `is_same` compares four units in one step.
    #[test]
    fn utf16_is_compared_with_utf8() {
        let utf16_bytes = |unit: u16| unit.to_le_bytes();
        let others = ["b", "\u{161}", "\u{e9}", "\u{6100}", "\u{1f600}"];
        for len in 0..14 {
            let (mut wide, mut narrow) = ([b'a', 0].repeat(len), [b'a'].repeat(len));
            assert_eq!(Str::Utf16(&wide), Str::Utf8(&narrow));
            // UTF-16 ignores an odd last byte.
            wide.push(b'a');
            assert_eq!(Str::Utf16(&wide), Str::Utf8(&narrow));
            narrow.push(b'a');
            assert_ne!(Str::Utf16(&wide), Str::Utf8(&narrow));
            wide.push(0);
            for (place, other) in (0..=len).flat_map(|place| others.map(|other| (place, other))) {
                let mut changed = narrow.clone();
                changed.splice(place..=place, other.bytes());
                assert_ne!(Str::Utf16(&wide), Str::Utf8(&changed), "{len} {place} {other}");
                let units: Vec<_> = Str::Utf8(&changed).units().flat_map(utf16_bytes).collect();
                assert_eq!(Str::Utf16(&units), Str::Utf8(&changed), "{len} {place} {other}");
                assert_ne!(Str::Utf16(&units), Str::Utf8(&narrow), "{len} {place} {other}");
            }
        }
    }
}
