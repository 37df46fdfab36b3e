//! `PipePair`: the two pipes of a child process.
use core::time::Duration;
use std::io;
use std::net::Shutdown;
use std::os::windows::io::OwnedHandle;
use std::process::{ChildStdin, ChildStdout};

use ipc_discover::Deadline;

use super::socket::Socket;

/// The pipes to and from a child process, which block. Any thread can end a wait for them.
#[derive(Debug)]
pub(crate) struct PipePair {
    input: Socket,
    output: Socket,
}

impl PipePair {
    /// Takes the pipes. The standard library opens its ends for overlapped operations.
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let (input, output): (OwnedHandle, OwnedHandle) = (input.into(), output.into());
        Ok(Self { input: Socket::new(input), output: Socket::new(output) })
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self.output.read_by(buf, Deadline::after(Duration::MAX).end)? {
            0 if self.output.has_ended() => Err(io::ErrorKind::ConnectionAborted.into()),
            n => Ok(n),
        }
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.input.write_by(buf, Deadline::after(Duration::MAX).end)
    }

    /// Ends the current wait and every later one with an error.
    pub(crate) fn close(&self) {
        for pipe in [&self.input, &self.output] {
            // Of two directions, this cannot fail.
            let _ = pipe.shutdown(Shutdown::Both);
        }
    }
}
