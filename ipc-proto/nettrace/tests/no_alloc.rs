//! A writer of traces allocates nothing: an allocator counts the allocations.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

#[path = "../../tests/allocations/mod.rs"]
mod allocations;

use allocations::allocations;
use nettrace::{Event, Fields, Metadata, PayloadWriter, Scalar, Trace, TraceWriter, Version};

#[test]
fn writer_of_traces() {
    let (mut buf, mut len) = ([0; 2048], 0);
    let count = allocations(|| {
        for version in [Version::V4, Version::V6] {
            let (mut writer, mut space) =
                (TraceWriter::new(&Trace::new(version), &mut buf).unwrap(), [0; 64]);
            let mut tick = Metadata::new(1, "Demo", 7, "Tick");
            let fields = [("Count", Scalar::UInt32), ("Text", Scalar::Utf16String)];
            tick.fields = Fields::build(&fields, &mut space).unwrap();
            len += writer.describe(&tick).unwrap().len();
            for sequence in 1..=100 {
                let mut space = [0; 64];
                let payload = PayloadWriter::new(&mut space).uint32(sequence).utf16_string("tick");
                let payload = payload.finish().unwrap();
                let event = Event { metadata_id: 1, sequence, payload, ..Event::default() };
                len += writer.event(&event).unwrap().len();
            }
            len += writer.finish().len();
        }
    });
    assert_eq!(count, 0);
    assert!(len > 2 * 100 * 14, "{len}");
}
