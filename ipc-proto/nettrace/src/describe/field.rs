//! Fields: names and types, decoded lazily from each layout of a description.
use core::fmt;

use ipc_proto::wire::{Reader, to_usize};

use crate::describe::scalar::Scalar;
use crate::encoding::{Str, utf8, utf16_z};
use crate::error::{DecodeError, DecodeErrorKind};

/// The number of levels of nested objects and arrays that a description may have. The format has no limit;
/// [`DecodeErrorKind::TooDeep`] is the error for more levels, and no writer has more than a few.
pub(crate) const MAX_DEPTH: usize = 16;

/// The layout of a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Type, then name.
    V1,
    /// Size, name, type.
    V2,
    /// `v1` fields of V1, then tags. The first tag with fields of V2 adds those fields.
    Joined { v1: u16 },
    /// Size, name, type, with numbers of fewer bytes than in V2.
    V6,
    /// V6, but a single code unit of UTF-8 is a string, as in the providers `Universal.*`.
    Universal,
    /// V6 with the codes that only [`clr`](super::clr) uses, and the size of a pointer in the trace.
    #[cfg(feature = "clr")]
    Table { pointer: u8 },
}

/// Type codes that are not scalars.
pub(crate) mod code {
    pub(crate) const OBJECT: u8 = 1;
    pub(crate) const ARRAY: u8 = 19;
    pub(crate) const FIXED_LENGTH_ARRAY: u8 = 22;
    pub(crate) const REL_LOC: u8 = 24;
    pub(crate) const DATA_LOC: u8 = 25;
    /// Only in tables: a number of the size of a pointer.
    #[cfg(feature = "clr")]
    pub(crate) const POINTER: u8 = 0x40;
    /// Only in tables: an array whose number of elements is the value of the last field marked with [`COUNTS`].
    #[cfg(feature = "clr")]
    pub(crate) const COUNTED: u8 = 0x41;
    /// Only in tables, added to the code of a scalar: this number counts the elements of the following arrays.
    #[cfg(feature = "clr")]
    pub(crate) const COUNTS: u8 = 0x80;
}

/// Kinds of tags after the V1 fields of a record.
pub(crate) mod tag {
    pub(crate) const OPCODE: u8 = 1;
    pub(crate) const V2_PARAMS: u8 = 2;
}

/// The position of an array's elements, and the source of their number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ArrayKind {
    /// A `u16` count, then the elements.
    Counted,
    /// A fixed number of elements, which the description states.
    FixedLength(u16),
    /// A `u32`: the high half is the length in bytes, the low half the distance from the end of this field to the
    /// elements.
    RelLoc,
    /// A `u32`: the high half is the length in bytes, the low half the offset of the elements in the payload.
    DataLoc,
    /// As many elements as the value of an earlier field; only in events of the runtime.
    CountedBefore,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FieldType<'a> {
    /// One value.
    Scalar(Scalar),
    /// Fields in their order, without a header.
    Object(Fields<'a>),
    /// Values of one type.
    Array {
        /// The position of the elements, and the source of their number.
        kind: ArrayKind,
        /// The type of the elements.
        element: Element<'a>,
    },
}

impl<'a> FieldType<'a> {
    /// Returns the type of the elements of an array, however deep it is nested, or the type itself.
    pub(crate) fn innermost(self) -> Self {
        let mut field_type = self;
        while let FieldType::Array { element, .. } = field_type {
            field_type = element.field_type();
        }
        field_type
    }

    /// Returns whether a field within this type matches.
    pub(crate) fn has_inner(self, matches: &dyn Fn(&Field<'a>) -> bool) -> bool {
        match self.innermost() {
            FieldType::Object(fields) => fields.any(matches),
            _ => false,
        }
    }
}

impl FieldType<'_> {
    /// Returns the type of an array: the [count](ArrayKind::Counted), then so many values of `element`, as
    /// [`PayloadWriter::array`](crate::PayloadWriter::array) writes it.
    ///
    /// ```
    /// use nettrace::{FieldType, Scalar};
    ///
    /// const DATA: (&str, FieldType<'_>) = ("Data", FieldType::array(Scalar::Byte));
    /// ```
    #[must_use]
    pub const fn array(element: Scalar) -> Self {
        Self::Array { kind: ArrayKind::Counted, element: Element::of(element) }
    }
}

