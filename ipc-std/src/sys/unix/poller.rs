//! Many descriptors as one: readable when one of them is.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::wait;

/// Descriptors that are watched for being readable or hung up, each under a token.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

/// How many are told of at once.
const BATCH: usize = 64;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poller {
    /// What was ready was acted upon. Here it is told of for as long as it is, so that there is nothing to be done.
    pub(crate) const fn rearm(&self) {}

    /// Waits until one is ready; an error of kind `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        wait(&mut [PollFd::new(&self.0, PollFlags::IN)], deadline)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a descriptor until it is forgotten.
    pub(crate) fn watch(&self, source: &impl AsFd, token: u64) -> io::Result<()> {
        use rustix::event::epoll::{EventData, EventFlags, add};
        Ok(add(&self.0, source, EventData::new_u64(token), EventFlags::IN)?)
    }

    /// Watches it no more.
    pub(crate) fn forget(&self, source: &impl AsFd) -> io::Result<()> {
        Ok(rustix::event::epoll::delete(&self.0, source)?)
    }

    /// The tokens of some that are ready; none if none is.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut space = [const { core::mem::MaybeUninit::uninit() }; BATCH];
        let (events, _) = rustix::event::epoll::wait(&self.0, &mut space, Some(&NOW))?;
        tokens.clear();
        tokens.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[allow(unsafe_code, reason = "a kqueue holds descriptors by their numbers")]
impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = rustix::event::kqueue::kqueue()?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Self(fd))
    }

    /// Watches a descriptor until it is forgotten.
    pub(crate) fn watch(&self, source: &impl AsFd, token: u64) -> io::Result<()> {
        self.change(source.as_fd(), rustix::event::kqueue::EventFlags::ADD, token)
    }

    /// Watches it no more.
    pub(crate) fn forget(&self, source: &impl AsFd) -> io::Result<()> {
        self.change(source.as_fd(), rustix::event::kqueue::EventFlags::DELETE, 0)
    }

    fn change(
        &self,
        fd: BorrowedFd<'_>,
        flags: rustix::event::kqueue::EventFlags,
        token: u64,
    ) -> io::Result<()> {
        use rustix::event::kqueue::{Event, EventFilter, kevent_timespec};
        use std::os::fd::AsRawFd;
        // Tokens count up from 0: a pointer's size holds as many as there will be.
        let token = usize::try_from(token).map_err(io::Error::other)?;
        let event =
            Event::new(EventFilter::Read(fd.as_raw_fd()), flags, core::ptr::without_provenance_mut(token));
        let mut none: [core::mem::MaybeUninit<Event>; 0] = [];
        // SAFETY: the kernel forgets a descriptor that is closed, and whoever watches one closes it with its entry.
        unsafe { kevent_timespec(&self.0, &[event], &mut none, Some(&NOW))? };
        Ok(())
    }

    /// The tokens of some that are ready; none if none is.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut space = [const { core::mem::MaybeUninit::uninit() }; BATCH];
        // SAFETY: nothing is changed, and events are written to the space given.
        let (events, _) =
            unsafe { rustix::event::kqueue::kevent_timespec(&self.0, &[], &mut space, Some(&NOW))? };
        tokens.clear();
        tokens.extend(events.iter().map(|event| event.udata().addr() as u64));
        Ok(())
    }
}
