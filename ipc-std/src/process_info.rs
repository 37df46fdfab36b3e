//! `ProcessInfo`: the description of a process, with owned texts.
use ipc_discover::ErrorKind;
use ipc_proto::plan::{self, Explanation, Runtime};
use ipc_proto::wire::TextBuf;
use ipc_proto::{Guid, types};

use crate::error::Error;

/// The description of a process that its runtime reports.
///
/// A text that the version of the runtime does not report is null: [`TextBuf::to_utf8`] returns `None`.
///
/// ```no_run
/// use ipc_std::Client;
///
/// let info = Client::for_process(4242)?.process_info()?;
/// let version = info.clr_product_version.to_utf8().unwrap_or_else(|| "before 6".to_owned());
/// println!("{}: .NET {version}", info.command_line);
/// # Ok::<(), ipc_std::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The process id in the PID namespace of the process.
    pub process_id: u64,
    /// The identity of the runtime: random, and new at every start.
    pub runtime_cookie: Guid,
    /// The command line of the process.
    pub command_line: TextBuf,
    /// The operating system: `Linux`, `Windows`, `macOS`, …
    pub os: TextBuf,
    /// The architecture: `x64`, `arm64`, …
    pub arch: TextBuf,
    /// The assembly of the entry point, since .NET 6. It may be empty while the runtime is suspended at startup.
    pub managed_entrypoint_assembly_name: TextBuf,
    /// The runtime's version, since .NET 6.
    pub clr_product_version: TextBuf,
    /// The platform, since .NET 8: `linux-x64`, …
    pub portable_rid: TextBuf,
}

impl ProcessInfo {
    /// Returns what the result of a request for the description says about the runtime: its version and system.
    ///
    /// # Errors
    /// The error of the request, unless it says something about the runtime.
    pub fn runtime(described: Result<Self, Error>) -> Result<Runtime, Error> {
        match described {
            Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Runtime::WITHOUT_INFO),
            Err(e) if e.explanation() == Some(Explanation::InfoTooLong) => Ok(Runtime::default()),
            info => Ok(Runtime::from(&info?)),
        }
    }
}

/// The descriptions that older commands return convert to a [`types::ProcessInfo3`] first.
impl From<types::ProcessInfo3<'_>> for ProcessInfo {
    fn from(info: types::ProcessInfo3<'_>) -> Self {
        Self {
            process_id: info.process_id,
            runtime_cookie: info.runtime_cookie,
            command_line: info.command_line.to_text_buf(),
            os: info.os.to_text_buf(),
            arch: info.arch.to_text_buf(),
            managed_entrypoint_assembly_name: info.managed_entrypoint_assembly_name.to_text_buf(),
            clr_product_version: info.clr_product_version.to_text_buf(),
            portable_rid: info.portable_rid.to_text_buf(),
        }
    }
}

impl From<&ProcessInfo> for Runtime {
    fn from(info: &ProcessInfo) -> Self {
        let version = plan::major_version(info.clr_product_version.as_text());
        Self { version, linux: Some(info.os == "Linux"), ..Self::default() }
    }
}
