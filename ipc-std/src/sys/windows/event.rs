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
        // SAFETY: there is no name, and nobody else's security to be had.
        let event = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        if event.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was made a moment ago, and has no other owner.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(event) }))
    }

    pub(super) fn set(&self) {
        // SAFETY: the handle is an event's, and open. So it cannot fail.
        unsafe { SetEvent(self.raw()) };
    }

    pub(super) fn reset(&self) {
        // SAFETY: as above.
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

/// Waits until one of these is set; an error of kind `TimedOut` after `deadline`.
pub(super) fn wait(events: &[&Event], deadline: Instant) -> io::Result<()> {
    let handles: Vec<HANDLE> = events.iter().map(|event| event.raw()).collect();
    let count = u32::try_from(handles.len()).map_err(io::Error::other)?;
    loop {
        let milliseconds = milliseconds(deadline)?;
        // SAFETY: there are as many handles as it says, all of them open.
        match unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds) } {
            WAIT_FAILED => return Err(io::Error::last_os_error()),
            // It may be a bit early, or the longest wait that there is was not long enough.
            WAIT_TIMEOUT => {}
            _ => return Ok(()),
        }
    }
}

/// What is left until `deadline`, at least 1; an error of kind `TimedOut` once it has passed.
pub(super) fn milliseconds(deadline: Instant) -> io::Result<u32> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    // Rounded up: not to ask again and again in the last millisecond.
    let left = left.saturating_add(Duration::from_micros(999)).as_millis();
    Ok(u32::try_from(left).unwrap_or(INFINITE).min(INFINITE.saturating_sub(1)))
}
