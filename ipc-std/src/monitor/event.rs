//! An event at the port of a monitor.
use ipc_discover::Credentials;
use ipc_proto::Guid;
use ipc_proto::port::{Rejection, RuntimeEntry};

use super::process_checks::Peer;

/// An event at a port.
#[derive(Debug)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// A runtime arrived that was unknown. There is one such event until the runtime has left, however often it
    /// connects.
    Arrived(AdvertisedRuntime),
    /// A runtime left: its process ended, or its connection ended and it did not connect again within a second.
    ///
    /// A command of a runtime has no time limit here. But a runtime whose process the operating system does not report, for
    /// example on another machine, must connect again within a second after the caller has dropped the connection of a
    /// command: if it is busy for longer, it leaves, and arrives again later.
    Left(AdvertisedRuntime),
    /// A connection was dropped. If the caller takes no events, this kind of event is not stored after 1,024 stored
    /// events.
    Rejected {
        /// The reason.
        rejection: Rejection,
        /// The process at the other end of the connection, if the operating system reports it.
        credentials: Option<Credentials>,
    },
}

/// A runtime, as it describes itself in its advertise frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdvertisedRuntime {
    /// The runtime's identity.
    pub runtime_cookie: Guid,
    /// The process id in the runtime's own PID namespace: in a container, it differs from the id outside. A runtime in a
    /// browser has the id 42.
    pub process_id: u64,
    /// The peer of the connection, if the operating system reports it.
    pub credentials: Option<Credentials>,
}

impl AdvertisedRuntime {
    pub(super) const fn new(entry: &RuntimeEntry<Peer>) -> Self {
        let credentials = entry.peer.credentials;
        Self { runtime_cookie: entry.cookie, process_id: entry.process_id, credentials }
    }

    /// Returns the process id in the caller's PID namespace, as the operating system reports it; otherwise
    /// [`process_id`](Self::process_id).
    #[must_use]
    pub fn local_process_id(&self) -> u64 {
        let local = self.credentials.map(|credentials| credentials.process_id).filter(|id| *id != 0);
        local.map_or(self.process_id, u64::from)
    }
}
