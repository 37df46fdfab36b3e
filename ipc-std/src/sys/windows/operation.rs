use core::cell::UnsafeCell;
use core::fmt;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, HANDLE};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};

use super::{Event, last_error};

/// An overlapped operation, which may still be going on. When it is dropped, it is cancelled and over.
///
/// The system cancels it, too, when the thread ends that started it: what it was for is to be started anew then.
pub(super) struct Operation {
    pipe: Arc<OwnedHandle>,
    /// Set when it is over.
    _event: Arc<Event>,
    /// At one address, as the system writes to it.
    overlapped: Box<UnsafeCell<OVERLAPPED>>,
}

// SAFETY: what the system writes is read by a function of the system only, which may be called by any thread.
unsafe impl Send for Operation {}
// SAFETY: as above.
unsafe impl Sync for Operation {}

impl Operation {
    /// Starts an operation on a pipe, which resets the event and sets it when it is over.
    ///
    /// # Safety
    /// `start` hands the system what it is given, and nothing else that does not outlive this operation.
    pub(super) unsafe fn start(
        pipe: &Arc<OwnedHandle>,
        event: &Arc<Event>,
        start: impl FnOnce(HANDLE, *mut OVERLAPPED) -> i32,
    ) -> io::Result<Self> {
        let overlapped = OVERLAPPED { hEvent: event.raw(), ..OVERLAPPED::default() };
        let overlapped = Box::new(UnsafeCell::new(overlapped));
        if start(pipe.as_raw_handle(), overlapped.get()) == 0 {
            let error = last_error();
            if error != ERROR_IO_PENDING {
                // The system has forgotten it already.
                return Err(super::error(error));
            }
        }
        Ok(Self { pipe: Arc::clone(pipe), _event: Arc::clone(event), overlapped })
    }

    /// How many bytes it has come to, or how it failed; `None` while it goes on.
    pub(super) fn result(&self) -> Option<io::Result<usize>> {
        let mut bytes = 0;
        let pipe = self.pipe.as_raw_handle();
        // SAFETY: the handle is open, and the structure is that of an operation that was started on it.
        if unsafe { GetOverlappedResult(pipe, self.overlapped.get(), &mut bytes, 0) } != 0 {
            return Some(usize::try_from(bytes).map_err(io::Error::other));
        }
        match last_error() {
            ERROR_IO_INCOMPLETE => None,
            error => Some(Err(super::error(error))),
        }
    }

    /// Cancels it, if it still goes on, and gives the result: it may have succeeded all the same.
    pub(super) fn cancel(self) -> io::Result<usize> {
        self.end()
    }

    fn end(&self) -> io::Result<usize> {
        let mut cancelled = false;
        loop {
            if let Some(result) = self.result() {
                return result;
            }
            if !core::mem::replace(&mut cancelled, true) {
                // SAFETY: as in `result`. It fails if the operation is over by now.
                unsafe { CancelIoEx(self.pipe.as_raw_handle(), self.overlapped.get()) };
            }
            // Pipes cancel at once. The event would not do: it may be set for another operation.
            std::thread::yield_now();
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // The system must not write any more to what is freed now.
        let _ = self.end();
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}
