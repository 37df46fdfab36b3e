//! Lines on standard error.
use std::io::{self, Write};

use serde::Serialize;

use crate::text::printable::json_line;
use crate::text::terminal_text::TerminalText;

/// Writes a line to standard error. A failure is ignored, because there is no other place to report it.
pub(crate) fn to_stderr(line: &str) {
    // Locked until the whole line is written, so that the lines of several threads do not mix.
    let _ = TerminalText::new(io::stderr().lock()).write_all(format!("{line}\n").as_bytes());
}

/// Writes a remark to standard error: neither a result nor an error.
pub(crate) fn note(is_json: bool, note: &str) {
    to_stderr(&note_line(is_json, note));
}

/// Returns the line for a remark.
pub(crate) fn note_line(is_json: bool, note: &str) -> String {
    /// A remark as JSON.
    #[derive(Serialize)]
    struct Note<'n> {
        note: &'n str,
    }
    if is_json { json_line(&Note { note }) } else { format!("note: {note}") }
}

/// Writes one object, as a line, to standard error.
pub(crate) fn json_to_stderr(value: &impl Serialize) {
    to_stderr(&json_line(value));
}
