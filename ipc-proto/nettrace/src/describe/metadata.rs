//! Metadata records: provider, id, names and fields of a kind of event, in every version.
use core::fmt;

use ipc_proto::Guid;
use ipc_proto::wire::{Reader, to_usize};

use crate::describe::field::{Fields, Format, tag};
use crate::encoding::{Str, Varint32, utf8, utf16_z};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parse::Version;

/// The description of a kind of event: its name, and the fields of its payloads.
///
/// ```text
/// V3, V4   u32 id, provider, u32 event id, name, u64 keywords, u32 version, u32 level,      strings UTF-16 and NUL
///          [u32 count, V1 fields, tags…]                                                   a tag: u32 size, u8 kind, body
/// V6       varint id, provider, varint event id, name,                                     strings length and UTF-8
///          u16 count, V6 fields, u16 size, optional metadata, …
/// ```
///
/// In V3 and V4 the record is the payload of a blob whose own metadata id is 0, in V6 a row of a metadata block without
/// its size: the payload of [`Record::Metadata`](crate::Record::Metadata). See "Metadata event encoding" in the
/// NetTrace format, V4/V5, and "MetadataBlock" in V6. V5 adds the tags; no version number announces them. A tag's size
/// counts its body only.
///
/// The tag V2Params describes fields too, and the format requires that a record with this tag has no V1 fields. If a
/// record has both, [`problem`](Self::problem) is [`DecodeErrorKind::DescribedTwice`]. A payload then has the values of
/// the V1 fields, followed by those of the first V2Params.
///
/// Events of the runtime itself have neither name nor fields: see the feature `clr`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Metadata<'a> {
    /// The number by which headers of events refer to this description.
    pub id: u32,
    /// The provider of the event. Provider, event id and version identify a kind of event.
    pub provider: Str<'a>,
    /// The event's number at its provider. Self-describing event sources assign numbers at run time: identify their
    /// events by the name.
    pub event_id: u32,
    /// The event's name; empty for events of the runtime.
    pub name: Str<'a>,
    /// The provider's keywords that enable this event.
    pub keywords: u64,
    /// The payload's version.
    pub version: u32,
    /// The level, from 1, critical, to 5, verbose; 0 is always on.
    pub level: u32,
    /// The opcode: 1 is start, 2 is stop; `None` if the record states none.
    pub opcode: Option<u8>,
    /// The fields of a payload. Events without fields may have a payload: the runtime's own events have no fields here,
    /// nor have events with a `byte[]` argument.
    pub fields: Fields<'a>,
    /// The text to show for an event, with names of fields in braces; V6 only.
    pub message_template: Option<Str<'a>>,
    /// The meaning of the event; V6 only.
    pub description: Option<Str<'a>>,
    /// The provider's GUID; V6 only.
    pub provider_guid: Option<Guid>,
    /// Pairs of a key and a value that the writer added; V6 only.
    pub attributes: Attributes<'a>,
    /// The first error of the record's fields, tags or optional entries. The part with the error is left out, and the
    /// fields, tags or entries after it; the rest of the record is valid. A reader of a payload gets the values of the
    /// fields before the error, then the remaining bytes. [`DecodeErrorKind::DescribedTwice`] leaves nothing out.
    pub problem: Option<DecodeError>,
    /// Whether [`problem`](Self::problem) leaves out fields.
    pub(crate) lacks_fields: bool,
}

impl<'a> Metadata<'a> {
    /// Returns the description of an event without fields, keywords and level.
    ///
    /// `id` is the number by which events in the stream refer to it, `event_id` the event's number at its provider.
    ///
    /// ```
    /// use nettrace::{Fields, Metadata, Scalar};
    ///
    /// let mut space = [0; 32];
    /// let mut tick = Metadata::new(1, "Demo", 7, "Tick");
    /// tick.level = 4;
    /// tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space)?;
    /// # Ok::<(), nettrace::WriteError>(())
    /// ```
    #[must_use]
    pub const fn new(id: u32, provider: &'a str, event_id: u32, name: &'a str) -> Self {
        Self {
            id,
            provider: Str::Utf8(provider.as_bytes()),
            event_id,
            name: Str::Utf8(name.as_bytes()),
            keywords: 0,
            version: 0,
            level: 0,
            opcode: None,
            fields: Fields::EMPTY,
            message_template: None,
            description: None,
            provider_guid: None,
            attributes: Attributes(&[]),
            problem: None,
            lacks_fields: false,
        }
    }

