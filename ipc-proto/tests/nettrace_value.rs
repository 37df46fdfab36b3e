//! Descriptions and payloads made by hand and made at random: whatever is described comes out, whatever is broken breaks
//! alone.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects; numbers made at random may lose bits"
)]

use core::hash::{Hash, Hasher};

use ipc_proto::nettrace::{FieldType, FileTime, Item, Metadata, Str, Value, Version};
use ipc_proto::{DecodeErrorKind, Guid};
use proptest::prelude::*;

/// A type, as a description has it.
#[derive(Clone, Debug)]
enum Type {
    Scalar(u8),
    Object(Vec<(String, Self)>),
    /// The code of the array, the element, and how many.
    Array(u8, Box<Self>, u16),
}
use Type::{Array, Object, Scalar};

fn array(code: u8, element: Type, count: u16) -> Type {
    Array(code, Box::new(element), count)
}
fn one(name: &str, of: Type) -> Vec<(String, Type)> {
    vec![(name.to_owned(), of)]
}

/// How a description is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    V1,
    V2,
    V6,
}

fn utf16(s: &str) -> Vec<u8> {
    s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
fn string(s: &str) -> Vec<u8> {
    let mut bytes = varint(s.len() as u64);
    bytes.extend(s.as_bytes());
    bytes
}
fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn describe_type(format: Format, of: &Type) -> Vec<u8> {
    let code =
        |code: u8| if format == Format::V6 { vec![code] } else { u32::from(code).to_le_bytes().to_vec() };
    match of {
        Scalar(c) => code(*c),
        Object(fields) => [code(1), describe(format, fields)].concat(),
        Array(c, element, count) => {
            let count = if *c == 22 { count.to_le_bytes().to_vec() } else { Vec::new() };
            [code(*c), describe_type(format, element), count].concat()
        }
    }
}

/// Count and fields.
fn describe(format: Format, fields: &[(String, Type)]) -> Vec<u8> {
    let mut bytes = match format {
        Format::V6 => (fields.len() as u16).to_le_bytes().to_vec(),
        _ => (fields.len() as u32).to_le_bytes().to_vec(),
    };
    for (name, of) in fields {
        let of = describe_type(format, of);
        match format {
            Format::V1 => bytes.extend([of, utf16(name)].concat()),
            Format::V2 => {
                let body = [utf16(name), of, vec![0xee; name.len() % 3]].concat();
                bytes.extend((body.len() as u32 + 4).to_le_bytes());
                bytes.extend(body);
            }
            Format::V6 => {
                let body = [string(name), of, vec![0xee; name.len() % 3]].concat();
                bytes.extend((body.len() as u16).to_le_bytes());
                bytes.extend(body);
            }
        }
    }
    bytes
}

fn version(format: Format) -> Version {
    if format == Format::V6 { Version::V6 } else { Version::V4 }
}

fn record_of(format: Format, provider: &str, fields: &[(String, Type)]) -> Vec<u8> {
    let fields = describe(format, fields);
    if format == Format::V6 {
        return [vec![9], string(provider), vec![7], string("Event"), fields, vec![0, 0]].concat();
    }
    let head = [
        &9u32.to_le_bytes()[..],
        &utf16(provider),
        &7u32.to_le_bytes(),
        &utf16("Event"),
        &0x1122_3344_5566_7788u64.to_le_bytes(),
        &3u32.to_le_bytes(),
        &4u32.to_le_bytes(),
    ]
    .concat();
    if format == Format::V1 {
        return [head, fields].concat();
    }
    [&head[..], &[0; 4], &(fields.len() as u32).to_le_bytes(), &[2], &fields].concat()
}
fn record(format: Format, fields: &[(String, Type)]) -> Vec<u8> {
    record_of(format, "Prov", fields)
}

/// An owned record is the same as a borrowed one.
fn owned(version: Version, record: &[u8]) {
    #[cfg(feature = "alloc")]
    {
        let metadata = Metadata::decode(version, record).unwrap();
        let owned = ipc_proto::nettrace::MetadataBuf::decode(version, record).unwrap();
        assert_eq!(format!("{metadata:?}"), format!("{owned:?}"));
    }
    let _ = (version, record);
}

/// How a payload ended: with the bytes behind its fields, or what is wrong and where.
type Ending = Result<Vec<u8>, (DecodeErrorKind, usize)>;

/// The items as text, and how the payload ended.
fn decode(format: Format, record: &[u8], payload: &[u8]) -> (Vec<String>, Ending) {
    let metadata = Metadata::decode(version(format), record).unwrap();
    assert_eq!(metadata.problem, None, "{record:02x?}");
    owned(version(format), record);
    let mut values = metadata.fields.values(payload);
    let items = values.by_ref().map(|item| format!("{item:?}")).collect();
    let end = values.finish().map(<[u8]>::to_vec).map_err(|e| (e.kind, e.offset));
    (items, end)
}

fn value(name: &str, value: Value<'_>) -> String {
    format!("{:?}", Item::Value { name: name.into(), value })
}
fn begin_array(name: &str) -> String {
    format!("{:?}", Item::BeginArray { name: name.into() })
}
fn begin_object(name: &str) -> String {
    format!("{:?}", Item::BeginObject { name: name.into() })
}
fn end_array() -> String {
    format!("{:?}", Item::EndArray)
}
fn end_object() -> String {
    format!("{:?}", Item::EndObject)
}

/// A payload of one field of this type, in all three formats where they have it.
#[track_caller]
fn check(of: Type, payload: &[u8], expected: &[String]) {
    for format in [Format::V1, Format::V2, Format::V6] {
        if format != Format::V6 && has(&of, &[20, 21, 22, 23, 24, 25, 26])
            || format == Format::V1 && has(&of, &[19])
        {
            continue;
        }
        let record = record(format, &one("f", of.clone()));
        let (items, end) = decode(format, &record, &[payload, &[0xaa, 0xbb]].concat());
        assert_eq!(items, expected, "{format:?} {of:?}");
        assert_eq!(end, Ok(vec![0xaa, 0xbb]), "{format:?} {of:?}");
        // One byte less is an error, of that value alone.
        for len in 0..payload.len() {
            let (items, end) = decode(format, &record, &payload[..len]);
            assert!(end.is_err(), "{format:?} {of:?} {len}: {items:?}");
            balanced(&items);
        }
    }
}

fn has(of: &Type, codes: &[u8]) -> bool {
    match of {
        Scalar(code) => codes.contains(code),
        Object(fields) => fields.iter().any(|(_, of)| has(of, codes)),
        Array(code, element, _) => codes.contains(code) || has(element, codes),
    }
}

fn balanced(items: &[String]) {
    let mut open = Vec::new();
    for item in items {
        match item.as_str() {
            "EndObject" => assert_eq!(open.pop(), Some("o")),
            "EndArray" => assert_eq!(open.pop(), Some("a")),
            item if item.starts_with("BeginObject") => open.push("o"),
            item if item.starts_with("BeginArray") => open.push("a"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{items:?}");
}

#[test]
fn every_scalar() {
    let cases: &[(u8, &[u8], Value<'_>)] = &[
        (3, &[0, 0, 0, 0], Value::Boolean(false)),
        (3, &[0, 1, 0, 0], Value::Boolean(true)),
        (4, &[0x3d, 0xd8], Value::CodeUnit(0xd83d)),
        (5, &[0xfb], Value::Int(-5)),
        (6, &[0xfb], Value::UInt(251)),
        (7, &[0xfe, 0xff], Value::Int(-2)),
        (8, &[0xfe, 0xff], Value::UInt(65534)),
        (9, &[0xfd, 0xff, 0xff, 0xff], Value::Int(-3)),
        (10, &[0xfd, 0xff, 0xff, 0xff], Value::UInt(4_294_967_293)),
        (11, &[0, 0, 0, 0, 0, 0, 0, 0x80], Value::Int(i64::MIN)),
        (12, &[0, 0, 0, 0, 0, 0, 0, 0x80], Value::UInt(1 << 63)),
        (13, &[0, 0, 0xc0, 0x3f], Value::Single(1.5)),
        (14, &[0, 0, 0, 0, 0, 0, 2, 0xc0], Value::Double(-2.25)),
        (15, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], {
            Value::Decimal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
        }),
        (16, &[0, 0x80, 0x3e, 0xd5, 0xde, 0xb1, 0x9d, 1], {
            Value::DateTime(FileTime(116_444_736_000_000_000))
        }),
        (17, &[9; 16], Value::Guid(Guid([9; 16]))),
        (18, &[b'z', 0, 0, 1, 0, 0], Value::Text(Str::Utf16(&[b'z', 0, 0, 1]))),
        (18, &[0, 0], Value::Text(Str::EMPTY)),
        (20, &[0xa7, 0xe8, 0xc8, 0xe9, 0x97, 0x07], Value::Int(-123_456_789_012)),
        (21, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Value::UInt(u64::MAX)),
        (23, &[0xc3], Value::CodeUnit(0xc3)),
        (26, &[2], Value::Boolean(true)),
        (26, &[0], Value::Boolean(false)),
    ];
    for (code, bytes, expected) in cases {
        check(Scalar(*code), bytes, &[value("f", *expected)]);
    }
    // What no one knows is no type.
    for code in (0..=255).filter(|code| !matches!(code, 1 | 3..=26)) {
        for format in [Format::V1, Format::V2, Format::V6] {
            let record = record(format, &[("a".into(), Scalar(9)), ("b".into(), Scalar(code))]);
            let metadata = Metadata::decode(version(format), &record).unwrap();
            assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType, "{format:?} {code}");
            assert_eq!((metadata.fields.len(), metadata.event_id), (0, 7));
            assert_eq!((metadata.provider, metadata.name), ("Prov".into(), "Event".into()));
        }
    }
    for (format, codes) in [
        (Format::V1, &[0, 2, 19, 22, 24, 25][..]),
        (Format::V2, &[0, 2, 22, 24, 25]),
        // A code that only the table of the runtime's events has.
        (Format::V6, &[0x41]),
    ] {
        for of in codes.iter().flat_map(|&code| [Scalar(code), array(code, Scalar(9), 1)]) {
            let metadata = record(format, &one("abc", of.clone()));
            let metadata = Metadata::decode(version(format), &metadata).unwrap();
            let kind = metadata.problem.unwrap().kind;
            assert_eq!(kind, DecodeErrorKind::UnknownType, "{format:?} {of:?}");
        }
    }
}

#[test]
fn file_times_before_and_behind_1970() {
    assert_eq!(FileTime(0).unix_100ns(), -116_444_736_000_000_000);
    assert_eq!(FileTime(116_444_736_000_000_005).unix_100ns(), 5);
}

#[test]
fn arrays() {
    let ints = [begin_array("f"), value("", Value::Int(1)), value("", Value::Int(-1)), end_array()];
    check(array(19, Scalar(7), 0), &[2, 0, 1, 0, 0xff, 0xff], &ints);
    check(array(22, Scalar(7), 2), &[1, 0, 0xff, 0xff], &ints);
    check(array(19, Scalar(9), 0), &[0, 0], &[begin_array("f"), end_array()]);
    // Code units make text, bytes make bytes.
    for (code, prefix) in [(19, &[2, 0][..]), (22, &[])] {
        let text = value("f", Value::Text("ab".into()));
        check(
            array(code, Scalar(4), 2),
            &[prefix, &[b'a', 0, b'b', 0]].concat(),
            core::slice::from_ref(&text),
        );
        check(array(code, Scalar(23), 2), &[prefix, b"ab"].concat(), &[text]);
        check(array(code, Scalar(6), 2), &[prefix, &[7, 8]].concat(), &[value("f", Value::Bytes(&[7, 8]))]);
    }
    // Arrays of arrays, and of objects.
    let nested = array(19, array(22, array(19, Scalar(6), 0), 2), 0);
    let expected = [
        begin_array("f"),
        begin_array(""),
        value("", Value::Bytes(&[5])),
        value("", Value::Bytes(&[])),
        end_array(),
        end_array(),
    ];
    check(nested, &[1, 0, 1, 0, 5, 0, 0], &expected);
    let object = Object(vec![("x".into(), Scalar(6)), ("yy".into(), Scalar(18))]);
    let expected = [
        begin_array("f"),
        begin_object(""),
        value("x", Value::UInt(3)),
        value("yy", Value::Text("".into())),
        end_object(),
        begin_object(""),
        value("x", Value::UInt(4)),
        value("yy", Value::Text("q".into())),
        end_object(),
        end_array(),
    ];
    check(array(19, object.clone(), 0), &[2, 0, 3, 0, 0, 4, b'q', 0, 0, 0], &expected);
    check(array(22, object, 2), &[3, 0, 0, 4, b'q', 0, 0, 0], &expected);
}

#[test]
fn nested_objects() {
    let inner = Object(vec![("a".into(), Scalar(6)), ("deep".into(), Object(one("b", Scalar(6))))]);
    let expected = [
        begin_object("f"),
        value("a", Value::UInt(1)),
        begin_object("deep"),
        value("b", Value::UInt(2)),
        end_object(),
        end_object(),
    ];
    check(inner, &[1, 2], &expected);
}

#[test]
fn elsewhere() {
    let fields = vec![
        ("rel".into(), array(24, Scalar(7), 0)),
        ("data".into(), array(25, Scalar(23), 0)),
        ("pairs".into(), array(25, Object(vec![("a".into(), Scalar(6)), ("b".into(), Scalar(8))]), 0)),
        ("last".into(), Scalar(6)),
    ];
    let record = record(Format::V6, &fields);
    // 13 bytes of fields, then 4, 3 and 6 of elements. `rel` ends at 4, so its elements are 9 further on.
    let payload =
        [&[9, 0, 4, 0, 17, 0, 3, 0, 20, 0, 6, 0, 0x55][..], &[1, 0, 2, 0], b"abc", &[1, 2, 0, 3, 4, 0]]
            .concat();
    let expected = [
        begin_array("rel"),
        value("", Value::Int(1)),
        value("", Value::Int(2)),
        end_array(),
        value("data", Value::Text("abc".into())),
        begin_array("pairs"),
        begin_object(""),
        value("a", Value::UInt(1)),
        value("b", Value::UInt(2)),
        end_object(),
        begin_object(""),
        value("a", Value::UInt(3)),
        value("b", Value::UInt(4)),
        end_object(),
        end_array(),
        value("last", Value::UInt(0x55)),
    ];
    let (items, end) = decode(Format::V6, &record, &payload);
    assert_eq!(items, expected);
    assert_eq!(end, Ok(payload[13..].to_vec()));
    for len in 0..payload.len() {
        let (items, end) = decode(Format::V6, &record, &payload[..len]);
        assert!(end.is_err());
        balanced(&items);
    }
    // A length that is no multiple, a place outside.
    let mut odd = payload.clone();
    odd[2] = 3;
    assert_eq!(decode(Format::V6, &record, &odd).1, Err((DecodeErrorKind::UnexpectedEnd, 15)));
    odd[2] = 4;
    odd[4] = 24;
    let (items, end) = decode(Format::V6, &record, &odd);
    assert_eq!(end, Err((DecodeErrorKind::UnexpectedEnd, 4)));
    assert_eq!(items, expected[..4]);
    odd[0] = 0xff;
    odd[1] = 0xff;
    assert_eq!(decode(Format::V6, &record, &odd).1, Err((DecodeErrorKind::UnexpectedEnd, 0)));
    // Half a code unit.
    let units = self::record(Format::V6, &one("f", array(25, Scalar(4), 0)));
    assert_eq!(decode(Format::V6, &units, &[4, 0, 2, 0, b'a', 0]).0, [value("f", Value::Text("a".into()))]);
    assert_eq!(
        decode(Format::V6, &units, &[4, 0, 1, 0, b'a', 0]).1,
        Err((DecodeErrorKind::UnexpectedEnd, 0))
    );
    // What has no fixed size cannot lie elsewhere.
    for element in [
        Scalar(18),
        Scalar(20),
        Scalar(21),
        array(19, Scalar(6), 0),
        array(24, Scalar(6), 0),
        Object(vec![("a".into(), Scalar(6)), ("b".into(), Object(one("c", Scalar(18))))]),
        array(22, Scalar(18), 3),
    ] {
        for code in [24, 25] {
            let record = self::record(Format::V6, &one("f", array(code, element.clone(), 0)));
            let metadata = Metadata::decode(Version::V6, &record).unwrap();
            assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType, "{element:?}");
            assert!(metadata.fields.is_empty());
        }
    }
}

/// Before version 6 was final, 23 was a string; the providers `Universal.*` still mean that, except in arrays.
#[test]
fn universal() {
    let fields = [("s".to_owned(), Scalar(23)), ("t".to_owned(), array(19, Scalar(23), 0))];
    let record = record_of(Format::V6, "Universal.System", &fields);
    let (items, end) = decode(Format::V6, &record, &[3, 0, b'a', 0xc3, 0xa9, 1, 0, b'b']);
    assert_eq!(items, [value("s", Value::Text("aé".into())), value("t", Value::Text("b".into()))]);
    assert_eq!(end, Ok(vec![]));
    assert_eq!(decode(Format::V6, &record, &[3, 0, b'a', b'b']).1, Err((DecodeErrorKind::UnexpectedEnd, 2)));
    // On the wire it is called so all the same.
    let metadata = Metadata::decode(Version::V6, &record).unwrap();
    let FieldType::Scalar(scalar) = metadata.fields.iter().next().unwrap().field_type else { panic!() };
    assert_eq!((scalar, scalar.code()), (ipc_proto::nettrace::Scalar::Utf8String, 23));
}

/// Texts are the same, before or behind one another, and found in a map, whichever way they are written.
#[test]
fn texts_compare() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    // U+FF5E is one unit, above the two of U+1F600.
    let texts = ["", "a", "ab", "b", "\u{1f600}", "\u{ff5e}"];
    let mut places = std::collections::HashMap::new();
    for (i, a) in texts.iter().enumerate() {
        assert_eq!(places.insert(Str::from(*a), i), None);
        for (j, b) in texts.iter().enumerate() {
            for (one, other) in [(Str::from(*a), Str::Utf16(&wide(b))), (Str::Utf16(&wide(a)), Str::from(*b))]
            {
                assert_eq!(one == other, i == j, "{a} {b}");
                assert_eq!(
                    (one.cmp(&other), one.partial_cmp(&other)),
                    (i.cmp(&j), Some(i.cmp(&j))),
                    "{a} {b}"
                );
            }
        }
    }
    for (i, text) in texts.iter().enumerate() {
        assert_eq!(places.get(&Str::Utf16(&wide(text))), Some(&i));
    }
    // Two texts behind one another are not two others.
    let hash = |texts: [&str; 2]| {
        let mut hasher = std::hash::DefaultHasher::new();
        texts.map(Str::from).hash(&mut hasher);
        hasher.finish()
    };
    assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
}

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

fn depth_of(of: &Type) -> usize {
    match of {
        Scalar(_) => 0,
        Object(fields) => 1 + fields.iter().map(|(_, of)| depth_of(of)).max().unwrap_or(0),
        Array(_, element, _) => 1 + depth_of(element),
    }
}

/// Arrays count, too, where nothing else does.
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

/// However much a few bytes promise, little is done.
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
        // Where the elements lie elsewhere: 4 bytes at 0. Else, thousands.
        let payload = if has(&fields[0].1, &[25]) { [0, 0, 4, 0] } else { [0xff; 4] }.repeat(16);
        let mut values = metadata.fields.values(&payload);
        let items: Vec<String> = values.by_ref().map(|item| format!("{item:?}")).collect();
        balanced(&items);
        assert!(items.len() <= 2 * (256 + 8 * payload.len()), "{}", items.len());
        assert_eq!(values.finish().map(<[u8]>::len).unwrap_err().kind, DecodeErrorKind::TooManyItems);
        // A long description costs more.
        assert!(record.len() < 10_000 || items.len() < 20 || depth_of(&fields[0].1) == 2, "{}", items.len());
    }
    // As many as there can honestly be.
    let record = record(Format::V6, &one("f", array(19, Object(one("b", Scalar(6))), 0)));
    let payload = [&[0xff, 0xff][..], &[1; 65535]].concat();
    let (items, end) = decode(Format::V6, &record, &payload);
    assert_eq!((items.len(), end), (2 + 3 * 65535, Ok(vec![])));
}

