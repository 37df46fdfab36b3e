//! The property of tracepoint formats, records, extensions and metadata: they survive encoding and decoding.
use arbitrary::Unstructured;
use ipc_proto::Guid;
use ipc_proto::types::TracepointFormat;
use nettrace::user_events::{
    Extension, ExtensionItem, InlineLayout, InlineMetadata, MetadataCache, TracepointRecord,
};
use nettrace::{DecodeError, DecodeErrorKind};
use nettrace::{Metadata, Str, WriteError};

/// Checks that tracepoint formats, records, extensions and metadata survive encoding and decoding.
///
/// A value that is decoded from arbitrary bytes decodes again from its encoding. A value that is built from parts
/// decodes to these parts. A truncated value does not decode, or has fewer parts.
pub fn user_events(bytes: &[u8]) {
    if let Some((index, Ok(record))) = split_index(bytes) {
        record_again(index, record);
        cache(record);
    }
    extension(bytes);
    let mut u = Unstructured::new(bytes);
    metadata(u.arbitrary().unwrap_or_default(), u.take_rest());
    format(&String::from_utf8_lossy(bytes));
    let _ = made_up(&mut Unstructured::new(bytes));
}

/// A record has the length that it reports, needs a buffer of that length, and does not decode when it is cut off.
fn record_again(index: u32, record: TracepointRecord<'_>) {
    let Err(WriteError::BufferTooSmall { needed }) = record.encode(index, &mut []) else {
        panic!("a decoded record can be encoded");
    };
    let mut buf = vec![0xa5; needed + 1];
    assert_eq!(record.encode(index, &mut buf[..needed - 1]), Err(WriteError::BufferTooSmall { needed }));
    let written = record.encode(index, &mut buf).expect("there is room").to_vec();
    assert_eq!((written.len(), buf[needed]), (needed, 0xa5));
    assert_eq!(split_index(&written), Some((index, Ok(record))));
    for len in [0, 4, 10, TracepointRecord::HEADER_LEN, needed / 2, needed - 1] {
        let cut = split_index(&written[..len.min(needed)]);
        assert!(len >= needed || cut.is_none_or(|(_, cut)| cut.is_err()), "cut to {len}");
    }
}

/// Splits the bytes that a runtime writes: the write index, and what a consumer reads.
fn split_index(bytes: &[u8]) -> Option<(u32, Result<TracepointRecord<'_>, DecodeError>)> {
    let (index, record) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*index), TracepointRecord::decode(record)))
}

/// A cache has the metadata of a record for the records of its source that follow, and only for them.
fn cache(record: TracepointRecord<'_>) {
    let later = TracepointRecord { extension: Extension::EMPTY, ..record };
    let mut cache = MetadataCache::new(MetadataCache::LIMIT);
    let event = cache.read(1, &record);
    assert_eq!((event.event_id, event.payload), (record.event_id, record.payload));
    let found = event.metadata.map(key).map(|key| format!("{key:?}"));
    for source in [1, 2] {
        let known = cache.read(source, &later).metadata.map(key).map(|key| format!("{key:?}"));
        assert_eq!(known, if source == 1 { found.clone() } else { None });
    }
    cache.remove(1);
    assert!(cache.read(1, &later).metadata.is_none());
    // A cache without room uses the metadata in the record itself: of several, the last one that can be decoded.
    let mut none = MetadataCache::new(0);
    assert_eq!(none.read(1, &record).metadata.is_some(), found.is_some());
    assert_eq!(none.forgotten() > 0, found.is_some());
    assert!(none.read(1, &later).metadata.is_none());
}

