//! Error codes of Windows as `io::Error`.
use std::io::{self, ErrorKind};

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY,
    ERROR_OPERATION_ABORTED, ERROR_PIPE_NOT_CONNECTED, ERROR_TOO_MANY_OPEN_FILES, GetLastError,
};

pub(super) fn last_error() -> u32 {
    // SAFETY: the function takes no arguments.
    unsafe { GetLastError() }
}

/// Converts an error code of the system. A peer that has closed the pipe is the kind `BrokenPipe`.
pub(super) fn error(code: u32) -> io::Error {
    match code {
        ERROR_BROKEN_PIPE | ERROR_NO_DATA | ERROR_PIPE_NOT_CONNECTED => ErrorKind::BrokenPipe.into(),
        code => io::Error::from_raw_os_error(code as i32),
    }
}

pub(super) fn is_cancelled(e: &io::Error) -> bool {
    e.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32)
}

/// Returns whether the system had no free handle, memory or thread. A later attempt can succeed.
#[must_use]
pub fn is_shortage(e: &io::Error) -> bool {
    const SHORTAGES: [u32; 3] =
        [ERROR_TOO_MANY_OPEN_FILES, ERROR_NOT_ENOUGH_MEMORY, ERROR_NO_SYSTEM_RESOURCES];
    e.kind() == ErrorKind::OutOfMemory || SHORTAGES.iter().any(|code| e.raw_os_error() == Some(*code as i32))
}
