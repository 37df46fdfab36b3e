#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(target_pointer_width = "16")]
compile_error!(
    "ipc-proto needs a `usize` of 32 bits or more, because the lengths that a peer sends have 32 bits: \
     build it for a target with 32-bit or 64-bit pointers"
);

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "arbitrary")]
extern crate std;

mod advertise;
mod busy_backoff;
mod code;
mod command;
mod endpoint;
#[doc = include_str!("../ERRATA.md")]
pub mod errata {}
mod error;
mod exchange;
mod hresult;
#[cfg(feature = "legacy")]
pub mod legacy;
mod message;
pub mod plan;
pub mod port;
mod sentences;
pub mod wire;

pub use advertise::Advertise;
pub use busy_backoff::BusyBackoff;
pub use code::Code;
pub use command::field_at::FieldAt;
pub use command::field_path::FieldPath;
pub use command::invalid_value::InvalidValue;
pub use command::request_error::RequestError;
pub use command::table::*;
pub use command::violation::Violation;
pub use command::{Command, CommandInfo, Continuation, encode_command, types};
pub use endpoint::{
    NameText, ParsePipeNameError, ParseSocketNameError, PipeName, PipeNameText, RouterSocketName, SocketName,
    SocketNameText,
};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, ProtocolError};
pub use exchange::{
    Answer, Call, Direction, Exchange, Observation, Observe, Observed, PollError, ReceiveAdvertise,
    ReceiveEnvironment, Reply, SendEnvironment, Serve, Session, SessionEnd, SessionPhase, SessionTimeout,
    Step, StopEvent, StopStep, SuspendedCall, SuspendedEnvironment, SuspendedReply, SuspendedServe, Untyped,
    UntypedCall, poll_exchange,
};
pub use hresult::HResult;
#[cfg(feature = "alloc")]
pub use message::encode_to_vec;
pub use message::{Message, Parsed, ServerError, encode};
#[doc(inline)]
pub use wire::{Array, Decode, Encode, Guid, Text};
