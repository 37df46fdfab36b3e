use ipc_proto::wire::TextBuf;
use ipc_proto::{Guid, types};

/// What a runtime says of its process; as much of it as its version knows.
///
/// A text that the runtime does not send is null: [`TextBuf::to_utf8`] gives `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The process's id, in its own PID namespace.
    pub process_id: u64,
    /// The runtime's identity: random, new at every start.
    pub runtime_cookie: Guid,
    /// How the process was started.
    pub command_line: TextBuf,
    /// The operating system: `Linux`, `Windows`, `macOS`, …
    pub os: TextBuf,
    /// The architecture: `x64`, `arm64`, …
    pub arch: TextBuf,
    /// The assembly of the entry point, since .NET 6; it may be empty while the runtime is suspended at its start.
    pub managed_entrypoint_assembly_name: TextBuf,
    /// The runtime's version, since .NET 6.
    pub clr_product_version: TextBuf,
    /// The platform, since .NET 8: `linux-x64`, …
    pub portable_rid: TextBuf,
}

impl From<types::ProcessInfo<'_>> for ProcessInfo {
    fn from(info: types::ProcessInfo<'_>) -> Self {
        Self {
            process_id: info.process_id,
            runtime_cookie: info.runtime_cookie,
            command_line: info.command_line.into(),
            os: info.os.into(),
            arch: info.arch.into(),
            managed_entrypoint_assembly_name: TextBuf::default(),
            clr_product_version: TextBuf::default(),
            portable_rid: TextBuf::default(),
        }
    }
}
impl From<types::ProcessInfo2<'_>> for ProcessInfo {
    fn from(info: types::ProcessInfo2<'_>) -> Self {
        let types::ProcessInfo2 { process_id, runtime_cookie, command_line, os, arch, .. } = info;
        Self {
            managed_entrypoint_assembly_name: info.managed_entrypoint_assembly_name.into(),
            clr_product_version: info.clr_product_version.into(),
            ..types::ProcessInfo { process_id, runtime_cookie, command_line, os, arch }.into()
        }
    }
}
impl From<types::ProcessInfo3<'_>> for ProcessInfo {
    fn from(info: types::ProcessInfo3<'_>) -> Self {
        let types::ProcessInfo3 { process_id, runtime_cookie, command_line, os, arch, .. } = info;
        Self {
            managed_entrypoint_assembly_name: info.managed_entrypoint_assembly_name.into(),
            clr_product_version: info.clr_product_version.into(),
            portable_rid: info.portable_rid.into(),
            ..types::ProcessInfo { process_id, runtime_cookie, command_line, os, arch }.into()
        }
    }
}
