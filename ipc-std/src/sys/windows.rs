//! The Windows part of `sys`: pipes and waiting.
#![allow(unsafe_code, reason = "the system's functions take pointers")]
mod error;
mod event;
mod flag;
mod hub;
mod listener;
mod operation;
mod pipe_pair;
mod poller;
mod socket;
mod sources;

pub use error::is_shortage;
pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use ipc_discover::sys::Address;
pub(crate) use listener::Listener;
pub(crate) use pipe_pair::PipePair;
pub(crate) use poller::{Poller, Source, Watched};
pub(crate) use socket::Socket;
pub(crate) use sources::{Alarm, Sources};
