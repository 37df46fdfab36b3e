//! The description of an event, with its own copy of the texts and fields.
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use ipc_proto::wire::steps;

#[cfg(feature = "clr")]
use crate::clr::Layouts;
use crate::describe::{Attributes, Fields, Format, Metadata};
use crate::encoding::Str;
use crate::error::DecodeError;
use crate::join::LabelDigest;
use crate::parse::Version;

/// A [`Metadata`] that owns its texts and fields, for streams that are read in pieces.
///
/// ```
/// use nettrace::{MetadataBuf, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = MetadataBuf::decode(Version::V4, &record)?;
/// drop(record);
/// assert_eq!(metadata.get().name, "Tick");
/// assert_eq!(metadata.get().fields.len(), 1);
/// # Ok::<(), nettrace::DecodeError>(())
/// ```
#[derive(Clone)]
pub struct MetadataBuf {
    /// The record, or else the borrowed parts of the description, one after the other.
    bytes: Box<[u8]>,
    /// The parts that borrow nothing, and the static name and fields that [`describe`](Self::describe) adds.
    plain: Metadata<'static>,
    provider: Part,
    name: Option<Part>,
    fields: Option<FieldsPart>,
    message_template: Option<Part>,
    description: Option<Part>,
    attributes: Part,
    /// The versions of an event of the runtime, once [`describe`](Self::describe) was called.
    #[cfg(feature = "clr")]
    layouts: Layouts,
    /// Whether the fields depend on the payload of an event: the version in the description is not known.
    #[cfg(feature = "clr")]
    lacks_version: bool,
}

/// A part of [`MetadataBuf::bytes`].
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// Whether the part is a text of UTF-16.
    is_utf16: bool,
}

/// A [`Fields`] whose bytes are a part of [`MetadataBuf::bytes`].
#[derive(Clone, Copy)]
struct FieldsPart {
    format: Format,
    count: u32,
    part: Part,
    offset: usize,
}

impl Part {
    #[inline]
    fn bytes(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    fn text(self, bytes: &[u8]) -> Str<'_> {
        let bytes = self.bytes(bytes);
        if self.is_utf16 { Str::Utf16(bytes) } else { Str::Utf8(bytes) }
    }
}

/// The buffer of a description: its record, or else copies of the parts.
struct Parts {
    bytes: Vec<u8>,
    /// The address of the record; `None` if the buffer has copies.
    record: Option<usize>,
}

impl Parts {
    fn add(&mut self, bytes: &[u8]) -> Part {
        let start = match self.record.and_then(|record| bytes.as_ptr().addr().checked_sub(record)) {
            // The address is not that of a part of the record if the part is static, which only empty ones are.
            Some(start) if self.bytes.get(start..).is_some_and(|rest| rest.starts_with(bytes)) => start,
            _ => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                start
            }
        };
        steps::count(bytes.len());
        Part { start, end: start.saturating_add(bytes.len()), is_utf16: false }
    }

    fn add_text(&mut self, text: Str<'_>) -> Part {
        match text {
            Str::Utf16(units) => Part { is_utf16: true, ..self.add(units) },
            Str::Utf8(bytes) => self.add(bytes),
        }
    }

    fn add_fields(&mut self, fields: &Fields<'_>) -> Option<FieldsPart> {
        let Fields { format, count, offset, .. } = *fields;
        (count != 0).then(|| FieldsPart { format, count, part: self.add(fields.own_bytes()), offset })
    }
}

