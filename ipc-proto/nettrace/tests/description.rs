//! Descriptions of fields: depth, work, errors, tags and optional metadata.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects; random numbers may lose bits"
)]

mod fields;

use fields::*;
use ipc_proto::Guid;
use nettrace::DecodeErrorKind;
use nettrace::{Metadata, MetadataBuf, Version};

fn nest(depth: usize, format: Format) -> Type {
    let mut of = Scalar(6);
    for level in 0..depth {
        of = match (format, level % 3) {
            (Format::V6, 1) => array(22, of, 1),
            (Format::V2 | Format::V6, 2) => array(19, of, 0),
            _ => Object(one("x", of)),
        };
    }
    of
}

#[test]
fn depth() {
    for format in [Format::V1, Format::V2, Format::V6] {
        for depth in 0..40 {
            let record = record(format, &one("f", nest(depth, format)));
            let metadata = Metadata::decode(version(format), &record).unwrap();
            match metadata.problem {
                None => assert!(depth <= 16, "{format:?} {depth}"),
                Some(e) => {
                    assert!(depth > 16, "{format:?} {depth}");
                    assert_eq!(e.kind, DecodeErrorKind::TooDeep);
                    assert!(metadata.fields.is_empty());
                    continue;
                }
            }
            let payload = [1u8, 0].repeat(20);
            let mut values = metadata.fields.values(&payload);
            let items: Vec<String> = values.by_ref().map(|item| format!("{item:?}")).collect();
            balanced(&items);
            values.finish().unwrap();
            assert!(items.len() >= 2 * depth.saturating_sub(1));
        }
    }
}

/// Descriptions are equal by their fields, whatever follows these in the record.
#[test]
fn equal_descriptions() {
    fn decode(format: Format, record: &[u8]) -> Metadata<'_> {
        Metadata::decode(version(format), record).unwrap()
    }
    let formats = [Format::V1, Format::V2, Format::V6];
    let records = formats.map(|format| record(format, &one("f", nest(2, format))));
    for (format, bytes) in formats.into_iter().zip(&records) {
        let other = record(format, &one("g", nest(2, format)));
        let fields = decode(format, bytes).fields;
        assert_eq!(fields, MetadataBuf::from(&decode(format, bytes)).fields());
        assert_ne!(fields, decode(format, &other).fields);
        assert_ne!(fields, Metadata::default().fields);
    }
    // A tag with an opcode.
    let tagged = [&records[0][..], &[1, 0, 0, 0, 1, 9]].concat();
    let tagged = decode(Format::V1, &tagged);
    assert_eq!((tagged.opcode, tagged.fields), (Some(9), decode(Format::V1, &records[0]).fields));
}

/// The fields before a field that is nested too deep, or that has an unknown type, are read. The rest of the payload is
/// returned as bytes.
#[test]
fn fields_before_a_problem() {
    let unknown = Scalar(15 + 64);
    for format in [Format::V1, Format::V2, Format::V6] {
        for (of, kind) in [
            (nest(17, format), DecodeErrorKind::TooDeep),
            (unknown.clone(), DecodeErrorKind::UnknownType),
            (
                Object(vec![("x".into(), Scalar(6)), ("y".into(), unknown.clone())]),
                DecodeErrorKind::UnknownType,
            ),
        ] {
            let fields: Vec<_> = [("a", Scalar(6)), ("b", nest(2, format)), ("f", of), ("z", Scalar(6))]
                .map(|(name, of)| (name.to_owned(), of))
                .into();
            let record = record(format, &fields);
            let metadata = Metadata::decode(version(format), &record).unwrap();
            assert_eq!(metadata.problem.map(|e| e.kind), Some(kind), "{format:?}");
            let names: Vec<String> = metadata.fields.iter().map(|field| field.name.to_string()).collect();
            assert_eq!(names, ["a", "b"], "{format:?} {kind:?}");
            let mut values = metadata.fields.values(&[1, 2, 3, 4]);
            let items: Vec<String> = values.by_ref().map(|item| format!("{item:?}")).collect();
            balanced(&items);
            assert!(items.len() > 2 && values.finish() == Ok(&[3, 4]), "{format:?} {items:?}");
            let owned = MetadataBuf::decode(version(format), &record).unwrap();
            assert_eq!(format!("{owned:?}"), format!("{metadata:?}"));
        }
    }
}

