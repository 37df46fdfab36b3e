//! The arguments of `monitor`.
use std::ffi::OsString;
use std::path::PathBuf;

use crate::args::socket_path;
use crate::process::connection_args::ConnectionArgs;
use crate::recording::args::RecordingArgs;

/// Listen on a diagnostic port; trace or configure runtimes before they start
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help(TIMEOUT)))]
#[command(after_help = "\
A runtime connects if DOTNET_DiagnosticPorts=PATH is in its environment when it
starts. It stays suspended until its variables are set and its trace has begun.
Every event is one line, with --json one object: \"event\" is arrived, set,
tracing, resumed, recorded, left or error; each has the \"process_id\" and the
\"runtime_cookie\".

With a COMMAND, the tool starts it with this port, and exits with its exit
status. The processes that it starts connect as well. The events go to standard
error, because standard output belongs to the command; with --json they go to
standard output, between the lines of the command. On Linux, the tool then waits
for the descendants of the command, because a runtime that starts later would
wait for a port that no longer exists. With --first-only it does not wait, and
only the first runtime that connects gets the variables and the trace: the
others are resumed immediately. With --no-resume no runtime is suspended, so
that a trace can miss the first events.

--duration ends the traces and then the tool, once the command has ended or if
it is stopped.

Ctrl-C, SIGTERM and SIGHUP end the traces properly, and are then sent to the
command, which continues if it is stopped. A second signal ends the tool
immediately. A file that takes nothing, as a pipe whose reader waits, ends its
trace as with `dotnet-ipc trace`.

A runtime needs one open file, with --trace three. The tool raises its limit of
them, but not that of the command. Without free ones, it retries for the time of
--timeout, then resumes the runtime, and exits with status 1.

Examples:
  dotnet-ipc monitor --trace app.nettrace -- app --fast
  dotnet-ipc monitor --listen /tmp/port --set LEVEL=debug
  dotnet-ipc monitor --listen /tmp/port --trace '{pid}.nettrace' --no-stacks")]
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
