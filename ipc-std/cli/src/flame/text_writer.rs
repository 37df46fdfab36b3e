//! A writer of text over a writer of bytes.
use core::fmt;
use std::io::{self, Write};

/// A writer of text, which stores the error of the writer of bytes.
pub(super) struct TextWriter<'o> {
    out: &'o mut dyn Write,
    written: io::Result<()>,
}

impl<'o> TextWriter<'o> {
    pub(super) fn write(
        out: &'o mut dyn Write,
        text: impl FnOnce(&mut Self) -> fmt::Result,
    ) -> io::Result<()> {
        let mut this = Self { out, written: Ok(()) };
        // `fmt::Error` has no details. The error of the writer of bytes is in `written`.
        let _ = text(&mut this);
        this.written
    }
}

impl fmt::Write for TextWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.written = self.out.write_all(text.as_bytes());
        if self.written.is_ok() { Ok(()) } else { Err(fmt::Error) }
    }
}
