//! Tests of the properties with the inputs that fuzzing has found, and with every file of `testdata/`, whole,
//! truncated, and with a changed byte.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and these are short"
)]
use ipc_fuzz::{
    PROPERTIES, Property, assemble, conversation, events, legacy, message, metadata, monitor, nettrace,
    payload, port_config, rewrite, session, split, user_events,
};
use ipc_proto::types::TracepointFormat;
use ipc_testdata::{MALFORMED, MESSAGES, REFUSED, RecordedTrace, TOLERATED, TRACES};
use nettrace::user_events::{Extension, ExtensionItem, InlineMetadata, TracepointRecord};
use nettrace::{Limits, Metadata, Parser, Record, Version};

/// The inputs that fuzzing has found, and inputs that once failed.
#[test]
fn stored_inputs_hold() {
    ipc_fuzz::assert_stored_inputs_hold(PROPERTIES);
}

/// Each property is a fuzz target, and each fuzz target is a property.
#[test]
fn every_property_is_a_target() {
    ipc_fuzz::assert_targets_are(PROPERTIES, env!("CARGO_MANIFEST_DIR"), "ipc_fuzz");
}

fn each_input(property: Property) {
    let mut inputs = 0;
    let vectors = [MESSAGES, MALFORMED, REFUSED, TOLERATED].into_iter().flatten();
    for (number, vector) in vectors.enumerate() {
        property(vector.bytes);
        property(&[vector.bytes, &[7, 0, 30, 2]].concat()); // see `split`: other pieces, and bytes that follow
        // Only the first 100 bytes are cut and changed, because lengths, counts and flags are there. Of three vectors with
        // the same fields, each changes every third byte.
        for at in (number % 3..vector.bytes.len().min(100)).step_by(3) {
            property(&vector.bytes[..at]);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = vector.bytes.to_vec();
                bytes[at] ^= flip;
                property(&bytes);
                inputs += 1;
            }
        }
    }
    assert!(inputs > 5_000, "there is more in testdata/");
}

#[test]
fn message_holds() {
    each_input(message);
}

#[test]
fn split_holds() {
    each_input(split);
}

#[test]
fn conversation_holds() {
    each_input(conversation);
}

#[test]
fn port_config_holds() {
    each_input(port_config);
}

#[test]
fn monitor_holds() {
    each_input(monitor);
}

#[test]
fn session_holds() {
    each_input(session);
}

#[test]
fn legacy_holds() {
    each_input(legacy);
}

/// Applies the property to the traces of `testdata/nettrace/`, and to damaged copies of those that are short.
fn each_trace(property: Property) {
    let mut inputs = 0;
    for RecordedTrace { bytes, .. } in TRACES {
        property(bytes);
        if bytes.len() > 30_000 {
            continue;
        }
        // A sample of positions: each costs time in proportion to the length.
        let positions = (0..bytes.len()).step_by(1 + bytes.len() / 8);
        for (at, flip) in positions.zip([0x01, 0x80, 0xff].into_iter().cycle()) {
            property(&bytes[..at]);
            let mut bytes = bytes.to_vec();
            bytes[at] ^= flip;
            property(&bytes);
            inputs += 1;
        }
    }
    assert!(inputs > 100, "there is more in testdata/: {inputs}");
}

/// Applies the property to the metadata records of the traces, and to the payloads after them.
fn each_record(property: impl Fn(&[u8])) {
    let mut inputs = 0;
    for RecordedTrace { bytes, .. } in TRACES {
        let (mut parser, mut record, mut left) = (Parser::new(Limits::default()), Vec::new(), 8);
        loop {
            match parser.next(bytes) {
                Record::Metadata(event) => record = event.payload.to_vec(),
                Record::Event(event) if left > 0 => {
                    left -= 1;
                    property(&record);
                    let len = u8::try_from(record.len()).unwrap_or(u8::MAX);
                    property(&[&[len], &record[..], event.payload].concat());
                    for at in (0..record.len()).step_by(3) {
                        let mut record = record.clone();
                        record[at] ^= 0x80 | at as u8;
                        property(&record);
                        property(&[&[len], &record[..], event.payload].concat());
                    }
                    inputs += record.len();
                }
                Record::More { .. } | Record::End(_) => break,
                _ => {}
            }
        }
    }
    assert!(inputs > 5_000, "there is more in testdata/: {inputs}");
}

#[test]
fn assemble_holds() {
    each_trace(assemble);
}

#[test]
fn nettrace_holds() {
    each_trace(nettrace);
}

#[test]
fn events_holds() {
    each_trace(events);
}

#[test]
fn metadata_holds() {
    each_record(metadata);
}

#[test]
fn payload_holds() {
    each_record(payload);
}

#[test]
fn rewrite_holds() {
    each_trace(rewrite);
}

/// Records with all optional parts, as a tracepoint has them, made of the metadata of the traces.
#[test]
fn user_events_holds() {
    each_input(user_events);
    let id = ipc_proto::Guid([7; 16]);
    each_record(|bytes| {
        user_events(bytes);
        let Ok(metadata) = Metadata::decode(Version::V4, bytes) else { return };
        // A record of `user_events` has metadata without an id. The property expects the id of the event before it.
        let inline = InlineMetadata::new(&bytes[4..]);
        user_events(&[&metadata.event_id.to_le_bytes()[..2], inline.as_bytes()].concat());
        let items = [
            ExtensionItem::Metadata(inline),
            ExtensionItem::ActivityId(id),
            ExtensionItem::RelatedActivityId(id),
        ];
        let (mut extension, mut buf) = (vec![0; 0x1_0000], vec![0; 0x1_0000]);
        let extension = Extension::build(&items, &mut extension).unwrap();
        let record = TracepointRecord { event_id: metadata.event_id as u16, extension, payload: &id.0 };
        user_events(record.encode(1, &mut buf).unwrap());
        user_events(extension.as_bytes());
    });
    user_events(TracepointFormat::new("tp").unwrap().as_str().as_bytes());
}
