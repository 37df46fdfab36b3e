//! Options that every command has.
use super::stderr;

/// Options that every command has.
#[derive(Debug, clap::Args)]
pub(crate) struct Globals {
    /// Write JSON, one object per line, including errors
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// Leave out the line `next: …` with the obvious next command, which follows a table on a terminal
    #[arg(long, global = true, display_order = 901)]
    pub(crate) no_hints: bool,
    /// Map trace files into memory instead of reading them, in `events`, `stats`, `rewrite` and all analyses. This takes
    /// less time and memory. But if a program shortens a file meanwhile, the system ends dotnet-ipc by the signal SIGBUS
    #[arg(long, global = true, display_order = 902)]
    pub(crate) map: bool,
    /// Returns the description of all commands.
    #[arg(skip = clap::Command::default as fn() -> clap::Command)]
    pub(crate) cli: fn() -> clap::Command,
}

impl Globals {
    /// Writes a remark to standard error: neither a result nor an error.
    pub(crate) fn note(&self, note: &str) {
        stderr::note(self.json, note);
    }
}
