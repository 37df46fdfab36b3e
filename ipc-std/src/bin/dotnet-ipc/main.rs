//! `dotnet-ipc`: asks .NET runtimes, over their diagnostic sockets.
#[cfg(unix)]
mod clean;
mod conformance;
mod decode;
mod demo;
mod dump;
mod durations;
mod env;
mod event_line;
mod events;
mod failure;
mod fake_runtime;
mod find;
mod hex;
mod info;
mod live;
mod monitor;
mod output;
mod perf_map;
mod profiler;
mod providers;
mod ps;
mod reasons;
mod recording;
mod resume;
mod rewrite;
mod runtime;
mod set_env;
mod signals;
mod source;
mod startup_hook;
mod stats;
mod trace;
mod wire_log;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::Output;

/// Asks .NET runtimes who they are, for traces and dumps, and for the other things that they do when asked.
///
/// A runtime is named by its process id, or by its diagnostic socket with --socket.
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
  dotnet-ipc ps                                  the runtimes that can be asked
  dotnet-ipc find 4242                           why one is among them, or is not
  dotnet-ipc info 4242                           who one of them is
  dotnet-ipc trace 4242 -o app.nettrace          record until Ctrl-C
  dotnet-ipc env --socket /tmp/dotnet-diagnostic-4242-99-socket --json
  dotnet-ipc dump 4242 -o app.dmp                all of its memory
  dotnet-ipc monitor --trace app.nettrace -- app a program from its very first event on
  dotnet-ipc events app.nettrace --json          what a trace holds; of a process id, as it happens
  dotnet-ipc stats app.nettrace                  the same, counted
  dotnet-ipc decode 444f544e45545f49…            a message, byte by byte
  dotnet-ipc demo                                without .NET

Exit status: 0 done, 1 local trouble, 2 usage, 3 no such runtime or none that we may ask, 4 timeout,
5 the runtime refuses, 6 the protocol is broken, 7 the runtime went away, 8 `conformance` found differences.";

/// What every command takes.
#[derive(Debug, clap::Args)]
struct Globals {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    limits: runtime::Limits,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ps(ps::Args),
    Find(find::Args),
    #[cfg(unix)]
    Clean(clean::Args),
    Info(info::Args),
    Env(env::Args),
    Trace(trace::Args),
    Dump(dump::Args),
    SetEnv(set_env::Args),
    PerfMap(perf_map::Args),
    StartupHook(startup_hook::Args),
    AttachProfiler(profiler::AttachArgs),
    StartupProfiler(profiler::StartupArgs),
    Resume(resume::Args),
    Monitor(monitor::Args),
    Demo(demo::Args),
    FakeRuntime(fake_runtime::Args),
    Events(events::Args),
    Stats(stats::Args),
    Rewrite(rewrite::Args),
    Decode(decode::Args),
    Conformance(conformance::Args),
}

fn main() -> ExitCode {
    let Cli { globals, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return failure::report_usage(&e),
    };
    let result = match command {
        Command::Ps(args) => ps::run(&args, &globals),
        Command::Find(args) => find::run(&args, &globals),
        #[cfg(unix)]
        Command::Clean(args) => clean::run(&args, &globals),
        Command::Info(args) => info::run(&args, &globals),
        Command::Env(args) => env::run(&args, &globals),
        Command::Trace(args) => trace::run(&args, &globals),
        Command::Dump(args) => dump::run(&args, &globals),
        Command::SetEnv(args) => set_env::run(&args, &globals),
        Command::PerfMap(args) => perf_map::run(&args, &globals),
        Command::StartupHook(args) => startup_hook::run(&args, &globals),
        Command::AttachProfiler(args) => profiler::attach(&args, &globals),
        Command::StartupProfiler(args) => profiler::startup(&args, &globals),
        Command::Resume(args) => resume::run(&args, &globals),
        Command::Monitor(args) => match monitor::run(&args, &globals) {
            // Of the command that it was to start.
            Ok(Some(status)) => return status,
            result => result.map(|_| ()),
        },
        Command::Demo(args) => demo::run(&args, &globals),
        Command::FakeRuntime(args) => fake_runtime::run(&args, &globals),
        Command::Events(args) => events::run(&args, &globals),
        Command::Stats(args) => stats::run(&args, &globals),
        Command::Rewrite(args) => rewrite::run(&args, &globals),
        Command::Decode(args) => decode::run(&args, &globals),
        Command::Conformance(args) => conformance::run(&args, &globals),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&globals.output),
    }
}
