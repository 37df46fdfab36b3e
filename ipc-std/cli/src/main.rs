//! `dotnet-ipc`: inspects, traces and controls running .NET processes over their diagnostic sockets.
mod args;
mod commands;
mod counters;
mod events;
mod input;
mod output;
mod process;
mod recording;
mod stacks;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::commands::Command;
use crate::output::failure;
use crate::output::globals::Globals;

/// Inspect, trace and control running .NET processes
///
/// Most commands take the process ID of a runtime, or the path of its diagnostic socket with --socket.
#[derive(Debug, Parser)]
#[command(name = "dotnet-ipc", bin_name = "dotnet-ipc", version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dotnet-ipc ps                                    list running .NET processes
  dotnet-ipc info 4242                             describe one of them
  dotnet-ipc trace 4242 -o app.nettrace            record until Ctrl-C
  dotnet-ipc trace --name app --duration 10s       record 10 seconds
  dotnet-ipc events app.nettrace --json            show the events of a trace
  dotnet-ipc report app.nettrace                   show the functions that take the most time
  dotnet-ipc dump 4242 -o app.dmp                  write a memory dump
  dotnet-ipc monitor --trace app.nettrace -- app   record from the first event
  dotnet-ipc find 4242                             explain a failed search
  dotnet-ipc demo                                  show it all without .NET

Exit status: 0 success, 1 I/O error, 2 usage, 3 process not found or access
denied, 4 timeout, 5 refused by the runtime, 6 protocol error or corrupt file,
7 the runtime ended, 8 differences found by `conformance`.";

fn main() -> ExitCode {
    let Cli { globals, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return failure::report_usage(&e),
    };
    command.run(&globals, Cli::command()).unwrap_or_else(|failure| failure.report(&globals))
}
