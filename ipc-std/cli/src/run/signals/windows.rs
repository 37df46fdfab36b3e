//! Ctrl-C, Ctrl-Break and the end of the console of Windows.
#![allow(unsafe_code, reason = "the system calls a function of ours")]
use std::sync::OnceLock;
use std::{io, thread};

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

static ON: OnceLock<fn(i32)> = OnceLock::new();

/// The number of SIGINT on Unix, for Ctrl-C.
const INTERRUPT: i32 = 2;
/// The number of SIGHUP on Unix, for the end of the console or of the session.
const HANG_UP: i32 = 1;

/// Returns whether the tool ignores Ctrl-C.
pub(super) const fn ignores_interrupt() -> bool {
    false
}

/// Calls `on` for the events of the console, on a thread of its own, instead of their default actions.
pub(super) fn listen(on: fn(i32)) -> io::Result<()> {
    ON.get_or_init(|| on);
    // SAFETY: the function exists as long as the program does.
    match unsafe { SetConsoleCtrlHandler(Some(on_event), 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Does nothing: Windows has no such signal.
pub(super) fn listen_for_stop(_: fn(i32)) -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows has no such signal.
pub(super) fn refuse_long_files() -> io::Result<()> {
    Ok(())
}

unsafe extern "system" fn on_event(event: u32) -> BOOL {
    let asked = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if let Some(on) = ON.get() {
        on(if asked { INTERRUPT } else { HANG_UP });
    }
    if !asked {
        // The system ends the program when this returns, or some seconds later. The handler needs that time.
        loop {
            thread::park();
        }
    }
    1
}

/// Ends the tool immediately, like the default action of Ctrl-C.
pub(super) fn end(_: i32) {
    /// The exit status after Ctrl-C, `STATUS_CONTROL_C_EXIT`.
    const ENDED: u32 = 0xc000_013a;
    std::process::exit(ENDED as i32);
}
