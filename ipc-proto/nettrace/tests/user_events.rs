//! Tracepoints of `user_events`: bytes that were written by hand according to the rules, and malformed bytes.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
use ipc_proto::types::{
    EventFilter, EventLevel, SessionConfig, TracepointConfig, TracepointSet, UserEventsProvider,
    UserEventsSession,
};
use ipc_proto::types::{TracepointFormat, TracepointFormatError as FormatError};
use ipc_proto::{Array, CollectTracing5, FieldPath, Guid, InvalidValue, Request, Text, Violation};
use nettrace::user_events::{Extension, ExtensionItem, InlineLayout, InlineMetadata, TracepointRecord};
use nettrace::{DecodeError, DecodeErrorKind};
use nettrace::{Fields, Metadata, Scalar, Str, Version, WriteError};

const ID: Guid = Guid([0xa1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
const RELATED: Guid = Guid([0xb1; 16]);

/// Decodes the record that a runtime writes: the write index, and what a consumer reads.
fn decode_written(bytes: &[u8]) -> Result<(u32, TracepointRecord<'_>), DecodeError> {
    let cut = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: 0 };
    let (index, record) = bytes.split_first_chunk().ok_or(cut)?;
    Ok((u32::from_le_bytes(*index), TracepointRecord::decode(record)?))
}

fn utf16_z(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// ExceptionThrown_V1 of the runtime, as a released runtime sends it: without names and fields.
fn exception() -> Vec<u8> {
    let mut bytes = utf16_z("Microsoft-Windows-DotNETRuntime");
    bytes.extend(exception_of_a_preview());
    bytes
}

/// Returns the metadata of [`exception`] without the provider.
fn exception_of_a_preview() -> Vec<u8> {
    #[rustfmt::skip]
    let bytes = [
        0x50, 0, 0, 0,                  // event id 80
        0, 0,                           // no name
        0, 0x80, 0, 0, 2, 0, 0, 0,      // keywords
        1, 0, 0, 0,                     // version
        2, 0, 0, 0,                     // level
        0, 0, 0, 0,                     // no fields
    ];
    bytes.to_vec()
}

#[test]
fn format() {
    let format = TracepointFormat::new("MyTracepoint").unwrap();
    let expected = "MyTracepoint u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";
    assert_eq!(format.as_str(), expected);
    assert_eq!(format.to_string(), expected);
    assert_eq!(format.as_c_str().to_str(), Ok(expected));
    assert_eq!(format.as_c_str().to_bytes_with_nul().len(), expected.len() + 1);
    assert_eq!(format.name(), "MyTracepoint");
    assert_eq!(expected.parse(), Ok(format));
}

#[test]
fn format_of_what_a_request_has() {
    let units: Vec<u16> = "Ä\0behind".encode_utf16().collect();
    assert_eq!(TracepointFormat::new(Text::from_utf16(&units)).unwrap().name(), "Ä");
    assert_eq!(TracepointFormat::new(Text::NULL), Err(FormatError::BadName));
    let lone = TracepointFormat::new(Text::from_utf16(&[0xd800])).unwrap();
    assert_eq!(lone.name(), "\u{fffd}");
}

#[test]
fn names_that_are_none() {
    for bad in ["", " ", "a b", "a ", " a", "a\tb", "a\nb", "a:b", ":", "\0", "\u{7f}"] {
        assert_eq!(TracepointFormat::new(bad), Err(FormatError::BadName), "{bad:?}");
    }
}

/// 512 bytes with the NUL are allowed; the check of a request applies the same rule.
#[test]
fn the_longest_name() {
    let around = TracepointFormat::FIELDS.len() + 2;
    assert_eq!(around, 76);
    for (unit, bytes) in [("n", 1), ("ä", 2), ("€", 3)] {
        let longest = unit.repeat((512 - around) / bytes);
        let format = TracepointFormat::new(&*longest).unwrap();
        assert!(format.as_c_str().to_bytes_with_nul().len() > 512 - bytes);
        assert_eq!(format.name(), longest);
        assert_eq!(format.to_string().parse(), Ok(format));
        let longer = longest.clone() + unit;
        let len = longer.len() + around;
        assert_eq!(TracepointFormat::new(&*longer), Err(FormatError::TooLong { len }));
        let sentence = FormatError::TooLong { len }.to_string();
        assert!(sentence.contains(&len.to_string()), "{sentence}");
        let spelled = format!("{longer} {}", TracepointFormat::FIELDS);
        assert_eq!(spelled.parse::<TracepointFormat>(), Err(FormatError::TooLong { len }));
        assert_eq!(check(&longest), Ok(()));
        let place = FieldPath::new(&["providers", "tracepoints.default_tracepoint_name"], &[0]);
        assert_eq!(check(&longer), Err(InvalidValue { violation: Violation::TracepointNameLength, place }));
    }
}

fn check(name: &str) -> Result<(), InvalidValue> {
    check_tracepoints(TracepointConfig { default_tracepoint_name: name.into(), sets: Array::EMPTY })
}

fn check_tracepoints(tracepoints: TracepointConfig<'_>) -> Result<(), InvalidValue> {
    let provider = UserEventsProvider {
        keywords: 1,
        level: EventLevel::VERBOSE,
        name: "P".into(),
        arguments: "".into(),
        filter: EventFilter::ALL,
        tracepoints,
    };
    let providers = [provider];
    let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
    Request::CollectTracing5(CollectTracing5 { session: SessionConfig::UserEvents(session) }).check()
}

#[test]
fn an_event_id_that_is_there_twice_is_found_wherever() {
    let check = |ids: &[u32]| {
        let set = TracepointSet { tracepoint_name: "tp".into(), event_ids: Array::from(ids) };
        let sets = [set];
        let tracepoints = TracepointConfig { default_tracepoint_name: Text::NULL, sets: Array::from(&sets) };
        check_tracepoints(tracepoints)
    };
    for len in [1, 2, 63, 64, 65, 127, 128, 129, 200] {
        let good: Vec<u32> = (1..=len).collect();
        assert_eq!(check(&good), Ok(()), "{len}");
    }
    for (first, second) in [(0, 1), (0, 199), (62, 63), (63, 64), (64, 65), (10, 150), (100, 120), (198, 199)]
    {
        let mut ids: Vec<u32> = (1..=200).collect();
        ids[second] = ids[first];
        let place = FieldPath::new(&["providers", "tracepoints.sets", "event_ids"], &[0, 0, second]);
        let expected = InvalidValue { violation: Violation::DuplicateEventId, place };
        assert_eq!(check(&ids), Err(expected), "{first} {second}");
    }
}

#[test]
fn formats_that_are_none() {
    let good = TracepointFormat::new("tp").unwrap();
    for (bad, error) in [
        (String::new(), FormatError::OtherFields),
        ("tp".to_owned(), FormatError::OtherFields),
        (format!("{good};"), FormatError::OtherFields),
        (format!("{good}\0"), FormatError::OtherFields),
        (good.to_string().replace("u16", "u32"), FormatError::OtherFields),
        (good.to_string().replace("; ", ";"), FormatError::OtherFields),
        (TracepointFormat::FIELDS.to_owned(), FormatError::OtherFields),
        (format!(" {}", TracepointFormat::FIELDS), FormatError::BadName),
        (format!(" {good}"), FormatError::BadName),
        (format!("tp  {}", TracepointFormat::FIELDS), FormatError::BadName),
        (format!("t\0p {}", TracepointFormat::FIELDS), FormatError::BadName),
    ] {
        assert_eq!(bad.parse::<TracepointFormat>(), Err(error), "{bad:?}");
    }
}

#[test]
fn record_with_everything() {
    let metadata = exception();
    assert_eq!(metadata.len(), 0x5a);
    #[rustfmt::skip]
    let parts = [
        &[0x78, 0x56, 0x34, 0x12][..],          // write index
        &[1],                                   // version
        &[0x50, 0],                             // event id 80
        &[4, 0, 0x81, 0],                       // extension: at distance 4, length 0x81 = 5 + 0x5a + 17 + 17
        &[0x81, 0, 3, 0],                       // payload: after the extension, length 3
        &[1, 0x5a, 0, 0, 0], &metadata,
        &[2], &ID.0,
        &[3], &RELATED.0,
        b"pay",
    ];
    let expected = parts.concat();
    let mut space = [0xa5; 0x81];
    let inline = InlineMetadata::new(&metadata);
    let items = [
        ExtensionItem::Metadata(inline),
        ExtensionItem::ActivityId(ID),
        ExtensionItem::RelatedActivityId(RELATED),
    ];
    let extension = Extension::build(&items, &mut space).unwrap();
    let record = TracepointRecord { event_id: 80, extension, payload: b"pay" };
    let mut buf = [0xa5; 300];
    let written = record.encode(0x1234_5678, &mut buf).unwrap();
    assert_eq!(written, expected);
    assert_eq!(decode_written(written), Ok((0x1234_5678, record)));
    // The record as perf stores it: without the write index, and padded.
    let shown = [&expected[4..], &[0; 5]].concat();
    let seen = TracepointRecord::decode(&shown).unwrap();
    assert_eq!(seen, record);
    assert!(seen.extension.iter().eq(items.map(Ok)));
    let header = TracepointRecord::header(0x1234_5678, 80, 0x81, 3).unwrap();
    assert_eq!(header, expected[..TracepointRecord::HEADER_LEN]);
}

#[test]
fn record_with_nothing() {
    let record = TracepointRecord { event_id: 0xffff, extension: Extension::EMPTY, payload: &[] };
    let mut buf = [0xa5; 15];
    let written = record.encode(0, &mut buf).unwrap();
    assert_eq!(written, [0, 0, 0, 0, 1, 0xff, 0xff, 4, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(TracepointRecord::decode(&written[4..]), Ok(record));
    // An empty part can have any location.
    assert_eq!(TracepointRecord::decode(&[1, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]), Ok(record));
}

/// Runtimes write the extension before the payload, but a reader finds each part by its stated offset.
#[test]
fn parts_lie_at_the_stated_offsets() {
    let shown = [1, 7, 0, 4 + 3, 0, 2, 0, 0, 0, 3, 0, b'p', b'a', b'y', 0x55, 0x66];
    let record = TracepointRecord::decode(&shown).unwrap();
    assert_eq!((record.extension.as_bytes(), record.payload), (&[0x55, 0x66][..], &b"pay"[..]));
}

#[test]
fn records_that_are_none() {
    let record = TracepointRecord { event_id: 7, extension: Extension::new(&[2; 17]), payload: b"pay" };
    let mut buf = [0; 64];
    let bytes = record.encode(9, &mut buf).unwrap().to_vec();
    for len in 0..bytes.len() {
        let error = decode_written(&bytes[..len]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::UnexpectedEnd, "{len}");
        assert!(error.offset <= len, "{len}: {error}");
    }
    let shown = &bytes[4..];
    for version in [0, 2, 0x81, 0xff] {
        let mut other = shown.to_vec();
        other[0] = version;
        let error = TracepointRecord::decode(&other).unwrap_err();
        assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnknownVersion, 0));
    }
    // A part extends past the end: by its offset or by its length.
    for (at, value) in [(3, 0xff), (4, 1), (5, 28), (6, 1), (7, 0xff), (8, 1), (9, 4), (10, 1)] {
        let mut other = shown.to_vec();
        other[at] = value;
        let error = TracepointRecord::decode(&other).unwrap_err();
        assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnexpectedEnd, if at < 7 { 3 } else { 7 }));
    }
}

