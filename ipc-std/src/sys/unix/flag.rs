//! `Flag`: a flag that wakes a poll.
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A flag that any thread can raise. Its descriptor is readable while the flag is raised.
#[derive(Debug)]
pub(crate) struct Flag {
    seen: UnixStream,
    raised: UnixStream,
}

impl Flag {
    pub(crate) fn new() -> io::Result<Self> {
        let (seen, raised) = UnixStream::pair()?;
        seen.set_nonblocking(true)?;
        raised.set_nonblocking(true)?;
        Ok(Self { seen, raised })
    }

    pub(crate) fn raise(&self) {
        // Writing fails if the buffer is full, and then the flag is raised already.
        let _ = (&self.raised).write(&[0]);
    }

    pub(crate) fn lower(&self) {
        while matches!((&self.seen).read(&mut [0; 64]), Ok(n) if n > 0) {}
    }
}

impl AsFd for Flag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.seen.as_fd()
    }
}
