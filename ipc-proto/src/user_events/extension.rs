use core::iter::FusedIterator;

use super::record::finish;
use crate::nettrace::{Metadata, WriteError};
use crate::wire::{Reader, Writer};
use crate::{DecodeError, DecodeErrorKind, Encode, Guid};

/// What is said of an event beside its payload: [items](Item), one after the other.
///
/// Reading is lazy: [`iter`](Self::iter) gives what is good, and then what is wrong.
///
/// ```
/// use ipc_proto::user_events::{Extension, Item};
/// use ipc_proto::{DecodeErrorKind, Guid};
///
/// let mut bytes = [2; 18];
/// bytes[17] = 0x77;
/// let mut items = Extension::new(&bytes).iter();
/// assert_eq!(items.next(), Some(Ok(Item::ActivityId(Guid([2; 16])))));
/// assert_eq!(items.next().unwrap().unwrap_err().kind, DecodeErrorKind::UnknownType);
/// assert_eq!(items.next(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extension<'a>(&'a [u8]);

/// Something said of an event, by a label that comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Item<'a> {
    /// Label 1: the event's metadata.
    Metadata(InlineMetadata<'a>),
    /// Label 2: the activity. Zero is none, and is not written.
    ActivityId(Guid),
    /// Label 3: the activity that this one came from. Zero is none, and is not written.
    RelatedActivityId(Guid),
}

const METADATA: u8 = 1;
const ACTIVITY_ID: u8 = 2;
const RELATED_ACTIVITY_ID: u8 = 3;

impl<'a> Extension<'a> {
    /// Nothing is said.
    pub const EMPTY: Self = Self(&[]);

    /// The bytes of a record, or such as were built before.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Writes these items, in `buf`; runtimes write them in the order of their labels.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`]. [`WriteError::TooLong`] for metadata of 4 GB; whether a record can hold the whole
    /// is said when that is written.
    pub fn build(items: &[Item<'_>], buf: &'a mut [u8]) -> Result<Self, WriteError> {
        let mut w = Writer::new(buf);
        for item in items {
            match item {
                Item::Metadata(InlineMetadata(bytes)) => {
                    let len = u32::try_from(bytes.len());
                    METADATA.encode(&mut w);
                    len.map_err(|_| WriteError::TooLong { len: bytes.len() })?.encode(&mut w);
                    w.bytes(bytes);
                }
                Item::ActivityId(id) => activity(ACTIVITY_ID, *id, &mut w),
                Item::RelatedActivityId(id) => activity(RELATED_ACTIVITY_ID, *id, &mut w),
            }
        }
        finish(w).map(Self)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The items in order.
    #[must_use]
    pub const fn iter(&self) -> Items<'a> {
        Items(Reader::new(self.0))
    }
}

fn activity(label: u8, id: Guid, w: &mut Writer<'_>) {
    if id != Guid::NIL {
        label.encode(w);
        id.encode(w);
    }
}

impl<'a> IntoIterator for Extension<'a> {
    type Item = Result<Item<'a>, DecodeError>;
    type IntoIter = Items<'a>;
    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

/// Iterates over the items of an [`Extension`].
///
/// An error is the last: [`DecodeErrorKind::UnknownType`] for a label that no document knows, as nothing says how long
/// what belongs to it is; [`DecodeErrorKind::UnexpectedEnd`] for an item that is cut off.
#[derive(Debug, Clone)]
pub struct Items<'a>(Reader<'a>);

impl<'a> Items<'a> {
    fn read(&mut self) -> Result<Item<'a>, DecodeError> {
        let r = &mut self.0;
        let unknown = r.error(DecodeErrorKind::UnknownType);
        Ok(match r.read::<u8>()? {
            METADATA => {
                // No slice has a length that does not fit.
                let len = usize::try_from(r.read::<u32>()?).unwrap_or(usize::MAX);
                Item::Metadata(InlineMetadata(r.bytes(len)?))
            }
            ACTIVITY_ID => Item::ActivityId(r.read()?),
            RELATED_ACTIVITY_ID => Item::RelatedActivityId(r.read()?),
            _ => return Err(unknown),
        })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.rest().is_empty() {
            return None;
        }
        let item = self.read();
        if item.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(item)
    }
}
impl FusedIterator for Items<'_> {}

/// What an event is and what its payload holds, as it comes with the event: a [`Metadata`] record of V4 without its id.
///
/// ```text
/// [provider], u32 event id, name, u64 keywords, u32 version, u32 level, [u32 count, fields…, tags…]
/// ```
///
/// The previews of .NET 10 leave out the provider. Nothing says so: it is seen by the event's id. "Metadata event
/// encoding" in the NetTrace format, V4/V5.
///
/// ```
/// use ipc_proto::nettrace::Metadata;
/// use ipc_proto::user_events::InlineMetadata;
///
/// for provider in ["My-App", ""] {
///     let mut metadata = Metadata::default();
///     (metadata.provider, metadata.event_id, metadata.name) = (provider.into(), 7, "Tick".into());
///     let mut buf = [0; 128];
///     let read = InlineMetadata::build(&metadata, &mut buf)?.decode(7)?;
///     assert_eq!((read.provider, read.name), (metadata.provider, metadata.name));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct InlineMetadata<'a>(&'a [u8]);

impl<'a> InlineMetadata<'a> {
    /// Bytes that were built before, or lie elsewhere.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Describes an event, in `buf`. The id is not written; nor is a provider without a name, as in the previews.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`]. [`WriteError::Version`] for a field of a kind that only V6 has; and
    /// what else only V6 has is left out, as [`Writer::describe`](crate::nettrace::Writer::describe) does.
    pub fn build(metadata: &Metadata<'_>, buf: &'a mut [u8]) -> Result<Self, WriteError> {
        let mut w = Writer::new(buf);
        metadata.encode_inline(&mut w)?;
        finish(w).map(Self)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Reads it, with the provider or without: whichever way the record's `event_id` comes out. Its own id is 0.
    ///
    /// If neither does, it is read with the provider. If both do, too: a preview's event with a name of one letter, whose
    /// number is the event's.
    ///
    /// # Errors
    /// If it ends before the level. Whatever is wrong behind that is in [`Metadata::problem`].
    pub fn decode(&self, event_id: u16) -> Result<Metadata<'a>, DecodeError> {
        let of = |has_provider| Metadata::decode_inline(self.0, has_provider);
        let is_it = |metadata: &Metadata<'_>| metadata.event_id == u32::from(event_id);
        let with = of(true);
        // No provider is without a name.
        if with.as_ref().is_ok_and(|with| is_it(with) && !with.provider.is_empty()) {
            return with;
        }
        of(false).ok().filter(is_it).map_or(with, Ok)
    }
}
