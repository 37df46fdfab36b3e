//! `info`: describes a process and its runtime.
use serde_json::Value;

use crate::output::rows;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::output::tables::write_fields;
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_fields::ProcessFields;
use crate::process::system_process;
use crate::process::target::TargetArgs;
use crate::run::{Failure, Globals};
use crate::text::printable::printable;

/// Show command line, runtime version, OS and architecture of a process
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("info.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.connection.call(args.target.target(), |client| {
        let fields = match client.process_info() {
            Ok(info) => ProcessFields::from(&info),
            Err(e) => ProcessFields::of_system(system_process::unreported(&client, e, globals)?),
        };
        if globals.json {
            return json_to_stdout(&fields);
        }
        let shown = |value: &Value| match value {
            Value::Null => "(not reported)".to_owned(),
            Value::String(text) => printable(text).into_owned(),
            other => other.to_string(),
        };
        let fields = rows::fields(&fields);
        let rows: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), shown(value))).collect();
        to_stdout(|out| write_fields(&rows, out))?;
        show_next(&format!("dotnet-ipc diagnose {}", args.target.target().argument()), globals)
    })
}
