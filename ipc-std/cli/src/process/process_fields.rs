//! Process information in JSON.
use ipc_proto::wire::TextBuf;
use ipc_std::ProcessInfo;
use serde_json::{Map, Value, json};

/// Returns the process information by the specification's names.
pub(crate) fn process_fields(info: &ProcessInfo) -> Map<String, Value> {
    let text = |text: &TextBuf| text.to_utf8().map_or(Value::Null, Value::from);
    let fields = [
        ("process_id", json!(info.process_id)),
        ("runtime_cookie", json!(info.runtime_cookie.to_string())),
        ("command_line", text(&info.command_line)),
        ("os", text(&info.os)),
        ("arch", text(&info.arch)),
        ("managed_entrypoint_assembly_name", text(&info.managed_entrypoint_assembly_name)),
        ("clr_product_version", text(&info.clr_product_version)),
        ("runtime_identifier", text(&info.portable_rid)),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
