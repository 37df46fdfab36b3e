//! The recorded traces with their expected contents, and traces made by tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nettrace::{Event, Metadata, Trace, TraceWriter, Version};
use serde_json::Value;

/// Adds a record to the trace of a writer: `put!(trace, writer.event(&event))`.
macro_rules! put {
    ($trace:ident, $writer:ident.$method:ident($arg:expr)) => {
        $trace.extend_from_slice(&$writer.$method($arg).unwrap())
    };
}

pub(crate) use put;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/nettrace")
}

/// Returns the path of a recorded trace.
pub(crate) fn path(name: &str) -> String {
    folder().join(name).to_str().unwrap().to_owned()
}

/// Returns the path of a file for analyses.
pub(crate) fn analysed(name: &str) -> String {
    folder().join("../analysis").join(name).to_str().unwrap().to_owned()
}

/// Returns the path and the expected contents of each recorded trace.
pub(crate) fn traces() -> Vec<(String, Value)> {
    let parsed = |trace: &ipc_testdata::RecordedTrace| {
        (path(trace.name), serde_json::from_str(trace.expected).unwrap())
    };
    ipc_testdata::TRACES.iter().map(parsed).collect()
}

/// Returns how the recorded trace ends, and the exit status of the tool for it.
pub(crate) fn expected_end(expected: &Value) -> (&'static str, i32) {
    match (expected["end"].as_str().unwrap(), expected["error"].is_null()) {
        ("null tag" | "EndOfStream", true) => ("complete", 0),
        ("null tag" | "EndOfStream", false) => ("corrupt", 6),
        _ => ("truncated", 6),
    }
}

pub(crate) type Kinds = BTreeMap<(String, u64, u64), u64>;

pub(crate) fn kinds(stats: &Value) -> Kinds {
    let by_event = stats["by_event"].as_array().unwrap();
    let kinds = by_event.iter().map(|kind| (identity(kind), kind["count"].as_u64().unwrap()));
    let kinds: Kinds = kinds.collect();
    assert_eq!(kinds.len(), by_event.len());
    kinds
}

/// Returns provider, ID and version.
pub(crate) fn identity(of: &Value) -> (String, u64, u64) {
    let number = |key: &str| of[key].as_u64().unwrap();
    (of["provider"].as_str().unwrap().to_owned(), number("id"), number("version"))
}

/// Returns a text as a payload has it, with a NUL at its end.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Type codes and names of fields, and a payload.
pub(crate) type Made<'a> = (&'a [(u32, &'a str)], &'a [u8]);

/// Returns a trace of version 4 with these events, and one event without a description.
pub(crate) fn made(events: &[Made<'_>]) -> Vec<u8> {
    let len32 = |len: usize| u32::try_from(len).unwrap().to_le_bytes();
    let object = |stream: &mut Vec<u8>, name: &str, version: u32, body: &[u8]| {
        stream.extend([5, 5, 1]);
        stream.extend(version.to_le_bytes());
        stream.extend(version.to_le_bytes());
        stream.extend(len32(name.len()));
        stream.extend(name.as_bytes());
        stream.push(6);
        if name != "Trace" {
            stream.extend(len32(body.len()));
            while stream.len() % 4 != 0 {
                stream.push(0);
            }
        }
        stream.extend(body);
        stream.push(6);
    };
    // A header of 80 bytes, then the payload.
    let blob = |body: &mut Vec<u8>, metadata_id: u32, payload: &[u8]| {
        let len = 76 + payload.len();
        body.extend(len32(len));
        body.extend(metadata_id.to_le_bytes());
        body.extend([0; 68]);
        body.extend(len32(payload.len()));
        body.extend(payload);
    };
    let mut stream = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    let mut trace = [0; 48];
    trace[24..32].copy_from_slice(&1_000_000_000_u64.to_le_bytes());
    trace[32] = 8;
    object(&mut stream, "Trace", 4, &trace);
    let header = [&[20, 0, 0, 0][..], &[0; 16]].concat();
    let (mut records, mut blobs) = (header.clone(), header);
    for (id, (fields, payload)) in (1_u32..).zip(events) {
        let mut record =
            [&id.to_le_bytes()[..], &utf16("Made"), &id.to_le_bytes(), &utf16("It"), &[0; 16]].concat();
        record.extend(len32(fields.len()));
        for (code, name) in *fields {
            record.extend(code.to_le_bytes());
            record.extend(utf16(name));
        }
        blob(&mut records, 0, &record);
        blob(&mut blobs, id, payload);
    }
    object(&mut stream, "MetadataBlock", 2, &records);
    blob(&mut blobs, 99, b"?");
    object(&mut stream, "EventBlock", 2, &blobs);
    stream.push(1);
    stream
}

/// Returns a trace with three events of one thread, numbered 1, 2 and 9: six events between them were lost.
pub(crate) fn lossy() -> Vec<u8> {
    lossy_with(Metadata::new(0, "Demo", 7, ""), &[])
}

/// Returns a trace as [`lossy`], of events with this description and this payload.
pub(crate) fn lossy_with(mut metadata: Metadata<'_>, payload: &[u8]) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    metadata.id = 1;
    put!(trace, writer.describe(&metadata));
    for sequence in [1, 2, 9] {
        put!(
            trace,
            writer.event(&Event {
                metadata_id: 1,
                capture_thread: 5,
                thread: 5,
                sequence,
                payload,
                ..Event::default()
            })
        );
    }
    trace.extend_from_slice(&writer.finish());
    trace
}
