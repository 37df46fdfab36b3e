//! Where runtimes are looked for on Windows: there is one place for all pipes.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc_proto::PipeName;

use super::{Denied, Reason, Search, Signs, Step, Target, What, unreadable};
use crate::{Client, Credentials, Error, Timeouts, sys};

/// Where runtimes make their pipes: `\\.\pipe\`.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(sys::PREFIX).to_owned()
}

/// A pipe that is there under a process's name, or that of its `dotnet-dsrouter`.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) local_process_id: u32,
    pub(super) router: bool,
    /// A pipe is gone with its process, so that there are none of earlier ones.
    pub(super) is_its_own: bool,
    pub(super) is_exact: bool,
}

impl Candidate {
    /// The pipe of this name, if it is there. It is not listed, which not every system can.
    fn new(process_id: u32, router: bool) -> Option<Self> {
        let name = match router {
            true => format!("dotnet-diagnostic-dsrouter-{process_id}"),
            false => PipeName { process_id }.to_string(),
        };
        let path = directory().join(name);
        sys::is_socket(&path).then_some(Self {
            path,
            local_process_id: process_id,
            router,
            is_its_own: true,
            is_exact: !router,
        })
    }

    /// Only who listens there can be told to be somebody else.
    pub(super) const fn objection(&self, _: Option<Target>) -> Option<Reason> {
        None
    }

    /// The way to who listens there.
    pub(super) fn client(&self, process_id: u32, target: Option<Target>) -> Client {
        Client::found(process_id, self.path.clone(), None, target)
    }

    /// What it means for the search that this came of asking there.
    pub(super) fn reason(&self, error: Error) -> Reason {
        let path = self.path.clone();
        match error {
            Error::NoListener { .. } => Reason::NoListener { path },
            Error::NoSuchPath { .. } => Reason::Vanished { path },
            Error::Permission { denied, .. } => Reason::Permission { path, denied },
            Error::Impostor { peer, .. } => Reason::Impostor { path, peer },
            error => Reason::Unanswered { path, error: Arc::new(error) },
        }
    }
}

pub(super) fn look(process_id: u32, _: &Timeouts) -> Search {
    // The router's counts before the process's own.
    let candidates: Vec<_> =
        [true, false].into_iter().filter_map(|router| Candidate::new(process_id, router)).collect();
    // What is there shows even where its process may not be looked at.
    let gone = candidates.is_empty() && !sys::process_exists(process_id);
    let what = What::Process { process_id, local_process_id: process_id, user_id: None, started: None };
    let mut steps = vec![Step { what, reason: gone.then_some(Reason::NoProcess) }];
    if !gone {
        let what = What::Directory { path: directory(), sockets: candidates.len() };
        steps.push(Step { what, reason: None });
        if candidates.is_empty() {
            let signs = Signs::Unknown;
            let reason = Reason::NoSocket { looked_in: vec![directory()], signs };
            steps.push(Step { what: What::Memory { signs }, reason: Some(reason) });
        }
    }
    Search { process_id, steps, candidates, target: Some(Target { process_id }) }
}

/// Every process that a pipe is named after; and why that may not be all. Wine has no list of pipes: there, none is found,
/// and [`look`] finds them all the same.
pub(super) fn look_around(timeouts: &Timeouts) -> (Vec<Search>, Vec<Reason>) {
    let directory = directory();
    let (pipes, in_the_way) = match std::fs::read_dir(&directory) {
        Ok(pipes) => (Some(pipes), Vec::new()),
        Err(e) => (None, vec![unreadable(&directory, &e)]),
    };
    let pipes = pipes.into_iter().flatten().flatten();
    let named = pipes.filter_map(|pipe| pipe.file_name().to_str()?.parse().ok());
    let mut ids: Vec<_> = named.map(|PipeName { process_id }| process_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let searches = ids.into_iter().map(|process_id| look(process_id, timeouts)).collect();
    (searches, in_the_way)
}

impl Denied {
    /// Why what is at this path was refused. Whose it is, is not told to those who may not open it.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or_default();
        Self { by: path.to_owned(), owner: None, mode: None, own_user: None, errno }
    }
}

impl Target {
    /// Whether it is this process that listens at the other end; else who it is. The name of a process's pipe is free
    /// before the process has started.
    pub(crate) fn check(&self, socket: &sys::Socket) -> Result<(), Credentials> {
        let peer = socket.credentials();
        peer.filter(|peer| peer.process_id != self.process_id).map_or(Ok(()), Err)
    }
}
