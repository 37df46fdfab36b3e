//! `SocketFile`: the file of a candidate on Unix.
use std::path::Path;
use std::time::Instant;

use crate::directory::{Directory, DirectoryEntry, FileIdentity};
use crate::endpoint_name::EndpointName;
use crate::error::Reason;
use crate::sys::{self, Pinned};
use crate::target::Target;

/// The file of a candidate, and the process that it is a candidate of.
#[derive(Debug, Clone)]
pub(crate) struct SocketFile {
    pub(crate) entry: DirectoryEntry,
    pub(crate) directory: Directory,
    pub(crate) process: ProcessKey,
}

/// The properties of a process that appear in the name of its socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessKey {
    /// The process id in its own PID namespace.
    pub(crate) local_process_id: u32,
    /// The start time, if known.
    pub(crate) started: Option<u64>,
    /// Whether there is a process with this id.
    pub(crate) exists: bool,
}

impl SocketFile {
    /// Returns whether the socket belongs to the user of this process or to root; root trusts every user.
    pub(crate) fn has_trusted_owner(&self) -> bool {
        let own_user = sys::own_user();
        own_user == 0 || [own_user, 0].contains(&self.entry.owner)
    }

    /// Returns the identity of the socket, which is the same for all paths to it.
    pub(crate) fn key(&self) -> (FileIdentity, EndpointName) {
        (self.directory.opened.identity, self.entry.name)
    }

    pub(crate) fn objection(&self, path: &Path, target: Option<Target>) -> Option<Reason> {
        let path = path.to_owned();
        if !self.entry.is_socket {
            return Some(Reason::NotASocket { path });
        }
        let owner = self.entry.owner;
        let user_id = target?.user_id?;
        let is_trusted = [user_id, 0, sys::own_user()].contains(&owner);
        (!is_trusted).then_some(Reason::Foreign { path, owner, user_id })
    }

    pub(crate) fn pinned(&self) -> Option<Pinned> {
        self.directory.foreign.then(|| self.directory.pinned(self.entry.name))
    }

    pub(crate) fn is_dead(path: &Path) -> bool {
        sys::is_dead(path, Instant::now()).unwrap_or(false)
    }

    pub(crate) fn without_listener(&self, path: &Path) -> Reason {
        let (path, ProcessKey { started, exists, .. }) = (path.to_owned(), self.process);
        match self.entry.name.is_left_over(started, exists) {
            true => Reason::Stale { path, key: self.entry.name.key(), started },
            false => Reason::NoListener { path },
        }
    }
}
