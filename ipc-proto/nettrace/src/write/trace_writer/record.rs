//! Writes metadata records and descriptions of fields in each form, and builds [`Fields`] for events of the caller.
use ipc_proto::wire::{low_u8, low_u16, to_u32};
use ipc_proto::{Encode, wire};

use crate::describe::{
    ArrayKind, Field, FieldIter, FieldType, Fields, Format, MAX_DEPTH, Metadata, Scalar, code,
};
use crate::encoding::{Str, Varint32};
use crate::parse::Version;
use crate::write::error::WriteError;
use crate::write::trace_writer::layout::{Utf8, item, pair, utf8};

/// The forms of a description of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V1,
    V2,
    V6,
    /// V6, with the type of texts that only the providers `Universal.*` have.
    Universal,
}

impl Form {
    const fn is_v6(self) -> bool {
        matches!(self, Self::V6 | Self::Universal)
    }
}

/// A metadata record as V3 and V4 have it: the payload of a blob.
pub(super) struct V4Record<'m>(pub(super) &'m Metadata<'m>);

/// The payload of a blob in a block of events.
pub(super) enum Payload<'p> {
    /// The bytes of these parts, one after the other.
    Parts([&'p [u8]; 2]),
    /// V3: a metadata record.
    Description(V4Record<'p>),
}

impl Encode for Payload<'_> {
    #[inline]
    fn encode(&self, w: &mut wire::Writer<'_>) {
        match self {
            Self::Parts(parts) => parts.iter().for_each(|part| w.bytes(part)),
            Self::Description(record) => record.encode(w),
        }
    }
}

/// A metadata record as V6 has it: a row of a block, with its size.
pub(super) struct V6Row<'m>(pub(super) &'m Metadata<'m>);

/// Returns whether a version can express the types of the fields of an event.
pub(super) fn expressible(version: Version, metadata: &Metadata<'_>) -> bool {
    let form = if version == Version::V6 { v6_form(metadata) } else { Form::V2 };
    encode_fields(form, &metadata.fields, &mut wire::Writer::new(&mut []))
}

fn v6_form(metadata: &Metadata<'_>) -> Form {
    let universal = b"Universal.".map(u16::from);
    let is_universal = metadata.provider.units().take(universal.len()).eq(universal);
    if is_universal { Form::Universal } else { Form::V6 }
}

impl Encode for V4Record<'_> {
    fn encode(&self, w: &mut wire::Writer<'_>) {
        self.0.id.encode(w);
        utf16_z(self.0.provider, w);
        after_provider(self.0, w);
    }
}

/// Writes the part of a V4 record that follows the provider.
fn after_provider(metadata: &Metadata<'_>, w: &mut wire::Writer<'_>) {
    metadata.event_id.encode(w);
    utf16_z(metadata.name, w);
    metadata.keywords.encode(w);
    metadata.version.encode(w);
    metadata.level.encode(w);
    // As in a runtime, fields with arrays (V2) are in a tag at the end. Fields without arrays are at their place in V1.
    let plain = encode_fields(Form::V1, &metadata.fields, &mut wire::Writer::new(&mut []));
    if plain {
        encode_fields(Form::V1, &metadata.fields, w);
    } else {
        0u32.encode(w);
    }
    if let Some(opcode) = metadata.opcode.filter(|opcode| *opcode != 0) {
        1u32.encode(w);
        w.bytes(&[1, opcode]);
    }
    if !plain {
        let tag = w.len();
        0u32.encode(w);
        w.bytes(&[2]);
        let body = w.len();
        encode_fields(Form::V2, &metadata.fields, w);
        w.patch_u32(tag, to_u32(w.len().wrapping_sub(body)));
    }
}

impl Metadata<'_> {
    /// Writes the record as V4 has it, but without its id. A provider without a name is left out.
    pub(crate) fn encode_inline(&self, w: &mut wire::Writer<'_>) -> Result<(), WriteError> {
        if !expressible(Version::V4, self) {
            return Err(WriteError::Version(Version::V4));
        }
        if self.provider.units().next().is_some_and(|unit| unit != 0) {
            utf16_z(self.provider, w);
        }
        after_provider(self, w);
        Ok(())
    }
}

impl Encode for V6Row<'_> {
    fn encode(&self, w: &mut wire::Writer<'_>) {
        let metadata = self.0;
        sized(w, |w| {
            Varint32(metadata.id).encode(w);
            utf8(metadata.provider, w);
            Varint32(metadata.event_id).encode(w);
            utf8(metadata.name, w);
            encode_fields(v6_form(metadata), &metadata.fields, w);
            sized(w, |w| optional(metadata, w));
        });
    }
}

