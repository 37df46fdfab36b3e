//! The recorded traces and their expected content.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]
use nettrace::{Limits, Metadata, Parser, Record};

/// The metadata of a trace.
#[derive(Debug)]
pub(crate) enum Blob<'a> {
    /// A record that decodes.
    Metadata(Metadata<'a>),
    /// V6: all earlier metadata records are void.
    FlushMetadata,
    /// An event.
    Event {
        /// The id of the event's description.
        metadata_id: u32,
        /// The values of the event's fields.
        payload: &'a [u8],
    },
}

/// Name, bytes and expectations of each file in `testdata/nettrace`.
pub(crate) fn traces() -> Vec<(String, Vec<u8>, serde_json::Value)> {
    let parsed = |trace: &ipc_testdata::RecordedTrace| {
        (trace.name.to_owned(), trace.bytes.to_vec(), serde_json::from_str(trace.expected).unwrap())
    };
    ipc_testdata::TRACES.iter().map(parsed).collect()
}

/// Calls `f` with the content of `bytes`.
pub(crate) fn read<'a>(bytes: &'a [u8], f: &mut dyn FnMut(Blob<'a>)) {
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(bytes) {
            Record::Metadata(event) => {
                f(Blob::Metadata(Metadata::decode(parser.version(), event.payload).unwrap()));
            }
            Record::Event(event) => {
                f(Blob::Event { metadata_id: event.metadata_id, payload: event.payload });
            }
            Record::SequencePoint(point) if point.flushes_metadata() => f(Blob::FlushMetadata),
            Record::More { .. } | Record::End(_) => return,
            _ => {}
        }
    }
}
