//! `Candidate`: a socket that may belong to a process, with its checks.
use std::path::PathBuf;

#[cfg(windows)]
use ipc_proto::PipeName;

#[cfg(unix)]
use crate::directory::{Directory, DirectoryEntry};
use crate::error::Reason;
#[cfg(unix)]
use crate::socket_file::ProcessKey;
use crate::socket_file::SocketFile;
use crate::sys::Pinned;
use crate::target::Target;
#[cfg(windows)]
use crate::{directory::directory, sys};

/// A socket, or on Windows a pipe, that may belong to the process that is searched for.
///
/// ```
/// use ipc_discover::{Candidate, Search};
///
/// /// Returns the sockets that a client may connect to.
/// fn usable(search: &Search) -> impl Iterator<Item = &Candidate> {
///     search.candidates().iter().filter(|candidate| candidate.objection(search.target()).is_none())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// The path; below `/proc/PID/root` if the process sees other files than this process.
    pub path: PathBuf,
    /// The process id in the name of the socket: that in the PID namespace of the runtime.
    pub local_process_id: u32,
    /// Whether the socket belongs to `dotnet-dsrouter`, and the runtime is on another device.
    pub router: bool,
    /// Whether the name of the socket does not contradict the start time of the process. Always true on Windows: a pipe
    /// disappears with its process.
    pub is_its_own: bool,
    /// Whether the name of the socket states exactly the start time of the process.
    pub is_exact: bool,
    pub(crate) file: SocketFile,
}

impl Candidate {
    #[cfg(unix)]
    pub(crate) fn new(directory: &Directory, entry: DirectoryEntry, process: ProcessKey) -> Self {
        let (name, started) = (entry.name, process.started);
        Self {
            path: directory.path.join(name.to_os()),
            local_process_id: name.process_id(),
            router: name.is_router(),
            is_its_own: started.is_none_or(|started| name.is_of(started)),
            is_exact: !name.is_router() && started == Some(name.key()),
            file: SocketFile { entry, directory: directory.clone(), process },
        }
    }

    /// Returns the pipe of this name, if it exists. Pipes are not listed, because not every system can list them.
    #[cfg(windows)]
    pub(crate) fn new(process_id: u32, router: bool) -> Option<Self> {
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
            file: SocketFile,
        })
    }

    /// Returns the reason not to connect to the file: it is not a socket, or its owner is neither the user of the
    /// target process, nor root, nor the user of this process. The owner of a pipe is known only after connecting.
    #[must_use]
    pub fn objection(&self, target: Option<Target>) -> Option<Reason> {
        self.file.objection(&self.path, target)
    }

    /// Returns the socket as a file below an open directory, if `path` may lead to another file later.
    #[must_use]
    pub fn pinned(&self) -> Option<Pinned> {
        self.file.pinned()
    }

    /// Returns whether it is proven that no process listens, although a connection succeeded: a child process may have
    /// a copy of the descriptor of a listener that has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        SocketFile::is_dead(&self.path)
    }

    /// Returns the reason for a socket at which no process listens.
    #[must_use]
    pub fn without_listener(&self) -> Reason {
        self.file.without_listener(&self.path)
    }
}
