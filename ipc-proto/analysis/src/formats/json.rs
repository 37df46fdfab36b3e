//! Writes strings of JSON.
use core::fmt::{self, Write};

/// Writes a string.
pub(super) fn write_string(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    write_text(text, out)?;
    out.write_char('"')
}

/// Writes a string without its quotation marks.
pub(super) fn write_text(text: &str, out: &mut dyn Write) -> fmt::Result {
    let needs_escape = |c: char| c == '"' || c == '\\' || c.is_control();
    let mut rest = text;
    while let Some((before, after)) = rest.find(needs_escape).and_then(|place| rest.split_at_checked(place)) {
        out.write_str(before)?;
        let mut chars = after.chars();
        if let Some(c) = chars.next() {
            write!(out, "\\u{:04x}", u32::from(c))?;
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}
