//! What the operating system offers, and the standard library does not.
mod unix;

pub(crate) use unix::*;
