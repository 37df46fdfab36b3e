use core::fmt;

use super::Varint32;
use super::text::{Str, utf16_z};
use crate::wire::Reader;
use crate::{DecodeError, DecodeErrorKind};

/// How deep objects and arrays may stand in one another; a description that goes deeper is not understood.
pub(super) const MAX_DEPTH: usize = 16;

/// The way a description is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// Type, then name.
    V1,
    /// Size, name, type.
    V2,
    /// Size, name, type, in smaller numbers.
    V6,
    /// V6 where a code unit of UTF-8 alone is a string, as the providers `Universal.*` mean it.
    Universal,
    /// V6 with the codes that only [`clr`](super::clr) uses; the size of a pointer in that trace.
    #[cfg(feature = "clr")]
    Table { pointer: u8 },
}

/// Type codes that are no scalars.
pub(super) mod code {
    pub(in super::super) const OBJECT: u8 = 1;
    pub(in super::super) const ARRAY: u8 = 19;
    pub(in super::super) const FIXED_LENGTH_ARRAY: u8 = 22;
    pub(in super::super) const REL_LOC: u8 = 24;
    pub(in super::super) const DATA_LOC: u8 = 25;
    /// Only in tables: a number as wide as a pointer.
    #[cfg(feature = "clr")]
    pub(in super::super) const POINTER: u8 = 0x40;
    /// Only in tables: an array of as many elements as the last field marked with [`COUNTS`] says.
    #[cfg(feature = "clr")]
    pub(in super::super) const COUNTED: u8 = 0x41;
    /// Only in tables, added to a scalar's code: this number counts the elements of the arrays behind it.
    #[cfg(feature = "clr")]
    pub(in super::super) const COUNTS: u8 = 0x80;
}

/// The type of a value that holds no others, with its type code and what it takes in a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Scalar {
    /// 4 bytes, 0 is false. Self-describing event sources write 1 byte under this code, against all documents; such
    /// payloads do not fit their description.
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
    /// 8 bytes, a Windows FILETIME (erratum: the documents say 8 numbers of 16 bits; nobody writes those).
    DateTime = 16,
    /// 16 bytes.
    Guid = 17,
    /// UTF-16 and a NUL.
    Utf16String = 18,
    /// A zig-zag varint; since version 6.
    VarInt = 20,
    /// A varint; since version 6.
    VarUInt = 21,
    /// 1 byte; since version 6.
    Utf8CodeUnit = 23,
    /// 1 byte, 0 is false; since version 6.
    Boolean8 = 26,
    /// `u16` length in bytes, then UTF-8. Code 23 had this meaning before version 6 was final, and the providers
    /// `Universal.*` use it so to this day.
    Utf8String = 123,
}

impl Scalar {
    /// The type code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Utf8String => Self::Utf8CodeUnit as u8,
            _ => self as u8,
        }
    }

    #[inline]
    const fn from_code(code: u8) -> Option<Self> {
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

    /// Whether every value takes the same number of bytes.
    const fn is_fixed_size(self) -> bool {
        !matches!(self, Self::Utf16String | Self::VarInt | Self::VarUInt | Self::Utf8String)
    }
}

/// Where an array's elements lie, and what says how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ArrayKind {
    /// A `u16` count, then the elements.
    Counted,
    /// This many elements.
    FixedLength(u16),
    /// A `u32`: length in bytes in the high half, in the low half how far behind this field the elements begin.
    RelLoc,
    /// A `u32`: length in bytes in the high half, in the low half where in the payload the elements begin.
    DataLoc,
    /// As many as a number field before says; only in events of the runtime.
    CountedBefore,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FieldType<'a> {
    /// One value.
    Scalar(Scalar),
    /// Fields one after the other, nothing around them.
    Object(Fields<'a>),
    /// Values of one type.
    Array {
        /// Where they lie.
        kind: ArrayKind,
        /// Their type.
        element: Element<'a>,
    },
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub(super) format: Format,
    pub(super) bytes: &'a [u8],
    /// Of `bytes`, in the record.
    pub(super) offset: usize,
}

