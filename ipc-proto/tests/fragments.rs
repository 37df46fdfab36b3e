//! The vectors of `testdata/fragments/`: parts of messages, as the specification's examples have them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
use core::fmt::Debug;

use ipc_proto::types::{EventFilter, TracepointConfig, TracepointSet};
use ipc_proto::wire::{Writer, decode_prefix};
use ipc_proto::{Array, Decode, Encode, Text};
use ipc_testdata::{FRAGMENTS, Vector};

/// Checks that the file contains exactly this value, and that a comment of the file names the type `kind`.
fn holds<'a, T: Decode<'a> + Encode + PartialEq + Debug>(vector: &'a Vector, kind: &str, value: &T) {
    let file = vector.path;
    assert!(vector.text.lines().any(|line| line == format!("# Type: {kind}")), "{file}");
    let (decoded, rest) = decode_prefix::<T>(vector.bytes).unwrap();
    assert_eq!((&decoded, rest), (value, &[][..]), "{file}");
    for value in [value, &decoded] {
        let mut buf = [0xa5; 256];
        let mut w = Writer::new(&mut buf);
        value.encode(&mut w);
        assert_eq!(w.finish().unwrap(), vector.bytes, "{file}");
    }
}

#[test]
fn fragments() {
    let ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    let sets = [TracepointSet { tracepoint_name: "LowEvents".into(), event_ids: Array::from(&ids) }];
    let default = Text::from("MyTracepoint");
    for vector in FRAGMENTS {
        let filter = |enable, ids: &[u32]| {
            holds(vector, "event_filter", &EventFilter { enable, event_ids: Array::from(ids) });
        };
        let config = |default_tracepoint_name, sets: &[TracepointSet<'_>]| {
            let config = TracepointConfig { default_tracepoint_name, sets: Array::from(sets) };
            holds(vector, "tracepoint_config", &config);
        };
        match vector.name() {
            "event_filter.all.hex" => {
                filter(false, &[]);
                holds(vector, "event_filter", &EventFilter::ALL);
            }
            "event_filter.all-but-two.hex" => filter(false, &[4, 5]),
            "event_filter.none.hex" => filter(true, &[]),
            "event_filter.three.hex" => filter(true, &[1, 2, 3]),
            "tracepoint_config.default.hex" => config(default, &[]),
            "tracepoint_config.default-and-set.hex" => config(default, &sets),
            "tracepoint_config.set.hex" => config(Text::NULL, &sets),
            other => panic!("{other} has no expected value"),
        }
    }
    assert_eq!(FRAGMENTS.len(), 7);
}
