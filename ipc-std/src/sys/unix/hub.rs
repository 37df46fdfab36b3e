//! `Hub`: sources that several threads wait for.
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use ipc_discover::sys::wait;
use rustix::event::{PollFd, PollFlags};

use super::flag::Flag;
use super::poller::Poller;

/// Sources that several threads wait for, and that the caller's own event loop can poll.
#[derive(Debug)]
pub(crate) struct Hub {
    sources: Poller,
    /// The poller of `sources` and `raised`. Its descriptor is the one for event loops.
    all: Poller,
    raised: Flag,
    /// The flag that is raised when the waiting thread must check its condition again.
    woken: Flag,
}

/// The tokens of [`Hub::all`].
const SOURCES: u64 = 0;
const RAISED: u64 = 1;

impl Hub {
    pub(crate) fn new() -> io::Result<Self> {
        let hub =
            Self { sources: Poller::new()?, all: Poller::new()?, raised: Flag::new()?, woken: Flag::new()? };
        hub.all.watch(&hub.sources, SOURCES)?;
        hub.all.watch(&hub.raised, RAISED)?;
        Ok(hub)
    }

    /// As [`Poller::watch`].
    pub(crate) fn watch(&self, source: &impl AsFd, token: u64) -> io::Result<()> {
        self.sources.watch(source, token)
    }

    /// As [`Poller::forget`].
    pub(crate) fn forget(&self, source: &impl AsFd) -> io::Result<()> {
        self.sources.forget(source)
    }

    /// As [`Poller::ready`].
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        self.sources.ready(tokens)
    }

    /// Makes the descriptor for event loops readable until [`lower`](Self::lower).
    pub(crate) fn raise(&self) {
        self.raised.raise();
    }

    pub(crate) fn lower(&self) {
        self.raised.lower();
    }

    /// Ends the current or next [`wait`](Self::wait).
    pub(crate) fn wake(&self) {
        self.woken.raise();
    }

    /// Waits until a source is ready or [`wake`](Self::wake) is called; fails with `TimedOut` after `deadline`. One
    /// thread at a time can wait.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        let mut fds =
            [self.sources.as_fd(), self.woken.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        wait(&mut fds, deadline)
    }

    /// Resets [`wake`](Self::wake).
    pub(crate) fn waited(&self) {
        self.woken.lower();
    }
}

impl AsFd for Hub {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }
}
