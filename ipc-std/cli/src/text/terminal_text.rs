//! The border between the tool and a terminal: no text controls the terminal, whatever wrote it.
use std::io::{self, IsTerminal, Write};

use super::printable::is_control;

/// A standard stream for text. If it is a terminal, characters that control it are escaped, except for the ends of
/// lines and tabs, and bytes that are not UTF-8 are replaced. Otherwise all bytes are unchanged.
#[derive(Debug)]
pub(crate) struct TerminalText<W> {
    out: W,
    is_terminal: bool,
    /// The beginning of a character whose end is not written yet.
    pending: Vec<u8>,
}

impl<W: Write + IsTerminal> TerminalText<W> {
    pub(crate) fn new(out: W) -> Self {
        let is_terminal = out.is_terminal();
        Self { out, is_terminal, pending: Vec::new() }
    }
}

impl<W: Write> TerminalText<W> {
    fn escape(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut escaped = String::new();
        let mut all = core::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        for chunk in all.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' | '\t' => escaped.push(c),
                    c if is_control(c) => escaped.extend(c.escape_unicode()),
                    c => escaped.push(c),
                }
            }
            match chunk.invalid() {
                [] => {}
                end if all.ends_with(end) && is_start(end) => self.pending.extend_from_slice(end),
                _ => escaped.push(char::REPLACEMENT_CHARACTER),
            }
        }
        self.out.write_all(escaped.as_bytes())
    }
}

/// Returns whether bytes that are not a character begin one.
fn is_start(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

impl<W: Write> Write for TerminalText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal { self.escape(bytes).map(|()| bytes.len()) } else { self.out.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]], is_terminal: bool) -> Vec<u8> {
        let mut text = TerminalText { out: Vec::new(), is_terminal, pending: Vec::new() };
        parts.iter().for_each(|part| text.write_all(part).unwrap());
        text.out
    }

    #[test]
    fn nothing_controls_a_terminal() {
        let text = "a\u{1b}[31m\u{7}\r\t\u{7f}\u{9b}2J\u{202e}b\u{2066}\n";
        let escaped = "a\\u{1b}[31m\\u{7}\\u{d}\t\\u{7f}\\u{9b}2J\\u{202e}b\\u{2066}\n";
        assert_eq!(written(&[text.as_bytes()], true), escaped.as_bytes());
        assert_eq!(written(&[text.as_bytes()], false), text.as_bytes());
        // Characters that are written byte by byte, and bytes that are not a character.
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes, true), escaped.as_bytes());
        assert_eq!(
            written(&[b"\x9b31m\xe2", b"\x80\xae\xe2", b"a\xff"], true),
            "\u{fffd}31m\\u{202e}\u{fffd}a\u{fffd}".as_bytes()
        );
    }
}
