//! What the operating system offers, and the standard library does not.
mod descriptor;
mod flag;
mod poller;
mod unix;

pub(crate) use descriptor::{receive_descriptor, send_descriptor};
pub(crate) use flag::Flag;
pub(crate) use poller::Poller;
pub(crate) use unix::*;