/// Writes the optional metadata of V6. Absent values are left out, as are keywords, level and version of zero.
fn optional(metadata: &Metadata<'_>, w: &mut wire::Writer<'_>) {
    if let Some(opcode) = metadata.opcode {
        w.bytes(&[1, opcode]);
    }
    if metadata.keywords != 0 {
        item(3, metadata.keywords, w);
    }
    metadata.message_template.into_iter().for_each(|text| item(4, Utf8(text), w));
    metadata.description.into_iter().for_each(|text| item(5, Utf8(text), w));
    metadata.attributes.iter().for_each(|(key, value)| pair(6, key, Utf8(value), w));
    metadata.provider_guid.into_iter().for_each(|guid| item(7, guid, w));
    // V6 has one byte for level and for version. V4 has four bytes for each, of which readers use only the low one.
    for (kind, value) in [(8, low_u8(metadata.level.into())), (9, low_u8(metadata.version.into()))] {
        if value != 0 {
            w.bytes(&[kind, value]);
        }
    }
}

/// A list of fields that is being written.
struct OpenList<'a> {
    fields: FieldIter<'a>,
    /// The offset of the size of the parent field: the field that has these fields as its type.
    size: usize,
    /// V1: the name of the parent field, which follows its type.
    name: Str<'a>,
    /// The number of array lengths that belong to fields outside the parent field.
    lengths: usize,
    /// Whether the parent field is an array or inside of one.
    in_array: bool,
}

/// Writes a count and fields; returns false if this form cannot express the fields.
fn encode_fields(form: Form, fields: &Fields<'_>, w: &mut wire::Writer<'_>) -> bool {
    count(form, fields.len(), w);
    encode_list(form, &mut fields.iter(), w)
}

/// Writes fields without their count; returns false if this form cannot express the fields.
fn encode_list<'a>(
    form: Form,
    fields: &mut dyn Iterator<Item = Field<'a>>,
    w: &mut wire::Writer<'_>,
) -> bool {
    let mut outer = heapless::Vec::<OpenList<'_>, MAX_DEPTH>::new();
    // At the outermost level, `fields` is read instead of this list.
    let none = Fields::EMPTY.iter();
    let mut level = OpenList { fields: none, size: 0, name: Str::EMPTY, lengths: 0, in_array: false };
    // V6: the lengths of nested arrays of fixed length, which follow the type of the elements. Objects and arrays
    // together are nested at most `MAX_DEPTH` levels.
    let mut lengths = heapless::Vec::<u16, MAX_DEPTH>::new();
    loop {
        let next = if outer.is_empty() { fields.next() } else { level.fields.next() };
        let Some(Field { name, field_type, .. }) = next else {
            let Some(before) = outer.pop() else { return true };
            let done = core::mem::replace(&mut level, before);
            end_field(form, done.size, done.name, lengths.get(done.lengths..).unwrap_or_default(), w);
            lengths.truncate(done.lengths);
            continue;
        };
        let size = w.len();
        match form {
            Form::V1 => {}
            Form::V2 => {
                0u32.encode(w);
                utf16_z(name, w);
            }
            Form::V6 | Form::Universal => {
                0u16.encode(w);
                utf8(name, w);
            }
        }
        let (mut field_type, around, mut in_array) = (field_type, lengths.len(), level.in_array);
        while let FieldType::Array { kind, element } = field_type {
            let code = match (kind, form) {
                (_, Form::V1) => return false,
                (ArrayKind::Counted, _) => code::ARRAY,
                (_, Form::V2) => return false,
                (ArrayKind::FixedLength(length), _) => {
                    if lengths.push(length).is_err() {
                        return false;
                    }
                    code::FIXED_LENGTH_ARRAY
                }
                (ArrayKind::RelLoc, _) => code::REL_LOC,
                (ArrayKind::DataLoc, _) => code::DATA_LOC,
                (ArrayKind::CountedBefore, _) => return false,
            };
            type_code(form, code, w);
            in_array = true;
            field_type = element.field_type();
        }
        match field_type {
            FieldType::Scalar(scalar) if form.is_v6() => {
                // For the providers `Universal.*`, the code of a single code unit has another meaning, outside of
                // arrays.
                match (scalar, form == Form::Universal && !in_array) {
                    (Scalar::Utf8CodeUnit, true) => return false,
                    // Only `Universal.*` has a type for a text in UTF-8. Elsewhere the text is described as an array of
                    // code units, which has the same bytes in a payload.
                    (Scalar::Utf8String, false) => type_code(form, code::ARRAY, w),
                    _ => {}
                }
                type_code(form, scalar.code(), w);
                end_field(form, size, name, lengths.get(around..).unwrap_or_default(), w);
                lengths.truncate(around);
            }
            FieldType::Scalar(scalar) => {
                let Some((array, code)) = before_v6(scalar) else { return false };
                if array {
                    if form == Form::V1 {
                        return false;
                    }
                    type_code(form, code::ARRAY, w);
                }
                type_code(form, code, w);
                end_field(form, size, name, &[], w); // only V6 has lengths
            }
            FieldType::Object(fields) => {
                type_code(form, code::OBJECT, w);
                count(form, fields.len(), w);
                let inner = OpenList { fields: fields.iter(), size, name, lengths: around, in_array };
                if outer.push(core::mem::replace(&mut level, inner)).is_err() {
                    return false;
                }
            }
            FieldType::Array { .. } => {}
        }
    }
}

