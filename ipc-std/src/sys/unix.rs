//! The Unix part of `sys`: sockets and polling.
mod descriptor;
mod flag;
mod hub;
mod listener;
mod pipe_pair;
mod poller;
mod shortage;
mod socket;
mod sources;

pub(crate) use descriptor::{receive_descriptor, send_descriptor};
pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use listener::Listener;
pub(crate) use pipe_pair::PipePair;
pub(crate) use poller::Poller;
pub use shortage::is_shortage;
pub(crate) use socket::{Address, Socket};
pub(crate) use sources::{Alarm, Sources};
