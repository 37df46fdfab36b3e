//! `attach-profiler`: loads a native profiler into a running process.
use core::str::FromStr;
use core::time::Duration;
use std::fs;
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::durations;
use dotnet_ipc_sans_io::syntax::hex;

use crate::process::connection_args::ConnectionArgs;
use crate::process::profiler;
use crate::process::target::OperandArgs;
use crate::run::{Failure, Globals};

/// Load a profiler into a running process
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc attach-profiler [OPTIONS] <PID> <CLSID> <LIBRARY>",
    after_help = include_str!("attach_profiler.txt")
)]
pub(crate) struct Args {
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

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let data = args.data.as_ref().map(Data::read).transpose()?.unwrap_or_default();
    let (target, clsid, path) = profiler::operands(&args.operands)?;
    let limit = args.connection.timeout.timeouts().call.saturating_add(args.attach_timeout);
    let end = Instant::now().checked_add(limit);
    args.connection.call(target, |client| {
        let client = client.with_deadline(end);
        client.attach_profiler(args.attach_timeout, clsid, path, &data)?;
        profiler::done("attached", clsid, path, globals)
    })
}
