//! The properties of `ipc-fuzz` about traces, on random bytes.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../tests/cases/mod.rs"]
mod cases;

use cases::cases;
use ipc_fuzz::{assemble, events, metadata, nettrace, payload, rewrite, stores, trace, user_events, work};
use proptest::collection::vec;
use proptest::prelude::*;

/// The bytes of a record with locations that are right or nearly so, and items of all kinds.
fn tracepoint_record() -> impl Strategy<Value = Vec<u8>> {
    let item = (0u8..5, vec(0u8..3, 0..40)).prop_map(|(label, mut body)| match label {
        1 => [&[1][..], &u32::try_from(body.len()).unwrap().to_le_bytes(), &body].concat(),
        _ => {
            body.resize(16, label);
            [&[label][..], &body].concat()
        }
    });
    (vec(item, 0..4), vec(any::<u8>(), 0..9), 0u16..2).prop_map(|(items, payload, off)| {
        let extension = items.concat();
        let [n, m] = [extension.len(), payload.len()].map(|len| u16::try_from(len).unwrap());
        let locations = [4, n + off, n, m].map(u16::to_le_bytes).concat();
        [&[9, 0, 0, 0, 1, 2, 0][..], &locations, &extension, &payload].concat()
    })
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn assemble_holds(bytes in vec(any::<u8>(), 0..2000)) {
        assemble(&bytes);
    }

    #[test]
    fn nettrace_holds(bytes in vec(any::<u8>(), 0..2000)) {
        nettrace(&bytes);
    }

    #[test]
    fn events_holds(bytes in vec(any::<u8>(), 0..2000)) {
        events(&bytes);
    }

    #[test]
    fn metadata_holds(bytes in vec(prop_oneof![0u8..30, any::<u8>()], 0..200)) {
        metadata(&bytes);
    }

    #[test]
    fn payload_holds(bytes in vec(prop_oneof![0u8..30, any::<u8>()], 0..200)) {
        payload(&bytes);
    }

    #[test]
    fn rewrite_holds(bytes in vec(any::<u8>(), 0..2000)) {
        rewrite(&bytes);
    }

    #[test]
    fn user_events_holds(bytes in prop_oneof![vec(any::<u8>(), 0..600), tracepoint_record()]) {
        user_events(&bytes);
    }

    #[test]
    fn stores_holds(bytes in vec(any::<u8>(), 0..1000)) {
        stores(&bytes);
    }

    #[test]
    fn work_holds(bytes in vec(any::<u8>(), 0..1000)) {
        work(&bytes);
    }

    #[test]
    fn trace_holds(bytes in vec(any::<u8>(), 0..1000)) {
        trace(&bytes);
    }
}
