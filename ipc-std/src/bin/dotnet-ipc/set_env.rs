//! `set-env`: changes the environment of a process.
use ipc_proto::{Request, SetEnvironmentVariable};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{done, printable};
use crate::{Globals, runtime, wire_log};

/// Set an environment variable of a process, or remove it
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc set-env [OPTIONS] <PID|--socket <PATH>> <NAME> [VALUE]",
    after_help = "\
Without VALUE the variable is removed; \"\" makes it empty. Code that has read it
before may not see the change. A VALUE that begins with - goes behind --.

Examples:
  dotnet-ipc set-env 4242 DOTNET_gcServer 1
  dotnet-ipc set-env 4242 GREETING
  dotnet-ipc set-env --socket /tmp/dotnet-diagnostic-4242-99-socket GREETING hello"
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
    let (pid, operands) = args.operands.read(&["NAME", "VALUE"], 1)?;
    let mut operands = operands.into_iter();
    let (name, value) = (operands.next().unwrap_or_default(), operands.next());
    let wire_log = args.wire_log.open()?;
    let client = args.operands.client(pid, globals.limits.timeouts(), &wire_log)?;
    let request = SetEnvironmentVariable { name: name.into(), value: value.into() };
    let client = args.force.check(client, &Request::SetEnvironmentVariable(request))?;
    client.set_environment_variable(name, value)?;
    let sentence = match value {
        Some(value) => printable(&format!("{name}={value}")).into_owned(),
        None => format!("{} is removed", printable(name)),
    };
    done(&globals.output, &sentence, &json!({ "name": name, "value": value }))?;
    wire_log.check()
}