/// Counts and sizes that promise more than there is.
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
                    // Behind the level, and behind the count of V1 fields.
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
    assert_eq!(names(&all.concat()), (vec!["v2".into()], Some(11), None));
    assert_eq!(names(&all[..3].concat()), (vec!["v1".into()], Some(11), None));
    assert_eq!(names(&[&head[..], &tag(1, &[])].concat()), (vec!["v1".into()], None, None));
    // A description that is none drops the fields, and nothing else.
    let bad = [&head[..], &tag(2, &describe(Format::V2, &one("x", Scalar(200)))), &tag(1, &[2])].concat();
    assert_eq!(names(&bad), (vec![], Some(2), Some(DecodeErrorKind::UnknownType)));
    // A tag that is cut off.
    let cut = all.concat();
    assert_eq!(
        names(&cut[..cut.len() - 1]),
        (vec!["v1".into()], Some(11), Some(DecodeErrorKind::UnexpectedEnd))
    );
    // A record may end behind its level.
    let end = head.len() - describe(Format::V1, &one("v1", Scalar(9))).len();
    assert_eq!(names(&head[..end]), (vec![], None, None));
    assert!(Metadata::decode(Version::V4, &head[..end - 1]).is_err());
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
    // Behind a kind that no one knows nothing can be found; what came before stands.
    let bytes = row(&one("x", Scalar(9)), &[1, 7, 2, 9, 9]);
    let metadata = Metadata::decode(Version::V6, &bytes).unwrap();
    assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType);
    assert_eq!((metadata.opcode, metadata.level, metadata.fields.len()), (Some(7), 0, 1));
    // Fields that are not understood do not hide it.
    let bytes = row(&[("x".into(), Scalar(99)), ("y".into(), Scalar(9))], &area);
    let metadata = Metadata::decode(Version::V6, &bytes).unwrap();
    assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType);
    assert_eq!((metadata.opcode, metadata.version, metadata.fields.len()), (Some(7), 2, 0));
    // Cut anywhere, nothing panics.
    let bytes = row(&one("x", Scalar(9)), &area);
    for len in 0..bytes.len() {
        if let Ok(metadata) = Metadata::decode(Version::V6, &bytes[..len]) {
            metadata.attributes.iter().for_each(drop);
        }
    }
}

