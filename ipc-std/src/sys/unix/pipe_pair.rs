//! `PipePair`: the two pipes of a child process.
use core::time::Duration;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc_discover::{Deadline, sys};
use rustix::event::{PollFd, PollFlags};

use super::flag::Flag;

/// The pipes to and from a child process, which block. Any thread can end a wait for them.
#[derive(Debug)]
pub(crate) struct PipePair {
    /// `None` after [`close_input`](Self::close_input).
    input: Mutex<Option<Arc<File>>>,
    output: File,
    is_closed: Flag,
}

impl PipePair {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let (input, output): (OwnedFd, OwnedFd) = (input.into(), output.into());
        // A write of more bytes than there is room for then writes some of them.
        rustix::io::ioctl_fionbio(&input, true)?;
        let input = Mutex::new(Some(Arc::new(input.into())));
        Ok(Self { input, output: output.into(), is_closed: Flag::new()? })
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.wait(&self.output, PollFlags::IN)?;
        (&self.output).read(buf)
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        let input = self.input().clone().ok_or(io::ErrorKind::BrokenPipe)?;
        self.wait(&input, PollFlags::OUT)?;
        (&*input).write(buf)
    }

    /// Closes the input of the child, unless a write still waits: then at its end.
    pub(crate) fn close_input(&self) {
        *self.input() = None;
    }

    fn input(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current wait and every later one with an error.
    pub(crate) fn close(&self) {
        self.is_closed.raise();
    }

    fn wait(&self, pipe: &File, ready: PollFlags) -> io::Result<()> {
        let mut fds = [PollFd::new(pipe, ready), PollFd::new(&self.is_closed, PollFlags::IN)];
        sys::wait(&mut fds, Deadline::after(Duration::MAX).end)?;
        let [_, is_closed] = fds;
        if is_closed.revents().is_empty() { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }
}
