//! Text from other programs without the characters that control a terminal.
use std::borrow::Cow;
use std::io::{self, Write};

use nettrace::Str;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Names from a trace are cut to this many characters, because each event can repeat a name, and a column is as wide as
/// its longest name.
pub(crate) const NAME_LIMIT: usize = 256;

/// Returns a name as [`printable`] does. The end of a long name is replaced by `…`.
pub(crate) fn printable_name(name: &str) -> String {
    let mut chars = name.chars();
    let start: String = chars.by_ref().take(NAME_LIMIT).collect();
    let mark = if chars.next().is_some() { "…" } else { "" };
    format!("{}{mark}", printable(&start))
}

/// Returns the start of a name: at least [`NAME_LIMIT`] characters and one more, if the name has so many. So the work
/// for a long name is limited.
pub(crate) fn start(name: Str<'_>) -> Str<'_> {
    /// A character has at most four bytes in either encoding.
    const LEN: usize = (NAME_LIMIT + 1) * 4;
    match name {
        Str::Utf8(bytes) => Str::Utf8(bytes.get(..LEN).unwrap_or(bytes)),
        Str::Utf16(bytes) => Str::Utf16(bytes.get(..LEN).unwrap_or(bytes)),
    }
}

/// Returns `text` with its control characters escaped as in Rust, `\u{1b}`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        c => c.escape_unicode().to_string(),
    })
}

/// Returns `value` as one line. JSON itself leaves some control characters as they are, such as DEL.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    let mut line = Vec::new();
    // It fails only for a map whose keys are no text, which no row has.
    let _ = write_json(&mut line, value);
    String::from_utf8(line).unwrap_or_default()
}

/// Writes `value` as JSON, piece by piece, with the escapes of [`json_line`].
pub(crate) fn write_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    struct Escapes;
    impl Formatter for Escapes {
        fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, part: &str) -> io::Result<()> {
            // All these characters are in the basic plane, so that one escape is enough.
            out.write_all(escape(part, |c| format!("\\u{:04x}", u32::from(c))).as_bytes())
        }
    }
    Ok(value.serialize(&mut Serializer::with_formatter(out, Escapes))?)
}

/// Writes characters as a string of JSON, with the escapes of [`json_line`], and without a copy.
pub(crate) fn write_json_string(
    out: &mut dyn Write,
    mut chars: impl Iterator<Item = char>,
) -> io::Result<()> {
    out.write_all(b"\"")?;
    chars.try_for_each(|c| write_json_char(out, c))?;
    out.write_all(b"\"")
}

/// Writes a character of a string of JSON.
pub(crate) fn write_json_char(out: &mut (impl Write + ?Sized), c: char) -> io::Result<()> {
    match c {
        '"' => out.write_all(b"\\\""),
        '\\' => out.write_all(b"\\\\"),
        '\n' => out.write_all(b"\\n"),
        '\r' => out.write_all(b"\\r"),
        '\t' => out.write_all(b"\\t"),
        c if is_control(c) => write!(out, "\\u{:04x}", u32::from(c)),
        c => out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Returns the name in JavaScript of a number that JSON cannot represent.
pub(crate) const fn not_a_number(number: f64) -> Option<&'static str> {
    if number.is_finite() {
        None
    } else if number.is_nan() {
        Some("NaN")
    } else if number > 0.0 {
        Some("Infinity")
    } else {
        Some("-Infinity")
    }
}

/// Returns an address, or an id that is one, as text.
pub(crate) fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

/// Returns a whole number as JSON; as text if JavaScript would round it.
pub(crate) fn integer(number: u64) -> Value {
    if is_rounded(number) { number.to_string().into() } else { number.into() }
}

/// Returns whether JavaScript would round a whole number.
pub(crate) const fn is_rounded(number: u64) -> bool {
    number >= 1 << 53
}

fn escape(text: &str, escaped: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return text.into();
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) {
            line.push_str(&escaped(c));
        } else {
            line.push(c);
        }
    }
    line.into()
}

/// Returns whether a character can move the cursor of a terminal, end a line, or change the direction of the text that
/// follows. U+FFFE and U+FFFF, which XML does not allow, count as well.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}