#[test]
fn strings_with_a_nul_leave_their_tails() {
    let record = record(Format::V1, &[("a".into(), Scalar(18)), ("b".into(), Scalar(18))]);
    let payload = [utf16("x\0y"), utf16("z")].concat();
    let (items, end) = decode(Format::V1, &record, &payload);
    assert_eq!(items, [value("a", Value::Text("x".into())), value("b", Value::Text("y".into()))]);
    assert_eq!(end, Ok(utf16("z")));
    // A lone surrogate stays what it is.
    let (items, _) = decode(Format::V1, &record, &[0, 0xd8, 0, 0]);
    assert_eq!(items, [value("a", Value::Text(Str::Utf16(&[0, 0xd8])))]);
    let end = decode(Format::V1, &record, &[0, 0xd8, 0, 0, 7]).1;
    assert_eq!(end, Err((DecodeErrorKind::Unterminated, 4)));
}

#[test]
fn file_times() {
    for (time, text) in [
        (0, "1601-01-01T00:00:00.0000000Z"),
        (9_999_999, "1601-01-01T00:00:00.9999999Z"),
        (116_444_736_000_000_000, "1970-01-01T00:00:00.0000000Z"),
        (125_963_423_990_000_000, "2000-02-29T23:59:59.0000000Z"),
        (125_963_424_000_000_000, "2000-03-01T00:00:00.0000000Z"),
        (94_354_848_000_000_000, "1900-01-01T00:00:00.0000000Z"),
        (94_405_824_000_000_000, "1900-03-01T00:00:00.0000000Z"),
        (133_484_543_990_000_000, "2023-12-30T23:59:59.0000000Z"),
        (133_801_631_990_000_000, "2024-12-31T23:59:59.0000000Z"),
        (133_801_632_000_000_000, "2025-01-01T00:00:00.0000000Z"),
        (126_227_808_000_000_000, "2001-01-01T00:00:00.0000000Z"),
        (252_455_616_000_000_000, "2401-01-01T00:00:00.0000000Z"),
        (2_650_467_743_999_999_999, "9999-12-31T23:59:59.9999999Z"),
        (u64::MAX, "60056-05-28T05:36:10.9551615Z"),
    ] {
        assert_eq!(FileTime(time).to_string(), text, "{time}");
    }
}

