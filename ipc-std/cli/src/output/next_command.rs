//! The line `next: …` after a table.
use std::io::{self, IsTerminal};

use super::stdout::to_stdout;
use crate::run::failure::Failure;
use crate::run::globals::Globals;

/// Writes the obvious next command after a table, if people read it on a terminal.
pub(crate) fn show_next(command: &str, globals: &Globals) -> Result<(), Failure> {
    if globals.json || globals.no_hints || !io::stdout().is_terminal() {
        return Ok(());
    }
    to_stdout(|out| writeln!(out, "\nnext: {command}"))
}