/// Items are read lazily: those before the first malformed byte are returned.
fn extension(bytes: &[u8]) {
    let read: Vec<_> = Extension::new(bytes).iter().collect();
    let good: Vec<ExtensionItem<'_>> = read.iter().map_while(|item| item.ok()).collect();
    assert!(read.len() <= good.len() + 1, "no item follows an error");
    let nil = [ExtensionItem::ActivityId(Guid::NIL), ExtensionItem::RelatedActivityId(Guid::NIL)];
    let mut buf = vec![0; bytes.len()];
    let again = Extension::build(&good, &mut buf).expect("it has the original length");
    if !good.iter().any(|item| nil.contains(item)) {
        assert!(bytes.starts_with(again.as_bytes()));
        assert_eq!(again.as_bytes() == bytes, read.len() == good.len());
    }
    let cut = Extension::new(&bytes[..bytes.len() / 2]).iter().map_while(Result::ok);
    assert!(cut.zip(&good).all(|(cut, item)| cut == *item));
}

/// The recognised layout is one that describes the event. Metadata survives encoding, except for its id.
fn metadata(event_id: u16, bytes: &[u8]) {
    let metadata = InlineMetadata::new(bytes);
    let layouts = [InlineLayout::Provider, InlineLayout::EventId, InlineLayout::MetadataId];
    let readings = layouts.map(|layout| metadata.decode_as(layout).ok().map(key));
    let read = match metadata.decode(event_id) {
        Ok(read) => read,
        Err(error) if error.kind == DecodeErrorKind::Ambiguous => {
            let matching = readings.into_iter().flatten().filter(|reading| reading.2 == u32::from(event_id));
            return assert!(matching.count() > 1, "a choice has several layouts");
        }
        Err(_) => return,
    };
    assert_eq!(read.event_id, u32::from(event_id));
    assert!(readings.contains(&Some(key(read))));
    let mut buf = vec![0; 16 * bytes.len() + 1000];
    let again = match InlineMetadata::build(&read, &mut buf) {
        Ok(written) => written,
        // Some metadata that decodes as V4 cannot be encoded as V4.
        Err(WriteError::Version(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let layout = if read.provider.is_empty() { InlineLayout::EventId } else { InlineLayout::Provider };
    let again = again.decode_as(layout).expect("it was written a moment ago");
    assert_eq!((again.provider, again.event_id, again.name), (read.provider, read.event_id, read.name));
    assert_eq!((again.keywords, again.version), (read.keywords, read.version));
    assert_eq!((again.level, again.problem), (read.level, None));
    assert_eq!(again.opcode.unwrap_or_default(), read.opcode.unwrap_or_default());
    assert_eq!(again.fields.len(), read.fields.len());
}

/// Returns the parts of metadata by which layouts differ.
fn key(metadata: Metadata<'_>) -> (u32, Str<'_>, u32, Str<'_>, u64) {
    (metadata.id, metadata.provider, metadata.event_id, metadata.name, metadata.keywords)
}

fn format(text: &str) {
    if let Ok(format) = text.parse::<TracepointFormat>() {
        assert_eq!(format.as_str(), text);
    }
    if let Ok(format) = TracepointFormat::new(text) {
        assert!(text.starts_with(format.name()));
        assert!(format.as_c_str().to_bytes_with_nul().len() <= TracepointFormat::MAX_LEN);
        assert_eq!(format.as_str().parse(), Ok(format));
    }
}

fn made_up(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let (index, event_id) = (u.arbitrary()?, u.arbitrary()?);
    let mut items = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        items.push(match u.int_in_range(0..=2)? {
            0 => ExtensionItem::Metadata(InlineMetadata::new(u.arbitrary()?)),
            1 => ExtensionItem::ActivityId(u.arbitrary()?),
            _ => ExtensionItem::RelatedActivityId(u.arbitrary()?),
        });
    }
    let mut buf = vec![0; 1 << 16];
    let extension = Extension::build(&items, &mut buf).expect("there is room");
    let nil = [ExtensionItem::ActivityId(Guid::NIL), ExtensionItem::RelatedActivityId(Guid::NIL)];
    let written = items.iter().filter(|item| !nil.contains(item));
    assert!(extension.iter().eq(written.map(|item| Ok(*item))));
    record_again(index, TracepointRecord { event_id, extension, payload: u.bytes(u.len())? });
    Ok(())
}
