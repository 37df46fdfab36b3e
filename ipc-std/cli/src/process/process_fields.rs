//! Process information in JSON, and the fields that replace it if the runtime does not report its process.
use ipc_proto::wire::TextBuf;
use ipc_std::{ProcessInfo, SystemProcess};
use serde::Serialize;

use super::system_process::SYSTEM;

/// The process information by the specification's names. What is unknown is null.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ProcessFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<u64>,
    runtime_cookie: Option<String>,
    command_line: Option<String>,
    os: Option<String>,
    arch: Option<String>,
    managed_entrypoint_assembly_name: Option<String>,
    clr_product_version: Option<String>,
    runtime_identifier: Option<String>,
    /// The source of a command line that the runtime does not report.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_line_from: Option<&'static str>,
}

impl ProcessFields {
    /// Returns the fields of a process whose runtime does not report it: those that the operating system shows.
    pub(crate) fn of_system(process: SystemProcess) -> Self {
        Self {
            process_id: Some(process.process_id.into()),
            command_line: Some(process.command_line),
            command_line_from: Some(SYSTEM),
            ..Self::default()
        }
    }

    /// Leaves the process ID out.
    pub(crate) fn without_process_id(self) -> Self {
        Self { process_id: None, ..self }
    }
}

impl From<&ProcessInfo> for ProcessFields {
    fn from(info: &ProcessInfo) -> Self {
        let text = TextBuf::to_utf8;
        Self {
            process_id: Some(info.process_id),
            runtime_cookie: Some(info.runtime_cookie.to_string()),
            command_line: text(&info.command_line),
            os: text(&info.os),
            arch: text(&info.arch),
            managed_entrypoint_assembly_name: text(&info.managed_entrypoint_assembly_name),
            clr_product_version: text(&info.clr_product_version),
            runtime_identifier: text(&info.portable_rid),
            command_line_from: None,
        }
    }
}

/// A command line that the operating system shows, with the mark of its source.
#[derive(Debug, Serialize)]
pub(crate) struct SystemCommandLine<'c> {
    command_line: &'c str,
    command_line_from: &'static str,
}

impl<'c> SystemCommandLine<'c> {
    pub(crate) const fn new(command_line: &'c str) -> Self {
        Self { command_line, command_line_from: SYSTEM }
    }
}