fn depth_of(of: &Type) -> usize {
    match of {
        Scalar(_) => 0,
        Object(fields) => 1 + fields.iter().map(|(_, of)| depth_of(of)).max().unwrap_or(0),
        Array(_, element, _) => 1 + depth_of(element),
    }
}

/// The depth includes arrays.
#[test]
fn depth_of_arrays() {
    for (format, code) in [(Format::V2, 19), (Format::V6, 19), (Format::V6, 22)] {
        for depth in [16, 17] {
            let of = (0..depth).fold(Scalar(9), |of, _| array(code, of, 1));
            let record = record(format, &one("f", of));
            let problem = Metadata::decode(version(format), &record).unwrap().problem.map(|e| e.kind);
            assert_eq!(problem, (depth > 16).then_some(DecodeErrorKind::TooDeep));
        }
    }
}

/// The work is bounded, however many values a few bytes announce.
#[test]
fn work() {
    let empty = Object(Vec::new());
    let wide = Object((0..1000).map(|n| (format!("field {n}"), Scalar(6))).collect());
    for of in [
        array(19, empty.clone(), 0),
        array(22, empty.clone(), 65535),
        array(22, array(22, array(22, empty.clone(), 65535), 65535), 65535),
        array(19, array(19, empty.clone(), 0), 0),
        array(25, empty.clone(), 0),
        array(19, array(22, wide, 0), 0),
        Object((0..5000).map(|n| (format!("{n}"), Object(Vec::new()))).collect()),
    ] {
        let fields = [("f".to_owned(), of)];
        let record = record(Format::V6, &fields);
        let metadata = Metadata::decode(Version::V6, &record).unwrap();
        assert_eq!(metadata.problem, None);
        // Elements that are elsewhere are 4 bytes at offset 0. All other counts are in the thousands.
        let payload = if has(&fields[0].1, &[25]) { [0, 0, 4, 0] } else { [0xff; 4] }.repeat(16);
        let mut values = metadata.fields.values(&payload);
        let items: Vec<String> = values.by_ref().map(|item| format!("{item:?}")).collect();
        balanced(&items);
        assert!(items.len() <= 2 * (32 + 4 * payload.len()), "{}", items.len());
        assert_eq!(values.finish().map(<[u8]>::len).unwrap_err().kind, DecodeErrorKind::TooManyItems);
        // A long description costs more work, so there are fewer items.
        assert!(record.len() < 10_000 || items.len() < 20 || depth_of(&fields[0].1) == 2, "{}", items.len());
    }
    // The most items of one array in a valid payload.
    let record = record(Format::V6, &one("f", array(19, Object(one("b", Scalar(6))), 0)));
    let payload = [&[0xff, 0xff][..], &[1; 65535]].concat();
    let (items, end) = decode(Format::V6, &record, &payload);
    assert_eq!((items.len(), end), (2 + 3 * 65535, Ok(vec![])));
}

/// Counts and sizes that exceed the record.
#[test]
fn bad_descriptions() {
    let fields = vec![("a".to_owned(), Scalar(9)), ("o".to_owned(), Object(one("b", Scalar(18))))];
    for format in [Format::V1, Format::V2, Format::V6] {
        let whole = record(format, &fields);
        assert_eq!(Metadata::decode(version(format), &whole).unwrap().problem, None);
        for len in 0..whole.len() {
            if let Ok(metadata) = Metadata::decode(version(format), &whole[..len]) {
                assert_eq!(metadata.provider, "Prov");
                assert_eq!(metadata.name, "Event");
                if metadata.problem.is_none() {
                    // A record can end without an error after the level, and after the count of V1 fields.
                    let level = record(Format::V1, &[]).len() - 4;
                    assert!(len == level || format == Format::V2 && len == level + 4, "{format:?} {len}");
                    assert!(metadata.fields.is_empty());
                }
            } else {
                assert!(len < 60);
            }
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 4, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                if let Ok(metadata) = Metadata::decode(version(format), &bytes) {
                    let mut values = metadata.fields.values(&[0xff; 100]);
                    balanced(&values.by_ref().map(|item| format!("{item:?}")).collect::<Vec<_>>());
                }
            }
        }
    }
    // A V2 field's size counts itself.
    let mut bytes = record(Format::V2, &fields);
    let size = bytes.len() - describe(Format::V2, &fields).len() + 4;
    bytes[size] = 3;
    assert_eq!(
        Metadata::decode(Version::V4, &bytes).unwrap().problem.unwrap().kind,
        DecodeErrorKind::BadSize
    );
}

