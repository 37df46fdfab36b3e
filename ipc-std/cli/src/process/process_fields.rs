//! Process information in JSON, and the fields that replace it if the runtime does not report its process.
use ipc_proto::wire::TextBuf;
use ipc_std::{ProcessInfo, SystemProcess};
use serde_json::{Map, Value, json};

use super::system_process::SYSTEM;

/// The specification's names of the fields.
const NAMES: [&str; 8] = [
    "process_id",
    "runtime_cookie",
    "command_line",
    "os",
    "arch",
    "managed_entrypoint_assembly_name",
    "clr_product_version",
    "runtime_identifier",
];

/// Returns the process information by the specification's names.
pub(crate) fn process_fields(info: &ProcessInfo) -> Map<String, Value> {
    let text = |text: &TextBuf| text.to_utf8().map_or(Value::Null, Value::from);
    let values = [
        json!(info.process_id),
        json!(info.runtime_cookie.to_string()),
        text(&info.command_line),
        text(&info.os),
        text(&info.arch),
        text(&info.managed_entrypoint_assembly_name),
        text(&info.clr_product_version),
        text(&info.portable_rid),
    ];
    NAMES.iter().map(|name| (*name).to_owned()).zip(values).collect()
}

/// Returns the same fields of a process whose runtime does not report it: those that the operating system shows. The
/// others are null.
pub(crate) fn system_fields(process: &SystemProcess) -> Map<String, Value> {
    let mut fields: Map<_, _> = NAMES.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    fields.insert("process_id".to_owned(), process.process_id.into());
    fields.extend(system_command_line(&process.command_line));
    fields
}

/// Returns the fields of a command line that the operating system shows, with the mark of its source.
pub(crate) fn system_command_line(command_line: &str) -> [(String, Value); 2] {
    [("command_line", command_line), ("command_line_from", SYSTEM)]
        .map(|(key, value)| (key.to_owned(), value.into()))
}
