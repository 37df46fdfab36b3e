//! `clean`: removes the sockets of runtimes that have ended.
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use ipc_std::discover::{self, Stale};
use serde::Serialize;

use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::run::{Failure, Globals};
use crate::terminal::foreground::is_foreground;
use crate::text::printable::printable;

/// Remove the sockets of runtimes that have ended
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("clean.txt"))]
pub(crate) struct Args {
    /// Directories to clean [default: TMPDIR, or /tmp]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only show the sockets that would be removed
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let json = globals.json;
    let default = [discover::directory()];
    let directories = if args.directories.is_empty() { &default[..] } else { &args.directories };
    let mut found = Vec::new();
    let mut result = Ok(());
    for directory in directories {
        match discover::stale(directory) {
            Ok(stale) => found.extend(stale),
            // The other directories are cleaned anyway.
            Err(e) => {
                result = Err(Failure::io(format_args!("cannot search {}", directory.display()), &e));
            }
        }
    }
    let removable = found.iter().filter(|stale| stale.removable).count();
    if !json {
        show(&found)?;
        if found.is_empty() && result.is_ok() {
            globals.note("no stale sockets");
        }
    }
    let asks = removable > 0 && !args.dry_run && !args.yes;
    if asks && (json || !io::stdin().is_terminal() || !is_foreground(&io::stdin())) {
        return Err(Failure::usage("nothing removed: no terminal to confirm on; pass --yes").without_hint());
    }
    let agreed = !asks || ask(removable)?;
    for stale in &found {
        let removed = match stale.removable && agreed && !args.dry_run {
            true => stale.remove(),
            false => Ok(Vec::new()),
        };
        let removed = removed.unwrap_or_else(|e| {
            // The other sockets are removed anyway.
            let failed = Failure::io(format_args!("cannot remove {}", stale.path.display()), &e);
            result = Err(failed.with_hint("run as the owner of the socket and its directory, or as root"));
            Vec::new()
        });
        if json {
            json_to_stdout(&StaleRow {
                process_id: stale.process_id,
                socket: stale.path.to_string_lossy(),
                router: stale.router,
                owner: stale.owner,
                removable: stale.removable,
                pipes: texts(&stale.pipes),
                removed: texts(&removed),
            })?;
        } else {
            to_stdout(|out| {
                removed
                    .iter()
                    .try_for_each(|path| writeln!(out, "removed {}", printable(&path.to_string_lossy())))
            })?;
        }
    }
    result
}

/// Shows the stale sockets, including those that this user cannot remove.
fn show(found: &[Stale]) -> Result<(), Failure> {
    to_stdout(|out| {
        for stale in found {
            let rest = if stale.removable {
                String::new()
            } else {
                format!(" (owned by user {}: run as that user or as root to remove it)", stale.owner)
            };
            writeln!(out, "stale {}{rest}", printable(&stale.path.to_string_lossy()))?;
            for pipe in &stale.pipes {
                writeln!(out, "  and {}", printable(&pipe.to_string_lossy()))?;
            }
        }
        Ok(())
    })
}

/// Asks on the terminal whether to remove the sockets.
fn ask(count: usize) -> Result<bool, Failure> {
    let sockets = if count == 1 { "1 socket".to_owned() } else { format!("{count} sockets") };
    let mut answer = String::new();
    write!(io::stderr(), "Remove {sockets}? [y/N] ")
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|e| Failure::io("cannot ask", &e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A socket as JSON.
#[derive(Serialize)]
struct StaleRow<'s> {
    process_id: u32,
    socket: Cow<'s, str>,
    router: bool,
    owner: u32,
    removable: bool,
    pipes: Vec<Cow<'s, str>>,
    removed: Vec<Cow<'s, str>>,
}

fn texts(paths: &[PathBuf]) -> Vec<Cow<'_, str>> {
    paths.iter().map(|path| path.to_string_lossy()).collect()
}
