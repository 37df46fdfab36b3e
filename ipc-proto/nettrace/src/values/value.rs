//! One value of a payload and its conversions to types of Rust, and `FileTime`, a point in time.
use core::fmt;

use ipc_proto::Guid;
use ipc_proto::wire::Reader;

use crate::describe::Scalar;
use crate::encoding::{Str, Varint64, Zigzag64, utf16_z};
use crate::error::DecodeError;

/// A value of a payload.
///
/// The methods `as_…` convert a value to a type of Rust where that is possible, whatever size it has on the wire:
///
/// ```
/// use nettrace::{Str, Value};
///
/// assert_eq!(Value::Int(5).as_u64(), Some(5));
/// assert_eq!(Value::Int(-5).as_u64(), None);
/// assert_eq!(Value::Single(0.5).as_f64(), Some(0.5));
/// let text = Value::Text(Str::Utf16(b"G\0C\0"));
/// assert_eq!(text.as_str().unwrap(), "GC");
/// assert_eq!(text.as_str().unwrap().to_string(), "GC");
/// assert_eq!(text.as_u64(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A boolean.
    Boolean(bool),
    /// A single code unit of UTF-16 or of UTF-8.
    CodeUnit(u16),
    /// A signed integer of any size.
    Int(i64),
    /// An unsigned integer of any size.
    UInt(u64),
    /// A 32-bit float.
    Single(f32),
    /// A 64-bit float.
    Double(f64),
    /// The 16 bytes of a .NET `Decimal`. Event sources that describe a `Decimal` write 8 other bytes instead.
    Decimal([u8; 16]),
    /// A point in time.
    DateTime(FileTime),
    /// A GUID.
    Guid(Guid),
    /// A string, or an array of code units.
    Text(Str<'a>),
    /// An array of `Byte`.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the boolean.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        if let Self::Boolean(value) = *self { Some(value) } else { None }
    }

    /// Returns the value, if it is an integer that is not negative.
    #[must_use]
    pub const fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::UInt(number) => Some(number),
            Self::Int(number) if number >= 0 => Some(number.unsigned_abs()),
            _ => None,
        }
    }

    /// Returns the value, if it is an integer below 2^63.
    #[must_use]
    pub const fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Int(number) => Some(number),
            Self::UInt(number) => 0_i64.checked_add_unsigned(number),
            _ => None,
        }
    }

    /// Returns the number: a float exactly, an integer rounded to the nearest `f64`.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Single(number) => Some(number.into()),
            Self::Double(number) => Some(number),
            Self::Int(number) => Some(number as f64),
            Self::UInt(number) => Some(number as f64),
            _ => None,
        }
    }

    /// Returns the text.
    ///
    /// The text cannot be a `&str`: most traces have UTF-16, and a `&str` borrows UTF-8. A [`Str`] compares with a
    /// `&str`, and its `to_string` copies it.
    #[must_use]
    pub const fn as_str(&self) -> Option<Str<'a>> {
        if let Self::Text(text) = *self { Some(text) } else { None }
    }

    /// Returns the array of `Byte`.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = *self { Some(bytes) } else { None }
    }

    /// Returns the GUID.
    #[must_use]
    pub const fn as_guid(&self) -> Option<Guid> {
        if let Self::Guid(guid) = *self { Some(guid) } else { None }
    }

    /// Returns the point in time.
    #[must_use]
    pub const fn as_time(&self) -> Option<FileTime> {
        if let Self::DateTime(time) = *self { Some(time) } else { None }
    }

    /// Reads a value of this type.
    ///
    /// A value that is stored in parts and copied as a whole waits for the stores, so the copy is avoided. On bare metal the
    /// size of the code matters more.
    #[cfg_attr(target_os = "none", inline)]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    pub(crate) fn read(scalar: Scalar, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match scalar {
            Scalar::Boolean32 => Self::Boolean(r.read::<u32>()? != 0),
            Scalar::Boolean8 => Self::Boolean(r.read()?),
            Scalar::Utf16CodeUnit => Self::CodeUnit(r.read()?),
            Scalar::Utf8CodeUnit => Self::CodeUnit(r.read::<u8>()?.into()),
            Scalar::SByte => Self::Int((r.read::<u8>()? as i8).into()),
            Scalar::Byte => Self::UInt(r.read::<u8>()?.into()),
            Scalar::Int16 => Self::Int(i16::from_le_bytes(r.array::<2>()?).into()),
            Scalar::UInt16 => Self::UInt(r.read::<u16>()?.into()),
            Scalar::Int32 => Self::Int(r.read::<i32>()?.into()),
            Scalar::UInt32 => Self::UInt(r.read::<u32>()?.into()),
            Scalar::Int64 => Self::Int(i64::from_le_bytes(r.array::<8>()?)),
            Scalar::UInt64 => Self::UInt(r.read()?),
            Scalar::Single => Self::Single(f32::from_le_bytes(r.array::<4>()?)),
            Scalar::Double => Self::Double(f64::from_le_bytes(r.array::<8>()?)),
            Scalar::Decimal => Self::Decimal(r.array()?),
            Scalar::DateTime => Self::DateTime(FileTime(r.read()?)),
            Scalar::Guid => Self::Guid(r.read()?),
            Scalar::Utf16String => Self::Text(utf16_z(r)?),
            Scalar::VarInt => Self::Int(r.read::<Zigzag64>()?.0),
            Scalar::VarUInt => Self::UInt(r.read::<Varint64>()?.0),
            Scalar::Utf8String => {
                let len: u16 = r.read()?;
                Self::Text(Str::Utf8(r.bytes(len.into())?))
            }
        })
    }
}