impl From<Scalar> for FieldType<'_> {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub(crate) format: Format,
    pub(crate) bytes: &'a [u8],
    /// The offset of `bytes` in the record.
    pub(crate) offset: usize,
}

impl<'a> Element<'a> {
    /// Returns the type of elements that are scalars.
    const fn of(scalar: Scalar) -> Self {
        /// Each type code at its index.
        const CODES: [u8; 27] = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
        ];
        let bytes = match CODES.split_at_checked(scalar.code() as usize) {
            Some((_, bytes)) => bytes,
            None => &[],
        };
        let format = if matches!(scalar, Scalar::Utf8String) { Format::Universal } else { Format::V6 };
        Self { format, bytes, offset: 0 }
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn field_type(&self) -> FieldType<'a> {
        // The description was checked when it was decoded, so this default is never used.
        self.parse().unwrap_or(FieldType::Scalar(Scalar::Byte))
    }

    pub(crate) fn parse(&self) -> Result<FieldType<'a>, DecodeError> {
        field_type(self.format, &mut Reader::at(self.bytes, self.offset))
    }
}

/// A field of a description.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field<'a> {
    /// The name of the field; empty for an object that is the whole payload.
    pub name: Str<'a>,
    /// The type of the field.
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
/// See "Metadata blocks" in the NetTrace format, V4/V5 and V6. Erratum: the document of V4/V5 states the parts of a V2
/// field in another order than runtimes write, and no size.
///
/// Objects and arrays are nested in at most 16 levels: [`DecodeErrorKind::TooDeep`](crate::DecodeErrorKind::TooDeep).
///
/// Nothing is copied: an iterator reads the description, which was checked when the record was decoded.
///
/// ```
/// use nettrace::{FieldType, Metadata, Scalar, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = Metadata::decode(Version::V4, &record)?;
/// for field in metadata.fields {
///     assert_eq!(field.name, "n");
///     assert!(matches!(field.field_type, FieldType::Scalar(Scalar::Int32)));
/// }
/// # Ok::<(), nettrace::DecodeError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub(crate) format: Format,
    pub(crate) count: u32,
    /// The bytes of the fields. Other bytes can follow them.
    pub(crate) bytes: &'a [u8],
    /// The offset of `bytes` in the record.
    pub(crate) offset: usize,
}

impl<'a> Fields<'a> {
    /// No fields.
    pub const EMPTY: Self = Self { format: Format::V1, count: 0, bytes: &[], offset: 0 };

    pub(crate) fn new(format: Format, count: u32, r: &Reader<'a>) -> Self {
        Self { format, count, bytes: r.rest(), offset: r.offset() }
    }

    /// Returns the V1 fields of `self`, followed by the `v2` fields of the first tag V2Params.
    ///
    /// Returns `None` if `self` is not of V1, or if the counts are too large.
    #[cold]
    pub(crate) fn joined(&self, v2: u32) -> Option<Self> {
        let v1 = u16::try_from(self.count).ok().filter(|_| self.format == Format::V1)?;
        Some(Self { format: Format::Joined { v1 }, count: self.count.checked_add(v2)?, ..*self })
    }

    /// Returns the number of fields, without those of nested objects.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether a field, or a field of an object in it, matches.
    pub(crate) fn any(&self, matches: &dyn Fn(&Field<'a>) -> bool) -> bool {
        let mut outer = heapless::Vec::<FieldIter<'_>, MAX_DEPTH>::new();
        let mut level = self.iter();
        loop {
            let Some(field) = level.next() else {
                match outer.pop() {
                    Some(before) => level = before,
                    None => return false,
                }
                continue;
            };
            if matches(&field) {
                return true;
            }
            if let FieldType::Object(fields) = field.field_type.innermost() {
                // The push cannot fail: a decoded description has at most `MAX_DEPTH` levels.
                let _ = outer.push(core::mem::replace(&mut level, fields.iter()));
            }
        }
    }

    /// Returns the fields in order.
    #[must_use]
    pub fn iter(&self) -> FieldIter<'a> {
        FieldIter { format: self.format, left: self.count, r: Reader::at(self.bytes, self.offset) }
    }