/// Writes a value of a type, and what should come of it.
struct Maker {
    random: u64,
    payload: Vec<u8>,
    /// Elements that lie elsewhere: where their field is, whether its place is relative, and their bytes.
    elsewhere: Vec<(usize, bool, Vec<u8>)>,
    items: Vec<String>,
}

impl Maker {
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn text(&mut self) -> String {
        let len = self.next() % 20;
        (0..len).map(|_| ['a', 'é', '水', '🦀', 'Z', '\u{100}'][self.next() as usize % 6]).collect()
    }

    fn scalar(&mut self, name: &str, code: u8) {
        let n = self.next();
        let bytes = n.to_le_bytes();
        let (bytes, of): (Vec<u8>, Value<'_>) = match code {
            3 => (bytes[..4].into(), Value::Boolean(n as u32 != 0)),
            4 => (bytes[..2].into(), Value::CodeUnit(n as u16)),
            5 => (bytes[..1].into(), Value::Int((n as i8).into())),
            6 => (bytes[..1].into(), Value::UInt((n as u8).into())),
            7 => (bytes[..2].into(), Value::Int((n as i16).into())),
            8 => (bytes[..2].into(), Value::UInt((n as u16).into())),
            9 => (bytes[..4].into(), Value::Int((n as i32).into())),
            10 => (bytes[..4].into(), Value::UInt((n as u32).into())),
            11 => (bytes.into(), Value::Int(n as i64)),
            12 => (bytes.into(), Value::UInt(n)),
            13 => (bytes[..4].into(), Value::Single(f32::from_bits(n as u32))),
            14 => (bytes.into(), Value::Double(f64::from_bits(n))),
            16 => (bytes.into(), Value::DateTime(FileTime(n))),
            17 => ([bytes, bytes].concat(), Value::Guid(Guid([bytes, bytes].concat().try_into().unwrap()))),
            20 => {
                let n = (n >> (n % 64)) as i64;
                (varint((n << 1 ^ n >> 63) as u64), Value::Int(n))
            }
            21 => (varint(n >> (n % 64)), Value::UInt(n >> (n % 64))),
            23 => (bytes[..1].into(), Value::CodeUnit((n as u8).into())),
            26 => (bytes[..1].into(), Value::Boolean(n as u8 != 0)),
            18 => {
                let text = self.text();
                self.payload.extend(utf16(&text));
                return self.items.push(value(name, Value::Text(text.as_str().into())));
            }
            _ => unreachable!(),
        };
        self.payload.extend(bytes);
        self.items.push(value(name, of));
    }

