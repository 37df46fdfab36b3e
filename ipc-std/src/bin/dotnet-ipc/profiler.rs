//! `attach-profiler` and `startup-profiler`: a native profiler in a process.
use core::str::FromStr;
use core::time::Duration;
use std::fs;

use ipc_proto::Guid;
use ipc_std::{Client, Error};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::output::{done, printable};
use crate::{Globals, durations, hex, runtime, wire_log};

/// Load a profiler into a running process
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc attach-profiler [OPTIONS] <PID|--socket <PATH>> <CLSID> <LIBRARY>",
    after_help = "\
LIBRARY is where the target sees it. A process has one profiler.

Examples:
  dotnet-ipc attach-profiler 4242 123e4567-e89b-12d3-a456-426614174000 /opt/prof.so
  dotnet-ipc attach-profiler 4242 123e4567-e89b-12d3-a456-426614174000 /opt/prof.so \\
      --attach-timeout 30s --data @settings.bin"
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    operands: runtime::Operands,
    /// How long the runtime waits for the profiler
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = durations::parse)]
    attach_timeout: Duration,
    /// What the profiler is handed: hex digits, or the bytes of a file
    #[arg(long, value_name = "HEX|@FILE")]
    data: Option<Data>,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

/// Have a runtime that waits at its start load a profiler then
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc startup-profiler [OPTIONS] <PID|--socket <PATH>> <CLSID> <LIBRARY>",
    after_help = "\
LIBRARY is where the target sees it. The runtime waits on until it is resumed.

Examples:
  dotnet-ipc startup-profiler 4242 123e4567-e89b-12d3-a456-426614174000 /opt/prof.so
  dotnet-ipc resume 4242"
)]
pub(crate) struct StartupArgs {
    #[command(flatten)]
    operands: runtime::Operands,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
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
    let AttachArgs { operands, attach_timeout, data, wire_log } = args;
    let data = data.as_ref().map(Data::read).transpose()?.unwrap_or_default();
    load(operands, wire_log, globals, "attached", |client, profiler_guid, path| {
        client.attach_profiler(*attach_timeout, profiler_guid, path, &data)
    })
}

pub(crate) fn startup(args: &StartupArgs, globals: &Globals) -> Result<(), Failure> {
    let StartupArgs { operands, wire_log } = args;
    load(operands, wire_log, globals, "set", |client, profiler_guid, path| {
        client.set_startup_profiler(profiler_guid, path)
    })
}

/// Has it done by `load`, which is given the CLSID and the path.
fn load(
    operands: &runtime::Operands,
    wire_log: &wire_log::LogFile,
    globals: &Globals,
    verb: &str,
    load: impl FnOnce(&Client, Guid, &str) -> Result<(), Error>,
) -> Result<(), Failure> {
    let (pid, given) = operands.read(&["CLSID", "LIBRARY"], 2)?;
    let mut given = given.into_iter();
    let (clsid, path) = (given.next().unwrap_or_default(), given.next().unwrap_or_default());
    let clsid: Guid = clsid.parse().map_err(|e| Failure::new(Kind::Usage, format!("{clsid:?} is {e}")))?;
    let wire_log = wire_log.open()?;
    load(&operands.client(pid, globals.limits.timeouts(), &wire_log)?, clsid, path)?;
    let sentence = format!("profiler {} {verb}", printable(path));
    let object = json!({ "profiler_guid": clsid.to_string(), "profiler_path": path });
    done(&globals.output, &sentence, &object)?;
    wire_log.check()
}
