//! The extension of a tracepoint record: its items, read and built.
use core::iter::FusedIterator;

use ipc_proto::wire::{Reader, Writer};
use ipc_proto::{Encode, Guid};

use crate::error::{DecodeError, DecodeErrorKind};
use crate::user_events::inline_metadata::{InlineMetadata, finish};
use crate::write::WriteError;

/// The information about an event apart from its payload: a sequence of [items](ExtensionItem).
///
/// Reading is lazy: [`iter`](Self::iter) returns the items before the first error, and then the error.
///
/// ```
/// use nettrace::user_events::{Extension, ExtensionItem};
/// use ipc_proto::Guid;
/// use nettrace::DecodeErrorKind;
///
/// let mut bytes = [2; 18];
/// bytes[17] = 0x77;
/// let mut items = Extension::new(&bytes).iter();
/// assert_eq!(items.next(), Some(Ok(ExtensionItem::ActivityId(Guid([2; 16])))));
/// assert_eq!(items.next().unwrap().unwrap_err().kind, DecodeErrorKind::UnknownType);
/// assert_eq!(items.next(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extension<'a>(&'a [u8]);

/// An item about an event. Each item begins with a label.
///
/// ```
/// use ipc_proto::Guid;
/// use nettrace::user_events::{Extension, ExtensionItem};
///
/// let items = [ExtensionItem::ActivityId(Guid([7; 16]))];
/// let mut buf = [0; 17]; // a label and 16 bytes
/// let extension = Extension::build(&items, &mut buf)?;
/// assert_eq!(extension.as_bytes(), [&[2][..], &[7; 16]].concat());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExtensionItem<'a> {
    /// Label 1: the metadata of the event.
    Metadata(InlineMetadata<'a>),
    /// Label 2: the activity. Zero means no activity, and is not written.
    ActivityId(Guid),
    /// Label 3: the activity that started this activity. Zero means no activity, and is not written.
    RelatedActivityId(Guid),
}

const METADATA: u8 = 1;
const ACTIVITY_ID: u8 = 2;
const RELATED_ACTIVITY_ID: u8 = 3;

impl<'a> Extension<'a> {
    /// The extension without items.
    pub const EMPTY: Self = Self(&[]);

    /// Creates an extension from the bytes of a record, or from bytes that were built before.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Encodes items into `buf`. Runtimes write them in the order of the labels.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`]. [`WriteError::TooLong`] for metadata of 4 GB. Whether a record can contain the
    /// extension is checked when the record is written.
    pub fn build(items: &[ExtensionItem<'_>], buf: &'a mut [u8]) -> Result<Self, WriteError> {
        let mut w = Writer::new(buf);
        for item in items {
            match item {
                ExtensionItem::Metadata(metadata) => {
                    let bytes = metadata.as_bytes();
                    let len = u32::try_from(bytes.len());
                    METADATA.encode(&mut w);
                    len.map_err(|_| WriteError::TooLong { len: bytes.len() })?.encode(&mut w);
                    w.bytes(bytes);
                }
                ExtensionItem::ActivityId(id) => activity(ACTIVITY_ID, *id, &mut w),
                ExtensionItem::RelatedActivityId(id) => activity(RELATED_ACTIVITY_ID, *id, &mut w),
            }
        }
        finish(w).map(Self)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns an iterator over the items.
    #[must_use]
    pub const fn iter(&self) -> ExtensionItems<'a> {
        ExtensionItems(Reader::new(self.0))
    }
}

fn activity(label: u8, id: Guid, w: &mut Writer<'_>) {
    if id != Guid::NIL {
        label.encode(w);
        id.encode(w);
    }
}

impl<'a> IntoIterator for Extension<'a> {
    type Item = Result<ExtensionItem<'a>, DecodeError>;
    type IntoIter = ExtensionItems<'a>;
    fn into_iter(self) -> ExtensionItems<'a> {
        self.iter()
    }
}

/// An iterator over the items of an [`Extension`].
///
/// The iterator ends after an error: [`DecodeErrorKind::UnknownType`] for an undocumented label, whose length is
/// unknown; [`DecodeErrorKind::UnexpectedEnd`] for an item that is cut off.
#[derive(Debug, Clone)]
pub struct ExtensionItems<'a>(Reader<'a>);

impl<'a> ExtensionItems<'a> {
    fn read(&mut self) -> Result<ExtensionItem<'a>, DecodeError> {
        let r = &mut self.0;
        let unknown = DecodeError::at(r, DecodeErrorKind::UnknownType);
        Ok(match r.read::<u8>()? {
            METADATA => {
                // The length of a slice always fits into `usize`. For a number that does not fit, `bytes` fails.
                let len = usize::try_from(r.read::<u32>()?).unwrap_or(usize::MAX);
                ExtensionItem::Metadata(InlineMetadata::new(r.bytes(len)?))
            }
            ACTIVITY_ID => ExtensionItem::ActivityId(r.read()?),
            RELATED_ACTIVITY_ID => ExtensionItem::RelatedActivityId(r.read()?),
            _ => return Err(unknown),
        })
    }
}

impl<'a> Iterator for ExtensionItems<'a> {
    type Item = Result<ExtensionItem<'a>, DecodeError>;

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
impl FusedIterator for ExtensionItems<'_> {}