#[test]
fn records_that_are_too_long() {
    let long = vec![2; 0x1_0000];
    let (most, mut buf) = (&long[1..], vec![0; 0x2_0010]);
    let record = TracepointRecord { event_id: 1, extension: Extension::new(most), payload: most };
    let written = record.encode(1, &mut buf).unwrap();
    assert_eq!(decode_written(written), Ok((1, record)));
    let too_long = Err(WriteError::TooLong { len: 0x1_0000 });
    assert_eq!(TracepointRecord { payload: &long, ..record }.encode(1, &mut buf), too_long);
    let extension = Extension::new(&long);
    assert_eq!(TracepointRecord { extension, ..record }.encode(1, &mut buf), too_long);
    assert_eq!(
        TracepointRecord::header(1, 1, 0, 0x1_0000).unwrap_err(),
        WriteError::TooLong { len: 0x1_0000 }
    );
    let needed = 15 + 2 * 0xffff;
    assert_eq!(record.encode(1, &mut buf[..needed - 1]), Err(WriteError::BufferTooSmall { needed }));
}

#[test]
fn activity_ids_of_zero_are_none() {
    let mut buf = [0; 64];
    let items = [ExtensionItem::ActivityId(Guid::NIL), ExtensionItem::RelatedActivityId(RELATED)];
    let extension = Extension::build(&items, &mut buf).unwrap();
    assert_eq!(extension.as_bytes(), [&[3][..], &[0xb1; 16]].concat());
    let none = [ExtensionItem::ActivityId(Guid::NIL), ExtensionItem::RelatedActivityId(Guid::NIL)];
    assert_eq!(Extension::build(&none, &mut buf), Ok(Extension::EMPTY));
    // Zero ids in a record are decoded.
    let zero = [&[2][..], &[0; 16]].concat();
    assert!(Extension::new(&zero).iter().eq([Ok(ExtensionItem::ActivityId(Guid::NIL))]));
}

