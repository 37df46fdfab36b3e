//! `Sources`: the connections that a thread waits for; and `Alarm`, by which other threads end its wait.
use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::Arc;
use std::time::Instant;

use super::flag::Flag;
use super::poller::{Poller, Source};

/// An alarm that any thread can raise. It ends the wait of the thread that waits for its [`Sources`].
pub(crate) type Alarm = Flag;

/// The connections that one thread waits for, each with a token, and its alarm.
#[derive(Debug)]
pub(crate) struct Sources {
    poller: Poller,
    sources: BTreeMap<u64, Arc<dyn Source>>,
}

/// The token of the alarm.
const ALARM: u64 = 2;

impl Sources {
    pub(crate) fn new(alarm: &Arc<Alarm>) -> io::Result<Self> {
        let mut sources = Self { poller: Poller::new()?, sources: BTreeMap::new() };
        sources.watch(Arc::clone(alarm) as _, ALARM)?;
        Ok(sources)
    }

    /// Watches a source until [`forget`](Self::forget).
    pub(crate) fn watch(&mut self, source: Arc<dyn Source>, token: u64) -> io::Result<()> {
        self.poller.watch(&*source, token)?;
        self.sources.insert(token, source);
        Ok(())
    }

    /// Stops watching the source with this token.
    pub(crate) fn forget(&mut self, token: u64) {
        if let Some(source) = self.sources.remove(&token) {
            // It never fails.
            let _ = self.poller.forget(&*source);
        }
    }

    /// Does nothing: the handle of the poller always serves event loops.
    pub(crate) const fn make_pollable(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// As [`Poller::rearm`].
    pub(crate) fn rearm(&self) {
        self.poller.rearm();
    }

    /// Waits until a source is ready or the alarm is raised; fails with `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        self.poller.wait(deadline)
    }
}

impl AsHandle for Sources {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.poller.as_handle()
    }
}
