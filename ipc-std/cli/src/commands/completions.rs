//! `completions`: prints a completion script for a shell.
use clap_complete::Shell;

use crate::output::stdout::to_stdout;
use crate::run::{Failure, Globals};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("completions.txt"))]
pub(crate) struct Args {
    /// Shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut cli = (globals.cli)();
    let mut script = Vec::new();
    let name = cli.get_name().to_owned();
    clap_complete::generate(args.shell, &mut cli, name, &mut script);
    to_stdout(|out| out.write_all(&script))
}
