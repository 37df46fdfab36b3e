use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect};

use super::{left, wait};
use crate::Credentials;

/// A connected socket.
///
/// To read and write by reference does not block: there is an error of kind `WouldBlock`.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: UnixStream,
    /// Whether something was sent since the last read: there is no use then in trying to read before it is answered.
    awaiting: AtomicBool,
}

/// Where somebody listens.
#[derive(Debug)]
pub(crate) struct Address(SocketAddrUnix);

impl Address {
    /// Fails if the path is too long for a socket's.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self(SocketAddrUnix::new(path)?))
    }
}

/// A socket that does not block, and that children do not inherit.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn unix_socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
#[cfg(target_vendor = "apple")]
pub(super) fn unix_socket() -> io::Result<OwnedFd> {
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

impl Socket {
    /// Over a socket that is connected already.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, awaiting: AtomicBool::new(false) })
    }

    fn connected(fd: OwnedFd) -> Self {
        Self { stream: fd.into(), awaiting: AtomicBool::new(false) }
    }

    /// Connects to the socket at `path`.
    ///
    /// A full backlog is waited for, as a runtime accepts only between two commands. There is nothing to poll then, so
    /// it is asked again, ever more seldom.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        let (address, _directory) = super::address::address(path)?;
        let fd = unix_socket()?;
        let mut pause = Duration::from_millis(1);
        loop {
            match connect(&fd, &address) {
                Ok(()) | Err(Errno::ISCONN) => return Ok(Self::connected(fd)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    std::thread::sleep(pause.min(left(deadline)?));
                    pause = pause.saturating_mul(2).min(Duration::from_millis(50));
                }
                Err(Errno::INPROGRESS | Errno::ALREADY) => {
                    wait(&mut [PollFd::new(&fd, PollFlags::OUT)], deadline)?
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Connects, or fails at once: with an error of kind `WouldBlock` if the backlog is full.
    pub(crate) fn connect_at_once(address: &Address) -> io::Result<Self> {
        let fd = unix_socket()?;
        connect(&fd, &address.0)?;
        Ok(Self::connected(fd))
    }

    /// Reads as soon as there is something; an error of kind `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if self.awaiting.swap(false, Ordering::Relaxed) {
            self.wait(PollFlags::IN, deadline)?;
        }
        self.when(PollFlags::IN, deadline, |mut stream| stream.read(buf))
    }

    /// Writes as soon as there is room.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        self.awaiting.store(true, Ordering::Relaxed);
        self.when(PollFlags::OUT, deadline, |mut stream| stream.write(buf))
    }

    /// Does `io` as soon as the socket is ready for it.
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
        wait(&mut [PollFd::new(&self.stream, ready)], deadline)
    }

    /// Whether the peer has closed its side altogether.
    pub(crate) fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
    }

    /// Tells the peer that no more comes, while it may still send.
    #[cfg(feature = "conformance")]
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    /// Ends it, in both directions: whoever reads or writes, on whatever thread, goes on at once, and the peer sees the
    /// end.
    #[cfg(feature = "fake")]
    pub(crate) fn shut_down(&self) {
        // One that is gone already need not be shut down.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Who is at the other end, if the system tells: of one that we connected, who listened.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        super::process::credentials(&self.stream)
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
