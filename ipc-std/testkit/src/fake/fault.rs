//! Faults that a test injects.
use core::time::Duration;

/// An injected fault, on every connection from now on. The advertise frame of a port is not affected.
///
/// A connection that stays open without an answer keeps its port from connecting again, until the monitor closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The runtime never answers, and the connection stays open.
    Silent,
    /// The runtime closes the connection after this number of sent bytes.
    CloseAfter(usize),
    /// The runtime sends these bytes in place of its answer, then closes the connection.
    Garbage(Vec<u8>),
    /// The runtime answers after this delay.
    Delay(Duration),
    /// The runtime pauses before each byte.
    Drip(Duration),
    /// The runtime sends no more than this number of bytes of a trace, and the connection stays open.
    StallStream(usize),
}
