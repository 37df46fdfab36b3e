use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::time::Instant;

use super::event::{milliseconds, wait};
use super::poller::Source;
use super::{Event, Poller};

/// What is watched by those who wait for it, on several threads, and by other people's loops.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Its event is what other people's loops wait for; it stays set while this is raised.
    sources: Poller,
    raised: AtomicBool,
    /// Set when the one who waits is to look again.
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

    /// Has other people's loops look, until it is lowered.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        self.show();
    }

    pub(crate) fn lower(&self) {
        self.raised.store(false, Ordering::SeqCst);
    }

    /// Sets the event again that whoever has looked at the sources may have reset.
    fn show(&self) {
        if self.raised.load(Ordering::SeqCst) {
            self.sources.event().set();
        }
    }

    /// Has the one who waits look.
    pub(crate) fn wake(&self) {
        self.woken.set();
    }

    /// Waits until a source is ready, or somebody wakes; an error of kind `TimedOut` after `deadline`. One at a time.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        /// How often the sources are looked at while their event is set for another reason.
        const LOOK: Duration = Duration::from_millis(10);
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
            let look = Instant::now().checked_add(LOOK).map_or(deadline, |look| look.min(deadline));
            match wait(&[&self.woken], look) {
                Err(e) if e.kind() == ErrorKind::TimedOut && look < deadline => {}
                waited => return waited,
            }
        }
    }

    /// What has woken is done with.
    pub(crate) fn waited(&self) {
        self.woken.reset();
    }
}

impl AsHandle for Hub {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.sources.as_handle()
    }
}
