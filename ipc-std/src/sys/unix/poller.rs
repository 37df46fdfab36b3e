//! `Poller`: descriptors with tokens, watched until one is ready.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use ipc_discover::sys::wait;
use rustix::event::{PollFd, PollFlags, Timespec};

/// Watches descriptors, each with a token, until one is readable or hung up.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

/// The largest number of events that one call returns.
const BATCH: usize = 64;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poller {
    /// Waits until a source is ready; fails with `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        wait(&mut [PollFd::new(&self.0, PollFlags::IN)], deadline)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a descriptor until [`forget`](Self::forget).
    pub(crate) fn watch(&self, source: &impl AsFd, token: u64) -> io::Result<()> {
        use rustix::event::epoll::{EventData, EventFlags, add};
        Ok(add(&self.0, source, EventData::new_u64(token), EventFlags::IN)?)
    }

    /// Stops watching a descriptor.
    pub(crate) fn forget(&self, source: &impl AsFd) -> io::Result<()> {
        Ok(rustix::event::epoll::delete(&self.0, source)?)
    }

    /// Returns the tokens of ready sources, without waiting.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut space = [const { core::mem::MaybeUninit::uninit() }; BATCH];
        let (events, _) = rustix::event::epoll::wait(&self.0, &mut space, Some(&NOW))?;
        tokens.clear();
        tokens.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[allow(unsafe_code, reason = "a kqueue refers to descriptors by number")]
impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = rustix::event::kqueue::kqueue()?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Self(fd))
    }

    /// Watches a descriptor until [`forget`](Self::forget).
    pub(crate) fn watch(&self, source: &impl AsFd, token: u64) -> io::Result<()> {
        self.change(source.as_fd(), rustix::event::kqueue::EventFlags::ADD, token)
    }

    /// Stops watching a descriptor.
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
        // Tokens count up from 0 and never exceed the size of a pointer.
        let token = usize::try_from(token).map_err(io::Error::other)?;
        let event =
            Event::new(EventFilter::Read(fd.as_raw_fd()), flags, core::ptr::without_provenance_mut(token));
        let mut none: [core::mem::MaybeUninit<Event>; 0] = [];
        // SAFETY: the kernel removes a descriptor that is closed, so the number cannot mean another file.
        unsafe { kevent_timespec(&self.0, &[event], &mut none, Some(&NOW))? };
        Ok(())
    }

    /// Returns the tokens of ready sources, without waiting.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut space = [const { core::mem::MaybeUninit::uninit() }; BATCH];
        // SAFETY: there are no changes, and the kernel writes events only to `space`.
        let (events, _) =
            unsafe { rustix::event::kqueue::kevent_timespec(&self.0, &[], &mut space, Some(&NOW))? };
        tokens.clear();
        tokens.extend(events.iter().map(|event| event.udata().addr() as u64));
        Ok(())
    }
}
