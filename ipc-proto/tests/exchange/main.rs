//! Exchanges with incomplete, late, invalid or oversized input, in both roles.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what it expects by unwrapping it"
)]
mod call;
mod environment;
mod overrun;
mod poll;
mod serve;
mod supply;

use core::iter;

use ipc_fuzz::wire::{feed, take};
use ipc_proto::types::{
    DumpFlags, DumpType, EnvironmentEntry, ProcessEnvironment, ProcessInfo, ProcessInfo2, Status,
};
use ipc_proto::{
    Answer, ApplyStartupHook, Array, Call, Code, Command, DecodeError, DecodeErrorKind, Encode, EncodeError,
    Exchange, GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, Guid, HResult, Message,
    PollError, ProtocolError, ReceiveAdvertise, ReceiveEnvironment, Reply, Request, RequestError,
    ResumeRuntime, SendEnvironment, Serve, ServerError, Step, StopTracing, Text, encode_to_vec,
    poll_exchange, wire,
};

/// Builds a message with any size in its header, right or wrong.
fn message(code: u16, size: u16, payload: &[u8]) -> Vec<u8> {
    let [size, code] = [size.to_le_bytes(), code.to_be_bytes()];
    [&Message::MAGIC[..], &size, &code, &[0, 0], payload].concat()
}

fn decode_error(kind: DecodeErrorKind, offset: usize) -> DecodeError {
    DecodeError { kind, offset }
}
