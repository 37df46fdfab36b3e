//! `info`: describes a process and its runtime.
use serde_json::Value;

use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::printable::printable;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_fields::process_fields;
use crate::process::target::TargetArgs;

/// Show command line, runtime version, OS and architecture of a process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dotnet-ipc info 4242
  dotnet-ipc info 4242 --json | jq -r .clr_product_version
  dotnet-ipc info --socket /tmp/dotnet-diagnostic-4242-99-socket")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (client, wire_log) = args.connection.client(args.target.target())?;
    let info = client.process_info()?;
    let fields = process_fields(&info);
    if globals.json {
        json_to_stdout(&fields.into())?;
    } else {
        to_stdout(|out| {
            let width = fields.keys().map(String::len).max().unwrap_or_default().saturating_add(1);
            fields.iter().try_for_each(|(key, value)| {
                let key = format!("{key}:");
                match value {
                    Value::Null => writeln!(out, "{key:width$} (not reported)"),
                    Value::String(text) => writeln!(out, "{key:width$} {}", printable(text)),
                    other => writeln!(out, "{key:width$} {other}"),
                }
            })
        })?;
    }
    wire_log.check()
}
