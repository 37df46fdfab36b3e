//! A reader's memory of metadata by source (a number that the caller chooses) and event id.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use ipc_proto::Guid;

use crate::catalog::MetadataBuf;
use crate::describe::Metadata;
use crate::error::DecodeError;
use crate::user_events::extension::ExtensionItem;
use crate::user_events::inline_metadata::InlineMetadata;
use crate::user_events::tracepoint_record::TracepointRecord;

/// A reader's memory of metadata: it joins records with the metadata of earlier records.
///
/// A runtime sends metadata with the first event of a kind only. A record states neither its provider nor its process,
/// so the caller states a `source` for each record: a number for the pair of tracepoint and process, for example.
/// Providers that share a tracepoint must have different event ids; otherwise the later metadata is used for the events
/// of both.
///
/// ```
/// use nettrace::Metadata;
/// use nettrace::user_events::{Extension, ExtensionItem, InlineMetadata, MetadataCache, TracepointRecord};
///
/// let mut tick = Metadata::new(0, "Demo", 7, "Tick");
/// let (mut space, mut buf) = ([0; 128], [0; 256]);
/// let items = [ExtensionItem::Metadata(InlineMetadata::build(&tick, &mut space)?)];
/// let first = TracepointRecord { event_id: 7, extension: Extension::build(&items, &mut buf)?, payload: b"1" };
/// let second = TracepointRecord { extension: Extension::EMPTY, payload: b"2", ..first };
///
/// let mut cache = MetadataCache::new(MetadataCache::LIMIT);
/// for (source, record, name) in [(1, first, Some("Tick")), (1, second, Some("Tick")), (2, second, None)] {
///     let event = cache.read(source, &record);
///     assert_eq!(event.metadata.map(|metadata| metadata.name), name.map(Into::into));
///     assert_eq!(event.payload, record.payload);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MetadataCache {
    kinds: BTreeMap<(u64, u16), Kind>,
    /// The number of bytes in use.
    used: usize,
    limit: usize,
    forgotten: u64,
}

/// Metadata, and the bytes that it was decoded from.
#[derive(Debug)]
struct Kind {
    inline: Box<[u8]>,
    metadata: MetadataBuf,
}

/// An event of a tracepoint, joined with its metadata.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TracepointEvent<'a> {
    /// The id of the event at its provider.
    pub event_id: u16,
    /// The description of the event; `None` if no record of its source had one. `metadata.fields` decodes the payload;
    /// `nettrace::clr` has the fields of the runtime's own events.
    pub metadata: Option<Metadata<'a>>,
    /// The activity; [`Guid::NIL`] without one.
    pub activity_id: Guid,
    /// The activity that started this activity; [`Guid::NIL`] without one.
    pub related_activity_id: Guid,
    /// The fields that the metadata describes.
    pub payload: &'a [u8],
    /// The first error in the extension, or of its metadata. Items before it are used.
    pub problem: Option<DecodeError>,
}

impl MetadataCache {
    /// A limit that is enough for the events of some dozens of processes: 16 MiB.
    pub const LIMIT: usize = 16 << 20;

    /// Creates a cache that uses at most about `limit` bytes. Metadata that exceeds the limit is used only for the
    /// record that contains it: see [`forgotten`](Self::forgotten).
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { kinds: BTreeMap::new(), used: 0, limit, forgotten: 0 }
    }

    /// Stores the metadata of a record, if it has some, and returns the event with its metadata.
    ///
    /// Metadata that cannot be decoded, or has no certain [layout](crate::user_events::InlineLayout), is not stored.
    /// Its error is the event's [problem](TracepointEvent::problem), and earlier metadata applies.
    pub fn read<'a>(&'a mut self, source: u64, record: &TracepointRecord<'a>) -> TracepointEvent<'a> {
        let TracepointRecord { event_id, extension, payload } = *record;
        let mut event = TracepointEvent {
            event_id,
            metadata: None,
            activity_id: Guid::NIL,
            related_activity_id: Guid::NIL,
            payload,
            problem: None,
        };
        for item in extension {
            let stored = match item {
                Ok(ExtensionItem::Metadata(inline)) => self.insert((source, event_id), inline),
                Ok(ExtensionItem::ActivityId(id)) => {
                    event.activity_id = id;
                    continue;
                }
                Ok(ExtensionItem::RelatedActivityId(id)) => {
                    event.related_activity_id = id;
                    continue;
                }
                Err(e) => Err(e),
            };
            match stored {
                Ok(metadata) => event.metadata = metadata,
                Err(e) => event.problem = event.problem.or(Some(e)),
            }
        }
        let stored = || self.kinds.get(&(source, event_id)).map(|kind| kind.metadata.get());
        TracepointEvent { metadata: event.metadata.or_else(stored), ..event }
    }

    /// Removes the metadata of a source, for example after the end of its process.
    pub fn remove(&mut self, source: u64) {
        let used = &mut self.used;
        self.kinds.retain(|(of, _), kind| {
            let stays = *of != source;
            if !stays {
                *used = used.saturating_sub(kind.cost());
            }
            stays
        });
    }

    /// Returns how many records had metadata that was not stored because of the limit.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Stores metadata; returns it if it exceeds the limit.
    fn insert<'a>(
        &mut self,
        key: (u64, u16),
        inline: InlineMetadata<'a>,
    ) -> Result<Option<Metadata<'a>>, DecodeError> {
        let bytes = inline.as_bytes();
        let known = self.kinds.get(&key);
        // The first versions of .NET 10 send the same metadata with each event, so equal metadata is not decoded again.
        if known.is_some_and(|kind| *kind.inline == *bytes) {
            return Ok(None);
        }
        let metadata = inline.decode(key.1)?;
        let used = self.used.saturating_sub(known.map_or(0, Kind::cost)).saturating_add(cost(bytes.len()));
        if used > self.limit {
            self.forgotten = self.forgotten.saturating_add(1);
            return Ok(Some(metadata));
        }
        self.used = used;
        self.kinds.insert(key, Kind { inline: bytes.into(), metadata: MetadataBuf::from(&metadata) });
        Ok(None)
    }
}

impl Kind {
    fn cost(&self) -> usize {
        cost(self.inline.len())
    }
}

/// Returns the number of bytes that metadata of this length needs: twice its bytes, for the raw and the decoded copy,
/// and its entry.
const fn cost(len: usize) -> usize {
    size_of::<((u64, u16), Kind)>().saturating_add(len.saturating_mul(2))
}
