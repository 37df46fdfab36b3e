//! The Windows part of `sys`.
#![allow(unsafe_code, reason = "the system's functions take pointers")]
mod address;
mod process;

pub use address::{
    Address, LONGEST_PATH, PREFIX, Pinned, absolute, endpoint, is_refused, is_socket, is_too_long,
    port_address,
};
pub use process::{command_line, credentials, process_exists, process_has_ended};