#[test]
fn tags() {
    let head = record(Format::V1, &one("v1", Scalar(9)));
    let tag = |kind: u8, body: &[u8]| [&(body.len() as u32).to_le_bytes()[..], &[kind], body].concat();
    let params = describe(Format::V2, &one("v2", array(19, Scalar(9), 0)));
    let names = |bytes: &[u8]| -> (Vec<String>, Option<u8>, Option<DecodeErrorKind>) {
        let metadata = Metadata::decode(Version::V4, bytes).unwrap();
        assert_eq!((metadata.level, metadata.version, metadata.keywords), (4, 3, 0x1122_3344_5566_7788));
        let names = metadata.fields.iter().map(|field| field.name.to_string()).collect();
        (names, metadata.opcode, metadata.problem.map(|e| e.kind))
    };
    let all = [
        &head[..],
        &tag(77, b"who knows"),
        &tag(1, &[11, 0xcc]),
        &tag(2, &[&params[..], &[1, 2, 3]].concat()),
    ];
    let twice = Some(DecodeErrorKind::DescribedTwice);
    assert_eq!(names(&all.concat()), (vec!["v1".into(), "v2".into()], Some(11), twice));
    assert_eq!(names(&all[..3].concat()), (vec!["v1".into()], Some(11), None));
    assert_eq!(names(&[&head[..], &tag(1, &[])].concat()), (vec!["v1".into()], None, None));
    // An invalid description removes the fields that it describes, and no others.
    let bad = [&head[..], &tag(2, &describe(Format::V2, &one("x", Scalar(200)))), &tag(1, &[2])].concat();
    assert_eq!(names(&bad), (vec!["v1".into()], Some(2), Some(DecodeErrorKind::UnknownType)));
    // An incomplete tag.
    let cut = all.concat();
    assert_eq!(
        names(&cut[..cut.len() - 1]),
        (vec!["v1".into()], Some(11), Some(DecodeErrorKind::UnexpectedEnd))
    );
    // V2 fields without V1 fields, as the format requires.
    let alone = [&record(Format::V1, &[])[..], &tag(1, &[9]), &tag(2, &params)].concat();
    assert_eq!(names(&alone), (vec!["v2".into()], Some(9), None));
    // A record may end after its level.
    let end = head.len() - describe(Format::V1, &one("v1", Scalar(9))).len();
    assert_eq!(names(&head[..end]), (vec![], None, None));
    assert!(Metadata::decode(Version::V4, &head[..end - 1]).is_err());
}

