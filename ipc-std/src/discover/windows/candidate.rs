//! `Candidate`: a pipe that may belong to a process.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc_proto::PipeName;

use crate::client::Client;
use crate::error::{Error, Reason};
use crate::sys;
use crate::transport::{SocketConnector, Target};

/// Returns the directory in which runtimes make their pipes: `\\.\pipe\`.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(sys::PREFIX).to_owned()
}

/// An existing pipe with the name of a process, or of its `dotnet-dsrouter`.
#[derive(Debug)]
pub(in crate::discover) struct Candidate {
    pub(in crate::discover) path: PathBuf,
    pub(in crate::discover) local_process_id: u32,
    pub(in crate::discover) router: bool,
    /// Always true: a pipe disappears with its process, so there are none of earlier processes.
    pub(in crate::discover) is_its_own: bool,
    pub(in crate::discover) is_exact: bool,
}

impl Candidate {
    /// Returns the pipe of this name, if it exists. Pipes are not listed, because not every system can list them.
    pub(super) fn new(process_id: u32, router: bool) -> Option<Self> {
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

    /// Returns no reason against connecting: the owner of a pipe is known only after connecting.
    pub(in crate::discover) const fn objection(&self, _: Option<Target>) -> Option<Reason> {
        None
    }

    pub(in crate::discover) fn client(&self, process_id: u32, target: Option<Target>) -> Client {
        let path = self.path.clone();
        Client::new(SocketConnector::found(process_id, path, None, target))
    }

    /// Converts an error at this pipe into a reason of the search.
    pub(in crate::discover) fn reason(&self, error: Error) -> Reason {
        let path = self.path.clone();
        match error {
            Error::NoListener { .. } => Reason::NoListener { path },
            Error::NoSuchPath { .. } => Reason::Vanished { path },
            Error::Permission { denied, .. } => Reason::Permission { path, denied },
            Error::Impostor { peer, .. } => Reason::Impostor { path, peer },
            error => Reason::Unanswered { path, kind: error.kind(), error: Arc::new(error) },
        }
    }
}
