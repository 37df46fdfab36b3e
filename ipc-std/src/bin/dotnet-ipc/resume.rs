//! `resume`: lets a runtime go on.
use serde_json::json;

use crate::failure::Failure;
use crate::output::done;
use crate::{Globals, runtime, wire_log};

/// Let a runtime that waits at its start go on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Does nothing to a runtime that does not wait.

Examples:
  dotnet-ipc resume 4242")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let client = args.target.client(globals.limits.timeouts(), &wire_log)?;
    client.resume()?;
    done(&globals.output, "resumed", &json!({ "resumed": true }))?;
    wire_log.check()
}
