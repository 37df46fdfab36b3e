//! `startup-hook`: runs a startup hook in a process.
use ipc_proto::{ApplyStartupHook, Request};
use serde::Serialize;

use crate::output::stdout::done;
use crate::process::request_args::RequestArgs;
use crate::run::{Failure, Globals};
use crate::text::printable::printable;

/// Load a library into a process and run its startup hook
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc startup-hook [OPTIONS] <PID> <HOOK>",
    after_help = include_str!("startup_hook.txt")
)]
pub(crate) struct Args {
    #[command(flatten)]
    request: RequestArgs,
}

/// The result as JSON.
#[derive(Serialize)]
struct AppliedHook<'p> {
    startup_hook_path: &'p str,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (target, operands) = args.request.operands.read(&["HOOK"], 1)?;
    let path = operands.first().copied().unwrap_or_default();
    args.request.connection.call(target, |client| {
        let request = ApplyStartupHook { startup_hook_path: path.into() };
        args.request.check(&client, &Request::ApplyStartupHook(request))?;
        client.apply_startup_hook(path)?;
        let sentence = format!("startup hook {} applied", printable(path));
        done(globals, &sentence, &AppliedHook { startup_hook_path: path })
    })
}
