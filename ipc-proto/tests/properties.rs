//! The properties of `ipc-fuzz` with random input: any bytes, and messages with a valid header.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cases;

use cases::cases;
use ipc_fuzz::{
    connect_port, conversation, fallback, hostile, legacy, message, monitor, observe, plan, port_config,
    session, split,
};
use ipc_proto::{Code, HResult, Request, encode_to_vec};
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};

/// Generates any bytes, or a message of any command or answer with any payload, followed by other bytes.
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

/// Generates small numbers and short texts, as in real payloads. Other bytes nearly always fail to decode.
fn small_fields() -> impl Strategy<Value = Vec<u8>> {
    let number = (0u32..4).prop_map(|n| n.to_le_bytes().to_vec());
    let text = vec(any::<u16>(), 0..6).prop_map(|units| {
        let count = u32::try_from(units.len() + 1).unwrap().to_le_bytes();
        let units = units.into_iter().chain([0]).flat_map(u16::to_le_bytes);
        count.into_iter().chain(units).collect()
    });
    vec(prop_oneof![number, text, vec(any::<u8>(), 0..3)], 0..10).prop_map(|fields| fields.concat())
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn message_holds(bytes in bytes()) {
        message(&bytes);
    }

    #[test]
    fn observe_holds(to_runtime in bytes(), to_client in vec(bytes(), 0..3)) {
        let len = u8::try_from(to_runtime.len()).unwrap_or(u8::MAX);
        observe(&[to_runtime, to_client.concat(), vec![len]].concat());
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
}