impl<'a> Element<'a> {
    /// The type.
    #[must_use]
    pub fn field_type(&self) -> FieldType<'a> {
        // Descriptions are checked before they are handed out.
        self.parse().unwrap_or(FieldType::Scalar(Scalar::Byte))
    }

    pub(super) fn parse(&self) -> Result<FieldType<'a>, DecodeError> {
        field_type(self.format, &mut Reader::at(self.bytes, self.offset))
    }
}

/// A field of a description.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field<'a> {
    /// Its name; an object that stands for the whole payload has none.
    pub name: Str<'a>,
    /// Its type.
    pub field_type: FieldType<'a>,
}

/// The fields of an event or of an object: names and types in order.
///
/// ```text
/// V1   u32 type, [u32 count, fields…], UTF-16 name and NUL          versions 3 and 4: [] where the type is Object
/// V2   u32 size, UTF-16 name and NUL, type, …                       version 5: size counts itself
///      type: u32 code; Array: + type; Object: + u32 count, fields
/// V6   u16 size, varuint length, UTF-8 name, type, …                version 6: size does not count itself
///      type: u8 code; Array, RelLoc, DataLoc: + type; FixedLengthArray: + type, u16 count; Object: + u16 count, fields
/// ```
///
/// See "Metadata blocks" in the NetTrace format, V4/V5 and V6. Erratum: V4/V5 gives the parts of a V2 field in another
/// order than any runtime writes, and without its size.
///
/// Nothing is copied: iterating reads the description again, which was checked once when the record was decoded.
///
/// ```
/// use ipc_proto::nettrace::{FieldType, Metadata, Scalar, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = Metadata::decode(Version::V4, &record)?;
/// for field in metadata.fields {
///     assert_eq!(field.name, "n");
///     assert!(matches!(field.field_type, FieldType::Scalar(Scalar::Int32)));
/// }
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub(super) format: Format,
    pub(super) count: u32,
    /// From the first field on; there may be more behind the last.
    pub(super) bytes: &'a [u8],
    /// Of `bytes`, in the record.
    pub(super) offset: usize,
}

impl<'a> Fields<'a> {
    /// No fields.
    pub const EMPTY: Self = Self { format: Format::V1, count: 0, bytes: &[], offset: 0 };

    pub(super) fn new(format: Format, count: u32, r: &Reader<'a>) -> Self {
        Self { format, count, bytes: r.rest(), offset: r.offset() }
    }

