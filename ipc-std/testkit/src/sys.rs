//! Functions of the operating system that the standard library does not offer.
mod tracepoint;

pub(crate) use tracepoint::Tracepoint;
