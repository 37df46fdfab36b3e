//! `Found`: a runtime that was found.
use std::path::PathBuf;

use ipc_proto::plan::Explanation;

use crate::client::Client;
use crate::process_info::ProcessInfo;

/// A runtime that answered, and whose answer agrees with the name of its socket.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The process id in the PID namespace of this process; for an invisible process, the id in the socket's name.
    pub process_id: u32,
    /// The process that listens at the socket: `process_id`. `None` if the runtime is in another PID namespace, and was
    /// found by its id there. A process with the same id in this namespace is another process then.
    pub listener: Option<u32>,
    /// The process id in the PID namespace of the runtime. In a container it differs from `process_id`.
    pub local_process_id: u32,
    /// The socket; below `/proc/PID/root` if the runtime's process sees other files than this process.
    pub path: PathBuf,
    /// Whether the socket belongs to `dotnet-dsrouter`: then `info` describes a runtime on another device.
    pub router: bool,
    /// What the runtime reported; `None` if it cannot report anything, for the reason in `refusal`.
    pub info: Option<ProcessInfo>,
    /// Why there is no `info`: [`Explanation::Older`] for .NET Core 3, which has no command for process information, or
    /// [`Explanation::InfoTooLong`].
    pub refusal: Option<Explanation>,
    pub(super) client: Client,
}

impl Found {
    /// Returns a client of the runtime with default deadlines.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the command line of the process: as the runtime reports it, or without `info` as the operating system
    /// does if it shows the process: see [`Client::system_process`].
    #[must_use]
    pub fn command_line(&self) -> Option<String> {
        match &self.info {
            Some(info) => Some(info.command_line.to_string()),
            None => self.client.system_process().map(|process| process.command_line),
        }
    }
}