    fn make(&mut self, name: &str, of: &Type) {
        match of {
            Scalar(code) => self.scalar(name, *code),
            Object(fields) => {
                self.items.push(begin_object(name));
                fields.iter().for_each(|(name, of)| self.make(name, of));
                self.items.push(end_object());
            }
            Array(code, element, count) => {
                let count = if *code == 22 { *count } else { (self.next() % 4) as u16 };
                let inline = core::mem::take(&mut self.payload);
                let items = self.items.len();
                self.items.push(begin_array(name));
                (0..count).for_each(|_| self.make("", element));
                self.items.push(end_array());
                let bytes = core::mem::replace(&mut self.payload, inline);
                let run = match **element {
                    Scalar(4) => Some(Value::Text(Str::Utf16(&bytes))),
                    Scalar(23) => Some(Value::Text(Str::Utf8(&bytes))),
                    Scalar(6) => Some(Value::Bytes(&bytes)),
                    _ => None,
                };
                if let Some(run) = run {
                    self.items.truncate(items);
                    self.items.push(value(name, run));
                }
                match code {
                    19 => self.payload.extend(count.to_le_bytes()),
                    22 => {}
                    _ => {
                        self.elsewhere.push((self.payload.len(), *code == 24, bytes));
                        return self.payload.extend([0; 4]);
                    }
                }
                self.payload.extend(bytes);
            }
        }
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-zé水]{0,9}"
}