/// The items before an error are returned.
#[test]
fn extensions_that_end_badly() {
    let metadata = InlineMetadata::new(b"opaque");
    let items = [
        ExtensionItem::RelatedActivityId(RELATED),
        ExtensionItem::Metadata(metadata),
        ExtensionItem::ActivityId(ID),
    ];
    let mut buf = [0; 64];
    let bytes = Extension::build(&items, &mut buf).unwrap().as_bytes();
    let ends = [0, 17, 28, 45];
    for len in 0..=bytes.len() {
        let mut read = Extension::new(&bytes[..len]).iter();
        let whole = ends.iter().rposition(|end| *end <= len).unwrap();
        assert!(read.by_ref().take(whole).eq(items[..whole].iter().map(|item| Ok(*item))), "{len}");
        match read.next() {
            None => assert_eq!(len, ends[whole]),
            Some(end) => assert_eq!(end.unwrap_err().kind, DecodeErrorKind::UnexpectedEnd, "{len}"),
        }
        assert_eq!(read.next(), None);
    }
    for label in [0, 4, 0x81, 0xff] {
        let unknown = [&bytes[..28], &[label], &bytes[28..]].concat();
        let read: Vec<_> = Extension::new(&unknown).into_iter().collect();
        let error = read[2].unwrap_err();
        assert_eq!((read.len(), error.kind, error.offset), (3, DecodeErrorKind::UnknownType, 28));
    }
    let mut endless = bytes.to_vec();
    endless[18..22].fill(0xff);
    assert_eq!(Extension::new(&endless).iter().count(), 2);
}

