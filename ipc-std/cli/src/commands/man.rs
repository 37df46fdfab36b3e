//! `man`: writes manual pages.
use std::fs;
use std::path::PathBuf;

use crate::output::output_file::{OutputFile, OverwriteArgs, cannot_write};
use crate::run::{Failure, Globals};

/// Write manual pages, one per command
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("man.txt"))]
pub(crate) struct Args {
    /// Directory to write to; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut cli = (globals.cli)();
    fs::create_dir_all(&args.directory).map_err(|e| cannot_write(&args.directory, &e))?;
    // Gives each command its full name and the global options.
    cli.build();
    let commands =
        cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in core::iter::once(&cli).chain(commands) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let path = args.directory.join(format!("{name}.1"));
        let file = OutputFile::open(&path, &args.overwrite)?;
        file.truncate()?;
        let page = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
        page.render(&mut file.into_file()).map_err(|e| cannot_write(&path, &e))?;
    }
    Ok(())
}
