//! `set-env`: changes the environment of a process.
use ipc_proto::{Request, SetEnvironmentVariable};
use serde::Serialize;

use crate::output::stdout::done;
use crate::process::request_args::RequestArgs;
use crate::run::{Failure, Globals, Kind};
use crate::text::printable::printable;

/// Set or remove an environment variable of a process
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc set-env [OPTIONS] <PID> <VARIABLE> [VALUE]",
    after_help = include_str!("set_env.txt")
)]
pub(crate) struct Args {
    #[command(flatten)]
    request: RequestArgs,
}

/// The result as JSON.
#[derive(Serialize)]
struct SetVariable<'v> {
    name: &'v str,
    value: Option<&'v str>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (target, operands) = args.request.operands.read(&["VARIABLE", "VALUE"], 1)?;
    let mut operands = operands.into_iter();
    let (name, value) = (operands.next().unwrap_or_default(), operands.next());
    check_name(name)?;
    args.request.connection.call(target, |client| {
        let request = SetEnvironmentVariable { name: name.into(), value: value.into() };
        let checked = args.request.check(&client, &Request::SetEnvironmentVariable(request));
        checked.map_err(|failure| match failure.kind() {
            Kind::Danger => failure.with_hint("\"\" as VALUE makes it empty; --force removes it anyway"),
            _ => failure,
        })?;
        client.set_environment_variable(name, value)?;
        let sentence = match value {
            Some(value) => printable(&format!("{name}={value}")).into_owned(),
            None => format!("{} is removed", printable(name)),
        };
        done(globals, &sentence, &SetVariable { name, value })
    })
}

/// Fails if the name has a "=". Only the names of the hidden variables of Windows have one: their first character.
fn check_name(name: &str) -> Result<(), Failure> {
    let Some((at, _)) = name.char_indices().skip(1).find(|(_, c)| *c == '=') else { return Ok(()) };
    let (variable, value) = name.split_at(at);
    let (variable, value) = (printable(variable), printable(value.strip_prefix('=').unwrap_or_default()));
    Err(Failure::usage(format!("{name:?} has \"=\": the form is `set-env PID {variable} {value}`")))
}
