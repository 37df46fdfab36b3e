//! `Socket`: a connected socket whose every wait has a deadline.
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use ipc_discover::sys::{self, Credentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketAddrUnix, connect};

/// A connected socket.
///
/// Reading and writing by reference do not block, but fail with `WouldBlock`.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: UnixStream,
    /// Whether bytes were sent since the last read. The response has not arrived then, so the next read waits before it
    /// tries.
    awaiting: AtomicBool,
    /// Whether this is a Unix socket. For other sockets, the system reports a peer that does not exist.
    is_unix: bool,
}

/// The address of a socket.
#[derive(Debug)]
pub(crate) struct Address(SocketAddrUnix);

impl Address {
    /// Fails if the path is too long for a socket.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self(SocketAddrUnix::new(path)?))
    }
}

impl Socket {
    /// Takes a connected socket of any kind.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let is_unix = stream.local_addr().is_ok();
        Ok(Self { stream, awaiting: AtomicBool::new(false), is_unix })
    }

    /// Takes a connection that a listener has accepted.
    pub(super) fn accepted(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, awaiting: AtomicBool::new(false), is_unix: true })
    }

    /// Moves the connection to the lowest free descriptor.
    pub(crate) fn with_lowest_descriptor(self) -> Self {
        match rustix::io::fcntl_dupfd_cloexec(&self.stream, 0) {
            Ok(lowest) => Self::connected(lowest),
            Err(_) => self,
        }
    }

    fn connected(fd: OwnedFd) -> Self {
        Self { stream: fd.into(), awaiting: AtomicBool::new(false), is_unix: true }
    }

    /// Connects to the socket at `path`.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        sys::connect(path, deadline).map(Self::connected)
    }

    /// Connects without waiting; fails with `WouldBlock` if the backlog is full.
    pub(crate) fn connect_at_once(address: &Address) -> io::Result<Self> {
        let fd = sys::unix_socket()?;
        connect(&fd, &address.0)?;
        Ok(Self::connected(fd))
    }

    /// Waits for bytes and reads them; fails with `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if self.awaiting.swap(false, Ordering::Relaxed) {
            self.wait(PollFlags::IN, deadline)?;
        }
        self.when(PollFlags::IN, deadline, |mut stream| stream.read(buf))
    }

    /// Waits for room and writes; fails with `TimedOut` after `deadline`.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        self.awaiting.store(true, Ordering::Relaxed);
        self.when(PollFlags::OUT, deadline, |mut stream| stream.write(buf))
    }

    /// Calls `io` until it no longer fails with `WouldBlock`.
    fn when<T>(
        &self,
        ready: PollFlags,
        deadline: Instant,
        mut io: impl FnMut(&UnixStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match io(&self.stream) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.wait(ready, deadline)?,
                result => return result,
            }
        }
    }

    fn wait(&self, ready: PollFlags, deadline: Instant) -> io::Result<()> {
        sys::wait(&mut [PollFd::new(&self.stream, ready)], deadline)
    }

    /// Returns whether the peer has closed the connection.
    pub(crate) fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
    }

    /// Closes one direction or both. A thread that reads or writes returns immediately, and the peer sees the end.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }

    /// Returns whether it is a Unix socket.
    pub(crate) const fn is_unix(&self) -> bool {
        self.is_unix
    }

    /// Returns the process at the other end, if the system reports it: for a client, the process that listens.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        sys::credentials(&self.stream).filter(|_| self.is_unix)
    }
}

impl Read for &Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(buf)
    }
}
impl Write for &Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&self.stream).write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