/// Types of a format; fixed size only, for elements that lie elsewhere.
fn types(format: Format, fixed_size: bool, top: bool) -> BoxedStrategy<Type> {
    let mut codes = vec![3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17];
    if !fixed_size {
        codes.push(18);
    }
    if format == Format::V6 {
        codes.extend([23, 26]);
        if !fixed_size {
            codes.extend([20, 21]);
        }
    }
    let leaf = prop::sample::select(codes).prop_map(Scalar);
    let nested = leaf.prop_recursive(4, 24, 4, move |inner| {
        let object = prop::collection::vec((name(), inner.clone()), 0..4).prop_map(Object).boxed();
        let counted = inner.clone().prop_map(|of| array(19, of, 0)).boxed();
        let fixed = (inner, 0u16..4).prop_map(|(of, count)| array(22, of, count)).boxed();
        match (format, fixed_size) {
            (Format::V1, _) => object,
            (Format::V2, _) => prop_oneof![object, counted].boxed(),
            (Format::V6, true) => prop_oneof![object, fixed].boxed(),
            (Format::V6, false) => prop_oneof![object, counted, fixed].boxed(),
        }
    });
    if format == Format::V6 && top {
        let elsewhere = (24u8..=25, types(format, true, false)).prop_map(|(code, of)| array(code, of, 0));
        prop_oneof![4 => nested, 1 => elsewhere].boxed()
    } else {
        nested.boxed()
    }
}

