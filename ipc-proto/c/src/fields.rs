//! The fields of a description in an array of the caller, and the values of payloads with the indexes of their fields.
use core::mem::MaybeUninit;

use nettrace::{ArrayKind, FieldShape, IndexedPart, IndexedValues, Scalar, ShapeKind, Value};

use crate::command::Guid;
use crate::memory;
use crate::payload::{self, Metadata};
use crate::place::shared;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// An object: the following fields up to `end`.
pub const DIPC_TYPE_OBJECT: u32 = 1;
/// A code unit of UTF-16.
pub const DIPC_TYPE_UTF16_UNIT: u32 = 4;
/// The 16 bytes of a .NET `Decimal`.
pub const DIPC_TYPE_DECIMAL: u32 = 15;
/// An array after the number of its elements. The next field is its element, as it is for the other arrays.
pub const DIPC_TYPE_ARRAY: u32 = 19;
/// A signed integer of up to 10 bytes.
pub const DIPC_TYPE_VARINT: u32 = 20;
/// An unsigned integer of up to 10 bytes.
pub const DIPC_TYPE_VARUINT: u32 = 21;
/// An array of `count` elements.
pub const DIPC_TYPE_FIXED_ARRAY: u32 = 22;
/// A code unit of UTF-8.
pub const DIPC_TYPE_UTF8_UNIT: u32 = 23;
/// An array elsewhere in the payload, at a distance from this field.
pub const DIPC_TYPE_RELATIVE_ARRAY: u32 = 24;
/// An array elsewhere in the payload, at an offset.
pub const DIPC_TYPE_OFFSET_ARRAY: u32 = 25;
/// A bool of 1 byte.
pub const DIPC_TYPE_BOOL8: u32 = 26;
/// An array with as many elements as the last number whose `count` is 1 states.
pub const DIPC_TYPE_COUNTED_ARRAY: u32 = 65;
/// UTF-8 after its length in bytes.
pub const DIPC_TYPE_UTF8: u32 = 123;

/// The `parent` of a field that belongs to no object or array, but to the payload.
pub const DIPC_NO_PARENT: u32 = u32::MAX;

/// A field of a description, for `dipc_fields_values`. Only `dipc_metadata_fields` makes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescribedField<'a> {
    /// The name of the field; empty for the element of an array.
    pub name: Text<'a>,
    /// One of `DIPC_TYPE_*`.
    pub kind: u32,
    /// The index of the object or array that contains the field, or `DIPC_NO_PARENT`.
    pub parent: u32,
    /// The index after the last field within this field.
    pub end: u32,
    /// The number of elements of a `DIPC_TYPE_FIXED_ARRAY`; 1 for a number that counts the elements of following arrays.
    pub count: u32,
}

impl<'a> DescribedField<'a> {
    fn new(name: Text<'a>, shape: FieldShape) -> Self {
        let (kind, count) = match shape.kind {
            ShapeKind::Scalar(scalar) => (scalar.number().into(), 0),
            ShapeKind::Count(scalar) => (scalar.number().into(), 1),
            ShapeKind::Array(ArrayKind::Counted) => (DIPC_TYPE_ARRAY, 0),
            ShapeKind::Array(ArrayKind::FixedLength(count)) => (DIPC_TYPE_FIXED_ARRAY, count.into()),
            ShapeKind::Array(ArrayKind::RelLoc) => (DIPC_TYPE_RELATIVE_ARRAY, 0),
            ShapeKind::Array(ArrayKind::DataLoc) => (DIPC_TYPE_OFFSET_ARRAY, 0),
            ShapeKind::Array(_) => (DIPC_TYPE_COUNTED_ARRAY, 0),
            _ => (DIPC_TYPE_OBJECT, 0),
        };
        Self { name, kind, parent: shape.parent.unwrap_or(DIPC_NO_PARENT), end: shape.end, count }
    }
}

