//! Conversions between `usize`, the lengths in memory, and the integers of the wire. No conversion fails.

/// Converts a length of the wire into a length in memory without loss: `usize` has at least 32 bits.
#[must_use]
#[inline]
pub const fn to_usize(number: u32) -> usize {
    number as usize
}

/// Converts a length in memory into a `u64` without loss: `usize` has at most 64 bits.
#[must_use]
#[inline]
pub const fn to_u64(number: usize) -> u64 {
    number as u64
}

/// Converts a length in memory into a length of the wire. A larger length becomes `u32::MAX`.
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
