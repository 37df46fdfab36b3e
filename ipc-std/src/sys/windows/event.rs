//! `Event`: an event of the system, and waiting for several of them.
use core::ptr;
use core::time::Duration;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::time::Instant;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, ResetEvent, SetEvent, WaitForMultipleObjects,
};

/// An event that stays set until it is reset.
#[derive(Debug)]
pub(crate) struct Event(OwnedHandle);

impl Event {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: name and security descriptor are optional.
        let event = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        if event.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is new and has no other owner.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(event) }))
    }

    pub(super) fn set(&self) {
        // SAFETY: the handle is open and refers to an event, so the call cannot fail.
        unsafe { SetEvent(self.raw()) };
    }

    pub(super) fn reset(&self) {
        // SAFETY: the handle is open and refers to an event, so the call cannot fail.
        unsafe { ResetEvent(self.raw()) };
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

impl AsHandle for Event {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}

/// Waits until one of the events is set; fails with `TimedOut` after `deadline`.
pub(super) fn wait(events: &[&Event], deadline: Instant) -> io::Result<()> {
    let handles: Vec<HANDLE> = events.iter().map(|event| event.raw()).collect();
    let count = u32::try_from(handles.len()).map_err(io::Error::other)?;
    loop {
        let milliseconds = milliseconds(deadline)?;
        // SAFETY: `count` is the number of handles, and all are open.
        match unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds) } {
            WAIT_FAILED => return Err(io::Error::last_os_error()),
            // The wait may have ended early, or the deadline is beyond the longest timeout: wait again.
            WAIT_TIMEOUT => {}
            _ => return Ok(()),
        }
    }
}

/// Returns the milliseconds until `deadline`, at least 1; fails with `TimedOut` after it.
pub(super) fn milliseconds(deadline: Instant) -> io::Result<u32> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    // Rounded up: rounded down, the last part of a millisecond would be a loop of waits of 0 ms.
    let left = left.saturating_add(Duration::from_micros(999)).as_millis();
    Ok(u32::try_from(left).unwrap_or(INFINITE).min(INFINITE.saturating_sub(1)))
}