#[test]
fn metadata_with_and_without_provider() {
    for (bytes, provider) in
        [(exception(), "Microsoft-Windows-DotNETRuntime"), (exception_of_a_preview(), "")]
    {
        let read = InlineMetadata::new(&bytes).decode(80).unwrap();
        assert_eq!((read.id, read.provider, read.event_id), (0, Str::from(provider), 80));
        assert_eq!((read.name, read.keywords, read.version, read.level), ("".into(), 0x2_0000_8000, 1, 2));
        assert_eq!((read.fields.len(), read.problem), (0, None));
        let mut buf = [0xa5; 0x5a];
        assert_eq!(InlineMetadata::build(&read, &mut buf).unwrap().as_bytes(), bytes);
    }
}

/// Ids and names that look like those of another layout.
#[test]
fn metadata_is_identified_by_its_event() {
    for provider in ["", "M", "\u{1}", "My-App"] {
        for event_id in [0, 1, 0x45, 0x47, 0xffff] {
            for name in ["", "GCStart", "EventSourceMessage", "EG"] {
                let mut metadata = Metadata::new(0, provider, u32::from(event_id), "");
                (metadata.name, metadata.keywords, metadata.level) = (name.into(), 0xf00f << 48 | 1, 5);
                let (mut fields, mut buf) = ([0; 64], [0; 256]);
                metadata.fields =
                    Fields::build(&[("a", Scalar::Int32), ("b", Scalar::Utf16String)], &mut fields).unwrap();
                let read = InlineMetadata::build(&metadata, &mut buf).unwrap().decode(event_id).unwrap();
                let about = format!("{provider:?} {event_id} {name:?}");
                assert_eq!(read.provider, metadata.provider, "{about}");
                assert_eq!((read.event_id, read.name), (metadata.event_id, metadata.name), "{about}");
                assert_eq!((read.keywords, read.level), (metadata.keywords, 5), "{about}");
                assert_eq!(format!("{:?}", read.fields), format!("{:?}", metadata.fields), "{about}");
            }
        }
    }
}

/// The payload of a metadata record of a NetTrace stream, with its id.
#[test]
fn metadata_with_an_id() {
    for id in [1, 2, 12, 0x45, 80, 0x4d, 255, 256, 0xffff_u32] {
        let bytes = [&id.to_le_bytes()[..], &exception()].concat();
        let read = InlineMetadata::new(&bytes).decode(80).unwrap();
        assert_eq!((read.id, read.provider), (id, "Microsoft-Windows-DotNETRuntime".into()));
        assert_eq!((read.event_id, read.keywords, read.problem), (80, 0x2_0000_8000, None));
        // The layouts without an id also decode these bytes, but as another event.
        let wrong = InlineMetadata::new(&bytes).decode_as(InlineLayout::Provider).unwrap();
        assert_ne!((wrong.provider, wrong.event_id), (read.provider, 80));
    }
    // Metadata of a program, with names of one letter, and with fields.
    for (provider, event_id) in [("M", 1), ("M", 0x4d), ("\u{1}", 1), ("My-App", 0), ("My-App", 0xffff)] {
        for (id, name) in [(1_u32, "Tick"), (0x4d, ""), (0x4d, "My"), (9, "\u{9}\u{9}")] {
            let mut metadata = Metadata::new(0, provider, event_id, name);
            (metadata.keywords, metadata.level) = (u64::from(event_id), 4);
            let (mut fields, mut buf) = ([0; 64], [0; 256]);
            metadata.fields = Fields::build(&[("Count", Scalar::Int32)], &mut fields).unwrap();
            let without = InlineMetadata::build(&metadata, &mut buf).unwrap();
            let with = [&id.to_le_bytes()[..], without.as_bytes()].concat();
            let event_id = u16::try_from(event_id).unwrap();
            for (bytes, id) in [(without.as_bytes(), 0), (&with, id)] {
                let read = InlineMetadata::new(bytes).decode(event_id).unwrap();
                let about = format!("{id} {provider:?} {event_id} {name:?}");
                assert_eq!(
                    (read.id, read.provider, read.name),
                    (id, provider.into(), name.into()),
                    "{about}"
                );
                assert_eq!((read.fields.len(), read.problem), (1, None), "{about}");
            }
        }
    }
}

