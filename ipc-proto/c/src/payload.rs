//! Descriptions of events, and the values of their payloads.
use core::ffi::c_void;
use core::ptr;

use nettrace::{Fields, Item, Metadata as ProtoMetadata, Str, Value, Version, clr};

use crate::command::Guid;
use crate::memory;
use crate::place::{Opaque, place, shared};
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// The description of a kind of event. Its texts point into the record that it was decoded from; so does the description
/// of the fields.
#[repr(C)]
pub struct Metadata<'a> {
    /// The number by which events refer to the description.
    pub id: u32,
    /// The event's number at its provider.
    pub event_id: u32,
    /// The provider of the event.
    pub provider: Text<'a>,
    /// The event's name; empty for events of the runtime: see `dipc_metadata_decode_runtime`.
    pub name: Text<'a>,
    /// The provider's keywords that enable this event.
    pub keywords: u64,
    /// The payload's version.
    pub version: u32,
    /// The level, from 1, critical, to 5, verbose; 0 is always on.
    pub level: u32,
    /// The opcode: 1 is start, 2 is stop; -1 if the record states none.
    pub opcode: i32,
    /// The first error in the description of the fields, or `DIPC_STATUS_OK`. The fields before it are valid.
    pub problem: Status,
    /// The fields of a payload, for `dipc_metadata_values`.
    pub fields: FieldList,
}

/// The description of the fields of a payload.
#[repr(C)]
pub struct FieldList {
    /// The state.
    pub opaque: [u64; 8],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for FieldList {
    type Content = Fields<'static>;
    const TAG: u64 = 0x6470_6363_9a75_e702;
}

/// Decodes a description: the payload of a `DIPC_RECORD_METADATA` of a stream of this `version`, which the `dipc_trace`
/// states. To keep the description longer than the window, copy the record first.
///
/// Returns an error for a malformed record; a later error is in `problem`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_decode(
    version: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { decode(version, record, len, metadata, detail, |metadata| metadata) }
}

/// Decodes a description, and adds the name and the fields that it lacks if its event is one of the runtime's. The width of
/// an address in the trace, `pointer_size`, is 4 or 8. This function has a table of 28 KB.
///
/// Otherwise it does what `dipc_metadata_decode` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_decode_runtime(
    version: u32,
    pointer_size: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        decode(version, record, len, metadata, detail, |metadata| clr::describe(metadata, pointer_size))
    }
}

