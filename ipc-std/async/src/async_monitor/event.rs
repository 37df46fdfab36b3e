//! An event at the port of an asynchronous monitor.
use ipc_proto::port::{Rejection, RuntimeEntry};

/// An event at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsyncMonitorEvent {
    /// A runtime arrived that was unknown. There is one such event until the runtime has left, however often it
    /// connects.
    Arrived(RuntimeEntry<()>),
    /// A runtime left: its connection ended, and it did not connect again within a second.
    Left(RuntimeEntry<()>),
    /// A connection was dropped. This kind of event is not stored after 1,024 stored events.
    Rejected(Rejection),
}
