use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use windows_sys::Win32::Foundation::{
    ERROR_PIPE_BUSY, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_OVERLAPPED, OPEN_EXISTING, ReadFile, SECURITY_IDENTIFICATION,
    SECURITY_SQOS_PRESENT, WriteFile,
};
#[cfg(feature = "fake")]
use windows_sys::Win32::System::IO::CancelIoEx;
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Pipes::{
    GetNamedPipeClientProcessId, GetNamedPipeInfo, GetNamedPipeServerProcessId, PIPE_SERVER_END,
    PeekNamedPipe, WaitNamedPipeW,
};

use super::event::{milliseconds, wait};
use super::poller::{Source, Watched};
use super::{Address, Event, Operation, last_error};
use crate::Credentials;
use crate::drive::is_closed;

/// A connected pipe.
///
/// To read and write by reference does not block: there is an error of kind `WouldBlock`.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Pipe>);

#[derive(Debug)]
struct Pipe {
    handle: Arc<OwnedHandle>,
    /// Whether it was shut down.
    ended: AtomicBool,
    /// A read of nothing, which is over once there is something to read, or nobody to write: for a poller.
    probe: Mutex<Option<Operation>>,
}

impl Socket {
    /// Over a pipe that is connected already.
    pub(crate) fn new(pipe: OwnedHandle) -> Self {
        Self::over(Arc::new(pipe))
    }

    pub(super) fn over(handle: Arc<OwnedHandle>) -> Self {
        Self(Arc::new(Pipe { handle, ended: AtomicBool::new(false), probe: Mutex::new(None) }))
    }

