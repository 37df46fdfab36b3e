//! `Socket`: a connected pipe whose every wait has a deadline.
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_discover::sys::{self, Address, Credentials};
use ipc_proto::BusyBackoff;
use windows_sys::Win32::Foundation::{
    ERROR_PIPE_BUSY, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_OVERLAPPED, OPEN_EXISTING, ReadFile, SECURITY_IDENTIFICATION,
    SECURITY_SQOS_PRESENT, WriteFile,
};
use windows_sys::Win32::System::IO::{CancelIoEx, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{PeekNamedPipe, WaitNamedPipeW};

use super::error::{error, is_cancelled, last_error};
use super::event::{Event, milliseconds, wait};
use super::operation::Operation;
use super::poller::{Source, Watched};

/// A connected pipe.
///
/// Reading and writing by reference do not block, but fail with `WouldBlock`.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Pipe>);

#[derive(Debug)]
struct Pipe {
    handle: Arc<OwnedHandle>,
    /// Whether the socket was shut down.
    ended: AtomicBool,
    /// A read of 0 bytes for a poller: it ends when there are bytes to read or the peer has closed the pipe.
    probe: Mutex<Option<Operation>>,
}

impl Socket {
    /// Returns the connection unchanged: handles have no order.
    pub(crate) const fn with_lowest_descriptor(self) -> Self {
        self
    }

    /// Takes a connected pipe.
    pub(crate) fn new(pipe: OwnedHandle) -> Self {
        Self::over(Arc::new(pipe))
    }

    pub(super) fn over(handle: Arc<OwnedHandle>) -> Self {
        Self(Arc::new(Pipe { handle, ended: AtomicBool::new(false), probe: Mutex::new(None) }))
    }

    /// Connects to the pipe at `path`. If all its instances are in use, waits for a new one: a runtime makes the next
    /// instance only between two commands. Another client can take the new instance first, so connecting is tried again
    /// after the pauses of [`BusyBackoff`] at the latest.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        let mut backoff = BusyBackoff::new();
        let address = Address::new(path)?;
        loop {
            match Self::open(&address) {
                Err(e) if is_busy(&e) => {}
                opened => return opened,
            }
            let timeout = milliseconds(deadline)?.min(backoff.next());
            // SAFETY: the name ends with a NUL.
            if unsafe { WaitNamedPipeW(address.wide().as_ptr(), timeout) } == 0 {
                // If waiting fails for another reason than the timeout, it does so immediately, and this pause keeps
                // the loop from spinning.
                std::thread::sleep(Duration::from_millis(BusyBackoff::FIRST_MS.into()));
            }
        }
    }

    /// Connects without waiting; fails with `WouldBlock` if all instances are in use.
    pub(crate) fn connect_at_once(address: &Address) -> io::Result<Self> {
        Self::open(address).map_err(|e| if is_busy(&e) { ErrorKind::WouldBlock.into() } else { e })
    }

    fn open(address: &Address) -> io::Result<Self> {
        // The server can identify this process, but not impersonate it.
        let flags = FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION;
        // SAFETY: the name ends with a NUL, and the other pointers are optional.
        let handle = unsafe {
            CreateFileW(
                address.wide().as_ptr(),
                GENERIC_READ | GENERIC_WRITE,
                0,
                ptr::null(),
                OPEN_EXISTING,
                flags,
                ptr::null_mut(),
            )
        };
        if handle == INVALID_HANDLE_VALUE {
            return Err(error(last_error()));
        }
        // SAFETY: the handle is new and has no other owner.
        Ok(Self::new(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// Waits for bytes and reads them; fails with `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let (space, len) = (buf.as_mut_ptr(), length(buf));
        loop {
            let read = self.run(deadline, |pipe, overlapped| {
                // SAFETY: `space` has `len` bytes, and is borrowed until the operation ends.
                unsafe { ReadFile(pipe, space, len, ptr::null_mut(), overlapped) }
            });
            match read {
                // The peer wrote 0 bytes, which is not the end: read again.
                Ok(0) => {}
                Err(e) if is_closed(&e) => return Ok(0),
                read => return read,
            }
        }
    }

    /// Waits for room and writes at most 16 KiB; fails with `TimedOut` after `deadline`.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        /// The limit of one write, in bytes. It is low, because a write that times out does not report how much was
        /// sent.
        const PIECE: usize = 16 << 10;
        let piece = buf.get(..PIECE).unwrap_or(buf);
        if piece.is_empty() {
            return Ok(0);
        }
        self.run(deadline, |pipe, overlapped| {
            // SAFETY: the length is that of `piece`, which is borrowed until the operation ends.
            unsafe { WriteFile(pipe, piece.as_ptr(), length(piece), ptr::null_mut(), overlapped) }
        })
    }

    /// Runs an operation until its end or the deadline.
    fn run(
        &self,
        deadline: Instant,
        start: impl FnOnce(HANDLE, *mut OVERLAPPED) -> i32,
    ) -> io::Result<usize> {
        // An operation that ends immediately would not notice that the pipe was shut down.
        if self.has_ended() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        thread_local! {
            /// The event of the current operation of this thread.
            static EVENT: io::Result<Arc<Event>> = Event::new().map(Arc::new);
        }
        EVENT.with(|event| {
            let event = event.as_ref().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
            // SAFETY: the operation ends before this closure returns, and the buffer of `start` lives longer.
            let operation = unsafe { Operation::start(&self.0.handle, event, start)? };
            let mut waited = Ok(());
            // `shutdown` cancels operations that were started before it; later operations see `has_ended`.
            while operation.result().is_none() && waited.is_ok() && !self.has_ended() {
                waited = wait(&[event], deadline);
            }
            match (operation.cancel(), waited) {
                (Err(e), Err(timed_out)) if is_cancelled(&e) => Err(timed_out),
                (Err(e), Ok(())) if is_cancelled(&e) => Err(ErrorKind::BrokenPipe.into()),
                (result, _) => result,
            }
        })
    }

    /// Returns whether the socket was shut down.
    pub(super) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes that can be read without waiting.
    fn available(&self) -> io::Result<usize> {
        if self.has_ended() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut available = 0;
        // SAFETY: the handle is open, and the other pointers are optional.
        let peeked = unsafe {
            PeekNamedPipe(self.0.raw(), ptr::null_mut(), 0, ptr::null_mut(), &mut available, ptr::null_mut())
        };
        if peeked == 0 {
            return Err(error(last_error()));
        }
        usize::try_from(available).map_err(io::Error::other)
    }

    /// Returns whether the peer has closed the pipe and all bytes of the peer were read.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.available().is_err()
    }

    /// Closes both directions, because a pipe cannot close only one. A thread that reads or writes returns immediately.
    /// The peer sees the end when all threads have dropped the socket.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Both {
            return Err(ErrorKind::Unsupported.into());
        }
        self.0.ended.store(true, Ordering::SeqCst);
        // SAFETY: the handle is open. The thread that started an operation handles its cancellation.
        unsafe { CancelIoEx(self.0.raw(), ptr::null()) };
        Ok(())
    }

    /// Returns the process at the other end, if the system reports it.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        sys::credentials(self.0.handle.as_handle())
    }
}

