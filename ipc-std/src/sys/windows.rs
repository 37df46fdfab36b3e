//! The Windows part of `sys`: pipes, waiting and properties of processes.
#![allow(unsafe_code, reason = "the system's functions take pointers")]
mod address;
mod error;
mod event;
mod flag;
mod hub;
mod listener;
mod operation;
mod poller;
mod process;
mod socket;
mod sources;

pub(crate) use address::{
    Address, LONGEST_PATH, PREFIX, Pinned, absolute, endpoint, is_refused, is_socket, is_too_long,
    port_address,
};
pub use error::is_shortage;
pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use listener::Listener;
pub(crate) use poller::{Poller, Source, Watched};
pub(crate) use process::{command_line, process_exists, process_has_ended};
pub(crate) use socket::Socket;
pub(crate) use sources::{Alarm, Sources};
