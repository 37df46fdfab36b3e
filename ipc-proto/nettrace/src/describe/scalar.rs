//! The types of single values, with their codes.
/// The type of a single value, with its type code and its layout in a payload.
///
/// ```
/// use nettrace::{Fields, Scalar};
///
/// let mut space = [0; 64];
/// let fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space)?;
/// assert!(fields.values(&[7, 0, 0]).finish().is_err()); // a UInt32 has 4 bytes
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Scalar {
    /// 4 bytes, 0 is false. Self-describing event sources write 1 byte under this code, against all documents, so that
    /// their payloads do not fit their descriptions.
    Boolean32 = 3,
    /// 2 bytes.
    Utf16CodeUnit = 4,
    /// 1 byte.
    SByte = 5,
    /// 1 byte.
    Byte = 6,
    /// 2 bytes.
    Int16 = 7,
    /// 2 bytes.
    UInt16 = 8,
    /// 4 bytes.
    Int32 = 9,
    /// 4 bytes.
    UInt32 = 10,
    /// 8 bytes.
    Int64 = 11,
    /// 8 bytes.
    UInt64 = 12,
    /// 4 bytes, IEEE 754.
    Single = 13,
    /// 8 bytes, IEEE 754.
    Double = 14,
    /// 16 bytes.
    Decimal = 15,
    /// 8 bytes, a Windows FILETIME (erratum: the documents state 8 numbers of 16 bits, which no runtime writes).
    DateTime = 16,
    /// 16 bytes.
    Guid = 17,
    /// UTF-16, then a NUL.
    Utf16String = 18,
    /// A zig-zag varint; since version 6.
    VarInt = 20,
    /// A varint; since version 6.
    VarUInt = 21,
    /// 1 byte; since version 6.
    Utf8CodeUnit = 23,
    /// 1 byte, 0 is false; since version 6.
    Boolean8 = 26,
    /// `u16` length in bytes, then UTF-8. Code 23 had this meaning before version 6 was final, and still has it in the
    /// providers `Universal.*`.
    Utf8String = 123,
}

impl Scalar {
    /// Returns the type code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Utf8String => Self::Utf8CodeUnit as u8,
            _ => self as u8,
        }
    }

    /// Returns a number of its own for each type: its code, or 123 for [`Utf8String`](Self::Utf8String).
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the type with this [`number`](Self::number).
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            123 => Some(Self::Utf8String),
            code => Self::from_code(code),
        }
    }

    #[inline]
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            3 => Self::Boolean32,
            4 => Self::Utf16CodeUnit,
            5 => Self::SByte,
            6 => Self::Byte,
            7 => Self::Int16,
            8 => Self::UInt16,
            9 => Self::Int32,
            10 => Self::UInt32,
            11 => Self::Int64,
            12 => Self::UInt64,
            13 => Self::Single,
            14 => Self::Double,
            15 => Self::Decimal,
            16 => Self::DateTime,
            17 => Self::Guid,
            18 => Self::Utf16String,
            20 => Self::VarInt,
            21 => Self::VarUInt,
            23 => Self::Utf8CodeUnit,
            26 => Self::Boolean8,
            _ => return None,
        })
    }

    /// Returns whether all values have the same number of bytes.
    pub(crate) const fn is_fixed_size(self) -> bool {
        !matches!(self, Self::Utf16String | Self::VarInt | Self::VarUInt | Self::Utf8String)
    }
}