    /// Returns the bytes of the fields, without the bytes of other parts of the record.
    pub(crate) fn own_bytes(&self) -> &'a [u8] {
        // On an error, `check` removes fields, so it gets a copy.
        let mut fields = *self;
        let following = fields.check().map_or(0, |r| r.rest().len());
        self.bytes.get(..self.bytes.len().saturating_sub(following)).unwrap_or_default()
    }

    /// Checks the whole description, and returns a reader of the bytes after the last field. On an error, only the
    /// fields before the error remain.
    pub(crate) fn check(&mut self) -> Result<Reader<'a>, DecodeError> {
        let mut left = self.count;
        let result = self.check_up_to(&mut left);
        if result.is_err() {
            self.count = self.count.saturating_sub(left);
        }
        result
    }

    /// Checks the description, and sets `left` to the number of fields that were not checked.
    fn check_up_to(&self, left: &mut u32) -> Result<Reader<'a>, DecodeError> {
        let mut outer = heapless::Vec::<OpenObject<'_>, MAX_DEPTH>::new();
        let mut level = OpenObject { iter: self.iter(), depth: 0, fixed_size: false };
        loop {
            let here = DecodeError::at(&level.iter.r, DecodeErrorKind::UnknownType);
            if outer.is_empty() {
                *left = level.iter.left;
            }
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
                    // An array elsewhere in the payload (RelLoc, DataLoc) states only its length in bytes, so its
                    // elements must be of fixed size. An array whose length the payload states is not.
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
                    let inner = OpenObject { iter: fields.iter(), depth, fixed_size };
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

/// An open object of a description.
struct OpenObject<'a> {
    iter: FieldIter<'a>,
    /// The number of objects and arrays around this object.
    depth: usize,
    /// Whether the object is part of an array that is elsewhere in the payload: then its values must be of fixed size.
    fixed_size: bool,
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}
/// Descriptions are equal if they have the same fields in the same encoding.
impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.format, self.count) == (other.format, other.count)
            && (self.bytes == other.bytes || self.own_bytes() == other.own_bytes())
    }
}
impl Eq for Fields<'_> {}
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

/// An iterator over [`Fields`].
#[derive(Debug, Clone)]
pub struct FieldIter<'a> {
    format: Format,
    left: u32,
    r: Reader<'a>,
}

impl<'a> FieldIter<'a> {
    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let (name, format, mut of) = self.name_and_type()?;
        Ok(Field { name, field_type: field_type(format, &mut of)? })
    }

    /// Reads a field, and returns its name, its layout and a reader of its type.
    fn name_and_type(&mut self) -> Result<(Str<'a>, Format, Reader<'a>), DecodeError> {
        let format = match self.format {
            Format::Joined { v1 } => self.next_format(v1)?,
            format => format,
        };
        let (name, of) = name_and_type(format, &mut self.r)?;
        Ok((name, format, of))
    }

    /// Returns the next field, and whether it counts the elements of following arrays.
    pub(crate) fn next_with_count(&mut self) -> Option<(Field<'a>, bool)> {
        self.left = self.left.checked_sub(1)?;
        let (name, format, mut of) = self.name_and_type().ok()?;
        let is_count = matches!(Type::decode(format, &mut of.clone()), Ok(Type::Counts(_)));
        Some((Field { name, field_type: field_type(format, &mut of).ok()? }, is_count))
    }

    /// Returns the layout of the next field. `v1` is the number of V1 fields that are not read yet.
    #[cold]
    fn next_format(&mut self, v1: u16) -> Result<Format, DecodeError> {
        if let Some(v1) = v1.checked_sub(1) {
            self.format = Format::Joined { v1 };
            return Ok(Format::V1);
        }
        self.format = Format::V2;
        skip_to_v2(&mut self.r).map(|_| Format::V2)
    }

    /// Returns the next field, or its error.
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