/// Decodes a description.
///
/// # Safety
/// As the functions above.
unsafe fn decode(
    version: u32,
    record: *const u8,
    len: usize,
    metadata: *mut Metadata<'_>,
    detail: *mut usize,
    describe: impl FnOnce(ProtoMetadata<'static>) -> ProtoMetadata<'static>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(record, len) }.and_then(|record| -> Outcome {
        let version = match version {
            3 => Version::V3,
            4 => Version::V4,
            6 => Version::V6,
            _ => return Err(Status::InvalidArgument.into()),
        };
        let decoded = describe(ProtoMetadata::decode(version, record)?);
        let fields = decoded.fields;
        let decoded = Metadata {
            id: decoded.id,
            event_id: decoded.event_id,
            provider: Text::of_trace(decoded.provider),
            name: Text::of_trace(decoded.name),
            keywords: decoded.keywords,
            version: decoded.version,
            level: decoded.level,
            opcode: decoded.opcode.map_or(-1, i32::from),
            problem: decoded.problem.map_or(Status::Ok, |problem| problem.kind.into()),
            fields: FieldList { opaque: [0; 8] },
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store::<Metadata<'_>>(metadata.cast(), decoded) }?;
        // The content has pointers and padding, which a copy of a `FieldList`, an array of integers, would lose.
        // SAFETY: the description was stored here.
        let list = unsafe { &raw mut (*metadata).fields };
        // SAFETY: as above.
        unsafe { place(list, fields) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// A bool: `number` is 0 or 1.
pub const DIPC_VALUE_BOOL: u32 = 0;
/// A signed integer: `number`, to be converted to `int64_t`.
pub const DIPC_VALUE_INT: u32 = 1;
/// An unsigned integer: `number`.
pub const DIPC_VALUE_UINT: u32 = 2;
/// A float of 32 or 64 bits: `real`.
pub const DIPC_VALUE_REAL: u32 = 3;
/// A text, or an array of characters: `text`.
pub const DIPC_VALUE_TEXT: u32 = 4;
/// A GUID: `guid`.
pub const DIPC_VALUE_GUID: u32 = 5;
/// A point in time: `number` is the count of 100 ns since 1601-01-01 UTC.
pub const DIPC_VALUE_TIME: u32 = 6;
/// An array of bytes: `bytes`.
pub const DIPC_VALUE_BYTES: u32 = 7;
/// The 16 bytes of a .NET `Decimal`: `guid`.
pub const DIPC_VALUE_DECIMAL: u32 = 8;
/// A code unit of UTF-16 or UTF-8: `number`.
pub const DIPC_VALUE_CODE_UNIT: u32 = 9;
/// An object begins; its fields follow.
pub const DIPC_VALUE_BEGIN_OBJECT: u32 = 10;
/// The innermost object ends.
pub const DIPC_VALUE_END_OBJECT: u32 = 11;
/// An array begins; its elements follow.
pub const DIPC_VALUE_BEGIN_ARRAY: u32 = 12;
/// The innermost array ends.
pub const DIPC_VALUE_END_ARRAY: u32 = 13;

/// A value of a payload.
#[repr(C)]
pub struct FieldValue<'a> {
    /// One of `DIPC_VALUE_*`.
    pub kind: u32,
    /// The name of the field; empty for an element of an array.
    pub name: Text<'a>,
    /// The value as a number.
    pub number: u64,
    /// The value as a number with a fraction.
    pub real: f64,
    /// The value as a text.
    pub text: Text<'a>,
    /// 16 bytes.
    pub guid: Guid,
    /// The bytes of an array.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
}

impl<'a> From<Item<'a>> for FieldValue<'a> {
    fn from(item: Item<'a>) -> Self {
        let mut field = FieldValue {
            kind: 0,
            name: Text::of_trace(Str::EMPTY),
            number: 0,
            real: 0.0,
            text: Text::NULL,
            guid: Guid { bytes: [0; 16] },
            bytes: ptr::null(),
            len: 0,
        };
        let (kind, name) = match item {
            Item::Value { name, value } => (field.set(value), name),
            Item::BeginObject { name } => (DIPC_VALUE_BEGIN_OBJECT, name),
            Item::EndObject => (DIPC_VALUE_END_OBJECT, Str::EMPTY),
            Item::BeginArray { name } => (DIPC_VALUE_BEGIN_ARRAY, name),
            Item::EndArray => (DIPC_VALUE_END_ARRAY, Str::EMPTY),
        };
        (field.kind, field.name) = (kind, Text::of_trace(name));
        field
    }
}

impl<'a> FieldValue<'a> {
    /// Sets the value, and returns its kind.
    fn set(&mut self, value: Value<'a>) -> u32 {
        let (kind, number) = match value {
            Value::Boolean(value) => (DIPC_VALUE_BOOL, value.into()),
            Value::CodeUnit(unit) => (DIPC_VALUE_CODE_UNIT, unit.into()),
            Value::Int(number) => (DIPC_VALUE_INT, number as u64),
            Value::UInt(number) => (DIPC_VALUE_UINT, number),
            Value::DateTime(time) => (DIPC_VALUE_TIME, time.0),
            Value::Single(number) => {
                self.real = number.into();
                (DIPC_VALUE_REAL, 0)
            }
            Value::Double(number) => {
                self.real = number;
                (DIPC_VALUE_REAL, 0)
            }
            Value::Text(text) => {
                self.text = Text::of_trace(text);
                (DIPC_VALUE_TEXT, 0)
            }
            Value::Guid(guid) => {
                self.guid.bytes = guid.0;
                (DIPC_VALUE_GUID, 0)
            }
            Value::Decimal(bytes) => {
                self.guid.bytes = bytes;
                (DIPC_VALUE_DECIMAL, 0)
            }
            Value::Bytes(bytes) => {
                (self.bytes, self.len) = (bytes.as_ptr(), bytes.len());
                (DIPC_VALUE_BYTES, 0)
            }
            _ => (DIPC_VALUE_BYTES, 0),
        };
        self.number = number;
        kind
    }
}

/// A function that receives the values of a payload, in order, and returns whether it wants the next one. It must return:
/// no `longjmp`, no C++ exception.
pub type VisitValue =
    Option<unsafe extern "C" fn(context: *mut c_void, value: *const FieldValue<'_>) -> bool>;

/// Passes the values of a payload to `visit`, with `context`, by the description of its event. Each begin of an object or
/// array has its end, unless `visit` returns false.
///
/// Returns an error if the payload does not fit its description, which occurs in valid traces too: the values before it
/// have been visited then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_metadata_values(
    metadata: *const Metadata<'_>,
    payload: *const u8,
    len: usize,
    visit: VisitValue,
    context: *mut c_void,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers, and for the record that the description was decoded from.
    let outcome = unsafe { memory::reference(metadata) }.and_then(|metadata| {
        // SAFETY: the field belongs to a reference.
        unsafe { shared(&raw const metadata.fields) }
    });
    let outcome = outcome.and_then(|fields| -> Outcome {
        let Some(visit) = visit else { return Err(Status::NullPointer.into()) };
        // SAFETY: the caller vouches for the pointers.
        let mut values = fields.values(unsafe { memory::slice(payload, len) }?);
        for item in values.by_ref() {
            // SAFETY: the caller vouches for the function and its context.
            if !unsafe { visit(context, &item.into()) } {
                return Ok(0);
            }
        }
        match values.error() {
            Some(error) => Err(Failure::from(error)),
            None => Ok(0),
        }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
