//! The properties of streams, events, metadata and payloads: they read the same in pieces of any size, and after they
//! are written again.
use core::ops::ControlFlow;

use arbitrary::Unstructured;
use nettrace::DecodeErrorKind;
use nettrace::{
    DecodeError, End, FieldType, Fields, IndexedPart, IndexedValues, Item, Limits, Metadata, Parser,
    ParserBuf, Record, Scalar, Trace, TraceWriter, Version, WriteError,
};

use crate::made_up::{made_up, put};
use crate::payload_writer::{reads, written};
use crate::reading::{RecordBytes, of_event, read, read_in_pieces};
use crate::wire::sizes;

/// A stream has the same records however it is cut into pieces. A `TraceWriter` that gets these records writes a stream
/// with the same records.
///
/// The sizes of the pieces are the bytes in reverse.
pub fn nettrace(bytes: &[u8]) {
    let whole = read(bytes);
    let sizes_in_reverse = || sizes(bytes.iter().rev());
    assert!(
        events_first(bytes, [bytes.len()]) == whole.events,
        "events that are read first are other events"
    );
    assert!(events_first(bytes, sizes_in_reverse()) == whole.events, "events of pieces are other events");
    let pieces = read_in_pieces(bytes, sizes_in_reverse());
    assert_eq!(pieces.end, whole.end);
    assert_eq!(pieces.lost, whole.lost);
    assert!(pieces.records == whole.records, "pieces say something else");
    assert_eq!(pieces.offsets, whole.offsets);
    if let Some(copy) = copy(bytes) {
        let copy = read(&copy);
        assert_eq!(copy.end, End::Complete);
        assert!(copy.events == whole.events, "events were written otherwise than read");
        assert!(copy.others == whole.others, "records were written otherwise than read");
    }
}

