//! `Channel`: a connection over any transport, whose waits have deadlines; and `Lease`, by which its owner learns of its
//! end.
use core::fmt;
use std::io;
use std::net::Shutdown;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ipc_discover::Credentials;

use super::worker::Worker;
use crate::drive::is_not_ready;
use crate::sys::Socket;
#[cfg(windows)]
use crate::sys::{Source, Watched};

/// A connection that never waits without a deadline.
#[derive(Debug)]
pub(crate) struct Channel {
    transport: Transport,
    lease: Mutex<Option<Box<dyn Lease>>>,
}

/// A claim of the former owner on a connection. It reports the end of the connection, and is dropped with it.
pub(crate) trait Lease: fmt::Debug + Send {
    /// Reports that the peer has ended the connection.
    fn end(self: Box<Self>);
}

/// A socket or pipe, or a transport with a thread.
#[derive(Debug)]
enum Transport {
    /// A socket: the operating system reports when it is ready.
    Socket(Socket),
    /// A transport that can only block: a thread waits for it.
    Worker(Worker),
}

impl Channel {
    /// Reads available bytes; fails with `WouldBlock` if there are none.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.noticed(
            buf.len(),
            match &self.transport {
                Transport::Socket(socket) => io::Read::read(&mut &*socket, buf),
                Transport::Worker(worker) => worker.read(buf),
            },
        )
    }

    /// Writes without waiting; fails with `WouldBlock` if there is no room.
    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        match &self.transport {
            Transport::Socket(socket) => io::Write::write(&mut &*socket, buf),
            Transport::Worker(worker) => worker.write(buf),
        }
    }

    /// Waits for bytes and reads them; fails with `TimedOut` after `deadline`.
    pub(crate) fn read_by(&self, buf: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.noticed(
            buf.len(),
            match &self.transport {
                Transport::Socket(socket) => socket.read_by(buf, deadline),
                Transport::Worker(worker) => worker.read_by(buf, deadline),
            },
        )
    }

    /// Waits for room and writes; fails with `TimedOut` after `deadline`.
    pub(crate) fn write_by(&self, buf: &[u8], deadline: Instant) -> io::Result<usize> {
        match &self.transport {
            Transport::Socket(socket) => socket.write_by(buf, deadline),
            Transport::Worker(worker) => worker.write_by(buf, deadline),
        }
    }

    /// Makes a poller report the first byte. A transport with one thread cannot be written to before that byte, because
    /// its thread is reading.
    pub(crate) fn expect_bytes(&self) {
        if let Transport::Worker(worker) = &self.transport {
            worker.expect_bytes();
        }
    }

    /// Makes a poller report the end of a connection on which no byte is expected, if the connection can be written to
    /// meanwhile.
    pub(crate) fn expect_end(&self) {
        if let Transport::Worker(worker) = &self.transport {
            worker.expect_end();
        }
    }

    /// Gives the connection away. `lease` learns of its end.
    pub(crate) fn lend(&self, lease: impl Lease + 'static) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(lease));
    }

    /// Tells the lease of the end of the connection if this is the result of a read into so many bytes.
    fn noticed(&self, space: usize, read: io::Result<usize>) -> io::Result<usize> {
        let has_ended = match &read {
            Ok(n) => *n == 0 && space > 0,
            Err(e) => !is_not_ready(e) && e.kind() != io::ErrorKind::Interrupted,
        };
        if has_ended {
            let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
            lease.into_iter().for_each(Lease::end);
        }
        read
    }

    /// Returns whether the peer has closed the connection, as far as that can be known without reading.
    pub(crate) fn has_hung_up(&self) -> bool {
        match &self.transport {
            Transport::Socket(socket) => socket.has_hung_up(),
            Transport::Worker(worker) => worker.has_ended(),
        }
    }

    /// Closes one direction or both; fails with `Unsupported` if the transport cannot close one direction alone.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.transport {
            Transport::Socket(socket) => socket.shutdown(how),
            Transport::Worker(worker) if how == Shutdown::Both => {
                worker.close();
                Ok(())
            }
            Transport::Worker(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the descriptor of a Unix socket, which can transfer other descriptors; fails with `Unsupported` for other
    /// transports.
    #[cfg(unix)]
    pub(crate) fn unix_socket(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.transport {
            Transport::Socket(socket) if socket.is_unix() => Ok(socket.as_fd()),
            Transport::Socket(_) | Transport::Worker(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the process at the other end, if the system reports it.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        match &self.transport {
            Transport::Socket(socket) => socket.credentials(),
            Transport::Worker(_) => None,
        }
    }
}

impl From<Socket> for Channel {
    fn from(socket: Socket) -> Self {
        Self { transport: Transport::Socket(socket), lease: Mutex::default() }
    }
}
impl From<Worker> for Channel {
    fn from(worker: Worker) -> Self {
        Self { transport: Transport::Worker(worker), lease: Mutex::default() }
    }
}

/// The descriptor is readable when bytes have arrived.
#[cfg(unix)]
impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.transport {
            Transport::Socket(socket) => socket.as_fd(),
            Transport::Worker(worker) => worker.flag().as_fd(),
        }
    }
}
#[cfg(windows)]
impl Source for Channel {
    fn watched(&self) -> std::sync::Arc<dyn Watched> {
        match &self.transport {
            Transport::Socket(socket) => socket.watched(),
            Transport::Worker(worker) => worker.flag().watched(),
        }
    }
}
