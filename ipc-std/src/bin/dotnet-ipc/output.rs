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
        if self.json { json_to_stderr(&json!({ "note": note })) } else { to_stderr(&format!("note: {note}")) }
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
    to_stdout(|out| writeln!(out, "{}", json_line(value)))
}

/// Writes one object, as a line, to standard error.
pub(crate) fn json_to_stderr(value: &Value) {
    to_stderr(&json_line(value));
}

/// JSON leaves more as it is than a terminal may be shown.
fn json_line(value: &Value) -> String {
    let line = value.to_string();
    // What is to be escaped stands within a string, and is in the basic plane.
    escape(&line, |c| format!("\\u{:04x}", u32::from(c))).into_owned()
}

/// Writes a line to standard error. There is nobody left to tell that it cannot be written.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What a program says of itself, without what would steer a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        c => c.escape_unicode().to_string(),
    })
}

fn escape(text: &str, escaped: impl Fn(char) -> String) -> Cow<'_, str> {
    if text.chars().any(steers) {
        text.chars().map(|c| if steers(c) { escaped(c) } else { c.to_string() }).collect()
    } else {
        text.into()
    }
}

/// Whether a character may move a terminal's cursor, end a line, or turn the direction of what follows.
pub(crate) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