/// Returns the events of a stream that arrives in pieces. The reader takes all events that it can, but two of three at
/// most, and then a record; if it did not stop by itself, the record must be another.
fn events_first(mut bytes: &[u8], sizes: impl IntoIterator<Item = usize>) -> RecordBytes {
    let (mut records, mut events) = (ParserBuf::new(Limits::default()), RecordBytes::default());
    let mut sizes = sizes.into_iter();
    loop {
        let flow = records.try_for_each_event(|event| {
            events.push(&of_event(event));
            if events.len() % 3 == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match records.next_record() {
            Record::Event(event) if flow.is_break() => events.push(&of_event(&event)),
            Record::Event(event) => panic!("{event:?} is an event"),
            Record::More { .. } if bytes.is_empty() => records.advance(0),
            Record::More { .. } => {
                let size = sizes.next().unwrap_or(bytes.len()).clamp(1, bytes.len());
                let (piece, rest) = bytes.split_at(size);
                records.push(piece);
                bytes = rest;
            }
            Record::End(_) => return events,
            _ => {}
        }
    }
}

/// A stream that is made of any events is read as it was written. Any bytes as a block of events have the same records
/// for pieces of any size.
pub fn events(bytes: &[u8]) {
    for version in [Version::V4, Version::V6] {
        let mut u = Unstructured::new(bytes);
        let len = usize::from(u.arbitrary::<u8>().unwrap_or_default());
        let made = made_up(&mut u, version, false, len).unwrap_or_default();
        let seen = read(&made.stream);
        assert_eq!(seen.end, End::Complete);
        assert!(seen.events == made.events, "{version}: events were read otherwise than written");
        let pieces = read_in_pieces(&made.stream, sizes(bytes.iter().rev()));
        assert!(pieces.records == seen.records, "{version}: pieces say something else");
        nettrace(&block_of(version, bytes));
    }
}

/// Checks any bytes as a metadata record: the decoded record, encoded in any version, decodes to the same record.
pub fn metadata(bytes: &[u8]) {
    for from in [Version::V3, Version::V4, Version::V6] {
        let Ok(read) = Metadata::decode(from, bytes) else { continue };
        for to in [Version::V3, Version::V4, Version::V6] {
            described(&read, bytes.len(), to, |again| {
                // No version keeps everything: V6 has only one byte for a level and for a version, and V3 and V4 end
                // texts at a NUL.
                let low = |n: u32| n & 0xff;
                assert_eq!((again.id, again.event_id), (read.id, read.event_id));
                assert_eq!(again.keywords, read.keywords);
                assert_eq!((low(again.level), low(again.version)), (low(read.level), low(read.version)));
                assert_eq!(again.opcode.unwrap_or_default(), read.opcode.unwrap_or_default());
                assert_eq!(again.problem, None);
                assert_eq!(again.fields.len(), read.fields.len());
                if to == from {
                    assert_eq!((again.provider, again.name), (read.provider, read.name));
                    let same =
                        alike(&again.fields, &read.fields) || to != Version::V6 && !before_v6(&read.fields);
                    assert!(same, "{:?} became {:?}", read.fields, again.fields);
                }
            });
        }
    }
}

/// Returns the number of items; checks that every begun part ends.
pub(crate) fn balanced<'a>(items: impl Iterator<Item = Item<'a>>) -> usize {
    let (mut open, mut count) = (0u32, 0);
    for item in items {
        count += 1;
        match item {
            Item::BeginObject { .. } | Item::BeginArray { .. } => open += 1,
            Item::EndObject | Item::EndArray => open -= 1,
            Item::Value { .. } => {}
        }
    }
    assert_eq!(open, 0, "something is left open");
    count
}

/// Checks any bytes as a payload of any description: bounded work, every `Begin` with its `End`, and the same values
/// when the description is written again. Also checks a payload that is written from any values.
pub fn payload(bytes: &[u8]) {
    written(bytes, |metadata, payload, expected| {
        reads(&metadata.fields, payload, expected);
        // For these providers, text in UTF-8 has a code of its own.
        let mut universal = *metadata;
        universal.provider = "Universal.p".into();
        for metadata in [metadata, &universal] {
            described(metadata, 1000, Version::V6, |again| reads(&again.fields, payload, expected));
        }
        described(metadata, 1000, Version::V4, |again| {
            // In V4, values of some types become bytes.
            assert_eq!(again.fields.values(payload).finish(), Ok(&[][..]));
        });
    });
    let (record, payload) = bytes.split_at(bytes.first().map_or(0, |n| bytes.len().min(usize::from(*n) + 1)));
    let record = record.get(1..).unwrap_or_default();
    for version in [Version::V4, Version::V6] {
        let Ok(metadata) = Metadata::decode(version, record) else { continue };
        let mut values = metadata.fields.values(payload);
        let mut items = Vec::new();
        balanced(values.by_ref().inspect(|item| items.push(format!("{item:?}"))));
        assert!(items.len() <= 2 * (32 + 4 * payload.len()), "{} items", items.len());
        let (by_index, error) = by_index(&metadata.fields, payload);
        assert!(by_index.len() <= 2 * (32 + 4 * payload.len()), "{} items by index", by_index.len());
        // The limit of items does not include the description if its fields have indexes.
        if values.error().is_none_or(|error| error.kind != DecodeErrorKind::TooManyItems) {
            assert_eq!(by_index, items);
            assert_eq!(error, values.error());
        }
        let end = values.error().map(|error| error.kind);
        described(&metadata, record.len(), version, |again| {
            if version == Version::V4 && !before_v6(&metadata.fields) {
                return;
            }
            let mut values = again.fields.values(payload);
            let same: Vec<_> = values.by_ref().map(|item| format!("{item:?}")).collect();
            // The limit of items depends on the length of the description, which can be another one now.
            let error = values.error().map(|error| error.kind);
            if [error, end].contains(&Some(DecodeErrorKind::TooManyItems)) {
                return;
            }
            assert_eq!(same, items);
            assert_eq!(error, end);
        });
    }
}

/// Returns the items of a payload that is read by the indexes of its fields, and the error.
fn by_index(fields: &Fields<'_>, payload: &[u8]) -> (Vec<String>, Option<DecodeError>) {
    let mut all = Vec::new();
    let count = fields.shapes(|index, name, shape| {
        all.resize(all.len().max(index as usize + 1), None);
        assert_eq!(all[index as usize].replace((name, shape)), None, "a field has one index");
    });
    assert_eq!(all.len(), count as usize);
    let (names, shapes): (Vec<_>, Vec<_>) = all.into_iter().map(Option::unwrap).unzip();
    let mut values = IndexedValues::new(&shapes, payload);
    let items = values.by_ref().map(|(index, part)| {
        let name = names[index as usize];
        let item = match part {
            IndexedPart::Value(value) => Item::Value { name, value },
            IndexedPart::BeginObject => Item::BeginObject { name },
            IndexedPart::EndObject => Item::EndObject,
            IndexedPart::BeginArray => Item::BeginArray { name },
            IndexedPart::EndArray => Item::EndArray,
        };
        format!("{item:?}")
    });
    (items.collect(), values.error())
}

/// Writes the records of a stream again, block for block; `None` if a writer cannot write them.
fn copy(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut buf = vec![0xa5; bytes.len() * 4 + 1000];
    let mut out = Vec::new();
    let mut parser = Parser::new(Limits::default());
    let mut writer = loop {
        match parser.next(bytes) {
            Record::Block(_) => {}
            Record::Trace(trace) => {
                break TraceWriter::new(&trace, &mut buf).ok()?;
            }
            _ => return None,
        }
    };
    loop {
        match parser.next(bytes) {
            Record::Block(_) => out.extend_from_slice(&writer.flush()),
            // A writer writes only one trace.
            Record::Trace(_) => return None,
            Record::Metadata(record) => put(&mut out, writer.metadata(&record)),
            Record::Event(event) => put(&mut out, writer.event(&event)),
            Record::TimeRange(_) | Record::BadBlock(_) => {}
            Record::More { .. } | Record::End(_) => break,
            // A damaged stream of V3 can have records that V3 does not have.
            _ if writer.version() == Version::V3 => return None,
            Record::Stack(stack) => put(&mut out, writer.stack(&stack)),
            Record::SequencePoint(point) => put(&mut out, writer.sequence_point(&point)),
            Record::ThreadSequence(row) => put(&mut out, writer.thread_sequence(&row)),
            Record::Thread(thread) => put(&mut out, writer.thread(thread.index, thread.entries)),
            Record::RemoveThread(row) => put(&mut out, writer.remove_thread(&row)),
            Record::LabelList(list) => put(&mut out, writer.label_list(list.id, list.labels)),
        }
    }
    out.extend_from_slice(&writer.finish());
    Some(out)
}

/// A stream of this version with these bytes as a block of events: the first of them is the block's flags.
fn block_of(version: Version, bytes: &[u8]) -> Vec<u8> {
    let mut buf = [0; 1024];
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).expect("a version that can be written");
    let mut stream = Vec::new();
    stream.extend_from_slice(&writer.flush());
    let (flags, blobs) = bytes.split_first().unwrap_or((&1, &[]));
    let len = u32::try_from(blobs.len() + 20).expect("not so many");
    if version == Version::V6 {
        stream.extend((len | 2 << 24).to_le_bytes());
    } else {
        stream.extend(b"\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0a\0\0\0EventBlock\x06");
        stream.extend(len.to_le_bytes());
        stream.resize(stream.len().next_multiple_of(4), 0);
    }
    stream.extend([20, 0, *flags, 0]);
    stream.extend([0; 16]);
    stream.extend(blobs);
    // The fast path of the parser reads headers only where many bytes follow, which can be those after the block.
    stream.resize(stream.len() + 200, 6);
    stream
}