    /// Decodes a record of a stream of this version.
    ///
    /// # Errors
    /// Fails if the record ends before its level, or in V6 before its fields. An error after that place is in
    /// [`problem`](Self::problem).
    pub fn decode(version: Version, record: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(record);
        if version == Version::V6 {
            return Self::row(&mut r);
        }
        let (id, provider) = (r.read()?, utf16_z(&mut r)?);
        Self { id, provider, ..Self::default() }.after_provider(r)
    }

    /// Decodes a record with the layout of V4, but without an id, and without a provider unless `has_provider`.
    pub(crate) fn decode_inline(record: &'a [u8], has_provider: bool) -> Result<Self, DecodeError> {
        let mut r = Reader::new(record);
        let provider = if has_provider { utf16_z(&mut r)? } else { Str::EMPTY };
        Self { provider, ..Self::default() }.after_provider(r)
    }

    /// Decodes the part of a V3 or V4 record after the provider.
    fn after_provider(self, mut r: Reader<'a>) -> Result<Self, DecodeError> {
        let mut metadata = Self {
            event_id: r.read()?,
            name: utf16_z(&mut r)?,
            keywords: r.read()?,
            version: r.read()?,
            level: r.read()?,
            ..self
        };
        // Fields and tags are optional, so a record can end here.
        if !r.rest().is_empty() {
            metadata.problem = metadata.v1_and_tags(&mut r).err();
            let twice = |problem: DecodeError| problem.kind == DecodeErrorKind::DescribedTwice;
            metadata.lacks_fields = metadata.problem.is_some_and(|problem| !twice(problem));
        }
        Ok(metadata)
    }

    fn v1_and_tags(&mut self, r: &mut Reader<'a>) -> Result<(), DecodeError> {
        let count = r.read()?;
        self.fields = Fields::new(Format::V1, count, r);
        *r = self.fields.check()?;
        let mut problem = Ok(());
        while !r.rest().is_empty() {
            let size = r.read()?;
            let kind: u8 = r.read()?;
            let offset = r.offset();
            let mut body = Reader::at(r.bytes(to_usize(size))?, offset);
            match kind {
                tag::OPCODE => self.opcode = body.read().ok(),
                tag::V2_PARAMS => {
                    let fields = self.v2(&mut body);
                    problem = problem.and(fields);
                }
                _ => {}
            }
        }
        problem
    }

    fn v2(&mut self, body: &mut Reader<'a>) -> Result<(), DecodeError> {
        let twice = DecodeError::at(body, DecodeErrorKind::DescribedTwice);
        let before = core::mem::take(&mut self.fields);
        let count = body.read()?;
        let mut fields = Fields::new(Format::V2, count, body);
        let checked = fields.check();
        if before.is_empty() {
            self.fields = fields;
            return checked.map(|_| ());
        }
        // The payload begins with the values of the V1 fields, so those values can be read even if the V2 fields are
        // invalid.
        self.fields = before;
        checked?;
        self.fields = before.joined(count).unwrap_or(before);
        Err(twice)
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
        self.lacks_fields = true;
        let count: u16 = r.read()?;
        let mut fields = Fields::new(format, count.into(), r);
        for _ in 0..count {
            let size: u16 = r.read()?;
            r.bytes(size.into())?;
        }
        let checked = fields.check();
        self.fields = fields;
        self.lacks_fields = checked.is_err();
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
pub struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Attributes<'a> {
    /// Returns the pairs in order.
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

/// An entry of V6 optional metadata: a `u8` kind, and its content. No entry states its length, so entries after one of
/// an unknown kind cannot be read.
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
    let unknown = DecodeError::at(r, DecodeErrorKind::UnknownType);
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
