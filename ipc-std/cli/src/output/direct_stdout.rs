//! Standard output as a file.
use std::fs::File;
use std::io;
#[cfg(windows)]
use std::io::IsTerminal;
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt;
#[cfg(windows)]
use std::os::windows::io::AsHandle;

use crate::run::Failure;
use crate::text::terminal_text::TerminalText;

/// The failure for standard output.
pub(crate) fn cannot_write(e: &io::Error) -> Failure {
    Failure::io("cannot write to standard output", e)
}

/// Standard output for text, without the line buffer of [`std::io::Stdout`].
pub(crate) type UnbufferedStdout = TerminalText<File>;

/// Returns standard output for text.
pub(crate) fn unbuffered_stdout() -> Result<UnbufferedStdout, Failure> {
    raw_stdout().map(TerminalText::new).map_err(|e| cannot_write(&e))
}

/// Returns standard output for bytes that can control a terminal.
pub(crate) fn raw_stdout() -> io::Result<File> {
    #[cfg(unix)]
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    #[cfg(windows)]
    let stdout = io::stdout().as_handle().try_clone_to_owned();
    stdout.map(File::from)
}

/// Returns whether standard output is a device, such as a terminal or the null device.
pub(crate) fn is_device() -> bool {
    #[cfg(unix)]
    let is_device = raw_stdout()
        .and_then(|stdout| stdout.metadata())
        .is_ok_and(|stdout| stdout.file_type().is_char_device());
    #[cfg(windows)]
    let is_device = io::stdout().is_terminal();
    is_device
}
