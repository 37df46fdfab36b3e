use core::fmt;

use super::field::{Fields, Format, length, utf8};
use super::text::{Str, utf16_z};
use super::{Varint32, Version};
use crate::wire::Reader;
use crate::{DecodeError, DecodeErrorKind, Guid};

/// What a stream says about one kind of event: its name, and what its payloads hold.
///
/// ```text
/// V3, V4   u32 id, provider, u32 event id, name, u64 keywords, u32 version, u32 level,      strings UTF-16 and NUL
///          [u32 count, V1 fields, tags…]                                                   a tag: u32 size, u8 kind, body
/// V6       varint id, provider, varint event id, name,                                     strings length and UTF-8
///          u16 count, V6 fields, u16 size, optional metadata, …
/// ```
///
/// In V3 and V4 it is the payload of a blob whose own metadata id is 0, in V6 a row of a metadata block, without its
/// size: what [`Step::Metadata`](super::Step::Metadata) has as payload. See "Metadata event encoding" in the NetTrace format, V4/V5, and "MetadataBlock"
/// in V6. What V5 adds is the tags; no version number tells that they are there. A tag's size counts its body alone.
///
/// Events of the runtime itself have neither name nor fields: see the feature `clr`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Metadata<'a> {
    /// What an event's header says instead of all this.
    pub id: u32,
    /// Who raises the event; with the event's own id, and its version, that is its identity.
    pub provider: Str<'a>,
    /// The event's number at its provider. Event sources that describe themselves assign it as they run: go by the name.
    pub event_id: u32,
    /// The event's name; empty for events of the runtime.
    pub name: Str<'a>,
    /// Which of the provider's keywords let this event through.
    pub keywords: u64,
    /// The payload's version.
    pub version: u32,
    /// From 1, critical, to 5, verbose; 0 is always.
    pub level: u32,
    /// 1 is start, 2 is stop; `None` where nothing is said.
    pub opcode: Option<u8>,
    /// What a payload holds. No fields does not mean no payload: the runtime's own events have none here, nor do
    /// events with a `byte[]` argument.
    pub fields: Fields<'a>,
    /// What a reader is shown, with names of fields in braces; V6 only.
    pub message_template: Option<Str<'a>>,
    /// What the event means; V6 only.
    pub description: Option<Str<'a>>,
    /// The provider's GUID; V6 only.
    pub provider_guid: Option<Guid>,
    /// Whatever else the writer had to say; V6 only.
    pub attributes: Attributes<'a>,
    /// What could not be understood and was left out: the fields, or a tag or an optional entry and those behind it.
    /// The rest of the record stands.
    pub problem: Option<DecodeError>,
}

impl<'a> Metadata<'a> {
    /// Decodes a record of a stream of this version.
    ///
    /// # Errors
    /// If the record ends before its level, V6 before its fields. Whatever is wrong behind that is in
    /// [`problem`](Self::problem).
    pub fn decode(version: Version, record: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(record);
        if version == Version::V6 {
            return Self::row(&mut r);
        }
        let (id, provider) = (r.read()?, utf16_z(&mut r)?);
        Self { id, provider, ..Self::default() }.behind_provider(r)
    }

    /// As V4 has it, but without an id, and perhaps without a provider.
    pub(crate) fn decode_inline(record: &'a [u8], has_provider: bool) -> Result<Self, DecodeError> {
        let mut r = Reader::new(record);
        let provider = if has_provider { utf16_z(&mut r)? } else { Str::EMPTY };
        Self { provider, ..Self::default() }.behind_provider(r)
    }

    /// What V3 and V4 have behind the provider.
    fn behind_provider(self, mut r: Reader<'a>) -> Result<Self, DecodeError> {
        let mut metadata = Self {
            event_id: r.read()?,
            name: utf16_z(&mut r)?,
            keywords: r.read()?,
            version: r.read()?,
            level: r.read()?,
            ..self
        };
        // A record may end here.
        if !r.rest().is_empty() {
            metadata.problem = metadata.v1_and_tags(&mut r).err();
        }
        Ok(metadata)
    }

