//! Random descriptions with random payloads, intact and damaged.
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
use nettrace::{FieldType, FileTime, Metadata, Str, Value};
use proptest::prelude::*;

/// Writes random values of types to a payload, and stores the items as which they must be read.
struct Maker {
    random: u64,
    payload: Vec<u8>,
    /// Elements elsewhere in the payload: the offset of their field, whether it is relative, and their bytes.
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

/// Types of a format; only those of a fixed size for elements elsewhere in the payload.
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

/// Returns whether a single element has no bytes.
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
    /// A payload has the values that were described and written. A prefix of the payload has the first of these values.
    #[test]
    fn round_trip((format, fields) in descriptions(), seed in 1u64..,
                  unknown in prop::collection::vec(any::<u8>(), 0..3), tail in prop::collection::vec(any::<u8>(), 0..3)) {
        // For elements that are elsewhere, a payload states bytes, so the number of elements without bytes is unknown.
        prop_assume!(!fields.iter().any(|(_, of)| elements_without_bytes(of)));
        let record = record(format, &fields);
        let mut maker = Maker { random: seed, payload: Vec::new(), elsewhere: Vec::new(), items: Vec::new() };
        fields.iter().for_each(|(name, of)| maker.make(name, of));
        let Maker { mut payload, elsewhere, items, .. } = maker;
        let inline = payload.len();
        let is_used_elsewhere = elsewhere.iter().any(|(_, _, bytes)| !bytes.is_empty());
        payload.extend(&unknown);
        for (field, relative, bytes) in elsewhere {
            let place = if relative { payload.len() - field - 4 } else { payload.len() };
            payload[field..field + 2].copy_from_slice(&(place as u16).to_le_bytes());
            payload[field + 2..field + 4].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
            payload.extend(bytes);
        }
        payload.extend(&tail);
        let rest = match (is_used_elsewhere, unknown.is_empty()) {
            (false, _) => [unknown, tail].concat(),
            (true, true) => tail,
            (true, false) => unknown,
        };
        let (found, end) = decode(format, &record, &payload);
        prop_assert_eq!(&found, &items);
        prop_assert_eq!(end, Ok(rest));
        // The fields are those that were described.
        let metadata = Metadata::decode(version(format), &record).unwrap();
        for (field, (name, of)) in metadata.fields.iter().zip(&fields) {
            prop_assert_eq!(field.name, name.as_str());
            same(field.field_type, of);
        }
        for len in 0..payload.len() {
            let (found, end) = decode(format, &record, &payload[..len]);
            balanced(&found);
            // Open objects and arrays are closed where the bytes end.
            let same = found.iter().zip(&items).take_while(|(a, b)| a == b).count();
            prop_assert!(found[same..].iter().all(|item| item == "EndObject" || item == "EndArray"));
            prop_assert!(end.is_err() || len >= inline);
        }
    }

    /// No bytes cause a panic or unbounded work.
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
            prop_assert!(items.len() <= 2 * (32 + 4 * payload.len()));
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
            use nettrace::ArrayKind::{Counted, DataLoc, FixedLength, RelLoc};
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
