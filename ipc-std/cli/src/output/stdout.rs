//! Results on standard output.
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use super::direct_stdout::{cannot_write, raw_stdout};
use super::live_stdout::LiveStdout;
use crate::run::stderr::{json_to_stderr, to_stderr};
use crate::run::{Failure, Globals};
use crate::text::printable::write_json;
use crate::text::terminal_text::TerminalText;

/// Writes a result to standard output. A reader that closed the pipe wants no more, which is not an error.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    to_open_stdout(write).map(|_| ())
}

/// As [`to_stdout`], for one of several results. Returns whether the reader wants the next one.
pub(crate) fn to_open_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    let written = match LiveStdout::get() {
        Some(mut stdout) => {
            // Passed as a whole, because several threads of `monitor` write their results.
            let mut text = Vec::new();
            write(&mut text).and_then(|()| stdout.write_all(&text))
        }
        None => {
            let mut stdout = BufWriter::new(TerminalText::new(io::stdout().lock()));
            write(&mut stdout).and_then(|()| stdout.flush())
        }
    };
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).map_err(|e| cannot_write(&e)),
    }
}

/// Returns standard output for bytes that are not text: fails if it is a terminal.
pub(crate) fn binary_stdout() -> Result<File, Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage("a trace is binary and not for a terminal")
            .with_hint("name a file, or redirect standard output"));
    }
    raw_stdout().map_err(|e| cannot_write(&e))
}

/// Reports what a command did: as a sentence, or with `--json` as an object.
pub(crate) fn done(globals: &Globals, sentence: &str, object: &impl Serialize) -> Result<(), Failure> {
    if globals.json { json_to_stdout(object) } else { to_stdout(|out| writeln!(out, "{sentence}")) }
}

/// Reports what a command wrote to a file: as a sentence, or with `--json` as an object, which is on standard error if
/// the file is standard output.
pub(crate) fn wrote(
    globals: &Globals,
    path: &Path,
    sentence: &str,
    object: &impl Serialize,
) -> Result<(), Failure> {
    match (globals.json, is_stdout(path)) {
        (true, false) => return json_to_stdout(object),
        (true, true) => json_to_stderr(object),
        (false, _) => to_stderr(sentence),
    }
    Ok(())
}

/// Returns whether a file on the command line is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of a file on the command line for messages.
pub(crate) fn name(path: &Path) -> Cow<'_, str> {
    if is_stdout(path) { "standard output".into() } else { path.to_string_lossy() }
}

/// Writes one object, as a line, to standard output.
pub(crate) fn json_to_stdout(value: &impl Serialize) -> Result<(), Failure> {
    to_stdout(|out| {
        write_json(out, value)?;
        writeln!(out)
    })
}

/// Writes the obvious next command after a table, if people read it on a terminal.
pub(crate) fn show_next(command: &str, globals: &Globals) -> Result<(), Failure> {
    if globals.json || globals.no_hints || !io::stdout().is_terminal() {
        return Ok(());
    }
    to_stdout(|out| writeln!(out, "\nnext: {command}"))
}
