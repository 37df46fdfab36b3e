//! What the operating system offers, and the standard library does not.
mod poller;
mod unix;

pub(crate) use poller::Poller;
pub(crate) use unix::*;
