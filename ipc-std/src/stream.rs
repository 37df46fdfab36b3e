use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::sys::Socket;

/// A connection to a runtime with a deadline for every wait.
///
/// After the deadline, reading and writing fail with [`TimedOut`](io::ErrorKind::TimedOut).
///
/// ```no_run
/// use std::{io::Read, path::Path, time::{Duration, Instant}};
///
/// let soon = Instant::now() + Duration::from_secs(1);
/// let mut stream = ipc_std::Stream::connect(Path::new("/tmp/dotnet-diagnostic-1-2-socket"), soon)?;
/// stream.read(&mut [0])?; // no request was sent, so this fails after one second
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    /// Shared, because a fake runtime closes it from another thread.
    socket: Arc<Socket>,
    deadline: Instant,
}

impl Stream {
    /// Connects to the socket or pipe at `path`. The deadline holds for connecting and for the stream.
    ///
    /// # Errors
    /// An error of the operating system; `TimedOut` if the runtime does not accept the connection in time.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        Ok(Self::over(Socket::connect(path, deadline)?, deadline))
    }

    /// Takes a connected socket, and makes it non-blocking.
    ///
    /// # Errors
    /// If the operating system refuses that.
    #[cfg(unix)]
    pub fn new(socket: UnixStream, deadline: Instant) -> io::Result<Self> {
        Ok(Self::over(Socket::new(socket)?, deadline))
    }

    /// Takes a connected pipe that was opened for overlapped operations.
    ///
    /// # Errors
    /// None at present.
    #[cfg(windows)]
    pub fn new(pipe: OwnedHandle, deadline: Instant) -> io::Result<Self> {
        Ok(Self::over(Socket::new(pipe), deadline))
    }

    pub(crate) fn over(socket: Socket, deadline: Instant) -> Self {
        Self { socket: Arc::new(socket), deadline }
    }

    /// Returns the deadline.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sets the deadline.
    pub const fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Returns the socket, which does not block.
    pub(crate) const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.socket.read_by(buf, self.deadline)
    }
}
impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.socket.write_by(buf, self.deadline)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
#[cfg(unix)]
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
#[cfg(windows)]
impl AsHandle for Stream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.socket.as_handle()
    }
}
