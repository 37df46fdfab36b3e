//! `Channel`: a connection over any transport, whose waits have deadlines.
use std::io;
use std::net::Shutdown;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use ipc_discover::Credentials;

use super::worker::Worker;
use crate::sys::Socket;
#[cfg(windows)]
use crate::sys::{Source, Watched};

/// A connection that never waits without a deadline: a socket or pipe, or a transport with a thread.
#[derive(Debug)]
pub(crate) enum Channel {
    /// A socket: the operating system reports when it is ready.
    Socket(Socket),
    /// A transport that can only block: a thread waits for it.
    Worker(Worker),
}

impl Channel {
    /// Reads available bytes; fails with `WouldBlock` if there are none.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => io::Read::read(&mut &*socket, buf),
            Self::Worker(worker) => worker.read(buf),
        }
    }

    /// Writes without waiting; fails with `WouldBlock` if there is no room.
    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => io::Write::write(&mut &*socket, buf),
            Self::Worker(worker) => worker.write(buf),
        }
    }

    /// Waits for bytes and reads them; fails with `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.read_by(buf, deadline),
            Self::Worker(worker) => worker.read_by(buf, deadline),
        }
    }

    /// Waits for room and writes; fails with `TimedOut` after `deadline`.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.write_by(buf, deadline),
            Self::Worker(worker) => worker.write_by(buf, deadline),
        }
    }

    /// Makes a poller report the first byte. A transport with a thread cannot be written to before that byte, because
    /// its thread is reading.
    pub(crate) fn expect_bytes(&self) {
        if let Self::Worker(worker) = self {
            worker.expect_bytes();
        }
    }

    /// Returns whether the peer has closed the connection, as far as that can be known without reading.
    pub(crate) fn has_hung_up(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.has_hung_up(),
            Self::Worker(worker) => worker.has_ended(),
        }
    }

    /// Closes one direction or both; fails with `Unsupported` if the transport cannot close one direction alone.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.shutdown(how),
            Self::Worker(worker) if how == Shutdown::Both => {
                worker.close();
                Ok(())
            }
            Self::Worker(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the descriptor of a Unix socket, which can transfer other descriptors; fails with `Unsupported` for other
    /// transports.
    #[cfg(unix)]
    pub(crate) fn unix_socket(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Socket(socket) if socket.is_unix() => Ok(socket.as_fd()),
            Self::Socket(_) | Self::Worker(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the process at the other end, if the system reports it.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        match self {
            Self::Socket(socket) => socket.credentials(),
            Self::Worker(_) => None,
        }
    }
}

impl From<Socket> for Channel {
    fn from(socket: Socket) -> Self {
        Self::Socket(socket)
    }
}

/// The descriptor is readable when bytes have arrived.
#[cfg(unix)]
impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Worker(worker) => worker.flag().as_fd(),
        }
    }
}
#[cfg(windows)]
impl Source for Channel {
    fn watched(&self) -> std::sync::Arc<dyn Watched> {
        match self {
            Self::Socket(socket) => socket.watched(),
            Self::Worker(worker) => worker.flag().watched(),
        }
    }
}
