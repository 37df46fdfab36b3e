use arbitrary::{Result, Unstructured};
use ipc_proto::Guid;
use ipc_proto::nettrace::WriteError;
use ipc_proto::user_events::{Extension, InlineMetadata, Item, Record, TracepointFormat};

/// What is read of any bytes as a tracepoint's format, a record, an extension or metadata is read again when it is
/// written; what is made of any parts is read as it was made; cut off, it is no record, or says less.
pub fn user_events(bytes: &[u8]) {
    if let Ok((index, record)) = Record::decode_written(bytes) {
        assert_eq!(Record::decode(&bytes[4..]), Ok(record));
        record_again(index, record);
    }
    extension(bytes);
    let mut u = Unstructured::new(bytes);
    metadata(u.arbitrary().unwrap_or_default(), u.take_rest());
    format(&String::from_utf8_lossy(bytes));
    let _ = made_up(&mut Unstructured::new(bytes));
}

/// A record is written as long as it says, in no shorter buffer, and is no record when it is cut off.
fn record_again(index: u32, record: Record<'_>) {
    let Err(WriteError::BufferTooSmall { needed }) = record.encode(index, &mut []) else {
        panic!("it was read, so it can be written");
    };
    let mut buf = vec![0xa5; needed + 1];
    assert_eq!(record.encode(index, &mut buf[..needed - 1]), Err(WriteError::BufferTooSmall { needed }));
    let written = record.encode(index, &mut buf).expect("there is room").to_vec();
    assert_eq!((written.len(), buf[needed]), (needed, 0xa5));
    assert_eq!(Record::decode_written(&written), Ok((index, record)));
    for len in [0, 4, 10, Record::HEADER_LEN, needed / 2, needed - 1] {
        assert!(len >= needed || Record::decode_written(&written[..len]).is_err(), "cut to {len}");
    }
}

/// Items are read lazily: what is good is what lies in front of the first bad byte.
fn extension(bytes: &[u8]) {
    let read: Vec<_> = Extension::new(bytes).iter().collect();
    let good: Vec<Item<'_>> = read.iter().map_while(|item| item.ok()).collect();
    assert!(read.len() <= good.len() + 1, "an error is the last");
    let nil = [Item::ActivityId(Guid::NIL), Item::RelatedActivityId(Guid::NIL)];
    let mut buf = vec![0; bytes.len()];
    let again = Extension::build(&good, &mut buf).expect("it is as long as it was");
    if !good.iter().any(|item| nil.contains(item)) {
        assert!(bytes.starts_with(again.as_bytes()));
        assert_eq!(again.as_bytes() == bytes, read.len() == good.len());
    }
    let cut = Extension::new(&bytes[..bytes.len() / 2]).iter().map_while(core::result::Result::ok);
    assert!(cut.zip(&good).all(|(cut, item)| cut == *item));
}

fn metadata(event_id: u16, bytes: &[u8]) {
    let Ok(read) = InlineMetadata::new(bytes).decode(event_id) else { return };
    let mut buf = vec![0; 16 * bytes.len() + 1000];
    let again = match InlineMetadata::build(&read, &mut buf) {
        Ok(written) => written.decode(event_id),
        // Not all that is read as V4 is V4.
        Err(WriteError::Version(_)) => return,
        Err(error) => panic!("{error}"),
    };
    // What is not about this event may be written otherwise than it was; and without a provider, a name of one letter
    // whose number is the event's cannot be told from a provider's.
    let ambiguous = read.provider.is_empty() && read.name.units().eq([event_id]);
    if read.event_id != event_id.into() || ambiguous {
        return;
    }
    let again = again.expect("it was written a moment ago");
    assert_eq!((again.provider, again.event_id, again.name), (read.provider, read.event_id, read.name));
    assert_eq!((again.keywords, again.version), (read.keywords, read.version));
    assert_eq!((again.level, again.problem), (read.level, None));
    assert_eq!(again.opcode.unwrap_or_default(), read.opcode.unwrap_or_default());
    assert_eq!(again.fields.len(), read.fields.len());
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

fn made_up(u: &mut Unstructured<'_>) -> Result<()> {
    let (index, event_id) = (u.arbitrary()?, u.arbitrary()?);
    let mut items = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        items.push(match u.int_in_range(0..=2)? {
            0 => Item::Metadata(InlineMetadata::new(u.arbitrary()?)),
            1 => Item::ActivityId(u.arbitrary()?),
            _ => Item::RelatedActivityId(u.arbitrary()?),
        });
    }
    let mut buf = vec![0; 1 << 16];
    let extension = Extension::build(&items, &mut buf).expect("there is room");
    let nil = [Item::ActivityId(Guid::NIL), Item::RelatedActivityId(Guid::NIL)];
    let written = items.iter().filter(|item| !nil.contains(item));
    assert!(extension.iter().eq(written.map(|item| Ok(*item))));
    record_again(index, Record { event_id, extension, payload: u.bytes(u.len())? });
    Ok(())
}
