//! Payloads have the bytes of the format, and values that the format cannot express are errors.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]

mod steps;

use ipc_proto::Guid;
use nettrace::{
    ArrayKind, Element, FieldType, Fields, FileTime, Item, Metadata, PayloadWriter, Record, Scalar, Str,
    Trace, TraceWriter, Value, Version, WriteError,
};
use steps::picked;

/// Writes a payload of at most 1 KiB.
#[track_caller]
fn written(write: impl FnOnce(PayloadWriter<'_>) -> PayloadWriter<'_>) -> Vec<u8> {
    write(PayloadWriter::new(&mut [0xa5; 1024])).finish().unwrap().to_vec()
}

#[test]
fn each_value_has_the_bytes_of_its_type() {
    let guid = Guid(*b"0123456789abcdef");
    assert_eq!(written(|w| w.boolean32(true).boolean8(true)), [1, 0, 0, 0, 1]);
    assert_eq!(written(|w| w.utf16_code_unit(0xd812).utf8_code_unit(0xff)), [0x12, 0xd8, 0xff]);
    assert_eq!(written(|w| w.sbyte(-2).byte(254)), [254, 254]);
    assert_eq!(written(|w| w.int16(-2).uint16(2)), [254, 255, 2, 0]);
    assert_eq!(written(|w| w.int32(-2).uint32(2)), [254, 255, 255, 255, 2, 0, 0, 0]);
    let eight = [[254, 255, 255, 255, 255, 255, 255, 255], [2, 0, 0, 0, 0, 0, 0, 0]];
    assert_eq!(written(|w| w.int64(-2).uint64(2)), eight.concat());
    assert_eq!(written(|w| w.var_int(-2).var_uint(128)), [3, 0x80, 1]);
    assert_eq!(written(|w| w.single(1.0).double(-0.0)), [0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(written(|w| w.decimal([7; 16]).guid(guid)), [[7; 16], guid.0].concat());
    assert_eq!(written(|w| w.date_time(FileTime(2))), eight[1]);
    assert_eq!(written(|w| w.utf16_string("a").utf16_string("")), [b'a', 0, 0, 0, 0, 0]);
    assert_eq!(written(|w| w.utf16_string("é\u{1f600}")), [0xe9, 0, 0x3d, 0xd8, 0, 0xde, 0, 0]);
    // A lone surrogate, and the byte of half a unit.
    assert_eq!(written(|w| w.utf16_string(Str::Utf16(&[0, 0xd8, 1]))), [0, 0xd8, 0, 0]);
    assert_eq!(written(|w| w.utf8_string("é\0").utf8_string("")), [3, 0, 0xc3, 0xa9, 0, 0, 0]);
    assert_eq!(
        written(|w| w.utf8_string(Str::Utf16(&[0, 0xd8, 0xe9, 0]))),
        [5, 0, 0xef, 0xbf, 0xbd, 0xc3, 0xa9]
    );
    assert_eq!(written(|w| w.byte_array(&[7, 8]).byte_array(&[])), [2, 0, 7, 8, 0, 0]);
    assert_eq!(
        written(|w| w.array([1, 2], PayloadWriter::uint16).array([], PayloadWriter::byte)),
        [2, 0, 1, 0, 2, 0, 0, 0]
    );
    // An array of arrays, and one of objects.
    let nested = written(|w| {
        w.array([1, 2], |w, len| w.array(0..len, PayloadWriter::byte))
            .array(["x"], |w, name| w.utf16_string(name).byte(9))
            .byte(8)
    });
    assert_eq!(nested, [2, 0, 1, 0, 0, 2, 0, 0, 1, 1, 0, b'x', 0, 0, 0, 9, 8]);
}

#[test]
fn a_value_without_an_encoding_is_an_error() {
    let mut buf = vec![0; 200_000];
    let mut finish = |write: &dyn Fn(PayloadWriter<'_>) -> PayloadWriter<'_>| {
        let finished = write(PayloadWriter::new(&mut buf)).finish().map(<[u8]>::len);
        // An error that a longer buffer would not avoid is the same with an empty buffer.
        let short = write(PayloadWriter::new(&mut [])).finish().map(<[u8]>::len);
        assert!(short == finished || matches!(short, Err(WriteError::BufferTooSmall { .. })));
        assert!(short == finished || finished.is_ok());
        finished
    };
    for text in [Str::from("a\0b"), Str::from("é\0"), Str::from("\0"), Str::Utf16(&[b'a', 0, 0, 0])] {
        assert_eq!(finish(&|w| w.utf16_string(text).byte(1)), Err(WriteError::EmbeddedNul), "{text:?}");
    }
    let long = "x".repeat(65_536);
    assert_eq!(finish(&|w| w.utf8_string(&long[1..])), Ok(65_537));
    assert_eq!(finish(&|w| w.utf8_string(&*long)), Err(WriteError::TooLong { len: 65_536 }));
    assert_eq!(finish(&|w| w.byte_array(&long.as_bytes()[1..])), Ok(65_537));
    let count = 65_536;
    assert_eq!(finish(&|w| w.byte_array(long.as_bytes())), Err(WriteError::TooManyElements { count }));
    assert_eq!(finish(&|w| w.array(1..count, |w, _| w.byte(1))), Ok(65_537));
    assert_eq!(finish(&|w| w.array(0..count, |w, _| w)), Err(WriteError::TooManyElements { count }));
    // Of two errors the first one is reported.
    let first = finish(&|w| w.utf16_string("\0").utf8_string(&*long));
    assert_eq!(first, Err(WriteError::EmbeddedNul));
    for error in
        [WriteError::EmbeddedNul, WriteError::TooManyElements { count }, WriteError::TooLong { len: count }]
    {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn needed_is_exact() {
    let write = |w: PayloadWriter<'_>| -> Result<usize, WriteError> {
        let w = w.uint32(1).utf16_string("text").utf16_string("tëxt").utf8_string("tëxt");
        w.array([1.0, 2.0], PayloadWriter::double).byte_array(&[1, 2, 3]).finish().map(<[u8]>::len)
    };
    let mut buf = [0; 64];
    let needed = write(PayloadWriter::new(&mut buf)).unwrap();
    for len in 0..needed {
        let mut buf = [0xa5; 64];
        let error = write(PayloadWriter::new(buf.get_mut(..len).unwrap()));
        assert_eq!(error, Err(WriteError::BufferTooSmall { needed }));
    }
}

/// UTF-8 is a type of its own for the providers `Universal.*` only. For other providers it is an array of code units,
/// and before V6 an array of bytes.
#[test]
fn texts_in_utf8_are_described_for_every_provider() {
    let mut space = [0; 64];
    let types = [("a", Scalar::Byte), ("s", Scalar::Utf8String), ("b", Scalar::Byte)];
    let fields = Fields::build(&types, &mut space).unwrap();
    let payload = written(|w| w.byte(1).utf8_string("é").byte(2));
    for version in [Version::V4, Version::V6] {
        for provider in ["My", "Universal.My"] {
            let mut metadata = Metadata::new(1, provider, 7, "Text");
            metadata.fields = fields;
            let mut buf = [0; 4096];
            let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).unwrap();
            assert!(writer.describe(&metadata).unwrap().is_empty());
            let stream = writer.finish();
            let (found, _) =
                picked(&stream, |step| if let Record::Metadata(record) = step { Some(record) } else { None });
            let found = Metadata::decode(version, found.first().unwrap().payload).unwrap();
            assert_eq!(found.problem, None);
            let values = found.fields.values(&payload);
            let values: Vec<_> = values
                .map(|item| if let Item::Value { value, .. } = item { Some(value) } else { None })
                .collect();
            let text =
                if version == Version::V4 { Value::Bytes("é".as_bytes()) } else { Value::Text("é".into()) };
            assert_eq!(
                values,
                [Some(Value::UInt(1)), Some(text), Some(Value::UInt(2))],
                "{version}, {provider}"
            );
        }
    }
    assert_eq!(fields.values(&payload).field("s"), Some(Value::Text("é".into())));
    // Both types have the same code, so one description cannot have both.
    let both = [("s", Scalar::Utf8String), ("u", Scalar::Utf8CodeUnit)];
    assert_eq!(Fields::build(&both, &mut [0; 64]), Err(WriteError::Version(Version::V6)));
}

#[test]
fn descriptions_that_cannot_be_built() {
    let mut buf = vec![0; 100_000];
    let needed = Fields::build(&[("name", Scalar::Byte)], &mut []).unwrap_err();
    assert_eq!(needed, WriteError::BufferTooSmall { needed: 8 });
    assert!(Fields::build(&[("name", Scalar::Byte)], &mut [0; 8]).is_ok());
    // A size of 16 bits, for the length of the name (3 bytes), the name and the type.
    let long = "n".repeat(65_532);
    assert!(Fields::build(&[(&long[1..], Scalar::Byte)], &mut buf).is_ok());
    let too_long = Fields::build(&[(&*long, Scalar::Byte)], &mut buf);
    assert_eq!(too_long, Err(WriteError::TooLong { len: 65_536 }));
    // Elements elsewhere in the payload must be of fixed size, and an array that an earlier field counts has no code.
    let FieldType::Array { element, .. } = FieldType::array(Scalar::Utf16String) else { unreachable!() };
    let refused = Err(WriteError::Version(Version::V6));
    let mut build = |kind, element: Element<'_>| {
        Fields::build(&[("a", FieldType::Array { kind, element })], &mut buf).map(|fields| fields.len())
    };
    assert_eq!(build(ArrayKind::RelLoc, element), refused);
    assert_eq!(build(ArrayKind::CountedBefore, element), refused);
    assert_eq!(build(ArrayKind::FixedLength(2), element), Ok(1));
}

/// A description that was read can be a part of one that is built.
#[test]
fn objects_and_arrays_of_each_type() {
    let (mut inner, mut outer) = ([0; 64], [0; 128]);
    let inner = Fields::build(&[("x", Scalar::Byte), ("y", Scalar::Utf16String)], &mut inner).unwrap();
    let FieldType::Array { element, .. } = FieldType::array(Scalar::Utf8String) else { unreachable!() };
    let fields = [
        ("o", FieldType::Object(inner)),
        ("s", FieldType::array(Scalar::Utf16String)),
        ("u", FieldType::array(Scalar::Utf8CodeUnit)),
        ("t", FieldType::Array { kind: ArrayKind::FixedLength(2), element }),
        ("g", FieldType::array(Scalar::Guid)),
    ];
    let fields = Fields::build(&fields, &mut outer).unwrap();
    let payload = written(|w| {
        w.byte(7)
            .utf16_string("in")
            .array(["a", ""], PayloadWriter::utf16_string)
            .utf8_string("text")
            .utf8_string("é")
            .utf8_string("")
            .array([Guid([3; 16])], PayloadWriter::guid)
    });
    let mut values = fields.values(&payload);
    let text: Vec<String> = values
        .by_ref()
        .map(|item| match item {
            Item::Value { name, value } => format!("{name}={value:?}"),
            Item::BeginObject { name } => format!("{name}{{"),
            Item::BeginArray { name } => format!("{name}["),
            Item::EndObject => "}".into(),
            Item::EndArray => "]".into(),
        })
        .collect();
    let guid = format!("=Guid({:?})", Guid([3; 16]));
    let expected = [
        "o{",
        "x=UInt(7)",
        "y=Text(\"in\")",
        "}",
        "s[",
        "=Text(\"a\")",
        "=Text(\"\")",
        "]",
        "u=Text(\"text\")",
        "t[",
        "=Text(\"é\")",
        "=Text(\"\")",
        "]",
        "g[",
        &guid,
        "]",
    ];
    assert_eq!(text, expected);
    assert_eq!(values.finish(), Ok(&[][..]));
}
