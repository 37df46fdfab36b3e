//! Metadata that is sent with an event, in the three layouts of runtimes.
use ipc_proto::wire::Writer;

use crate::describe::Metadata;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parse::Version;
use crate::write::WriteError;

/// The description of an event, which the runtime sends with the event itself: a [`Metadata`] record of V4.
///
/// ```text
/// [u32 metadata id], [provider], u32 event id, name, u64 keywords, u32 version, u32 level, [u32 count, fields…, tags…]
/// ```
///
/// No field states the [layout](InlineLayout): [`decode`](Self::decode) recognises it by the event id. See "Metadata
/// event encoding" in the NetTrace format, V4/V5.
///
/// ```
/// use nettrace::Metadata;
/// use nettrace::user_events::InlineMetadata;
///
/// for provider in ["My-App", ""] {
///     let metadata = Metadata::new(0, provider, 7, "Tick");
///     let mut buf = [0; 128];
///     let read = InlineMetadata::build(&metadata, &mut buf)?.decode(7)?;
///     assert_eq!((read.provider, read.name), (metadata.provider, metadata.name));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct InlineMetadata<'a>(&'a [u8]);

/// The layout of [`InlineMetadata`], named by its first field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InlineLayout {
    /// Without a metadata id. Released runtimes write this layout, and the specification describes it since 2025.
    Provider,
    /// Without a metadata id and without a provider. The first previews of .NET 10 write this layout.
    EventId,
    /// With a metadata id, as in a NetTrace stream. An earlier text of the specification describes this layout
    /// ("matches the NetTrace v5 PayloadBytes format"); no known runtime writes it.
    MetadataId,
}

impl<'a> InlineMetadata<'a> {
    /// Creates metadata from bytes that were built or read before.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Encodes the description of an event into `buf`. The metadata id is not written, nor is a provider without a
    /// name, as in the first previews of .NET 10.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`]. [`WriteError::Version`] for a field of a kind that only V6 has. Other features
    /// of V6 are omitted, as [`TraceWriter::describe`](crate::TraceWriter::describe) does.
    pub fn build(metadata: &Metadata<'_>, buf: &'a mut [u8]) -> Result<Self, WriteError> {
        let mut w = Writer::new(buf);
        metadata.encode_inline(&mut w)?;
        finish(w).map(Self)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Decodes the description in the layout in which its event id is `event_id`, the event id of the record.
    ///
    /// A layout matches if its event id equals `event_id`, and its metadata id, if it has one, is less than 65,536:
    /// runtimes number the kinds of events from 1. If several layouts match, those with a named provider and without a
    /// [problem](Metadata::problem) take precedence. The id of the metadata is 0 in a layout without one.
    ///
    /// # Errors
    /// * [`DecodeErrorKind::Ambiguous`] if several layouts match equally well, for example if provider and event have
    ///   the same name, a letter with the value of the event id. The caller can choose a layout:
    ///   [`decode_as`](Self::decode_as).
    /// * [`DecodeErrorKind::OtherEvent`] if no layout matches, although the bytes can be decoded.
    /// * If they cannot be decoded, the error of [`InlineLayout::Provider`].
    ///
    /// ```
    /// use nettrace::Metadata;
    /// use nettrace::user_events::{InlineLayout, InlineMetadata};
    ///
    /// let metadata = Metadata::new(0, "My-App", 7, "");
    /// let mut buf = [0; 128];
    /// let without_id = InlineMetadata::build(&metadata, &mut buf)?;
    /// // The same with the metadata id 12.
    /// let with_id = [&[12, 0, 0, 0], without_id.as_bytes()].concat();
    /// let read = InlineMetadata::new(&with_id).decode(7)?;
    /// assert_eq!((read.id, read.provider), (12, "My-App".into()));
    /// // In another layout, the id is the name of the provider.
    /// let wrong = InlineMetadata::new(&with_id).decode_as(InlineLayout::Provider)?;
    /// assert_eq!(wrong.provider, "\u{c}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode(&self, event_id: u16) -> Result<Metadata<'a>, DecodeError> {
        let readings =
            [InlineLayout::Provider, InlineLayout::EventId, InlineLayout::MetadataId].map(|layout| {
                let reading = self.decode_as(layout).ok()?;
                let matches = reading.event_id == u32::from(event_id) && reading.id <= u32::from(u16::MAX);
                let named = layout == InlineLayout::EventId || !reading.provider.is_empty();
                matches.then_some((reading, named && reading.problem.is_none()))
            });
        let matching = || readings.into_iter().flatten();
        let mut good = matching().filter(|(_, good)| *good);
        let (first, second) = match (good.next(), good.next()) {
            (None, _) => {
                let mut any = matching();
                (any.next(), any.next())
            }
            good => good,
        };
        let error = |kind| Err(DecodeError { kind, offset: 0 });
        match (first, second) {
            (Some((reading, _)), None) => Ok(reading),
            (Some(_), Some(_)) => error(DecodeErrorKind::Ambiguous),
            (None, _) => {
                self.decode_as(InlineLayout::Provider)?;
                error(DecodeErrorKind::OtherEvent)
            }
        }
    }

    /// Decodes the description in this layout.
    ///
    /// # Errors
    /// If the description ends before the level. [`Metadata::problem`] has an error after that place.
    pub fn decode_as(&self, layout: InlineLayout) -> Result<Metadata<'a>, DecodeError> {
        match layout {
            InlineLayout::Provider => Metadata::decode_inline(self.0, true),
            InlineLayout::EventId => Metadata::decode_inline(self.0, false),
            InlineLayout::MetadataId => Metadata::decode(Version::V4, self.0),
        }
    }
}

/// Returns the written bytes, if they fitted.
pub(super) fn finish(w: Writer<'_>) -> Result<&[u8], WriteError> {
    let needed = w.len();
    w.finish().map(|bytes| &*bytes).map_err(|_| WriteError::BufferTooSmall { needed })
}