impl Scalar {
    /// Decodes a value of this type, and returns it with the bytes after it.
    ///
    /// ```
    /// use nettrace::{Scalar, Value};
    ///
    /// assert_eq!(Scalar::UInt16.decode(&[7, 0, 0xff])?, (Value::UInt(7), &[0xff][..]));
    /// # Ok::<(), nettrace::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the bytes end before the value.
    #[inline]
    pub fn decode(self, bytes: &[u8]) -> Result<(Value<'_>, &[u8]), DecodeError> {
        let mut r = Reader::new(bytes);
        Ok((Value::read(self, &mut r)?, r.rest()))
    }
}

/// A Windows FILETIME: units of 100 ns since 1601-01-01 UTC.
///
/// ```
/// use nettrace::FileTime;
///
/// let time = FileTime(116_444_736_000_000_000 + 12_345_678);
/// assert_eq!(time.to_string(), "1970-01-01T00:00:01.2345678Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileTime(pub u64);

/// ISO 8601, always with seven decimals.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0.wrapping_div(10_000_000), self.0.wrapping_rem(10_000_000));
        let (days, second) = (seconds.wrapping_div(86_400), seconds.wrapping_rem(86_400));
        let (minute, second) = (second.wrapping_div(60), second.wrapping_rem(60));
        let (hour, minute) = (minute.wrapping_div(60), minute.wrapping_rem(60));
        // The year 1601 begins a cycle of 400 years. Here years begin in March, so that a leap day is the last day of
        // its year. The first of March is 306 days before the first of January.
        let days = days.wrapping_add(306);
        let (cycle, day) = (days.wrapping_div(146_097), days.wrapping_rem(146_097));
        // The last day of a cycle of 400 years would belong to a fifth century, and the last day of 4 years to a fifth
        // year.
        let century = day.wrapping_div(36_524).min(3);
        let day = day.wrapping_sub(century.wrapping_mul(36_524));
        let four = day.wrapping_div(1_461);
        let day = day.wrapping_rem(1_461);
        let one = day.wrapping_div(365).min(3);
        let day = day.wrapping_sub(one.wrapping_mul(365));
        // From March, months have 31, 30, 31, 30, 31 days, twice, then two more months.
        let month = day.wrapping_mul(5).wrapping_add(2).wrapping_div(153);
        let day = day.wrapping_sub(month.wrapping_mul(153).wrapping_add(2).wrapping_div(5)).wrapping_add(1);
        let (month, next) = if month < 10 { (month.wrapping_add(3), 0) } else { (month.wrapping_sub(9), 1) };
        let year = cycle
            .wrapping_mul(400)
            .wrapping_add(century.wrapping_mul(100))
            .wrapping_add(four.wrapping_mul(4))
            .wrapping_add(one)
            .wrapping_add(1600)
            .wrapping_add(next);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}
