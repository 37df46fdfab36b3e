//! The properties of `ipc-fuzz` with random input: any bytes, and messages with a good header.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cases;

use cases::cases;
use ipc_fuzz::{
    assemble, connect_port, conversation, events, fallback, hostile, legacy, message, metadata, monitor,
    nettrace, payload, plan, port_config, rewrite, session, split, stores, trace, user_events,
};
use ipc_proto::{Code, HResult, Request, encode_to_vec};
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};

/// Any bytes, or a message of any command or answer with any payload, and bytes after it.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let answers = [Code::OK, Code::ERROR];
    let codes: Vec<Code> = Request::ALL.iter().map(|row| row.code).chain(answers).collect();
    let message =
        (select(codes), small_fields(), vec(any::<u8>(), 0..40)).prop_map(|(code, payload, rest)| {
            let mut message = encode_to_vec(code, &HResult::OK).unwrap();
            message.truncate(20);
            message.extend(&payload);
            let size = u16::try_from(message.len()).unwrap();
            message[14..16].copy_from_slice(&size.to_le_bytes());
            message.extend(rest);
            message
        });
    prop_oneof![vec(any::<u8>(), 0..400), small_fields(), message]
}

/// Small numbers and short texts, as payloads are made of; anything else decodes to an error nearly always.
fn small_fields() -> impl Strategy<Value = Vec<u8>> {
    let number = (0u32..4).prop_map(|n| n.to_le_bytes().to_vec());
    let text = vec(any::<u16>(), 0..6).prop_map(|units| {
        let count = u32::try_from(units.len() + 1).unwrap().to_le_bytes();
        let units = units.into_iter().chain([0]).flat_map(u16::to_le_bytes);
        count.into_iter().chain(units).collect()
    });
    vec(prop_oneof![number, text, vec(any::<u8>(), 0..3)], 0..10).prop_map(|fields| fields.concat())
}

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
    fn message_holds(bytes in bytes()) {
        message(&bytes);
    }

    #[test]
    fn split_holds(bytes in bytes()) {
        split(&bytes);
    }

    #[test]
    fn session_holds(bytes in vec(any::<u8>(), 0..600)) {
        session(&bytes);
    }

    #[test]
    fn conversation_holds(bytes in vec(any::<u8>(), 0..600)) {
        conversation(&bytes);
    }

    #[test]
    fn port_config_holds(bytes in vec(any::<u8>(), 0..400)) {
        port_config(&bytes);
    }

    #[test]
    fn monitor_holds(bytes in vec(any::<u8>(), 0..1000)) {
        monitor(&bytes);
    }

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
    fn hostile_holds(bytes in vec(any::<u8>(), 0..600)) {
        hostile(&bytes);
    }

    #[test]
    fn legacy_holds(bytes in vec(any::<u8>(), 0..200)) {
        legacy(&bytes);
    }

    #[test]
    fn connect_port_holds(bytes in vec(any::<u8>(), 0..400)) {
        connect_port(&bytes);
    }

    #[test]
    fn fallback_holds(bytes in vec(any::<u8>(), 0..400)) {
        fallback(&bytes);
    }

    #[test]
    fn plan_holds(bytes in vec(any::<u8>(), 0..100)) {
        plan(&bytes);
    }

    #[test]
    fn stores_holds(bytes in vec(any::<u8>(), 0..1000)) {
        stores(&bytes);
    }

    #[test]
    fn trace_holds(bytes in vec(any::<u8>(), 0..1000)) {
        trace(&bytes);
    }
}
