//! `SocketConnector`: connecting to a socket, again while its runtime is busy.
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::OnceLock;
use std::time::Instant;

use ipc_discover::sys::{self, Pinned};
use ipc_discover::{Candidate, Denied, Target, refusal};

use super::connector::{ConnectError, Connector};
use super::stream::Stream;
use crate::error::Error;
use crate::sys::Socket;

/// Connects to a socket that a runtime listens at.
#[derive(Debug)]
pub(crate) struct SocketConnector {
    peer: String,
    path: PathBuf,
    /// The same socket, named through an open directory; for a path that may lead to another file later.
    pinned: Option<Pinned>,
    /// Whether a search found the socket, so that its listener must be the process that made it.
    is_verified: bool,
    /// The process that must listen.
    target: Option<Target>,
    /// Whether the system reported the process id of the target at the first connection.
    #[cfg(unix)]
    is_reported: OnceLock<bool>,
}

impl SocketConnector {
    /// Connects to the socket at `path`, and does not check which process listens there.
    pub(crate) const fn at(peer: String, path: PathBuf) -> Self {
        Self {
            peer,
            path,
            pinned: None,
            is_verified: false,
            target: None,
            #[cfg(unix)]
            is_reported: OnceLock::new(),
        }
    }

    /// Connects to the socket that a search found for a process; only to `target`, if there is one.
    pub(crate) fn found(process_id: u32, candidate: &Candidate, target: Option<Target>) -> Self {
        let socket = Self::at(format!("process {process_id}"), candidate.path.clone());
        Self { pinned: candidate.pinned(), is_verified: true, target, ..socket }
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
        if let Some(peer) = socket.credentials().filter(|_| self.is_verified) {
            // Nothing is sent to a process that is not the target.
            if let Some(reason) = refusal(&self.path, self.target, peer) {
                let (peer, reason) = (self.peer.clone(), Box::new(reason));
                return Err(ConnectError::Failed(Error::Impostor { peer, reason }));
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