    /// How many there are, those inside objects not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The fields in order.
    #[must_use]
    pub fn iter(&self) -> FieldIter<'a> {
        FieldIter { format: self.format, left: self.count, r: Reader::at(self.bytes, self.offset) }
    }

    /// Walks the whole description once; gives what lies behind the last field.
    pub(super) fn check(&self) -> Result<Reader<'a>, DecodeError> {
        let mut outer = heapless::Vec::<Level<'_>, MAX_DEPTH>::new();
        let mut level = Level { iter: self.iter(), depth: 0, fixed_size: false };
        loop {
            let here = level.iter.r.error(DecodeErrorKind::UnknownType);
            let Some(field) = level.iter.step() else {
                match outer.pop() {
                    Some(before) => level = before,
                    None => return Ok(level.iter.r),
                }
                continue;
            };
            let too_deep = DecodeError { kind: DecodeErrorKind::TooDeep, ..here };
            let mut field_type = field?.field_type;
            let mut depth = level.depth;
            let mut fixed_size = level.fixed_size;
            while let FieldType::Array { kind, element } = field_type {
                match kind {
                    // What lies elsewhere has only its length in bytes, so its elements must have one length.
                    ArrayKind::RelLoc | ArrayKind::DataLoc | ArrayKind::Counted if fixed_size => {
                        return Err(here);
                    }
                    ArrayKind::RelLoc | ArrayKind::DataLoc => fixed_size = true,
                    _ => {}
                }
                depth = depth.saturating_add(1);
                if depth > MAX_DEPTH {
                    return Err(too_deep);
                }
                field_type = element.parse()?;
            }
            match field_type {
                FieldType::Scalar(scalar) if fixed_size && !scalar.is_fixed_size() => return Err(here),
                FieldType::Object(fields) => {
                    depth = depth.saturating_add(1);
                    let inner = Level { iter: fields.iter(), depth, fixed_size };
                    let before = core::mem::replace(&mut level, inner);
                    if depth > MAX_DEPTH || outer.push(before).is_err() {
                        return Err(too_deep);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A list of fields on the way through a description.
struct Level<'a> {
    iter: FieldIter<'a>,
    /// Objects and arrays around it.
    depth: usize,
    /// Whether it is part of an array that lies elsewhere.
    fixed_size: bool,
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}
impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
impl<'a> IntoIterator for Fields<'a> {
    type Item = Field<'a>;
    type IntoIter = FieldIter<'a>;
    fn into_iter(self) -> FieldIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Fields`].
#[derive(Debug, Clone)]
pub struct FieldIter<'a> {
    format: Format,
    left: u32,
    r: Reader<'a>,
}

impl<'a> FieldIter<'a> {
    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let (name, mut of) = name_and_type(self.format, &mut self.r)?;
        Ok(Field { name, field_type: field_type(self.format, &mut of)? })
    }

    /// The next field, or what is wrong with it.
    fn step(&mut self) -> Option<Result<Field<'a>, DecodeError>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.field())
    }
}

impl<'a> Iterator for FieldIter<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.step()?.ok()
    }
}

/// Takes a field: its name, and where its type stands.
#[inline]
pub(super) fn name_and_type<'a>(
    format: Format,
    r: &mut Reader<'a>,
) -> Result<(Str<'a>, Reader<'a>), DecodeError> {
    let len = match format {
        Format::V1 => {
            let of = r.clone();
            match Type::decode(format, r)? {
                Type::Other(code::OBJECT) => skip_object(r)?,
                Type::Other(_) => return Err(of.error(DecodeErrorKind::UnknownType)),
                Type::Scalar(_) | Type::Counts(_) => {}
            }
            return Ok((utf16_z(r)?, of));
        }
        Format::V2 => {
            let bad_size = r.error(DecodeErrorKind::BadSize);
            length(r.read::<u32>()?.checked_sub(4).ok_or(bad_size)?)
        }
        _ => r.read::<u16>()?.into(),
    };
    let offset = r.offset();
    let mut body = Reader::at(r.bytes(len)?, offset);
    let name = if format == Format::V2 { utf16_z(&mut body)? } else { utf8(&mut body)? };
    Ok((name, body))
}

/// Passes over what stands behind the type code of a V1 object, up to its name.
#[inline(never)]
fn skip_object(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    let mut outer = heapless::Vec::<u32, MAX_DEPTH>::new();
    let mut left: u32 = r.read()?;
    loop {
        if let Some(fewer) = left.checked_sub(1) {
            left = fewer;
            let here = r.error(DecodeErrorKind::UnknownType);
            let code = type_code(Format::V1, r)?;
            if code == code::OBJECT {
                let inner = r.read()?;
                if outer.push(left).is_err() {
                    return Err(DecodeError { kind: DecodeErrorKind::TooDeep, ..here });
                }
                left = inner;
                continue;
            }
            if Scalar::from_code(code).is_none() {
                return Err(here);
            }
        } else if let Some(before) = outer.pop() {
            left = before;
        } else {
            return Ok(());
        }
        // Of the scalar, or of the object that ended here.
        utf16_z(r)?;
    }
}

/// A type code, sorted.
#[derive(Clone, Copy)]
pub(super) enum Type {
    Scalar(Scalar),
    /// A number that counts the elements of arrays behind it.
    #[cfg_attr(not(feature = "clr"), allow(dead_code, reason = "only tables have it"))]
    Counts(Scalar),
    /// An object, an array, or nothing that is known.
    Other(u8),
}

impl Type {
    #[inline]
    pub(super) fn decode(format: Format, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = type_code(format, r)?;
        Ok(match Scalar::from_code(code) {
            Some(Scalar::Utf8CodeUnit) if format == Format::Universal => Self::Scalar(Scalar::Utf8String),
            Some(scalar) => Self::Scalar(scalar),
            None => Self::of_table(format, code),
        })
    }

    #[cfg(feature = "clr")]
    #[inline]
    fn of_table(format: Format, code: u8) -> Self {
        match (format, Scalar::from_code(code & !code::COUNTS)) {
            (Format::Table { pointer: 4 }, _) if code == code::POINTER => Self::Scalar(Scalar::UInt32),
            (Format::Table { .. }, _) if code == code::POINTER => Self::Scalar(Scalar::UInt64),
            (Format::Table { .. }, Some(scalar)) => Self::Counts(scalar),
            _ => Self::Other(code),
        }
    }

    #[cfg(not(feature = "clr"))]
    #[inline]
    fn of_table(_: Format, code: u8) -> Self {
        Self::Other(code)
    }
}

/// Reads a type; what lies behind the parts of an object is not looked for.
fn field_type<'a>(format: Format, r: &mut Reader<'a>) -> Result<FieldType<'a>, DecodeError> {
    let unknown = r.error(DecodeErrorKind::UnknownType);
    match Type::decode(format, r)? {
        Type::Scalar(scalar) | Type::Counts(scalar) => Ok(FieldType::Scalar(scalar)),
        Type::Other(code) => compound(format, code, r).and_then(|compound| compound.ok_or(unknown)),
    }
}

/// Reads what stands behind the code of an object or an array; `None` if it is neither.
#[inline(never)]
pub(super) fn compound<'a>(
    format: Format,
    code: u8,
    r: &mut Reader<'a>,
) -> Result<Option<FieldType<'a>>, DecodeError> {
    let wide = matches!(format, Format::V1 | Format::V2);
    let element = Element { format, bytes: r.rest(), offset: r.offset() };
    let kind = match code {
        code::OBJECT => {
            let count = if wide { r.read()? } else { r.read::<u16>()?.into() };
            return Ok(Some(FieldType::Object(Fields::new(format, count, r))));
        }
        code::ARRAY => ArrayKind::Counted,
        _ if wide => return Ok(None),
        code::REL_LOC => ArrayKind::RelLoc,
        code::DATA_LOC => ArrayKind::DataLoc,
        code::FIXED_LENGTH_ARRAY => {
            skip_v6(format, r)?;
            ArrayKind::FixedLength(r.read()?)
        }
        #[cfg(feature = "clr")]
        code::COUNTED if matches!(format, Format::Table { .. }) => ArrayKind::CountedBefore,
        _ => return Ok(None),
    };
    // Code 23 is a code unit where an array of them is meant.
    let format = if format == Format::Universal { Format::V6 } else { format };
    Ok(Some(FieldType::Array { kind, element: Element { format, ..element } }))
}

/// Passes over a type of V6.
fn skip_v6(format: Format, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    // Each fixed-length array has its count behind its element.
    let mut counts = 0usize;
    loop {
        match type_code(format, r)? {
            code::FIXED_LENGTH_ARRAY => counts = counts.saturating_add(2),
            code::ARRAY | code::REL_LOC | code::DATA_LOC => {}
            code::OBJECT => {
                for _ in 0..r.read::<u16>()? {
                    let size: u16 = r.read()?;
                    r.bytes(size.into())?;
                }
                break;
            }
            _ => break,
        }
    }
    r.bytes(counts).map(|_| ())
}

#[inline]
fn type_code(format: Format, r: &mut Reader<'_>) -> Result<u8, DecodeError> {
    if matches!(format, Format::V1 | Format::V2) {
        let unknown = r.error(DecodeErrorKind::UnknownType);
        u8::try_from(r.read::<u32>()?).map_err(|_| unknown)
    } else {
        r.read()
    }
}

/// Takes a V6 string: its length as a varint, then UTF-8.
#[inline]
pub(super) fn utf8<'a>(r: &mut Reader<'a>) -> Result<Str<'a>, DecodeError> {
    let Varint32(len) = r.read()?;
    Ok(Str::Utf8(r.bytes(length(len))?))
}

/// A `u32` as a length; no slice has one that does not fit.
#[inline]
pub(super) fn length(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
