//! Values and texts of payloads made by hand.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects; random numbers may lose bits"
)]

mod fields;

use core::hash::{Hash, Hasher};

use fields::*;
use ipc_proto::Guid;
use nettrace::DecodeErrorKind;
use nettrace::{FieldType, FileTime, Metadata, Str, Value, Version};

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
    // Unknown codes are errors.
    for code in (0..=255).filter(|code| !matches!(code, 1 | 3..=26)) {
        for format in [Format::V1, Format::V2, Format::V6] {
            let record = record(format, &[("a".into(), Scalar(9)), ("b".into(), Scalar(code))]);
            let metadata = Metadata::decode(version(format), &record).unwrap();
            assert_eq!(metadata.problem.unwrap().kind, DecodeErrorKind::UnknownType, "{format:?} {code}");
            assert_eq!((metadata.fields.len(), metadata.event_id), (1, 7));
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
fn arrays() {
    let ints = [begin_array("f"), value("", Value::Int(1)), value("", Value::Int(-1)), end_array()];
    check(array(19, Scalar(7), 0), &[2, 0, 1, 0, 0xff, 0xff], &ints);
    check(array(22, Scalar(7), 2), &[1, 0, 0xff, 0xff], &ints);
    check(array(19, Scalar(9), 0), &[0, 0], &[begin_array("f"), end_array()]);
    // An array of code units is a text, an array of bytes is one value.
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
    // 13 bytes of fields, then 4, 3 and 6 bytes of elements. The field `rel` ends at offset 4, so its elements at
    // offset 13 are 9 bytes after it.
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
    assert_eq!(end, Ok(Vec::new()), "the bytes that fields refer to are no rest");
    for len in 0..payload.len() {
        let (items, end) = decode(Format::V6, &record, &payload[..len]);
        assert!(end.is_err());
        balanced(&items);
    }
    // A length that is not a multiple of the element's, and an offset outside of the payload.
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
    // The last code unit has one byte only.
    let units = self::record(Format::V6, &one("f", array(25, Scalar(4), 0)));
    assert_eq!(decode(Format::V6, &units, &[4, 0, 2, 0, b'a', 0]).0, [value("f", Value::Text("a".into()))]);
    assert_eq!(
        decode(Format::V6, &units, &[4, 0, 1, 0, b'a', 0]).1,
        Err((DecodeErrorKind::UnexpectedEnd, 0))
    );
    // Elements elsewhere must have a fixed size.
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

/// Before version 6 was final, code 23 was a string. In the providers `Universal.*` it still is, except in arrays.
#[test]
fn universal() {
    let fields = [("s".to_owned(), Scalar(23)), ("t".to_owned(), array(19, Scalar(23), 0))];
    let record = record_of(Format::V6, "Universal.System", &fields);
    let (items, end) = decode(Format::V6, &record, &[3, 0, b'a', 0xc3, 0xa9, 1, 0, b'b']);
    assert_eq!(items, [value("s", Value::Text("aé".into())), value("t", Value::Text("b".into()))]);
    assert_eq!(end, Ok(vec![]));
    assert_eq!(decode(Format::V6, &record, &[3, 0, b'a', b'b']).1, Err((DecodeErrorKind::UnexpectedEnd, 2)));
    // `Utf8String` and `Utf8CodeUnit` have the same code on the wire.
    let metadata = Metadata::decode(Version::V6, &record).unwrap();
    let FieldType::Scalar(scalar) = metadata.fields.iter().next().unwrap().field_type else { panic!() };
    assert_eq!((scalar, scalar.code()), (nettrace::Scalar::Utf8String, 23));
}

/// Texts compare and hash by their characters, in UTF-16 and in UTF-8.
#[test]
fn texts_compare() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    // U+FF5E is one unit, greater than the two of U+1F600.
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
    // Invalid texts compare and hash by the same rule.
    let texts = [
        Str::Utf8(b"GC"),
        Str::Utf16(b"G\0C\0"),
        Str::Utf16(b"G\0C\0!"),
        Str::Utf16(b"G\0"),
        Str::Utf16(b"G\0C\x01"),
        Str::Utf16(b"G\0C\0\0\0"),
        Str::Utf8(b"GC\0"),
        Str::Utf8(b"GC\xff"),
        Str::Utf8(b"GC\xfe"),
        Str::Utf16(b"G\0C\0\xfd\xff"),
        Str::Utf16(b"G\0C\0\xff\0"),
        Str::Utf8("GC\u{ff}".as_bytes()),
        Str::Utf16(b"G\0C\0\x00\xd8"),
        Str::Utf16(b"!"),
        Str::EMPTY,
    ];
    for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
        assert_eq!(a == b, a.units().eq(b.units()), "{a:?} {b:?}");
    }
    // Two texts in sequence hash differently from two others with the same characters.
    let hash = |texts: [&str; 2]| {
        let mut hasher = std::hash::DefaultHasher::new();
        texts.map(Str::from).hash(&mut hasher);
        hasher.finish()
    };
    assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
}

#[test]
fn strings_with_a_nul_leave_their_tails() {
    let record = record(Format::V1, &[("a".into(), Scalar(18)), ("b".into(), Scalar(18))]);
    let payload = [utf16("x\0y"), utf16("z")].concat();
    let (items, end) = decode(Format::V1, &record, &payload);
    assert_eq!(items, [value("a", Value::Text("x".into())), value("b", Value::Text("y".into()))]);
    assert_eq!(end, Ok(utf16("z")));
    // A lone surrogate is preserved.
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

#[test]
fn conversions() {
    let wide = Value::Text(Str::Utf16(b"o\0k\0"));
    for (value, unsigned, signed, float) in [
        (Value::Int(-1), None, Some(-1), Some(-1.0)),
        (Value::Int(7), Some(7), Some(7), Some(7.0)),
        (Value::UInt(1 << 63), Some(1 << 63), None, Some(9_223_372_036_854_775_808.0)),
        (
            Value::UInt(i64::MAX as u64),
            Some(i64::MAX as u64),
            Some(i64::MAX),
            Some(9_223_372_036_854_775_808.0),
        ),
        (Value::Single(1.5), None, None, Some(1.5)),
        (Value::Double(-0.25), None, None, Some(-0.25)),
        (Value::Boolean(true), None, None, None),
        (Value::CodeUnit(65), None, None, None),
        (wide, None, None, None),
    ] {
        assert_eq!((value.as_u64(), value.as_i64(), value.as_f64()), (unsigned, signed, float), "{value:?}");
    }
    assert_eq!(wide.as_str().unwrap(), "ok");
    assert_eq!((wide.as_bytes(), wide.as_bool(), wide.as_guid(), wide.as_time()), (None, None, None, None));
    assert_eq!(Value::Boolean(true).as_bool(), Some(true));
    assert_eq!(Value::Bytes(&[1]).as_bytes(), Some(&[1][..]));
    assert_eq!(Value::Guid(Guid::NIL).as_guid(), Some(Guid::NIL));
    assert_eq!(Value::DateTime(FileTime(9)).as_time(), Some(FileTime(9)));
    assert_eq!(Value::UInt(1).as_str(), None);
}

#[test]
fn fields_by_path() {
    let byte = |name: &str| (name.to_owned(), Scalar(6));
    let point = Object(vec![byte("x"), byte("y.z"), ("in".to_owned(), Object(vec![byte("x")]))]);
    let fields = vec![
        ("list".to_owned(), array(19, Object(vec![byte("x")]), 0)),
        ("p".to_owned(), point.clone()),
        ("p".to_owned(), point),
        byte("x"),
        byte("水.x"),
        byte("x"),
    ];
    let payload = [&[2, 0, 91, 92][..], &[1, 2, 3], &[4, 5, 6], &[7, 8, 9]].concat();
    for format in [Format::V2, Format::V6] {
        let record = record(format, &fields);
        let metadata =
            Metadata::decode(if format == Format::V6 { Version::V6 } else { Version::V4 }, &record);
        let fields = metadata.unwrap().fields;
        let field = |path: &str| fields.values(&payload).field(path).and_then(|value| value.as_u64());
        for (path, expected) in [
            ("x", Some(7)),
            ("p.x", Some(1)),
            ("p.y.z", Some(2)),
            ("p.in.x", Some(3)),
            ("水.x", Some(8)),
            // Objects, arrays and their elements are not values.
            ("p", None),
            ("list", None),
            ("list.x", None),
            ("p.in", None),
            ("p.in.x.x", None),
            ("p.y", None),
            ("", None),
            (".x", None),
            ("p..x", None),
            ("X", None),
        ] {
            assert_eq!(field(path), expected, "{path} {format:?}");
        }
        // The payload ends before the second `p`.
        let cut = |path| fields.values(&payload[..7]).field(path).is_some();
        assert_eq!((cut("p.in.x"), cut("x")), (true, false));
    }
    // An object without a name is the whole payload.
    let record =
        record(Format::V1, &one("", Object(vec![byte("x"), ("p".to_owned(), Object(vec![byte("y")]))])));
    let fields = Metadata::decode(Version::V4, &record).unwrap().fields;
    assert_eq!(fields.values(&[1, 2]).field("p.y"), Some(Value::UInt(2)));
    assert_eq!(fields.values(&[1, 2]).field("x"), Some(Value::UInt(1)));
}
