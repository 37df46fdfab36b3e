//! Lines on standard error.
use std::io::{self, Write};

use serde_json::{Value, json};

use super::printable::json_line;
use super::terminal_text::TerminalText;

/// Writes a line to standard error. A failure is ignored, because there is no other place to report it.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(TerminalText::new(io::stderr()), "{line}");
}

/// Writes a remark to standard error: neither a result nor an error.
pub(crate) fn note(is_json: bool, note: &str) {
    if is_json { json_to_stderr(&json!({ "note": note })) } else { to_stderr(&format!("note: {note}")) }
}

/// Writes one object, as a line, to standard error.
pub(crate) fn json_to_stderr(value: &Value) {
    to_stderr(&json_line(value));
}
