//! `clean`: removes the sockets that dead runtimes have left.
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use ipc_std::discover::{self, Stale};
use serde_json::json;

use crate::Globals;
use crate::failure::{Failure, Kind};
use crate::output::{json_to_stdout, printable, to_stdout};

/// Remove the sockets of runtimes that are gone, after showing them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A runtime that crashes leaves its socket behind. One is removed if its process is gone,
or started at another time than its name says, and nobody listens at it, and it is yours
or you are root; what is looked at again right before. The debugger's pipes of the same
process go with it. Layers of containers are not to be cleaned from outside: whoever
listens in the container does not show there. Shared file systems (NFS, SMB, 9P, FUSE)
are refused, as somebody may listen on another machine.

Examples:
  dotnet-ipc clean               shows, asks, removes
  dotnet-ipc clean --dry-run     only shows
  dotnet-ipc clean --yes /tmp    removes without asking")]
pub(crate) struct Args {
    /// Where to look [default: TMPDIR, or /tmp]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only show what would be removed
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let json = globals.output.json;
    let default = [discover::directory()];
    let directories = if args.directories.is_empty() { &default[..] } else { &args.directories };
    let mut found = Vec::new();
    let mut result = Ok(());
    for directory in directories {
        match discover::stale(directory) {
            Ok(stale) => found.extend(stale),
            // One that fails does not keep the others.
            Err(e) => {
                result = Err(Failure::io(format_args!("cannot look into {}", directory.display()), &e));
            }
        }
    }
    let removable = found.iter().filter(|stale| stale.removable).count();
    if !json {
        show(&found)?;
        if found.is_empty() && result.is_ok() {
            globals.output.note("there is nothing stale");
        }
    }
    let asks = removable > 0 && !args.dry_run && !args.yes;
    if asks && (json || !io::stdin().is_terminal()) {
        return Err(Failure::new(Kind::Usage, "nothing was removed, as there is nobody to ask")
            .with_hint("--yes removes without asking, --dry-run only shows"));
    }
    let agreed = !asks || ask(removable)?;
    for stale in &found {
        let removed = match stale.removable && agreed && !args.dry_run {
            true => stale.remove(),
            false => Ok(Vec::new()),
        };
        let removed = removed.unwrap_or_else(|e| {
            // One that fails does not keep the others.
            let failed = Failure::io(format_args!("cannot remove {}", stale.path.display()), &e);
            result = Err(failed.with_hint("be the user who owns it and its directory, or root"));
            Vec::new()
        });
        if json {
            json_to_stdout(&to_json(stale, &removed))?;
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

/// Shows what was found, with what may not be removed.
fn show(found: &[Stale]) -> Result<(), Failure> {
    to_stdout(|out| {
        for stale in found {
            let rest = if stale.removable {
                String::new()
            } else {
                format!(" (it belongs to user {}: only they or root may remove it)", stale.owner)
            };
            writeln!(out, "stale {}{rest}", printable(&stale.path.to_string_lossy()))?;
            for pipe in &stale.pipes {
                writeln!(out, "  and {}", printable(&pipe.to_string_lossy()))?;
            }
        }
        Ok(())
    })
}

/// Asks on the terminal.
fn ask(count: usize) -> Result<bool, Failure> {
    let what = if count == 1 { "it".to_owned() } else { format!("{count} of them") };
    let mut answer = String::new();
    write!(io::stderr(), "Remove {what}? [y/N] ")
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|e| Failure::io("cannot ask", &e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn to_json(stale: &Stale, removed: &[PathBuf]) -> serde_json::Value {
    let texts =
        |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into()).collect::<Vec<String>>();
    json!({
        "process_id": stale.process_id, "socket": stale.path.to_string_lossy(), "router": stale.router,
        "owner": stale.owner, "removable": stale.removable, "pipes": texts(&stale.pipes),
        "removed": texts(removed),
    })
}
