//! The properties over what fuzzing has found, and over every file of `testdata/`, each also with a byte changed or the
//! end cut off.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a test may panic, and these are short"
)]
use std::{fs, panic, thread};

use ipc_fuzz::{
    PROPERTIES, Property, RecordedTrace, conversation, corpus, events, legacy, message, metadata, monitor,
    nettrace, payload, port_config, regressions, rewrite, session, split, testdata, traces, user_events,
};
use ipc_proto::nettrace::{Limits, Metadata, Parser, Step, Version};
use ipc_proto::user_events::{Extension, InlineMetadata, Item, Record, TracepointFormat};

/// What fuzzing has found, good or bad.
#[test]
fn what_was_found_holds() {
    thread::scope(|scope| {
        for (name, property) in PROPERTIES {
            scope.spawn(move || found(name, property));
        }
    });
}

fn found(name: &str, property: Property) {
    let holds = |bytes: &[u8]| panic::catch_unwind(|| property(bytes)).is_ok();
    let inputs = corpus(name);
    assert!(inputs.len() > 10, "{name}: there is more");
    for (at, input) in inputs.iter().enumerate() {
        assert!(holds(input), "testdata/corpus/{name}.txt, line {}", at + 1);
    }
    for vector in regressions(name) {
        assert!(holds(&vector.bytes), "{}", vector.path.display());
    }
}

/// Each property is a fuzz target, and the other way round.
#[test]
fn every_property_is_a_target() {
    let manifest = include_str!("../Cargo.toml");
    let mut targets: Vec<&str> = manifest.lines().filter_map(|line| line.strip_prefix("path = ")).collect();
    targets.sort_unstable();
    assert_eq!(targets, PROPERTIES.map(|(name, _)| format!("\"fuzz_targets/{name}.rs\"")));
    for (name, _) in PROPERTIES {
        let target =
            fs::read_to_string(format!("{}/fuzz_targets/{name}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(target.contains(&format!("|bytes: &[u8]| ipc_fuzz::{name}(bytes)")), "{target}");
    }
    for found in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/regressions")).unwrap() {
        let found = found.unwrap().file_name();
        assert!(PROPERTIES.iter().any(|(name, _)| found == *name), "{found:?} is no target");
    }
}

fn each_input(property: Property) {
    let mut inputs = 0;
    for vector in ["messages", "malformed", "refused", "tolerated"].into_iter().flat_map(testdata) {
        property(&vector.bytes);
        property(&[&vector.bytes[..], &[7, 0, 30, 2]].concat()); // see `split`: other pieces, and bytes that follow
        // Lengths, counts and flags lie in the front; the large files would take long, and show nothing new.
        for at in 0..vector.bytes.len().min(100) {
            property(&vector.bytes[..at]);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = vector.bytes.clone();
                bytes[at] ^= flip;
                property(&bytes);
                inputs += 1;
            }
        }
    }
    assert!(inputs > 10_000, "there is more in testdata/");
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

/// The traces of `testdata/nettrace/` that are short enough to be damaged in many places.
fn each_trace(property: Property) {
    let mut inputs = 0;
    for RecordedTrace { bytes, .. } in traces() {
        property(&bytes);
        // Here and there: what it costs is their length.
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 60) {
            if bytes.len() > 30_000 {
                break;
            }
            property(&bytes[..at]);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                property(&bytes);
                inputs += 1;
            }
        }
    }
    assert!(inputs > 1000, "there is more in testdata/: {inputs}");
}

/// Their metadata records, and the payloads behind them.
fn each_record(property: impl Fn(&[u8])) {
    let mut inputs = 0;
    for RecordedTrace { bytes, .. } in traces() {
        let (mut parser, mut record, mut left) = (Parser::new(Limits::default()), Vec::new(), 20);
        loop {
            match parser.next(&bytes) {
                Step::Metadata(event) => record = event.payload.to_vec(),
                Step::Event(event) if left > 0 => {
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
                Step::More { .. } | Step::End(_) => break,
                _ => {}
            }
        }
    }
    assert!(inputs > 10_000, "there is more in testdata/: {inputs}");
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

/// Records with all that they may have, as they lie in a tracepoint, made of the metadata of the traces.
#[test]
fn user_events_holds() {
    each_input(user_events);
    let id = ipc_proto::Guid([7; 16]);
    each_record(|bytes| {
        user_events(bytes);
        let Ok(metadata) = Metadata::decode(Version::V4, bytes) else { return };
        // Without its own id it is what a record has; and what the property takes for one has the event's before it.
        let inline = InlineMetadata::new(&bytes[4..]);
        user_events(&[&metadata.event_id.to_le_bytes()[..2], inline.as_bytes()].concat());
        let items = [Item::Metadata(inline), Item::ActivityId(id), Item::RelatedActivityId(id)];
        let (mut extension, mut buf) = (vec![0; 0x1_0000], vec![0; 0x1_0000]);
        let extension = Extension::build(&items, &mut extension).unwrap();
        let record = Record { event_id: metadata.event_id as u16, extension, payload: &id.0 };
        user_events(record.encode(1, &mut buf).unwrap());
        user_events(extension.as_bytes());
    });
    user_events(TracepointFormat::new("tp").unwrap().as_str().as_bytes());
}