impl MetadataBuf {
    /// Decodes a record of a stream of this version, and copies its texts and fields.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn decode(version: Version, record: &[u8]) -> Result<Self, DecodeError> {
        let metadata = Metadata::decode(version, record)?;
        steps::count(record.len());
        Ok(Self::copy(&metadata, Parts { bytes: record.into(), record: Some(record.as_ptr().addr()) }))
    }

    /// Finds the texts and fields in the buffer, or adds them.
    fn copy(metadata: &Metadata<'_>, mut parts: Parts) -> Self {
        Self {
            provider: parts.add_text(metadata.provider),
            name: Some(parts.add_text(metadata.name)),
            fields: parts.add_fields(&metadata.fields),
            message_template: metadata.message_template.map(|text| parts.add_text(text)),
            description: metadata.description.map(|text| parts.add_text(text)),
            attributes: parts.add(metadata.attributes.0),
            plain: Metadata {
                provider: Str::EMPTY,
                name: Str::EMPTY,
                fields: Fields::EMPTY,
                message_template: None,
                description: None,
                attributes: Attributes::default(),
                ..*metadata
            },
            bytes: parts.bytes.into(),
            #[cfg(feature = "clr")]
            layouts: Layouts::default(),
            #[cfg(feature = "clr")]
            lacks_version: false,
        }
    }

    /// Returns the description.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Metadata<'_> {
        let text = |part: Part| part.text(&self.bytes);
        Metadata {
            provider: text(self.provider),
            name: self.name.map_or(self.plain.name, text),
            fields: self.fields(),
            message_template: self.message_template.map(text),
            description: self.description.map(text),
            attributes: Attributes(self.attributes.bytes(&self.bytes)),
            ..self.plain
        }
    }

    /// Returns whether the description was decoded from a record with these bytes.
    pub(crate) fn is_from(&self, record: &[u8]) -> bool {
        steps::count(record.len());
        *self.bytes == *record
    }

    /// Returns the bytes of memory that the texts and fields take.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number by which headers of events refer to this description.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> u32 {
        self.plain.id
    }

    /// Returns the provider of the event.
    #[must_use]
    #[inline]
    pub fn provider(&self) -> Str<'_> {
        self.provider.text(&self.bytes)
    }

    /// Returns the event's number at its provider.
    #[must_use]
    #[inline]
    pub const fn event_id(&self) -> u32 {
        self.plain.event_id
    }

    /// Returns the event's name; empty if it has none.
    #[must_use]
    #[inline]
    pub fn name(&self) -> Str<'_> {
        self.name.map_or(self.plain.name, |name| name.text(&self.bytes))
    }

    /// Returns the fields of the description.
    #[must_use]
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        self.fields.map_or(self.plain.fields, |FieldsPart { format, count, part, offset }| Fields {
            format,
            count,
            bytes: part.bytes(&self.bytes),
            offset,
        })
    }

    /// Returns whether the fields of an event with these labels can differ from those of the description: the version of
    /// an event of the runtime is a label, or unknown.
    #[cfg(feature = "clr")]
    #[inline]
    pub(crate) fn may_have_other_fields(&self, labels: Option<&LabelDigest>) -> bool {
        self.lacks_version || (labels.is_some() && !self.layouts.is_empty())
    }

    /// Returns the fields of an event for which [`may_have_other_fields`](Self::may_have_other_fields) is true: the
    /// fields of the version of the event.
    #[cfg(feature = "clr")]
    #[cold]
    pub(crate) fn fields_of(
        &self,
        labels: Option<&LabelDigest>,
        pointer_size: u32,
        payload: &[u8],
    ) -> Fields<'_> {
        let described = self.lacks_version.then_some(self.plain.version);
        let label = labels.and_then(|labels| labels.version);
        self.layouts.fields_of(label, described, pointer_size, payload).unwrap_or_else(|| self.fields())
    }

    #[cfg(not(feature = "clr"))]
    #[inline]
    pub(crate) const fn may_have_other_fields(&self, _: Option<&LabelDigest>) -> bool {
        false
    }

    #[cfg(not(feature = "clr"))]
    pub(crate) fn fields_of(&self, _: Option<&LabelDigest>, _: u32, _: &[u8]) -> Fields<'_> {
        self.fields()
    }

    /// Adds the name and the fields that [`clr::describe`](crate::clr::describe) adds.
    #[cfg(feature = "clr")]
    pub fn describe(&mut self, pointer_size: u32) {
        let layouts = Layouts::of(&self.get());
        if let Some((name, fields)) = crate::clr::find(&self.get(), pointer_size) {
            if self.get().name.is_empty() {
                (self.plain.name, self.name) = (name, None);
            }
            (self.plain.fields, self.fields) = (fields, None);
            self.lacks_version = self.fields().is_empty() && !layouts.is_empty();
            self.layouts = layouts;
        }
    }
}

impl From<&Metadata<'_>> for MetadataBuf {
    fn from(metadata: &Metadata<'_>) -> Self {
        Self::copy(metadata, Parts { bytes: Vec::new(), record: None })
    }
}

impl fmt::Debug for MetadataBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
