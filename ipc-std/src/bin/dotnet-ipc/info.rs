//! `info`: who a process is.

use ipc_proto::wire::TextBuf;
use ipc_std::ProcessInfo;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::{json_to_stdout, printable, to_stdout};
use crate::{Globals, runtime, wire_log};

/// Tell who a process is and which runtime it has
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dotnet-ipc info 4242
  dotnet-ipc info 4242 --json | jq -r .clr_product_version
  dotnet-ipc info --socket /tmp/dotnet-diagnostic-4242-99-socket")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let info = args.target.client(globals.limits.timeouts(), &wire_log)?.process_info()?;
    let fields = fields(&info);
    if globals.output.json {
        json_to_stdout(&fields.into())?;
    } else {
        to_stdout(|out| {
            let width = fields.keys().map(String::len).max().unwrap_or_default().saturating_add(1);
            fields.iter().try_for_each(|(key, value)| {
                let key = format!("{key}:");
                match value {
                    Value::Null => writeln!(out, "{key:width$} (not told)"),
                    Value::String(text) => writeln!(out, "{key:width$} {}", printable(text)),
                    other => writeln!(out, "{key:width$} {other}"),
                }
            })
        })?;
    }
    wire_log.check()
}

/// Everything that is known of a process, by the specification's words.
pub(crate) fn fields(info: &ProcessInfo) -> Map<String, Value> {
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
