//! `ScannedDirectory`: the candidates in a directory; and their order.
use core::cmp::Reverse;

use ipc_proto::SocketName;

use crate::candidate::Candidate;
use crate::directory::{Directory, unreadable};
use crate::endpoint_name::EndpointName;
use crate::error::Reason;
use crate::socket_file::ProcessKey;

/// The sockets in a directory that have the name of a process.
#[derive(Debug)]
pub(super) struct ScannedDirectory {
    pub(super) directory: Directory,
    pub(super) candidates: Vec<Candidate>,
    /// Why sockets may be missing.
    pub(super) reason: Option<Reason>,
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
        (candidate.router, own, Reverse(candidate.file.entry.modified))
    });
    let own = candidates.first().filter(|own| !own.router).map(|own| own.file.entry.modified);
    candidates
        .retain(|candidate| !candidate.router || own.is_some_and(|own| candidate.file.entry.modified >= own));
    candidates.sort_by_key(|candidate| !(candidate.router && candidate.is_its_own));
}