/// Returns the type that describes a scalar in V1 and V2, if they have one: whether the type is an array, and the code
/// of the value or of an element. The payload has the same bytes as in V6.
fn before_v6(scalar: Scalar) -> Option<(bool, u8)> {
    match scalar {
        Scalar::VarInt | Scalar::VarUInt => None,
        Scalar::Utf8CodeUnit | Scalar::Boolean8 => Some((false, Scalar::Byte.code())),
        Scalar::Utf8String => Some((true, Scalar::Byte.code())),
        scalar => Some((false, scalar.code())),
    }
}

/// Writes the part that follows the type of a field, and fills in the size before it.
fn end_field(form: Form, size: usize, name: Str<'_>, lengths: &[u16], w: &mut wire::Writer<'_>) {
    match form {
        Form::V1 => utf16_z(name, w),
        Form::V2 => w.patch_u32(size, to_u32(w.len().wrapping_sub(size))),
        Form::V6 | Form::Universal => {
            // The length of the innermost array comes first.
            lengths.iter().rev().for_each(|length| length.encode(w));
            w.patch_u16(size, low_u16(w.len().wrapping_sub(size).wrapping_sub(2)));
        }
    }
}

/// Writes a count, which has 16 bits in V6. A row with more than 65,535 fields is longer than a row can be, so it is
/// refused in any case.
fn count(form: Form, count: usize, w: &mut wire::Writer<'_>) {
    if form.is_v6() {
        low_u16(count).encode(w);
    } else {
        to_u32(count).encode(w);
    }
}

fn type_code(form: Form, code: u8, w: &mut wire::Writer<'_>) {
    if form.is_v6() {
        code.encode(w);
    } else {
        u32::from(code).encode(w);
    }
}

/// Writes a part after its size. The size has 16 bits and does not include itself.
pub(super) fn sized(w: &mut wire::Writer<'_>, write: impl FnOnce(&mut wire::Writer<'_>)) {
    let at = w.len();
    0u16.encode(w);
    write(w);
    w.patch_u16(at, low_u16(w.len().wrapping_sub(at).wrapping_sub(2)));
}

/// Writes UTF-16 and a NUL. A NUL in the text would end it, so the rest of the text is not written.
fn utf16_z(text: Str<'_>, w: &mut wire::Writer<'_>) {
    text.units().take_while(|unit| *unit != 0).chain([0]).for_each(|unit| unit.encode(w));
}

impl<'b> Fields<'b> {
    /// Builds a description of payloads in `buf`, for events that the caller creates rather than reads. The types of
    /// the fields are [`Scalar`]s or [`FieldType`]s.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`], with the length that would have been enough. [`WriteError::TooLong`] if a name
    /// is too long. [`WriteError::Version`] if V6 cannot express a type. Also if the fields contain both
    /// [`Scalar::Utf8String`] and a single [`Scalar::Utf8CodeUnit`], for which V6 has one code.
    ///
    /// ```
    /// use nettrace::{FieldType, Fields, Scalar};
    ///
    /// let mut buf = [0; 64];
    /// let fields = Fields::build(&[("Index", Scalar::Int32), ("Text", Scalar::Utf16String)], &mut buf)?;
    /// assert!(fields.into_iter().map(|field| field.name.to_string()).eq(["Index", "Text"]));
    ///
    /// let fields = [("Index", Scalar::Int32.into()), ("Data", FieldType::array(Scalar::Byte))];
    /// let fields = Fields::build(&fields, &mut buf)?;
    /// assert!(matches!(fields.iter().last().unwrap().field_type, FieldType::Array { .. }));
    /// # Ok::<(), nettrace::WriteError>(())
    /// ```
    pub fn build<'f, T>(fields: &[(&str, T)], buf: &'b mut [u8]) -> Result<Self, WriteError>
    where
        T: Copy + Into<FieldType<'f>>,
    {
        let inexpressible = WriteError::Version(Version::V6);
        let is_text = |of: FieldType<'f>| matches!(of, FieldType::Scalar(Scalar::Utf8String));
        let is_universal = fields.iter().any(|(_, of)| is_text((*of).into()));
        let (form, format) =
            if is_universal { (Form::Universal, Format::Universal) } else { (Form::V6, Format::V6) };
        let mut w = wire::Writer::new(buf);
        for (name, of) in fields {
            let at = w.len();
            let field = Field { name: Str::from(*name), field_type: (*of).into() };
            if !encode_list(form, &mut core::iter::once(field), &mut w) {
                return Err(inexpressible);
            }
            let len = w.len().saturating_sub(at).saturating_sub(2);
            if u16::try_from(len).is_err() {
                return Err(WriteError::TooLong { len });
            }
        }
        let needed = w.len();
        let bytes = w.finish().map_err(|_| WriteError::BufferTooSmall { needed })?;
        let mut built = Self::new(format, to_u32(fields.len()), &wire::Reader::new(bytes));
        // The caller can combine any types, and only this check refuses a combination that has no description.
        built.check().map_err(|_| inexpressible)?;
        Ok(built)
    }
}