/// A field that `dipc_metadata_fields` has not made is an error.
impl TryFrom<DescribedField<'_>> for FieldShape {
    type Error = ();

    #[inline(always)]
    fn try_from(field: DescribedField<'_>) -> Result<Self, ()> {
        let kind = match field.kind {
            DIPC_TYPE_OBJECT => ShapeKind::Object,
            DIPC_TYPE_ARRAY => ShapeKind::Array(ArrayKind::Counted),
            DIPC_TYPE_FIXED_ARRAY => {
                ShapeKind::Array(ArrayKind::FixedLength(field.count.try_into().map_err(|_| ())?))
            }
            DIPC_TYPE_RELATIVE_ARRAY => ShapeKind::Array(ArrayKind::RelLoc),
            DIPC_TYPE_OFFSET_ARRAY => ShapeKind::Array(ArrayKind::DataLoc),
            DIPC_TYPE_COUNTED_ARRAY => ShapeKind::Array(ArrayKind::CountedBefore),
            scalar => {
                let number = u8::try_from(scalar).map_err(|_| ())?;
                let scalar = Scalar::from_number(number).ok_or(())?;
                if field.count == 0 { ShapeKind::Scalar(scalar) } else { ShapeKind::Count(scalar) }
            }
        };
        let parent = Some(field.parent).filter(|parent| *parent != DIPC_NO_PARENT);
        Ok(Self { kind, parent, end: field.end })
    }
}

/// Stores the fields of a description in `fields`: each before the fields within it, and `count`, their number. A program
/// calls it once for a description, and keeps what it needs for a field, such as its name as a string, at the same index.
///
/// The names point into the record that the description was decoded from. If there is `room` for fewer fields, `count`
/// receives the number of all, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_fields(
    metadata: *const Metadata<'_>,
    fields: *mut DescribedField<'_>,
    room: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers, and for the record that the description was decoded from.
    let outcome = unsafe { memory::reference(metadata) }.and_then(|metadata| -> Outcome {
        memory::check(count, 1)?;
        // SAFETY: the caller vouches for the pointers.
        let fields = unsafe { memory::slice_mut::<MaybeUninit<DescribedField<'_>>>(fields.cast(), room) }?;
        // SAFETY: the field belongs to a reference.
        let list = unsafe { shared(&raw const metadata.fields) }?;
        let all = list.shapes(|index, name, shape| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if let Some(place) = fields.get_mut(index) {
                place.write(DescribedField::new(Text::of_trace(name), shape));
            }
        });
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        if all > room {
            return Err(Failure { status: Status::BufferTooSmall, detail: all });
        }
        Ok(all)
    });
    // SAFETY: the caller vouches for `count`.
    unsafe { report(outcome, count) }
}

/// Bytes of a payload.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
}

/// The content of a value; its kind states which field is valid.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ValueContent<'a> {
    /// The value as a number.
    pub number: u64,
    /// The value as a number with a fraction.
    pub real: f64,
    /// The value as a text.
    pub text: Text<'a>,
    /// 16 bytes.
    pub guid: Guid,
    /// The bytes of an array.
    pub bytes: Bytes,
}

/// A value of a payload, with the index of its field. Its pointers point into the payload.
#[repr(C)]
pub struct IndexedValue<'a> {
    /// The index of the field in the array of `dipc_metadata_fields`; for the begin and end of an object or array its own.
    pub field: u32,
    /// One of `DIPC_VALUE_*`.
    pub kind: u32,
    /// The content; nothing for the begin and end of an object or array.
    pub u: ValueContent<'a>,
}