    fn v1_and_tags(&mut self, r: &mut Reader<'a>) -> Result<(), DecodeError> {
        let count = r.read()?;
        let fields = Fields::new(Format::V1, count, r);
        *r = fields.check()?;
        self.fields = fields;
        let mut problem = Ok(());
        while !r.rest().is_empty() {
            let size = r.read()?;
            let kind: u8 = r.read()?;
            let offset = r.offset();
            let mut body = Reader::at(r.bytes(length(size))?, offset);
            match kind {
                1 => self.opcode = body.read().ok(),
                2 => {
                    let fields = self.v2(&mut body);
                    problem = problem.and(fields);
                }
                _ => {}
            }
        }
        problem
    }

    fn v2(&mut self, body: &mut Reader<'a>) -> Result<(), DecodeError> {
        self.fields = Fields::EMPTY;
        let count = body.read()?;
        let fields = Fields::new(Format::V2, count, body);
        fields.check()?;
        self.fields = fields;
        Ok(())
    }

    fn row(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let Varint32(id) = r.read()?;
        let provider = utf8(r)?;
        let Varint32(event_id) = r.read()?;
        let mut metadata = Self { id, provider, event_id, name: utf8(r)?, ..Self::default() };
        metadata.problem = metadata.v6(r).err();
        Ok(metadata)
    }

    fn v6(&mut self, r: &mut Reader<'a>) -> Result<(), DecodeError> {
        let universal = matches!(self.provider, Str::Utf8(name) if name.starts_with(b"Universal."));
        let format = if universal { Format::Universal } else { Format::V6 };
        let count: u16 = r.read()?;
        let fields = Fields::new(format, count.into(), r);
        for _ in 0..count {
            let size: u16 = r.read()?;
            r.bytes(size.into())?;
        }
        let checked = fields.check();
        if checked.is_ok() {
            self.fields = fields;
        }
        let size: u16 = r.read()?;
        let offset = r.offset();
        let entries = r.bytes(size.into())?;
        self.attributes = Attributes(entries);
        for entry in Entries(Reader::at(entries, offset)) {
            match entry? {
                Entry::Opcode(opcode) => self.opcode = Some(opcode),
                Entry::Keywords(keywords) => self.keywords = keywords,
                Entry::MessageTemplate(text) => self.message_template = Some(text),
                Entry::Description(text) => self.description = Some(text),
                Entry::Attribute(..) => {}
                Entry::ProviderGuid(guid) => self.provider_guid = Some(guid),
                Entry::Level(level) => self.level = level.into(),
                Entry::Version(version) => self.version = version.into(),
            }
        }
        checked.map(|_| ())
    }
}

/// Pairs of a key and a value that a V6 writer added to a description.
#[derive(Clone, Copy, Default)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (Str<'a>, Str<'a>)> + use<'a> {
        Entries(Reader::new(self.0)).filter_map(|entry| match entry {
            Ok(Entry::Attribute(key, value)) => Some((key, value)),
            _ => None,
        })
    }
}
impl fmt::Debug for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// An entry of V6 optional metadata: a `u8` kind, and what belongs to it. None says how long it is, so behind an
/// unknown kind nothing can be found.
enum Entry<'a> {
    Opcode(u8),
    Keywords(u64),
    MessageTemplate(Str<'a>),
    Description(Str<'a>),
    Attribute(Str<'a>, Str<'a>),
    ProviderGuid(Guid),
    Level(u8),
    Version(u8),
}

struct Entries<'a>(Reader<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let r = &mut self.0;
        if r.rest().is_empty() {
            return None;
        }
        let entry = entry(r);
        if entry.is_err() {
            *r = Reader::new(&[]);
        }
        Some(entry)
    }
}

fn entry<'a>(r: &mut Reader<'a>) -> Result<Entry<'a>, DecodeError> {
    let unknown = r.error(DecodeErrorKind::UnknownType);
    Ok(match r.read::<u8>()? {
        1 => Entry::Opcode(r.read()?),
        3 => Entry::Keywords(r.read()?),
        4 => Entry::MessageTemplate(utf8(r)?),
        5 => Entry::Description(utf8(r)?),
        6 => Entry::Attribute(utf8(r)?, utf8(r)?),
        7 => Entry::ProviderGuid(r.read()?),
        8 => Entry::Level(r.read()?),
        9 => Entry::Version(r.read()?),
        _ => return Err(unknown),
    })
}

