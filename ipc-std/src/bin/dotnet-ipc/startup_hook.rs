//! `startup-hook`: code of one's own in a process.
use ipc_proto::{ApplyStartupHook, Request};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{done, printable};
use crate::{Globals, runtime, wire_log};

/// Have a runtime load a library and run its startup hook
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc startup-hook [OPTIONS] <PID|--socket <PATH>> <HOOK>",
    after_help = "\
HOOK is the absolute path of the library where the target sees it, or the name of an
assembly that it finds by itself. It runs at once, or at the start of a runtime that
waits there. Since .NET 8. A library that cannot be loaded may end the process: one
that is not seen to be there takes --force.

Examples:
  dotnet-ipc startup-hook 4242 /opt/hooks/Hook.dll"
)]
pub(crate) struct Args {
    #[command(flatten)]
    operands: runtime::Operands,
    #[command(flatten)]
    force: runtime::Force,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (pid, operands) = args.operands.read(&["HOOK"], 1)?;
    let path = operands.first().copied().unwrap_or_default();
    let wire_log = args.wire_log.open()?;
    let client = args.operands.client(pid, globals.limits.timeouts(), &wire_log)?;
    let request = ApplyStartupHook { startup_hook_path: path.into() };
    let client = args.force.check(client, &Request::ApplyStartupHook(request))?;
    client.apply_startup_hook(path)?;
    let sentence = format!("startup hook {} applied", printable(path));
    done(&globals.output, &sentence, &json!({ "startup_hook_path": path }))?;
    wire_log.check()
}