impl<'a> IndexedValue<'a> {
    #[inline(always)]
    fn new(field: u32, part: IndexedPart<'a>) -> Self {
        let number = |kind, number| (kind, ValueContent { number });
        let (kind, u) = match part {
            IndexedPart::Value(value) => match value {
                Value::Boolean(value) => number(payload::DIPC_VALUE_BOOL, value.into()),
                Value::CodeUnit(unit) => number(payload::DIPC_VALUE_CODE_UNIT, unit.into()),
                Value::Int(value) => number(payload::DIPC_VALUE_INT, value as u64),
                Value::UInt(value) => number(payload::DIPC_VALUE_UINT, value),
                Value::DateTime(time) => number(payload::DIPC_VALUE_TIME, time.0),
                Value::Single(real) => (payload::DIPC_VALUE_REAL, ValueContent { real: real.into() }),
                Value::Double(real) => (payload::DIPC_VALUE_REAL, ValueContent { real }),
                Value::Text(text) => (payload::DIPC_VALUE_TEXT, ValueContent { text: Text::of_trace(text) }),
                Value::Guid(guid) => {
                    (payload::DIPC_VALUE_GUID, ValueContent { guid: Guid { bytes: guid.0 } })
                }
                Value::Decimal(bytes) => (payload::DIPC_VALUE_DECIMAL, ValueContent { guid: Guid { bytes } }),
                Value::Bytes(bytes) => bytes_value(bytes),
                _ => bytes_value(&[]),
            },
            IndexedPart::BeginObject => number(payload::DIPC_VALUE_BEGIN_OBJECT, 0),
            IndexedPart::EndObject => number(payload::DIPC_VALUE_END_OBJECT, 0),
            IndexedPart::BeginArray => number(payload::DIPC_VALUE_BEGIN_ARRAY, 0),
            IndexedPart::EndArray => number(payload::DIPC_VALUE_END_ARRAY, 0),
        };
        Self { field, kind, u }
    }
}

const fn bytes_value(bytes: &[u8]) -> (u32, ValueContent<'_>) {
    let bytes = Bytes { data: bytes.as_ptr(), len: bytes.len() };
    (payload::DIPC_VALUE_BYTES, ValueContent { bytes })
}

/// Stores the values of a payload in `values`, and their number in `count`: what `dipc_metadata_values` visits, with the
/// index of each field in place of its name, which is not read. Each begin of an object or array has its end.
///
/// ```c
/// dipc_described_field fields[64];
/// dipc_indexed_value values[64];
/// size_t field_count, value_count, needed;
/// dipc_metadata_fields(&metadata, fields, 64, &field_count);
/// dipc_fields_values(fields, field_count, payload, len, values, 64, &value_count, &needed);
/// for (size_t i = 0; i < value_count; i++)
///     if (values[i].kind == DIPC_VALUE_UINT) sums[values[i].field] += values[i].u.number;
/// ```
///
/// Returns an error if the payload does not fit its description, which occurs in valid traces too; the values before it
/// are stored. If there is `room` for fewer values, the function stores the first ones and returns
/// `DIPC_STATUS_BUFFER_TOO_SMALL`, and `detail` is the number of all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fields_values(
    fields: *const DescribedField<'_>,
    field_count: usize,
    payload: *const u8,
    len: usize,
    values: *mut IndexedValue<'_>,
    room: usize,
    count: *mut usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(fields, field_count) }.and_then(|fields| -> Outcome {
        memory::check(count, 1)?;
        // SAFETY: the caller vouches for the pointers.
        let values = unsafe { memory::slice_mut::<MaybeUninit<IndexedValue<'_>>>(values.cast(), room) }?;
        // SAFETY: the caller vouches for the pointers.
        let mut parts = IndexedValues::new(fields, unsafe { memory::slice(payload, len) }?);
        let mut all = 0_usize;
        for (field, part) in parts.by_ref() {
            if let Some(place) = values.get_mut(all) {
                place.write(IndexedValue::new(field, part));
            }
            all = all.saturating_add(1);
        }
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(count, all.min(room)) }?;
        match parts.error() {
            _ if all > room => Err(Failure { status: Status::BufferTooSmall, detail: all }),
            Some(error) => Err(Failure::from(error)),
            None => Ok(0),
        }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
