//! `startup-profiler`: sets the native profiler of a runtime that is suspended at startup.
use crate::process::connection_args::ConnectionArgs;
use crate::process::profiler;
use crate::process::target::OperandArgs;
use crate::run::{Failure, Globals, Kind};

/// Set the profiler of a runtime that is suspended at startup
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc startup-profiler [OPTIONS] <PID> <CLSID> <LIBRARY>",
    after_help = include_str!("startup_profiler.txt")
)]
pub(crate) struct Args {
    #[command(flatten)]
    operands: OperandArgs,
    /// Send the request even if the runtime is not suspended
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (target, clsid, path) = profiler::operands(&args.operands)?;
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
        profiler::done("set", clsid, path, globals)
    })
}