fn descriptions() -> impl Strategy<Value = (Format, Vec<(String, Type)>)> {
    prop_oneof![Just(Format::V1), Just(Format::V2), Just(Format::V6)].prop_flat_map(|format| {
        (Just(format), prop::collection::vec((name(), types(format, false, true)), 0..6))
    })
}

/// Whether the elements, each by itself, take no bytes.
fn no_bytes(of: &Type) -> bool {
    match of {
        Scalar(_) => false,
        Object(fields) => fields.iter().all(|(_, of)| no_bytes(of)),
        Array(code, element, count) => *code == 22 && (*count == 0 || no_bytes(element)),
    }
}
fn elements_without_bytes(of: &Type) -> bool {
    match of {
        Scalar(_) => false,
        Object(fields) => fields.iter().any(|(_, of)| elements_without_bytes(of)),
        Array(code, element, _) => *code >= 24 && no_bytes(element) || elements_without_bytes(element),
    }
}

proptest! {
    /// What is described and written comes out; cut anywhere, a prefix of it does.
    #[test]
    fn round_trip((format, fields) in descriptions(), seed in 1u64..) {
        // How many elements without bytes lie elsewhere cannot be told.
        prop_assume!(!fields.iter().any(|(_, of)| elements_without_bytes(of)));
        let record = record(format, &fields);
        let mut maker = Maker { random: seed, payload: Vec::new(), elsewhere: Vec::new(), items: Vec::new() };
        fields.iter().for_each(|(name, of)| maker.make(name, of));
        let Maker { mut payload, elsewhere, items, .. } = maker;
        let inline = payload.len();
        for (field, relative, bytes) in elsewhere {
            let place = if relative { payload.len() - field - 4 } else { payload.len() };
            payload[field..field + 2].copy_from_slice(&(place as u16).to_le_bytes());
            payload[field + 2..field + 4].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
            payload.extend(bytes);
        }
        let (found, end) = decode(format, &record, &payload);
        prop_assert_eq!(&found, &items);
        prop_assert_eq!(end, Ok(payload[inline..].to_vec()));
        // The description says what was described.
        let metadata = Metadata::decode(version(format), &record).unwrap();
        for (field, (name, of)) in metadata.fields.iter().zip(&fields) {
            prop_assert_eq!(field.name, name.as_str());
            same(field.field_type, of);
        }
        for len in 0..payload.len() {
            let (found, end) = decode(format, &record, &payload[..len]);
            balanced(&found);
            // Of what was open when the bytes ended, only the ends come.
            let same = found.iter().zip(&items).take_while(|(a, b)| a == b).count();
            prop_assert!(found[same..].iter().all(|item| item == "EndObject" || item == "EndArray"));
            prop_assert!(end.is_err() || len >= inline);
        }
    }

    /// No bytes whatever make it panic or run for long.
    #[test]
    fn anything((format, fields) in descriptions(), noise in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
                payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut record = record(format, &fields);
        for (at, byte) in noise {
            let len = record.len();
            record[at % len] = byte;
        }
        if let Ok(metadata) = Metadata::decode(version(format), &record) {
            let mut values = metadata.fields.values(&payload);
            let items: Vec<String> = values.by_ref().map(|item| format!("{item:?}")).collect();
            balanced(&items);
            prop_assert!(items.len() <= 2 * (256 + 8 * payload.len()));
            prop_assert_eq!(values.next(), None);
            let failed = values.error().is_some();
            prop_assert_eq!(values.finish().is_err(), failed);
        }
    }
}

fn same(found: FieldType<'_>, of: &Type) {
    match (found, of) {
        (FieldType::Scalar(scalar), Scalar(code)) => assert_eq!(scalar.code(), *code),
        (FieldType::Object(found), Object(fields)) => {
            assert_eq!(found.len(), fields.len());
            for (field, (name, of)) in found.iter().zip(fields) {
                assert_eq!(field.name, name.as_str());
                same(field.field_type, of);
            }
        }
        (FieldType::Array { kind, element }, Array(code, of, count)) => {
            use ipc_proto::nettrace::ArrayKind::{Counted, DataLoc, FixedLength, RelLoc};
            match code {
                19 => assert_eq!(kind, Counted),
                22 => assert_eq!(kind, FixedLength(*count)),
                24 => assert_eq!(kind, RelLoc),
                _ => assert_eq!(kind, DataLoc),
            }
            same(element.field_type(), of);
        }
        other => panic!("{other:?}"),
    }
}
