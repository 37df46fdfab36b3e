//! Where results and remarks go.
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;

use serde_json::{Value, json};

use crate::failure::Failure;

/// The form of all output.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Write JSON: one object, or one object a line; errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Output {
    /// A remark on standard error: neither a result nor an error.
    pub(crate) fn note(&self, note: &str) {
        to_stderr(&if self.json { json!({ "note": note }).to_string() } else { format!("note: {note}") });
    }
}

/// Writes a result to standard output. Whoever has closed it has seen enough, which is no error.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|e| Failure::io("cannot write to standard output", &e)),
    }
}

/// Standard output, without the buffer that Rust's has, which is made for lines.
pub(crate) fn unbuffered_stdout() -> io::Result<File> {
    #[cfg(unix)]
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    #[cfg(windows)]
    let stdout = io::stdout().as_handle().try_clone_to_owned();
    stdout.map(File::from)
}

/// Tells what was done: in a sentence, or as an object.
pub(crate) fn done(output: &Output, sentence: &str, object: &Value) -> Result<(), Failure> {
    if output.json { json_to_stdout(object) } else { to_stdout(|out| writeln!(out, "{sentence}")) }
}

/// Writes one object, as a line, to standard output.
pub(crate) fn json_to_stdout(value: &Value) -> Result<(), Failure> {
    to_stdout(|out| writeln!(out, "{value}"))
}

/// Writes a line to standard error. There is nobody left to tell that it cannot be written.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What a program says of itself, without what would move a terminal's cursor or break a line.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.chars()
            .map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() })
            .collect()
    } else {
        text.into()
    }
}
