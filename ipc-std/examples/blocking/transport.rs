//! Unix sockets of the standard library with a deadline.
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

pub(crate) const READABLE: PollFlags = PollFlags::IN;
pub(crate) const WRITABLE: PollFlags = PollFlags::OUT;

/// A connection whose operations wait until a deadline.
pub(crate) struct Stream {
    /// A nonblocking socket.
    socket: UnixStream,
    until: Instant,
}

impl Stream {
    /// Connects. Fails with an error of kind `WouldBlock` if the backlog of the runtime is full.
    pub(crate) fn connect(path: &Path, until: Instant) -> io::Result<Self> {
        // `UnixStream::connect` would wait for the runtime without a deadline.
        let socket = UnixStream::from(socket(AddressFamily::UNIX, SocketType::STREAM, None)?);
        socket.set_nonblocking(true)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket, until })
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(READABLE)?;
            match self.try_read(space) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(WRITABLE)?;
            match self.try_write(bytes) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Reads the available bytes. Fails with an error of kind `WouldBlock` if there are none.
    pub(crate) fn try_read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.read(space)
    }

    /// Writes as many bytes as fit. Fails with an error of kind `WouldBlock` if none fits.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn wait(&self, interest: PollFlags) -> io::Result<()> {
        match first([Some((self, interest)), None], self.until)? {
            Some(_) => Ok(()),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Returns the index of the first that is ready, the lower one if both are. `None` after the deadline.
pub(crate) fn first(wanted: [Option<(&Stream, PollFlags)>; 2], until: Instant) -> io::Result<Option<usize>> {
    let mut polled: Vec<_> =
        wanted.iter().flatten().map(|(stream, flags)| PollFd::new(&stream.socket, *flags)).collect();
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut polled, left.as_ref()) {
            Ok(0) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) => break,
        }
    }
    let mut ready = polled.iter().map(|polled| !polled.revents().is_empty()); // a hang-up must be read, too
    Ok(wanted.iter().position(|wanted| wanted.is_some() && ready.next() == Some(true)))
}
