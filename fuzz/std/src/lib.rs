//! Properties of the analyses, and of the parsers of `ipc-std` and of the tool, that hold for all bytes.
//!
//! Each property is a function of any bytes that panics where it does not hold. It runs as a fuzz target, with random
//! input (`tests/properties.rs`), and over stored inputs (`tests/smoke.rs`). The parsers of `ipc-std` are in its hidden
//! module `fuzzing`, those of the tool in its library.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a property that does not hold panics"
)]
mod analyses;
mod conformance_case;
mod http_exchange;
mod options;
#[cfg(unix)]
mod proc_files;
mod socket_names;
mod trace_reader;
mod wire_log;

pub use analyses::{analysis_work, collections, counters, gcdump, heap, names, profiles};
pub use conformance_case::conformance_case;
pub use http_exchange::http_exchange;
pub use options::options;
#[cfg(unix)]
pub use proc_files::proc_files;
pub use socket_names::socket_names;
pub use trace_reader::trace_reader;
pub use wire_log::wire_log;

/// Only Unix has files in `/proc`.
#[cfg(not(unix))]
pub fn proc_files(_: &[u8]) {}