/// Writes the description in another version, if that version can express it, and reads it.
fn described(metadata: &Metadata<'_>, len: usize, version: Version, check: impl FnOnce(Metadata<'_>)) {
    // The other version can need more bytes, for example four instead of one for a code. 16 times as many are enough.
    let mut buf = vec![0xa5; len * 16 + 1000];
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).expect("a version that can be written");
    let mut stream = Vec::new();
    match writer.describe(metadata) {
        Ok(bytes) => stream.extend_from_slice(&bytes),
        Err(WriteError::Version(_) | WriteError::TooLong { .. }) => return,
        Err(error) => panic!("{error}"),
    }
    stream.extend_from_slice(&writer.finish());
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(&stream) {
            Record::Metadata(record) => {
                check(Metadata::decode(version, record.payload).expect("it was written here"));
                return;
            }
            Record::Block(_) | Record::Trace(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Returns whether two descriptions have the same fields.
fn alike(a: &Fields<'_>, b: &Fields<'_>) -> bool {
    let same = |(a, b): (nettrace::Field<'_>, nettrace::Field<'_>)| {
        a.name == b.name && same_type(a.field_type, b.field_type)
    };
    a.len() == b.len() && a.iter().zip(b.iter()).all(same)
}

/// Returns whether V4 has the types of all fields. A reader of V4 accepts types of V6, too, but a writer of V4
/// describes their values by types that V4 has.
fn before_v6(fields: &Fields<'_>) -> bool {
    fields.iter().all(|field| {
        let mut field_type = field.field_type;
        while let FieldType::Array { element, .. } = field_type {
            field_type = element.field_type();
        }
        match field_type {
            FieldType::Scalar(scalar) => scalar.code() <= Scalar::Utf16String.code(),
            FieldType::Object(fields) => before_v6(&fields),
            _ => true,
        }
    })
}

fn same_type(a: FieldType<'_>, b: FieldType<'_>) -> bool {
    match (a, b) {
        (FieldType::Scalar(a), FieldType::Scalar(b)) => a == b,
        (FieldType::Object(a), FieldType::Object(b)) => alike(&a, &b),
        (FieldType::Array { kind, element }, FieldType::Array { kind: other, element: others }) => {
            kind == other && same_type(element.field_type(), others.field_type())
        }
        _ => false,
    }
}