    /// Connects to the pipe at `path`. If all its instances have somebody, one is waited for, as a runtime makes the next
    /// only between two commands.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        /// An instance that somebody else was quicker to take wakes nobody.
        const LOOK: u32 = 50;
        let address = Address::new(path)?;
        loop {
            match Self::open(&address) {
                Err(e) if is_busy(&e) => {}
                opened => return opened,
            }
            let timeout = milliseconds(deadline)?.min(LOOK);
            // SAFETY: the name ends with a NUL. Whatever the answer is, the next try tells.
            if unsafe { WaitNamedPipeW(address.wide().as_ptr(), timeout) } == 0 {
                // Where it fails for another reason, it would do so at once.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Connects, or fails at once: with an error of kind `WouldBlock` if nobody accepts just now.
    pub(crate) fn connect_at_once(address: &Address) -> io::Result<Self> {
        Self::open(address).map_err(|e| if is_busy(&e) { ErrorKind::WouldBlock.into() } else { e })
    }

    fn open(address: &Address) -> io::Result<Self> {
        // Whoever listens may learn who we are, but not act as us.
        let flags = FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION;
        // SAFETY: the name ends with a NUL, and nothing else is handed over.
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
            return Err(super::error(last_error()));
        }
        // SAFETY: it was opened a moment ago, and has no other owner.
        Ok(Self::new(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// Reads as soon as there is something; an error of kind `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let (space, len) = (buf.as_mut_ptr(), length(buf));
        loop {
            let read = self.run(deadline, |pipe, overlapped| {
                // SAFETY: the space is as long as it says, and ours until the operation is over.
                unsafe { ReadFile(pipe, space, len, ptr::null_mut(), overlapped) }
            });
            match read {
                // Somebody has written nothing, which is no end.
                Ok(0) => {}
                Err(e) if is_closed(&e) => return Ok(0),
                read => return read,
            }
        }
    }

    /// Writes as soon as there is room for it, or for the first 16 KiB.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        /// Of a write that runs out of time it cannot be known how much went out. So it is not large.
        const PIECE: usize = 16 << 10;
        let piece = buf.get(..PIECE).unwrap_or(buf);
        if piece.is_empty() {
            return Ok(0);
        }
        self.run(deadline, |pipe, overlapped| {
            // SAFETY: the bytes are as many as it says, and stay until the operation is over.
            unsafe { WriteFile(pipe, piece.as_ptr(), length(piece), ptr::null_mut(), overlapped) }
        })
    }

    /// Runs an operation to its end, or to the deadline.
    fn run(
        &self,
        deadline: Instant,
        start: impl FnOnce(HANDLE, *mut OVERLAPPED) -> i32,
    ) -> io::Result<usize> {
        // What can be done at once would not be cancelled.
        if self.has_ended() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        thread_local! {
            /// For one operation after the other.
            static EVENT: io::Result<Arc<Event>> = Event::new().map(Arc::new);
        }
        EVENT.with(|event| {
            let event = event.as_ref().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
            // SAFETY: it is over before this returns.
            let operation = unsafe { Operation::start(&self.0.handle, event, start)? };
            let mut waited = Ok(());
            // Whoever ends the pipe cancels what was started before, and what is started behind that sees it.
            while operation.result().is_none() && waited.is_ok() && !self.has_ended() {
                waited = wait(&[event], deadline);
            }
            match (operation.cancel(), waited) {
                (Err(e), Err(timed_out)) if super::is_cancelled(&e) => Err(timed_out),
                (Err(e), Ok(())) if super::is_cancelled(&e) => Err(ErrorKind::BrokenPipe.into()),
                (result, _) => result,
            }
        })
    }

    fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// How many bytes are there to be read.
    fn available(&self) -> io::Result<usize> {
        if self.has_ended() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut available = 0;
        // SAFETY: the handle is open; nothing is asked for but that number.
        let peeked = unsafe {
            PeekNamedPipe(self.0.raw(), ptr::null_mut(), 0, ptr::null_mut(), &mut available, ptr::null_mut())
        };
        if peeked == 0 {
            return Err(super::error(last_error()));
        }
        usize::try_from(available).map_err(io::Error::other)
    }

    /// Whether the peer has closed, and all that it sent was read.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.available().is_err()
    }

    /// Tells the peer that no more comes, while it may still send: pipes cannot.
    #[cfg(feature = "conformance")]
    pub(crate) fn finish(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Ends it, in both directions: whoever reads or writes, on whatever thread, goes on at once. The peer sees the end
    /// when all of them have dropped it.
    #[cfg(feature = "fake")]
    pub(crate) fn shut_down(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        // SAFETY: the handle is open. What is cancelled is looked after by whoever has started it.
        unsafe { CancelIoEx(self.0.raw(), ptr::null()) };
    }

    /// Who is at the other end, if the system tells.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        let (pipe, mut flags, mut process_id) = (self.0.raw(), 0, 0);
        let null = ptr::null_mut();
        // SAFETY: the handle is open, and each function writes the one number that it is asked for.
        let told = unsafe {
            GetNamedPipeInfo(pipe, &mut flags, null, null, null) != 0
                && match flags & PIPE_SERVER_END {
                    0 => GetNamedPipeServerProcessId(pipe, &mut process_id) != 0,
                    _ => GetNamedPipeClientProcessId(pipe, &mut process_id) != 0,
                }
        };
        told.then_some(Credentials { process_id })
    }
}

/// Whether the pipe is there, but nobody accepts just now.
pub(super) fn is_busy(e: &io::Error) -> bool {
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
        // It is there, unless another thread was quicker.
        at_once(self.read_by(space, Instant::now()))
    }
}
impl Write for &Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        at_once(self.write_by(buf, Instant::now()))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What there was no time for would have to be waited for.
fn at_once(result: io::Result<usize>) -> io::Result<usize> {
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
        if probe.as_ref().is_some_and(|probe| !super::was_cancelled(probe)) {
            return;
        }
        // SAFETY: nothing is read, so that there is no space to outlive anything.
        let started = unsafe {
            Operation::start(&self.handle, event, |pipe, overlapped| {
                ReadFile(pipe, ptr::null_mut(), 0, ptr::null_mut(), overlapped)
            })
        };
        // One that fails to start has failed for a reason that whoever reads will see.
        *probe = started.ok();
    }
    fn take_ready(&self) -> bool {
        let mut probe = self.probe();
        let ready = match &*probe {
            Some(probe) => probe.result().is_some() && !super::was_cancelled(probe),
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

#[cfg(all(test, feature = "fake"))]
mod tests {
    use std::path::PathBuf;

    use super::super::Listener;
    use super::*;

    #[test]
    fn nothing_is_written_once_it_is_shut_down() {
        let path = PathBuf::from(format!("dotnet-ipc-shut-down-{}", std::process::id()));
        let _listener = Listener::bind(&path).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let socket = Socket::connect(&path, deadline).unwrap();
        assert_eq!(socket.write_by(b"before", deadline).unwrap(), 6);
        socket.shut_down();
        // There is room for it, so that the system would take it at once.
        for _ in 0..100 {
            assert_eq!(socket.write_by(b"behind", deadline).unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
        assert_eq!(socket.read_by(&mut [0], deadline).unwrap(), 0);
    }
}
