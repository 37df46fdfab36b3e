//! `attach-profiler` and `startup-profiler`: load a native profiler into a process.
use core::str::FromStr;
use core::time::Duration;
use std::fs;

use dotnet_ipc::durations;
use dotnet_ipc::hex;
use ipc_proto::Guid;
use serde_json::json;

use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::output::printable::printable;
use crate::output::stdout::done;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::{OperandArgs, Target};

/// Load a profiler into a running process
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc attach-profiler [OPTIONS] <PID> <CLSID> <LIBRARY>",
    after_help = "\
LIBRARY is a path in the target's file system. A process can have one profiler.

Examples:
  dotnet-ipc attach-profiler 4242 \\
      123e4567-e89b-12d3-a456-426614174000 /opt/prof.so --data @settings.bin"
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    operands: OperandArgs,
    /// Let the runtime wait for the profiler for DURATION
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = durations::parse)]
    attach_timeout: Duration,
    /// Data for the profiler: hexadecimal digits, or the contents of a file
    #[arg(long, value_name = "HEX|@FILE")]
    data: Option<Data>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Set the profiler of a runtime that is suspended at startup
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc startup-profiler [OPTIONS] <PID> <CLSID> <LIBRARY>",
    after_help = "\
LIBRARY is a path in the target's file system. The runtime stays suspended
until it is resumed, and then loads the profiler. A running process accepts the
request but ignores it: use attach-profiler for one.

Examples:
  dotnet-ipc startup-profiler 4242 \\
      123e4567-e89b-12d3-a456-426614174000 /opt/prof.so
  dotnet-ipc resume 4242"
)]
pub(crate) struct StartupArgs {
    #[command(flatten)]
    operands: OperandArgs,
    /// Send the request even if the runtime is not suspended
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Bytes for a profiler.
#[derive(Debug, Clone)]
enum Data {
    Bytes(Vec<u8>),
    File(String),
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some(path) => Ok(Self::File(path.to_owned())),
            None => hex::parse(text).map(Self::Bytes),
        }
    }
}

impl Data {
    fn read(&self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::File(path) => {
                fs::read(path).map_err(|e| Failure::io(format_args!("cannot read {path}"), &e))
            }
        }
    }
}

pub(crate) fn attach(args: &AttachArgs, globals: &Globals) -> Result<(), Failure> {
    let data = args.data.as_ref().map(Data::read).transpose()?.unwrap_or_default();
    let (target, clsid, path) = profiler(&args.operands)?;
    args.connection.call(target, |client| {
        client.attach_profiler(args.attach_timeout, clsid, path, &data)?;
        report("attached", clsid, path, globals)
    })
}

pub(crate) fn startup(args: &StartupArgs, globals: &Globals) -> Result<(), Failure> {
    let (target, clsid, path) = profiler(&args.operands)?;
    args.connection.call(target, |client| {
        let suspended = client.may_be_suspended();
        if suspended == Some(false) && !args.force {
            let message =
                "the runtime is not suspended at startup: it would accept the profiler and ignore it";
            return Err(Failure::new(Kind::Danger, message)
                .with_hint("use attach-profiler for a running process, or pass --force to send it anyway"));
        }
        client.set_startup_profiler(clsid, path)?;
        if suspended.is_none() {
            globals.note(
                "a runtime that is not suspended ignores the profiler, which its response does not show",
            );
        }
        report("set", clsid, path, globals)
    })
}

/// Returns the runtime, the profiler's CLSID and its path.
fn profiler(operands: &OperandArgs) -> Result<(Target<'_>, Guid, &str), Failure> {
    let (target, operands) = operands.read(&["CLSID", "LIBRARY"], 2)?;
    let mut operands = operands.into_iter();
    let (clsid, path) = (operands.next().unwrap_or_default(), operands.next().unwrap_or_default());
    let clsid = clsid.parse().map_err(|e| Failure::new(Kind::Usage, format!("{clsid:?} is {e}")))?;
    Ok((target, clsid, path))
}

fn report(action: &str, clsid: Guid, path: &str, globals: &Globals) -> Result<(), Failure> {
    let sentence = format!("profiler {} {action}", printable(path));
    done(globals, &sentence, &json!({ "profiler_guid": clsid.to_string(), "profiler_path": path }))
}