/// V1 fields and V2Params in one record, against the format: the values of the V1 fields come first.
#[test]
fn fields_described_twice() {
    let tag = |kind: u8, body: &[u8]| [&(body.len() as u32).to_le_bytes()[..], &[kind], body].concat();
    let v2 = describe(Format::V2, &[("b".into(), array(19, Scalar(9), 0)), ("c".into(), Scalar(6))]);
    let two = [("a".into(), Scalar(9)), ("o".into(), Object(one("in", Scalar(8))))];
    let bytes =
        [&record(Format::V1, &two)[..], &tag(77, b"other"), &tag(2, &v2), &tag(2, &v2), &tag(1, &[5])]
            .concat();
    let payload = [1, 0, 0, 0, 2, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0xee];
    let items = |metadata: &Metadata<'_>, payload| {
        let mut values = metadata.fields.values(payload);
        let items: Vec<_> = values.by_ref().map(|item| format!("{item:?}")).collect();
        balanced(&items);
        (items.join(" "), values.finish().map(<[u8]>::to_vec))
    };
    let check = |metadata: &Metadata<'_>| {
        assert_eq!(metadata.problem.map(|e| e.kind), Some(DecodeErrorKind::DescribedTwice));
        assert_eq!((metadata.fields.len(), metadata.opcode), (4, Some(5)));
        let names: Vec<_> = metadata.fields.iter().map(|field| field.name.to_string()).collect();
        assert_eq!(names, ["a", "o", "b", "c"]);
        let (seen, rest) = items(metadata, &payload);
        assert_eq!(rest, Ok(vec![0xee]), "{seen}");
        let values = |name| metadata.fields.values(&payload).field(name).and_then(|value| value.as_u64());
        assert_eq!([values("a"), values("o.in"), values("c")], [Some(1), Some(2), Some(5)]);
        // The payload can end within the V2 fields: the values of the V1 fields are valid.
        let (seen, rest) = items(metadata, &payload[..7]);
        assert!(seen.contains("in") && rest.is_err(), "{seen}");
    };
    check(&Metadata::decode(Version::V4, &bytes).unwrap());
    check(&MetadataBuf::decode(Version::V4, &bytes).unwrap().get());
    let empty = [&record(Format::V1, &two)[..], &tag(2, &[0; 4])].concat();
    let metadata = Metadata::decode(Version::V4, &empty).unwrap();
    assert_eq!((metadata.fields.len(), metadata.problem.is_some()), (2, true));
    assert_eq!(items(&metadata, &payload[..6]).1, Ok(vec![]));
    for len in 0..bytes.len() {
        if let Ok(metadata) = Metadata::decode(Version::V4, &bytes[..len]) {
            let _ = items(&metadata, &payload);
        }
    }
}

#[test]
fn optional_metadata() {
    let row = |fields: &[(String, Type)], area: &[u8]| {
        let whole = record(Format::V6, fields);
        [&whole[..whole.len() - 2], &(area.len() as u16).to_le_bytes(), area, b"tail"].concat()
    };
    let area = [
        &[1, 7, 3, 8, 7, 6, 5, 4, 3, 2, 1, 4][..],
        &string("{x} happened"),
        &[5],
        &string("what it means"),
        &[6],
        &string("k"),
        &string("v"),
        &[7],
        &[0x5a; 16],
        &[8, 5, 6],
        &string(""),
        &string("é"),
        &[9, 2],
    ]
    .concat();
    let bytes = row(&one("x", Scalar(9)), &area);
    owned(Version::V6, &bytes);
    let metadata = Metadata::decode(Version::V6, &bytes).unwrap();
    assert_eq!(metadata.problem, None);
    assert_eq!((metadata.id, metadata.event_id), (9, 7));
    assert_eq!((metadata.opcode, metadata.keywords), (Some(7), 0x0102_0304_0506_0708));
    assert_eq!((metadata.level, metadata.version), (5, 2));
    assert_eq!(metadata.message_template.unwrap(), "{x} happened");
    assert_eq!(metadata.description.unwrap(), "what it means");
    assert_eq!(metadata.provider_guid, Some(Guid([0x5a; 16])));
    let pairs: Vec<_> = metadata.attributes.iter().collect();
    assert_eq!(pairs, [("k".into(), "v".into()), ("".into(), "é".into())]);
    assert_eq!(metadata.fields.len(), 1);
    // Entries after an entry of an unknown kind cannot be read; the entries before it are valid.
    let bytes = row(&one("x", Scalar(9)), &[1, 7, 2, 9, 9]);
    let metadata = Metadata::decode(Version::V6, &bytes).unwrap();
    assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType);
    assert_eq!((metadata.opcode, metadata.level, metadata.fields.len()), (Some(7), 0, 1));
    // Invalid fields do not hide the optional metadata after them.
    let bytes = row(&[("x".into(), Scalar(99)), ("y".into(), Scalar(9))], &area);
    let metadata = Metadata::decode(Version::V6, &bytes).unwrap();
    assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType);
    assert_eq!((metadata.opcode, metadata.version, metadata.fields.len()), (Some(7), 2, 0));
    // No prefix of a record causes a panic.
    let bytes = row(&one("x", Scalar(9)), &area);
    for len in 0..bytes.len() {
        if let Ok(metadata) = Metadata::decode(Version::V6, &bytes[..len]) {
            metadata.attributes.iter().for_each(drop);
        }
    }
}
