//! The arguments of `monitor`.
use std::ffi::OsString;
use std::path::PathBuf;

use crate::args::socket_path;
use crate::process::connection_args::ConnectionArgs;
use crate::recording::args::RecordingArgs;

/// Listen on a diagnostic port; trace or configure runtimes before they start
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help(TIMEOUT)))]
#[command(after_help = include_str!("args.txt"))]
pub(crate) struct Args {
    /// Path of the port's socket [default with a COMMAND: a private one]
    #[arg(long, value_name = "PATH", required_unless_present = "command", value_parser = socket_path::listen_parser())]
    pub(super) listen: Option<PathBuf>,
    /// Set a variable in the environment of each runtime; can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    pub(super) set: Vec<(String, String)>,
    /// Record each runtime from its first event; {pid} in FILE becomes its process ID, otherwise the second file and
    /// later ones get a number
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Set up only the first runtime that connects, and end with COMMAND although processes that it started still run
    #[arg(long)]
    pub(super) first_only: bool,
    #[command(flatten)]
    pub(super) options: RecordingArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    /// Command to start with this port
    #[arg(last = true)]
    pub(super) command: Vec<OsString>,
}

const TIMEOUT: &str =
    "Give up on each request to a runtime after DURATION, and on the end of a trace [default: 10s, 2m]";

/// Parses `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not NAME=VALUE")),
    }
}
