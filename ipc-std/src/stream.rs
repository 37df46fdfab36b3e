use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use crate::sys;

/// A connection to a runtime on which no wait goes beyond a deadline.
///
/// Reading and writing give an error of kind [`TimedOut`](ErrorKind::TimedOut) once it has passed.
///
/// ```no_run
/// use std::{io::Read, path::Path, time::{Duration, Instant}};
///
/// let soon = Instant::now() + Duration::from_secs(1);
/// let mut stream = ipc_std::Stream::connect(Path::new("/tmp/dotnet-diagnostic-1-2-socket"), soon)?;
/// stream.read(&mut [0])?; // nothing was asked: an error, one second from now
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    socket: UnixStream,
    deadline: Instant,
    /// Whether something was sent since the last read: there is no use then in trying to read before it is answered.
    awaiting: bool,
}

impl Stream {
    /// Connects to the socket at `path`, by `deadline`, which then holds for the stream too.
    ///
    /// # Errors
    /// What the operating system says; `TimedOut` if the runtime accepts no connection in time.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        Ok(Self { socket: sys::connect_unix(path, deadline)?, deadline, awaiting: false })
    }

    /// Over a socket that is connected already.
    ///
    /// # Errors
    /// If the socket cannot be made not to block.
    pub fn new(socket: UnixStream, deadline: Instant) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, deadline, awaiting: false })
    }

    /// When waiting ends.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sets when waiting ends.
    pub const fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// The socket, which does not block.
    pub(crate) const fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// The socket, which does not block.
    pub(crate) fn into_socket(self) -> UnixStream {
        self.socket
    }

    /// Does `io`, which does not block, as soon as the socket is ready for it.
    fn when<T>(&self, ready: PollFlags, mut io: impl FnMut(&UnixStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            match io(&self.socket) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.wait(ready)?,
                result => return result,
            }
        }
    }

    fn wait(&self, ready: PollFlags) -> io::Result<()> {
        sys::wait(&mut [PollFd::new(&self.socket, ready)], self.deadline)
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if core::mem::take(&mut self.awaiting) {
            self.wait(PollFlags::IN)?;
        }
        self.when(PollFlags::IN, |mut socket| socket.read(buf))
    }
}
impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.awaiting = true;
        self.when(PollFlags::OUT, |mut socket| socket.write(buf))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
