//! Traces of a [`FakeRuntime`](ipc_testkit::FakeRuntime): they follow all rules that a reader can rely on.
#![cfg(feature = "io")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../../../tests/peer/mod.rs"]
mod peer;
mod recordings;
mod replay;
mod selection;
mod sessions;
mod stream;
