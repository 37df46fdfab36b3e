//! `SystemProcess`: a process as the operating system shows it.

use ipc_discover::sys::command_line;

use crate::client::Client;

/// A process as the operating system shows it, for runtimes that do not report it: see [`Client::system_process`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemProcess {
    /// The process id in the PID namespace of this process.
    pub process_id: u32,
    /// The arguments with which the process was started, separated by spaces.
    pub command_line: String,
}

impl Client {
    /// Returns the process of the runtime as the operating system shows it. For a runtime that does not
    /// [report](Self::process_info) its process: .NET Core 3, or one whose command line is longer than a message.
    /// `None` if the process is not visible, as at the socket of `dotnet-dsrouter`.
    #[must_use]
    pub fn system_process(&self) -> Option<SystemProcess> {
        let process_id = self.visible_runtime()?;
        Some(SystemProcess { process_id, command_line: command_line(process_id)? })
    }
}
