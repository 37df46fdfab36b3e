//! `Candidate`: a socket that may belong to a process, with its checks; and `ScannedDirectory`: the candidates in a
//! directory.
use core::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ipc_proto::SocketName;

use super::directory::{Directory, DirectoryEntry, FileIdentity, unreadable};
use super::name::EndpointName;
use crate::client::Client;
use crate::error::{Error, Reason};
use crate::sys;
use crate::transport::{SocketConnector, Target};

/// A socket that may belong to the process that is searched for.
#[derive(Debug)]
pub(in crate::discover) struct Candidate {
    pub(in crate::discover) path: PathBuf,
    /// The process id in the name of the socket.
    pub(in crate::discover) local_process_id: u32,
    pub(in crate::discover) router: bool,
    /// Whether the name of the socket does not contradict the start time of the process.
    pub(in crate::discover) is_its_own: bool,
    /// Whether the name of the socket states exactly the start time of the process.
    pub(in crate::discover) is_exact: bool,
    entry: DirectoryEntry,
    directory: Directory,
    process: ProcessKey,
}

/// The properties of a process that appear in the name of its socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessKey {
    /// The process id in its own PID namespace.
    pub(super) local_process_id: u32,
    /// The start time, if known.
    pub(super) started: Option<u64>,
    /// Whether there is a process with this id.
    pub(super) exists: bool,
}

/// The sockets in a directory that have the name of a process.
#[derive(Debug)]
pub(super) struct ScannedDirectory {
    pub(super) directory: Directory,
    pub(super) candidates: Vec<Candidate>,
    /// Why sockets may be missing.
    pub(super) reason: Option<Reason>,
}

impl Candidate {
    pub(super) fn new(directory: &Directory, entry: DirectoryEntry, process: ProcessKey) -> Self {
        let (name, started) = (entry.name, process.started);
        Self {
            path: directory.path.join(name.to_os()),
            local_process_id: name.process_id(),
            router: name.is_router(),
            is_its_own: started.is_none_or(|started| name.is_of(started)),
            is_exact: !name.is_router() && started == Some(name.key()),
            entry,
            directory: directory.clone(),
            process,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory.path
    }

    /// Returns whether the socket belongs to the user of this process or to root; root trusts every user.
    pub(super) fn has_trusted_owner(&self) -> bool {
        let own_user = sys::own_user();
        own_user == 0 || [own_user, 0].contains(&self.entry.owner)
    }

    /// Returns the identity of the socket, which is the same for all paths to it.
    pub(super) fn key(&self) -> (FileIdentity, EndpointName) {
        (self.directory.opened.identity, self.entry.name)
    }

    /// Returns the reason not to connect to the file: it is not a socket, or its owner is neither the user of the
    /// target process, nor root, nor the user of this process.
    pub(in crate::discover) fn objection(&self, target: Option<Target>) -> Option<Reason> {
        let path = || self.path.clone();
        if !self.entry.is_socket {
            return Some(Reason::NotASocket { path: path() });
        }
        let owner = self.entry.owner;
        let user_id = target?.user_id?;
        let is_trusted = [user_id, 0, sys::own_user()].contains(&owner);
        (!is_trusted).then(|| Reason::Foreign { path: path(), owner, user_id })
    }

    pub(in crate::discover) fn client(&self, process_id: u32, target: Option<Target>) -> Client {
        let pinned = self.directory.foreign.then(|| self.directory.pinned(self.entry.name));
        let connector = SocketConnector::found(process_id, self.path.clone(), pinned, target);
        Client::new(connector)
    }

    /// Converts an error at this socket into a reason of the search.
    pub(in crate::discover) fn reason(&self, error: Error) -> Reason {
        let path = self.path.clone();
        let has_closed = matches!(error, Error::Gone { received: 0, .. });
        let error = match error {
            // A listener that has ended may still accept connections: a child process may have a copy of its
            // descriptor.
            _ if has_closed && sys::is_dead(&path, Instant::now()).unwrap_or(false) => {
                Error::NoListener { path: path.clone() }
            }
            error => error,
        };
        match error {
            Error::NoListener { .. } => {
                let ProcessKey { started, exists, .. } = self.process;
                match self.entry.name.is_left_over(started, exists) {
                    true => Reason::Stale { path, key: self.entry.name.key(), started },
                    false => Reason::NoListener { path },
                }
            }
            Error::NoSuchPath { .. } => Reason::Vanished { path },
            Error::Permission { denied, .. } => Reason::Permission { path, denied },
            Error::Impostor { peer, .. } => Reason::Impostor { path, peer },
            Error::PathTooLong { limit, .. } => Reason::PathTooLong { path, limit },
            error => Reason::Unanswered { path, kind: error.kind(), error: Arc::new(error) },
        }
    }
}

impl ScannedDirectory {
    /// Finds the sockets of a process in a directory.
    pub(super) fn new(directory: Directory, process: ProcessKey) -> Self {
        let ProcessKey { local_process_id, started, .. } = process;
        let mut reason = None;
        let entries: Vec<_> = match directory.entries() {
            Ok(entries) => {
                entries.iter().filter(|entry| entry.name.process_id() == local_process_id).copied().collect()
            }
            Err(e) => {
                reason = Some(unreadable(&directory.path, &e.into()));
                // The directory cannot be listed, but a file with a known name can be found.
                let name = |disambiguation_key| {
                    EndpointName::Runtime(SocketName { process_id: local_process_id, disambiguation_key })
                };
                started.and_then(|started| directory.entry(name(started))).into_iter().collect()
            }
        };
        let candidates: Vec<_> =
            entries.into_iter().map(|entry| Candidate::new(&directory, entry, process)).collect();
        if candidates.iter().any(|candidate| candidate.is_its_own) {
            reason = None;
        }
        Self { directory, candidates, reason }
    }
}

/// Sorts the likeliest socket first: a socket with the exact start time, then the newest. As in Microsoft's client, a
/// router's socket comes first if it is not older than the process's own socket. Otherwise, and if the process has no
/// socket of its own, the router's socket is ignored.
pub(super) fn sort_by_likelihood(candidates: &mut Vec<Candidate>) {
    candidates.sort_by_key(|candidate| {
        let own = (!candidate.is_exact, !candidate.is_its_own);
        (candidate.router, own, Reverse(candidate.entry.modified))
    });
    let own = candidates.first().filter(|own| !own.router).map(|own| own.entry.modified);
    candidates
        .retain(|candidate| !candidate.router || own.is_some_and(|own| candidate.entry.modified >= own));
    candidates.sort_by_key(|candidate| !(candidate.router && candidate.is_its_own));
}