/// A description that matches in several layouts is refused, and its reader can choose one.
#[test]
fn metadata_that_may_be_either() {
    let zeros = [0; 24];
    // A letter has the value of the event id. It is both provider and name in one layout, and only the name in the
    // layout without a provider.
    let either = [&[0x50, 0, 0, 0, 0x50, 0, 0, 0, 0x50, 0, 0, 0][..], &zeros].concat();
    let metadata = InlineMetadata::new(&either);
    let error = metadata.decode(0x50).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::Ambiguous, 0));
    for (layout, id, provider) in [
        (InlineLayout::Provider, 0, "P"),
        (InlineLayout::EventId, 0, ""),
        (InlineLayout::MetadataId, 0x50, "P"),
    ] {
        let read = metadata.decode_as(layout).unwrap();
        assert_eq!((read.id, read.provider, read.event_id), (id, provider.into(), 0x50), "{layout:?}");
    }
    // A layout that uses all bytes takes precedence over a layout that leaves bytes.
    let whole = [&[0x50, 0, 0, 0, 0x50, 0, 0, 0][..], &zeros[..22]].concat();
    let read = InlineMetadata::new(&whole).decode(0x50).unwrap();
    assert_eq!((read.provider, read.name, read.problem), ("P".into(), "".into(), None));
}

/// Metadata of an event whose id does not fit into 16 bits, and of a provider without a name.
#[test]
fn metadata_of_another_event_is_refused() {
    let bytes = exception();
    let error = InlineMetadata::new(&bytes).decode(81).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::OtherEvent, 0));
    assert_eq!(InlineMetadata::new(&bytes).decode_as(InlineLayout::Provider).unwrap().event_id, 80);
    let large = [&0x1_0000_u32.to_le_bytes()[..], &exception()].concat();
    assert_eq!(InlineMetadata::new(&large).decode(80).unwrap_err().kind, DecodeErrorKind::OtherEvent);
    let mut bytes = utf16_z("");
    bytes.extend(exception_of_a_preview());
    let read = InlineMetadata::new(&bytes).decode(80).unwrap();
    assert_eq!((read.provider, read.event_id, read.keywords), ("".into(), 80, 0x2_0000_8000));
}

#[test]
fn metadata_that_is_none() {
    let bytes = exception();
    // The metadata can end before the count of fields (4 bytes), but not earlier.
    for len in 0..0x5a - 4 {
        assert!(InlineMetadata::new(&bytes[..len]).decode(80).is_err(), "{len}");
    }
    assert_eq!(InlineMetadata::new(&bytes[..0x5a - 4]).decode(80).unwrap().problem, None);
    assert!(InlineMetadata::new(&bytes[..0x5a - 1]).decode(80).unwrap().problem.is_some());
    let error = InlineMetadata::default().decode(80).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::Unterminated, 0));
    let mut metadata = Metadata::default();
    let mut fields = [0; 16];
    metadata.fields = Fields::build(&[("v6", Scalar::VarInt)], &mut fields).unwrap();
    assert_eq!(InlineMetadata::build(&metadata, &mut [0; 99]), Err(WriteError::Version(Version::V4)));
    metadata.fields = Fields::EMPTY;
    let too_small = WriteError::BufferTooSmall { needed: 26 };
    assert_eq!(InlineMetadata::build(&metadata, &mut [0; 25]), Err(too_small));
    let small = Extension::build(&[ExtensionItem::ActivityId(ID)], &mut []);
    assert_eq!(small, Err(WriteError::BufferTooSmall { needed: 17 }));
}
