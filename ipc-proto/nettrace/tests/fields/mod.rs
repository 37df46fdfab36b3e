//! Descriptions and payloads that tests make by hand.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects; random numbers may lose bits"
)]

use nettrace::{
    DecodeError, DecodeErrorKind, Fields, IndexedPart, IndexedValues, Item, Metadata, Value, Version,
};

/// A type of a description.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Scalar(u8),
    Object(Vec<(String, Self)>),
    /// The code of the array, the type of its elements, and their number.
    Array(u8, Box<Self>, u16),
}
pub(crate) use Type::{Array, Object, Scalar};

pub(crate) fn array(code: u8, element: Type, count: u16) -> Type {
    Array(code, Box::new(element), count)
}
pub(crate) fn one(name: &str, of: Type) -> Vec<(String, Type)> {
    vec![(name.to_owned(), of)]
}

/// The layout of a description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Format {
    V1,
    V2,
    V6,
}

pub(crate) fn utf16(s: &str) -> Vec<u8> {
    s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
pub(crate) fn string(s: &str) -> Vec<u8> {
    let mut bytes = varint(s.len() as u64);
    bytes.extend(s.as_bytes());
    bytes
}
pub(crate) fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

pub(crate) fn describe_type(format: Format, of: &Type) -> Vec<u8> {
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

/// Returns the count and the fields.
pub(crate) fn describe(format: Format, fields: &[(String, Type)]) -> Vec<u8> {
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

pub(crate) fn version(format: Format) -> Version {
    if format == Format::V6 { Version::V6 } else { Version::V4 }
}

pub(crate) fn record_of(format: Format, provider: &str, fields: &[(String, Type)]) -> Vec<u8> {
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
pub(crate) fn record(format: Format, fields: &[(String, Type)]) -> Vec<u8> {
    record_of(format, "Prov", fields)
}

/// Checks that an owned record equals a borrowed one.
pub(crate) fn owned(version: Version, record: &[u8]) {
    #[cfg(feature = "alloc")]
    {
        let metadata = Metadata::decode(version, record).unwrap();
        let owned = nettrace::MetadataBuf::decode(version, record).unwrap();
        assert_eq!(format!("{metadata:?}"), format!("{owned:?}"));
    }
    let _ = (version, record);
}

/// The end of a payload: the bytes after its fields, or the error and its offset.
pub(crate) type Ending = Result<Vec<u8>, (DecodeErrorKind, usize)>;

/// Returns the items as text, and the end of the payload.
pub(crate) fn decode(format: Format, record: &[u8], payload: &[u8]) -> (Vec<String>, Ending) {
    let metadata = Metadata::decode(version(format), record).unwrap();
    assert_eq!(metadata.problem, None, "{record:02x?}");
    owned(version(format), record);
    let mut values = metadata.fields.values(payload);
    let items: Vec<_> = values.by_ref().map(|item| format!("{item:?}")).collect();
    if values.error().is_none_or(|error| error.kind != DecodeErrorKind::TooManyItems) {
        assert_eq!(by_index(&metadata.fields, payload), (items.clone(), values.clone().finish()));
    }
    let end = values.finish().map(<[u8]>::to_vec).map_err(|e| (e.kind, e.offset));
    (items, end)
}

/// Returns the items of a payload that is read by the indexes of its fields, as text, and the remaining bytes or the error.
fn by_index<'a>(fields: &Fields<'_>, payload: &'a [u8]) -> (Vec<String>, Result<&'a [u8], DecodeError>) {
    let mut all = Vec::new();
    let count = fields.shapes(|index, name, shape| all.push((index, name, shape)));
    all.sort_by_key(|(index, ..)| *index);
    assert!(all.iter().map(|(index, ..)| *index).eq(0..count), "each field has one index");
    for (index, _, shape) in &all {
        let within =
            shape.parent.is_none_or(|parent| parent < *index && shape.end <= all[parent as usize].2.end);
        assert!(within && *index < shape.end && shape.end <= count, "{shape:?} has another place");
    }
    let shapes: Vec<_> = all.iter().map(|(_, _, shape)| *shape).collect();
    let mut values = IndexedValues::new(&shapes, payload);
    let items = values.by_ref().map(|(index, part)| {
        let name = all[index as usize].1;
        let item = match part {
            IndexedPart::Value(value) => Item::Value { name, value },
            IndexedPart::BeginObject => Item::BeginObject { name },
            IndexedPart::EndObject => Item::EndObject,
            IndexedPart::BeginArray => Item::BeginArray { name },
            IndexedPart::EndArray => Item::EndArray,
        };
        format!("{item:?}")
    });
    (items.collect(), values.finish())
}

pub(crate) fn value(name: &str, value: Value<'_>) -> String {
    format!("{:?}", Item::Value { name: name.into(), value })
}
pub(crate) fn begin_array(name: &str) -> String {
    format!("{:?}", Item::BeginArray { name: name.into() })
}
pub(crate) fn begin_object(name: &str) -> String {
    format!("{:?}", Item::BeginObject { name: name.into() })
}
pub(crate) fn end_array() -> String {
    format!("{:?}", Item::EndArray)
}
pub(crate) fn end_object() -> String {
    format!("{:?}", Item::EndObject)
}

/// Checks a payload of one field of this type, in each of the three formats that has the type.
#[track_caller]
pub(crate) fn check(of: Type, payload: &[u8], expected: &[String]) {
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
        // A shorter payload is an error of that value only.
        for len in 0..payload.len() {
            let (items, end) = decode(format, &record, &payload[..len]);
            assert!(end.is_err(), "{format:?} {of:?} {len}: {items:?}");
            balanced(&items);
        }
    }
}

pub(crate) fn has(of: &Type, codes: &[u8]) -> bool {
    match of {
        Scalar(code) => codes.contains(code),
        Object(fields) => fields.iter().any(|(_, of)| has(of, codes)),
        Array(code, element, _) => codes.contains(code) || has(element, codes),
    }
}

pub(crate) fn balanced(items: &[String]) {
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
