//! `resume`: continues a suspended runtime.
use serde_json::json;

use crate::args::timeout_args::TimeoutArgs;
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::stdout::done;
use crate::process::target::TargetArgs;
use crate::process::wire_log::WireLogArgs;

/// Resume a runtime that is suspended at startup
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Has no effect on a runtime that is not suspended.

Examples:
  dotnet-ipc resume 4242")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    timeout: TimeoutArgs,
    #[command(flatten)]
    wire_log: WireLogArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let client = args.target.client(args.timeout.timeouts(), &wire_log)?;
    client.resume()?;
    done(globals, "resumed", &json!({ "resumed": true }))?;
    wire_log.check()
}
