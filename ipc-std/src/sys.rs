//! What the operating system offers, and the standard library does not.
mod address;
mod flag;
mod poller;
mod process;
mod unix;

pub(crate) use address::*;
pub(crate) use flag::Flag;
pub(crate) use poller::Poller;
pub(crate) use process::*;
pub(crate) use unix::*;
