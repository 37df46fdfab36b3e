//! `SocketConnector`: connecting to a socket, again while its runtime is busy; and `Target`: the process that must
//! listen.
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::OnceLock;
use std::time::Instant;

use super::connector::{ConnectError, Connector};
use super::stream::Stream;
use crate::error::{Denied, Error};
use crate::sys::{self, Credentials, Pinned, Socket};

/// Connects to a socket that a runtime listens at.
#[derive(Debug)]
pub(crate) struct SocketConnector {
    peer: String,
    path: PathBuf,
    /// The same socket, named through an open directory; for a path that may lead to another file later.
    pinned: Option<Pinned>,
    /// The process that must listen.
    target: Option<Target>,
    /// Whether the system reported the process id of the target at the first connection.
    #[cfg(unix)]
    is_reported: OnceLock<bool>,
}

impl SocketConnector {
    /// Connects to the socket at `path`, whatever process listens there.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self::new(path.display().to_string(), path, None, None)
    }

    /// Connects to the socket that a search found for a process; only to `target`, if there is one.
    pub(crate) fn found(
        process_id: u32,
        path: PathBuf,
        pinned: Option<Pinned>,
        target: Option<Target>,
    ) -> Self {
        Self::new(format!("process {process_id}"), path, pinned, target)
    }

    const fn new(peer: String, path: PathBuf, pinned: Option<Pinned>, target: Option<Target>) -> Self {
        Self {
            peer,
            path,
            pinned,
            target,
            #[cfg(unix)]
            is_reported: OnceLock::new(),
        }
    }

    /// Returns the error of connecting.
    fn error(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NoSuchPath { path },
            io::ErrorKind::ConnectionRefused if sys::is_refused(&path, &source) => Error::NoListener { path },
            // The system also refuses a connection to a file that is not a socket.
            io::ErrorKind::ConnectionRefused => Error::NoSuchPath { path },
            io::ErrorKind::PermissionDenied => {
                let denied = Denied::new(&path, &source);
                Error::Permission { path, denied }
            }
            _ if sys::is_too_long(&source) => Error::PathTooLong { path, limit: sys::LONGEST_PATH },
            _ => Error::Io { peer: self.peer.clone(), phase: self.phase(), source },
        }
    }
}

impl Connector for SocketConnector {
    fn connect(&self, deadline: Instant) -> Result<Stream, ConnectError> {
        let path: Cow<'_, Path> = match &self.pinned {
            Some(pinned) => pinned.path().into(),
            None => self.path.as_path().into(),
        };
        let socket = Socket::connect(&path, deadline).map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => ConnectError::NotReady,
            _ => ConnectError::Failed(self.error(e)),
        })?;
        if let Some((target, peer)) = self.target.and_then(|target| Some((target, socket.credentials()?))) {
            // Nothing is sent to a process that is not the target.
            if !target.may_be(&peer) {
                let (process_id, path) = (target.process_id, self.path.clone());
                return Err(ConnectError::Failed(Error::Impostor { process_id, path, peer }));
            }
            #[cfg(unix)]
            self.is_reported.get_or_init(|| peer.process_id != 0);
        }
        Ok(Stream::over(socket))
    }

    fn is_prompt(&self) -> bool {
        true
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    #[cfg(unix)]
    fn process_id(&self) -> Option<u32> {
        let Some(target) = self.target else { return sys::owner(&self.path) };
        match self.is_reported.get() {
            // The runtime is in another PID namespace. The process with its id in this namespace is another process.
            Some(false) if cfg!(any(target_os = "linux", target_os = "android")) => None,
            _ => Some(target.process_id),
        }
    }
    #[cfg(windows)]
    fn process_id(&self) -> Option<u32> {
        self.target.map(|target| target.process_id)
    }
}

/// The process that must listen at a socket that was found by process id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) process_id: u32,
    /// The user of the process, if known.
    #[cfg(unix)]
    pub(crate) user_id: Option<u32>,
}

impl Target {
    /// Returns whether `peer`, the process that listens, may be the target. Any process can listen at the socket name
    /// of a process that has not started yet.
    #[cfg(unix)]
    fn may_be(&self, peer: &Credentials) -> bool {
        let is_user = [Some(0), Some(sys::own_user()), self.user_id].contains(&Some(peer.user_id));
        match peer.process_id {
            // The system did not report the id; or, on Linux, the peer has the target's id in another PID namespace.
            0 => is_user,
            // The user of a hidden process is unknown, so only the process id decides.
            process_id => process_id == self.process_id && (is_user || self.user_id.is_none()),
        }
    }
    #[cfg(windows)]
    const fn may_be(&self, peer: &Credentials) -> bool {
        peer.process_id == self.process_id
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The user of a process may change after the process began to listen.
    #[test]
    fn listener_has_process_id_and_user() {
        let peer = |process_id, user_id| Credentials { process_id, user_id, group_id: 0 };
        let target = |user_id| Target { process_id: 42, user_id };
        let (own, targets, other) = (sys::own_user(), 1_234_567, 1_234_568);
        for user_id in [0, own, targets] {
            assert!(target(Some(targets)).may_be(&peer(42, user_id)), "{user_id}");
            assert!(!target(Some(targets)).may_be(&peer(43, user_id)), "{user_id}");
            assert!(target(Some(targets)).may_be(&peer(0, user_id)), "{user_id}");
        }
        assert!(!target(Some(targets)).may_be(&peer(42, other)));
        assert!(target(None).may_be(&peer(42, other)));
        assert!(!target(None).may_be(&peer(43, own)));
        assert!(!target(Some(targets)).may_be(&peer(0, other)));
        assert!(!target(None).may_be(&peer(0, other)));
    }
}
