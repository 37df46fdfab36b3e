#![allow(unsafe_code, reason = "the system calls a function of ours")]
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use crate::failure::Failure;

type Handler = Box<dyn FnMut(i32) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// What Ctrl-C is called elsewhere.
const INTERRUPT: i32 = 2;
/// The same of a console that closes, and of a user who leaves.
const HANG_UP: i32 = 1;

/// From now on hands Ctrl-C, Ctrl-Break and the end of the console to `on`, on a thread of its own, in place of what
/// they do.
pub(crate) fn handle(on: impl FnMut(i32) + Send + 'static) -> Result<(), Failure> {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(on));
    // SAFETY: the function is there as long as the program is.
    match unsafe { SetConsoleCtrlHandler(Some(on_event), 1) } {
        0 => Err(Failure::io("cannot handle Ctrl-C", &io::Error::last_os_error())),
        _ => Ok(()),
    }
}

unsafe extern "system" fn on_event(event: u32) -> BOOL {
    let asked = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if let Some(on) = &mut *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        on(if asked { INTERRUPT } else { HANG_UP });
    }
    while !asked {
        // The system ends the program when this returns, or some seconds later: they are for ending properly.
        thread::park();
    }
    1
}

/// Does what the signal would have done: ends the tool at once.
pub(crate) fn obey(_: i32) {
    /// The status of a program that Ctrl-C has ended: `STATUS_CONTROL_C_EXIT`.
    const ENDED: u32 = 0xc000_013a;
    std::process::exit(ENDED.cast_signed());
}
