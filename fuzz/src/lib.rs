//! Properties of `ipc-proto` that hold for all bytes.
//!
//! Each property is a function of any bytes that panics where it does not hold. It runs three ways: under a fuzzer
//! (`fuzz_targets/`), with random input as a test (`ipc-proto/tests/properties.rs`), and over the files of
//! `testdata/` and small damages to them (`tests/smoke.rs`).
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a property that does not hold panics"
)]
mod assemble;
mod assembled;
mod connect_port;
mod conversation;
mod fallback;
mod hostile;
mod legacy;
mod made_up;
mod message;
mod monitor;
mod nettrace;
mod observe;
mod payload_writer;
mod peer;
mod plan;
mod port;
mod reading;
mod repetition;
mod rewrite;
mod seeds;
mod session;
mod split;
mod stores;
mod targets;
mod trace;
mod unknown;
mod user_events;
mod whole;
pub mod wire;
mod work;

pub use assemble::assemble;
pub use connect_port::connect_port;
pub use conversation::conversation;
pub use fallback::fallback;
pub use hostile::hostile;
// The types of `ipc-proto` in the signatures of this package.
pub use ipc_proto::{Exchange, ProtocolError};
pub use legacy::legacy;
pub use message::message;
pub use monitor::monitor;
pub use nettrace::{events, metadata, nettrace, payload};
pub use observe::observe;
pub use peer::Peer;
pub use plan::plan;
pub use port::port_config;
pub use rewrite::rewrite;
pub use seeds::{MAX_LEN, seeds, write_seeds};
pub use session::session;
pub use split::split;
pub use stores::stores;
pub use targets::{assert_stored_inputs_hold, assert_targets_are, holds};
pub use trace::trace;
pub use user_events::user_events;
pub use work::work;

/// A dictionary for libFuzzer and AFL++: magics, codes, names of providers. It is libFuzzer's option `-dict`.
pub const DICTIONARY: &str = include_str!("../ipc.dict");

/// A property: a function that panics if the property does not hold for these bytes.
pub type Property = fn(&[u8]);

macro_rules! properties {
    ($($name:ident)*) => {
        /// Every property with its name. Its fuzz target has the same name.
        pub const PROPERTIES: &[(&str, Property)] = &[$((stringify!($name), $name)),*];
    };
}
properties! {
    assemble connect_port conversation events fallback hostile legacy message metadata monitor nettrace observe payload
    plan port_config rewrite session split stores trace user_events work
}