/// A [`Metadata`] that owns its record, for streams that are read piece by piece.
///
/// ```
/// use ipc_proto::nettrace::{MetadataBuf, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = MetadataBuf::decode(Version::V4, &record)?;
/// drop(record);
/// assert_eq!(metadata.get().name, "Tick");
/// assert_eq!(metadata.get().fields.len(), 1);
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone)]
pub struct MetadataBuf {
    record: alloc::boxed::Box<[u8]>,
    /// All that does not borrow, and fields that stand in no record.
    plain: Metadata<'static>,
    provider: Place,
    name: Option<Place>,
    fields: Option<(Format, u32, Place)>,
    message_template: Option<Place>,
    description: Option<Place>,
    attributes: Place,
}

/// Where a part of a record lies, and whether it is UTF-16.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    utf16: bool,
}

#[cfg(feature = "alloc")]
impl Place {
    /// Of a part of `record`.
    fn of(part: &[u8], record: &[u8], utf16: bool) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(record.as_ptr().addr());
        Self { start, end: start.wrapping_add(part.len()), utf16 }
    }

    fn of_text(text: Str<'_>, record: &[u8]) -> Self {
        match text {
            Str::Utf16(text) => Self::of(text, record, true),
            Str::Utf8(text) => Self::of(text, record, false),
        }
    }

    fn bytes(self, record: &[u8]) -> &[u8] {
        record.get(self.start..self.end).unwrap_or_default()
    }

    fn text(self, record: &[u8]) -> Str<'_> {
        let bytes = self.bytes(record);
        if self.utf16 { Str::Utf16(bytes) } else { Str::Utf8(bytes) }
    }
}

#[cfg(feature = "alloc")]
impl MetadataBuf {
    /// Copies and decodes a record of a stream of this version.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn decode(version: Version, record: &[u8]) -> Result<Self, DecodeError> {
        let metadata = Metadata::decode(version, record)?;
        let text = |text| Place::of_text(text, record);
        let Fields { format, count, bytes, .. } = metadata.fields;
        Ok(Self {
            provider: text(metadata.provider),
            name: Some(text(metadata.name)),
            fields: (count != 0).then(|| (format, count, Place::of(bytes, record, false))),
            message_template: metadata.message_template.map(text),
            description: metadata.description.map(text),
            attributes: Place::of(metadata.attributes.0, record, false),
            plain: Metadata {
                provider: Str::EMPTY,
                name: Str::EMPTY,
                fields: Fields::EMPTY,
                message_template: None,
                description: None,
                attributes: Attributes::default(),
                ..metadata
            },
            record: record.into(),
        })
    }

    /// The record.
    #[must_use]
    pub fn get(&self) -> Metadata<'_> {
        let record = &*self.record;
        Metadata {
            provider: self.provider.text(record),
            name: self.name.map_or(self.plain.name, |name| name.text(record)),
            fields: self.fields.map_or(self.plain.fields, |(format, count, place)| Fields {
                format,
                count,
                bytes: place.bytes(record),
                offset: place.start,
            }),
            message_template: self.message_template.map(|text| text.text(record)),
            description: self.description.map(|text| text.text(record)),
            attributes: Attributes(self.attributes.bytes(record)),
            ..self.plain
        }
    }

    /// Adds what [`clr::describe`](super::clr::describe) would.
    #[cfg(feature = "clr")]
    pub fn describe(&mut self, pointer_size: u32) {
        if let Some((name, fields)) = super::clr::find(&self.get(), pointer_size) {
            if self.get().name.is_empty() {
                (self.plain.name, self.name) = (name, None);
            }
            (self.plain.fields, self.fields) = (fields, None);
        }
    }
}

#[cfg(feature = "alloc")]
impl fmt::Debug for MetadataBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
