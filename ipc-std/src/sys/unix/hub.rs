use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::{Flag, Poller, wait};

/// What is watched by those who wait for it, on several threads, and by other people's loops.
#[derive(Debug)]
pub(crate) struct Hub {
    sources: Poller,
    /// Watches `sources` and `raised`: what other people's loops poll.
    all: Poller,
    raised: Flag,
    /// Readable when the one who waits is to look again.
    woken: Flag,
}

/// In [`Hub::all`].
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

    /// Has other people's loops look, until it is lowered.
    pub(crate) fn raise(&self) {
        self.raised.raise();
    }

    pub(crate) fn lower(&self) {
        self.raised.lower();
    }

    /// Has the one who waits look.
    pub(crate) fn wake(&self) {
        self.woken.raise();
    }

    /// Waits until a source is ready, or somebody wakes; an error of kind `TimedOut` after `deadline`. One at a time.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        let mut fds =
            [self.sources.as_fd(), self.woken.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        wait(&mut fds, deadline)
    }

    /// What has woken is done with.
    pub(crate) fn waited(&self) {
        self.woken.lower();
    }
}

impl AsFd for Hub {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }
}