/// Returns whether the peer has closed the pipe.
fn is_closed(e: &io::Error) -> bool {
    e.kind() == ErrorKind::BrokenPipe
}

/// Returns whether all instances of the pipe are in use.
fn is_busy(e: &io::Error) -> bool {
    e.raw_os_error().and_then(|code| u32::try_from(code).ok()) == Some(ERROR_PIPE_BUSY)
}

fn length(buf: &[u8]) -> u32 {
    u32::try_from(buf.len()).unwrap_or(u32::MAX)
}

impl Read for &Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let available = match self.available() {
            Err(e) if is_closed(&e) => return Ok(0),
            available => available?,
        };
        let space = match buf.len().min(available) {
            0 if buf.is_empty() => return Ok(0),
            0 => return Err(ErrorKind::WouldBlock.into()),
            len => buf.get_mut(..len).unwrap_or_default(),
        };
        // The bytes are available, unless another thread has read them.
        non_blocking(self.read_by(space, Instant::now()))
    }
}
impl Write for &Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        non_blocking(self.write_by(buf, Instant::now()))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts a timeout into `WouldBlock`.
fn non_blocking(result: io::Result<usize>) -> io::Result<usize> {
    result.map_err(|e| if e.kind() == ErrorKind::TimedOut { ErrorKind::WouldBlock.into() } else { e })
}

impl AsHandle for Socket {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.handle.as_handle()
    }
}

impl Source for Socket {
    fn watched(&self) -> Arc<dyn Watched> {
        Arc::clone(&self.0) as _
    }
}

impl Pipe {
    fn raw(&self) -> HANDLE {
        self.handle.as_raw_handle()
    }

    fn probe(&self) -> MutexGuard<'_, Option<Operation>> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched for Pipe {
    fn arm(&self, event: &Arc<Event>) {
        let mut probe = self.probe();
        if probe.as_ref().is_some_and(|probe| !probe.was_cancelled()) {
            return;
        }
        // SAFETY: the operation reads 0 bytes, so there is no buffer.
        let started = unsafe {
            Operation::start(&self.handle, event, |pipe, overlapped| {
                ReadFile(pipe, ptr::null_mut(), 0, ptr::null_mut(), overlapped)
            })
        };
        // If the probe does not start, the pipe counts as ready: the next read fails for the same reason.
        *probe = started.ok();
    }
    fn take_ready(&self) -> bool {
        let mut probe = self.probe();
        let ready = match &*probe {
            Some(probe) => probe.result().is_some() && !probe.was_cancelled(),
            None => true,
        };
        if ready {
            *probe = None;
        }
        ready
    }
    fn disarm(&self) {
        *self.probe() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::listener::Listener;
    use super::*;

    #[test]
    fn nothing_is_written_after_a_shutdown() {
        let path = PathBuf::from(format!("dotnet-ipc-shut-down-{}", std::process::id()));
        let _listener = Listener::bind(&path).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let socket = Socket::connect(&path, deadline).unwrap();
        assert_eq!(socket.write_by(b"before", deadline).unwrap(), 6);
        socket.shutdown(Shutdown::Both).unwrap();
        // The buffer has room, so only the shutdown can be the reason why these bytes are refused.
        for _ in 0..100 {
            assert_eq!(socket.write_by(b"after ", deadline).unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
        assert_eq!(socket.read_by(&mut [0], deadline).unwrap(), 0);
    }
}