/// Reads a field, and returns its name and a reader of its type.
#[inline]
pub(crate) fn name_and_type<'a>(
    format: Format,
    r: &mut Reader<'a>,
) -> Result<(Str<'a>, Reader<'a>), DecodeError> {
    let len = match format {
        Format::V1 => {
            let of = r.clone();
            match Type::decode(format, r)? {
                Type::Other(code::OBJECT) => skip_object(r)?,
                Type::Other(_) => return Err(DecodeError::at(&of, DecodeErrorKind::UnknownType)),
                Type::Scalar(_) | Type::Counts(_) => {}
            }
            return Ok((utf16_z(r)?, of));
        }
        Format::V2 => {
            let bad_size = DecodeError::at(r, DecodeErrorKind::BadSize);
            to_usize(r.read::<u32>()?.checked_sub(4).ok_or(bad_size)?)
        }
        _ => r.read::<u16>()?.into(),
    };
    let offset = r.offset();
    let mut body = Reader::at(r.bytes(len)?, offset);
    let name = if format == Format::V2 { utf16_z(&mut body)? } else { utf8(&mut body)? };
    Ok((name, body))
}

/// Skips tags up to the fields of V2, and returns the number of those fields.
pub(crate) fn skip_to_v2(r: &mut Reader<'_>) -> Result<u32, DecodeError> {
    loop {
        let size = r.read()?;
        if r.read::<u8>()? == tag::V2_PARAMS {
            return Ok(r.read()?);
        }
        r.bytes(to_usize(size))?;
    }
}

/// Skips the content of a V1 object between its type code and its name.
#[inline(never)]
fn skip_object(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    let mut outer = heapless::Vec::<u32, MAX_DEPTH>::new();
    let mut left: u32 = r.read()?;
    loop {
        if let Some(fewer) = left.checked_sub(1) {
            left = fewer;
            let here = DecodeError::at(r, DecodeErrorKind::UnknownType);
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
        // A name follows: of the scalar, or of the object whose last field was read.
        utf16_z(r)?;
    }
}

/// The meaning of a type code.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    Scalar(Scalar),
    /// A number that counts the elements of the following arrays.
    #[cfg_attr(not(feature = "clr"), allow(dead_code, reason = "only tables have it"))]
    Counts(Scalar),
    /// An object, an array, or an unknown type.
    Other(u8),
}

impl Type {
    #[inline]
    pub(crate) fn decode(format: Format, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
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

/// Reads a type. The content of most objects and arrays is not read, so the reader does not end after the type.
fn field_type<'a>(format: Format, r: &mut Reader<'a>) -> Result<FieldType<'a>, DecodeError> {
    let unknown = DecodeError::at(r, DecodeErrorKind::UnknownType);
    match Type::decode(format, r)? {
        Type::Scalar(scalar) | Type::Counts(scalar) => Ok(FieldType::Scalar(scalar)),
        Type::Other(code) => compound(format, code, r).and_then(|compound| compound.ok_or(unknown)),
    }
}

/// Reads the content of an object or an array after its type code; `None` for other type codes.
#[inline(never)]
pub(crate) fn compound<'a>(
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
    // As the element of an array, code 23 is a code unit and not a text.
    let format = if format == Format::Universal { Format::V6 } else { format };
    Ok(Some(FieldType::Array { kind, element: Element { format, ..element } }))
}

/// Skips a type of V6.
fn skip_v6(format: Format, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    // A fixed-length array has its count (2 bytes) after the type of its elements.
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
    r.bytes(counts)?;
    Ok(())
}

#[inline]
fn type_code(format: Format, r: &mut Reader<'_>) -> Result<u8, DecodeError> {
    if matches!(format, Format::V1 | Format::V2) {
        let unknown = DecodeError::at(r, DecodeErrorKind::UnknownType);
        u8::try_from(r.read::<u32>()?).map_err(|_| unknown)
    } else {
        Ok(r.read()?)
    }
}
