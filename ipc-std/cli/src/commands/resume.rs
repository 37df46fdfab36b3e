//! `resume`: continues a suspended runtime.
use serde::Serialize;

use crate::output::stdout::done;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::TargetArgs;
use crate::run::{Failure, Globals};

/// Resume a runtime that is suspended at startup
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("resume.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The result as JSON.
#[derive(Serialize)]
struct Resumed {
    resumed: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.connection.call(args.target.target(), |client| {
        client.resume()?;
        done(globals, "resumed", &Resumed { resumed: true })
    })
}
