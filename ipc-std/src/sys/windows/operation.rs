//! `Operation`: an overlapped operation, which is cancelled when it is dropped.
use core::cell::UnsafeCell;
use core::fmt;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, HANDLE};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};

use super::error::{error, is_cancelled, last_error};
use super::event::Event;

/// An overlapped operation. Dropping the value cancels the operation and waits for its end.
///
/// The system also cancels an operation when the thread that started it ends. The caller must then start a new one.
pub(super) struct Operation {
    pipe: Arc<OwnedHandle>,
    /// The event that the system sets when the operation ends.
    _event: Arc<Event>,
    /// Boxed, because the system writes to its address.
    overlapped: Box<UnsafeCell<OVERLAPPED>>,
}

// SAFETY: this program never reads `overlapped`. Only functions of the system do, and any thread can call them.
unsafe impl Send for Operation {}
// SAFETY: as for `Send`. Several threads can call these functions at the same time.
unsafe impl Sync for Operation {}

impl Operation {
    /// Starts an operation on a pipe. The start resets the event; the end of the operation sets it.
    ///
    /// # Safety
    /// `start` must pass its arguments to the system, and nothing else that does not outlive this operation.
    pub(super) unsafe fn start(
        pipe: &Arc<OwnedHandle>,
        event: &Arc<Event>,
        start: impl FnOnce(HANDLE, *mut OVERLAPPED) -> i32,
    ) -> io::Result<Self> {
        let overlapped = OVERLAPPED { hEvent: event.raw(), ..OVERLAPPED::default() };
        let overlapped = Box::new(UnsafeCell::new(overlapped));
        if start(pipe.as_raw_handle(), overlapped.get()) == 0 {
            let code = last_error();
            if code != ERROR_IO_PENDING {
                // The operation has ended, so the system does not use the structure any more.
                return Err(error(code));
            }
        }
        Ok(Self { pipe: Arc::clone(pipe), _event: Arc::clone(event), overlapped })
    }

    /// Returns whether the operation was cancelled: by a thread, or because the thread that started it has ended.
    pub(super) fn was_cancelled(&self) -> bool {
        matches!(self.result(), Some(Err(e)) if is_cancelled(&e))
    }

    /// Returns the number of bytes or the error; `None` before the end of the operation.
    pub(super) fn result(&self) -> Option<io::Result<usize>> {
        let mut bytes = 0;
        let pipe = self.pipe.as_raw_handle();
        // SAFETY: the handle is open, and the structure belongs to an operation that was started on it.
        if unsafe { GetOverlappedResult(pipe, self.overlapped.get(), &mut bytes, 0) } != 0 {
            return Some(usize::try_from(bytes).map_err(io::Error::other));
        }
        match last_error() {
            ERROR_IO_INCOMPLETE => None,
            code => Some(Err(error(code))),
        }
    }

    /// Cancels the operation unless it has ended, and returns the result, which can still be a success.
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
                // SAFETY: as in `result`. The call fails if the operation has ended, which the next round finds.
                unsafe { CancelIoEx(self.pipe.as_raw_handle(), self.overlapped.get()) };
            }
            // A pipe cancels at once, so the loop is short. The event is no help: another operation may have set it.
            std::thread::yield_now();
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // The operation must end here, because the system must not write to freed memory.
        let _ = self.end();
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}
