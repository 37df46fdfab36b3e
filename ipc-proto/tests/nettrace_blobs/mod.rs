//! The recorded traces, and what they expect.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
use ipc_proto::nettrace::{Limits, Metadata, Parser, Step};

/// What a trace holds that has to do with metadata.
#[derive(Debug)]
pub(crate) enum Blob<'a> {
    /// A record that decodes.
    Metadata(Metadata<'a>),
    /// V6: all records are void.
    FlushMetadata,
    /// An event.
    Event {
        /// Its description.
        metadata_id: u32,
        /// Its fields.
        payload: &'a [u8],
    },
}

/// Name, bytes and expectations of each file in `testdata/nettrace`.
pub(crate) fn traces() -> Vec<(String, Vec<u8>, serde_json::Value)> {
    let parsed = |trace: ipc_fuzz::RecordedTrace| {
        (trace.name, trace.bytes, serde_json::from_str(&trace.expected).unwrap())
    };
    ipc_fuzz::traces().into_iter().map(parsed).collect()
}

/// Gives what is in `bytes` to `f`.
pub(crate) fn read<'a>(bytes: &'a [u8], f: &mut dyn FnMut(Blob<'a>)) {
    let mut parser = Parser::new(Limits::default());
    loop {
        match parser.next(bytes) {
            Step::Metadata(event) => {
                f(Blob::Metadata(Metadata::decode(parser.version(), event.payload).unwrap()));
            }
            Step::Event(event) => {
                f(Blob::Event { metadata_id: event.metadata_id, payload: event.payload });
            }
            Step::SequencePoint(point) if point.flushes_metadata() => f(Blob::FlushMetadata),
            Step::More { .. } | Step::End(_) => return,
            _ => {}
        }
    }
}
