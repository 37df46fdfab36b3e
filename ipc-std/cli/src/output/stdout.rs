//! Results on standard output.
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;

use serde_json::Value;

use super::failure::Failure;
use super::globals::Globals;
use super::printable::json_line;

/// Writes a result to standard output. A reader that closed the pipe wants no more, which is no error.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    to_open_stdout(write).map(|_| ())
}

/// As [`to_stdout`], for one of several results. Returns whether the reader wants the next one.
pub(crate) fn to_open_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).map_err(|e| Failure::io("cannot write to standard output", &e)),
    }
}

/// Returns standard output without the line buffer of [`std::io::Stdout`].
pub(crate) fn unbuffered_stdout() -> io::Result<File> {
    #[cfg(unix)]
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    #[cfg(windows)]
    let stdout = io::stdout().as_handle().try_clone_to_owned();
    stdout.map(File::from)
}

/// Reports what a command did: as a sentence, or with `--json` as an object.
pub(crate) fn done(globals: &Globals, sentence: &str, object: &Value) -> Result<(), Failure> {
    if globals.json { json_to_stdout(object) } else { to_stdout(|out| writeln!(out, "{sentence}")) }
}

/// Writes one object, as a line, to standard output.
pub(crate) fn json_to_stdout(value: &Value) -> Result<(), Failure> {
    to_stdout(|out| writeln!(out, "{}", json_line(value)))
}
