//! `Hub`: sources that several threads wait for.
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::time::Instant;

use super::event::{Event, milliseconds, wait};
use super::poller::Poller;
use super::poller::Source;

/// Sources that several threads wait for, and that the caller's own event loop can wait for.
#[derive(Debug)]
pub(crate) struct Hub {
    /// The sources. Their event is the one for event loops, and stays set while `raised` is true.
    sources: Poller,
    raised: AtomicBool,
    /// The event that is set when the waiting thread must check its condition again.
    woken: Event,
}

impl Hub {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { sources: Poller::new()?, raised: AtomicBool::new(false), woken: Event::new()? })
    }

    /// As [`Poller::watch`].
    pub(crate) fn watch(&self, source: &impl Source, token: u64) -> io::Result<()> {
        let watched = self.sources.watch(source, token);
        self.show();
        watched
    }

    /// As [`Poller::forget`].
    pub(crate) fn forget(&self, source: &impl Source) -> io::Result<()> {
        self.sources.forget(source)
    }

    /// As [`Poller::ready`].
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let ready = self.sources.ready(tokens);
        self.show();
        ready
    }

    /// Keeps the event for event loops set until [`lower`](Self::lower).
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        self.show();
    }

    pub(crate) fn lower(&self) {
        self.raised.store(false, Ordering::SeqCst);
    }

    /// Sets the event for event loops again while `raised` is true: each check of the sources resets the event.
    fn show(&self) {
        if self.raised.load(Ordering::SeqCst) {
            self.sources.event().set();
        }
    }

    /// Ends the current or next [`wait`](Self::wait).
    pub(crate) fn wake(&self) {
        self.woken.set();
    }

    /// Waits until a source is ready or [`wake`](Self::wake) is called; fails with `TimedOut` after `deadline`. One
    /// thread at a time can wait.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        /// The interval for checking the sources while `raised` keeps their event set, so that waiting for it is
        /// impossible.
        const CHECK: Duration = Duration::from_millis(10);
        loop {
            milliseconds(deadline)?;
            let ready = self.sources.has_ready();
            self.show();
            if ready {
                return Ok(());
            }
            if !self.raised.load(Ordering::SeqCst) {
                wait(&[self.sources.event(), &self.woken], deadline)?;
                return Ok(());
            }
            let check = Instant::now().checked_add(CHECK).map_or(deadline, |check| check.min(deadline));
            match wait(&[&self.woken], check) {
                Err(e) if e.kind() == ErrorKind::TimedOut && check < deadline => {}
                waited => return waited,
            }
        }
    }

    /// Resets [`wake`](Self::wake).
    pub(crate) fn waited(&self) {
        self.woken.reset();
    }
}

impl AsHandle for Hub {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.sources.as_handle()
    }
}
