//! Names of sockets, by process and start time.
use std::ffi::{OsStr, OsString};

use ipc_proto::{RouterSocketName, SocketName};

use crate::sys;

/// The name of a socket, which states the process id and the start time of the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EndpointName {
    Runtime(SocketName),
    Router(RouterSocketName),
}

impl EndpointName {
    pub(crate) fn parse(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        name.parse().map(Self::Runtime).or_else(|_| name.parse().map(Self::Router)).ok()
    }

    pub(crate) const fn process_id(self) -> u32 {
        match self {
            Self::Runtime(name) => name.process_id,
            Self::Router(name) => name.process_id,
        }
    }

    /// Returns the start time of the process, in the unit of this kind of name.
    pub(crate) const fn key(self) -> u64 {
        match self {
            Self::Runtime(name) => name.disambiguation_key,
            Self::Router(name) => name.start_seconds,
        }
    }

    pub(crate) const fn is_router(self) -> bool {
        matches!(self, Self::Router(_))
    }

    /// Returns whether a process with this start time, from the system's process table, can have this name.
    pub(crate) fn is_of(self, started: u64) -> bool {
        match self {
            // A runtime that cannot read its start time writes 0.
            Self::Runtime(name) => [0, started].contains(&name.disambiguation_key),
            Self::Router(name) => sys::seconds_of(started).is_none_or(|seconds| {
                /// The difference in seconds that two start times of one process may have: the clock may have been set
                /// since, and the conversion may round.
                const TOLERANCE: u64 = 60;
                seconds.abs_diff(name.start_seconds) <= TOLERANCE
            }),
        }
    }

    /// Returns whether the process that made the socket has ended: no process has its id, or the process with its id
    /// started at another time. `exists` decides if the start time is unknown.
    pub(crate) fn is_left_over(self, started: Option<u64>, exists: bool) -> bool {
        started.map_or(!exists, |started| !self.is_of(started))
    }

    pub(crate) fn to_os(self) -> OsString {
        match self {
            Self::Runtime(name) => name.to_text().as_str().into(),
            Self::Router(name) => name.to_text().as_str().into(),
        }
    }
}
