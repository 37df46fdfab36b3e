//! `PipePair`: the two pipes of a child process.
use core::time::Duration;
use std::io;
use std::net::Shutdown;
use std::os::windows::io::OwnedHandle;
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc_discover::Deadline;

use super::socket::Socket;

/// The pipes to and from a child process, which block. Any thread can end a wait for them.
#[derive(Debug)]
pub(crate) struct PipePair {
    /// `None` after [`close_input`](Self::close_input).
    input: Mutex<Option<Arc<Socket>>>,
    output: Socket,
}

impl PipePair {
    /// Takes the pipes. The standard library opens its ends for overlapped operations.
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let (input, output): (OwnedHandle, OwnedHandle) = (input.into(), output.into());
        Ok(Self { input: Mutex::new(Some(Arc::new(Socket::new(input)))), output: Socket::new(output) })
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self.output.read_by(buf, Deadline::after(Duration::MAX).end)? {
            0 if self.output.has_ended() => Err(io::ErrorKind::ConnectionAborted.into()),
            n => Ok(n),
        }
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        let input = self.input().clone().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_by(buf, Deadline::after(Duration::MAX).end)
    }

    /// Closes the input of the child, unless a write still waits: then at its end.
    pub(crate) fn close_input(&self) {
        *self.input() = None;
    }

    fn input(&self) -> MutexGuard<'_, Option<Arc<Socket>>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current wait and every later one with an error.
    pub(crate) fn close(&self) {
        // Of two directions, this cannot fail.
        let _ = self.output.shutdown(Shutdown::Both);
        let input = self.input().clone();
        let _ = input.map(|input| input.shutdown(Shutdown::Both));
    }
}
