//! `Poller`: sources with tokens, watched until one is ready.
use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::event::{Event, milliseconds, wait};

/// Watches sources, each with a token, until one is ready.
///
/// All sources share one event, so there can be any number of sources, and an event loop can wait for the event.
/// Starting an operation resets the event, so all sources are checked again before a wait.
#[derive(Debug)]
pub(crate) struct Poller {
    event: Arc<Event>,
    sources: Mutex<BTreeMap<u64, Weak<dyn Watched>>>,
}

/// An object that a [`Poller`] can watch.
pub(crate) trait Source: core::fmt::Debug + Send + Sync {
    fn watched(&self) -> Arc<dyn Watched>;
}

/// The part of a [`Source`] that the poller keeps a weak reference to.
pub(crate) trait Watched: core::fmt::Debug + Send + Sync {
    /// Arranges that the event is set when the source becomes ready.
    fn arm(&self, event: &Arc<Event>);
    /// Returns whether the source is ready, or was ready since `arm`. After `true`, `arm` must be called again to get
    /// the current state.
    fn take_ready(&self) -> bool;
    /// Stops using the event.
    fn disarm(&self);
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { event: Arc::new(Event::new()?), sources: Mutex::default() })
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<dyn Watched>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a source until [`forget`](Self::forget), or until the source is dropped.
    pub(crate) fn watch(&self, source: &(impl Source + ?Sized), token: u64) -> io::Result<()> {
        let mut sources = self.sources();
        sources.insert(token, Arc::downgrade(&source.watched()));
        self.check(&mut sources);
        Ok(())
    }

    /// Stops watching a source.
    pub(crate) fn forget(&self, source: &(impl Source + ?Sized)) -> io::Result<()> {
        let forgotten = source.watched();
        self.sources().retain(|_, watched| !core::ptr::addr_eq(watched.as_ptr(), Arc::as_ptr(&forgotten)));
        forgotten.disarm();
        Ok(())
    }

    /// Returns the tokens of ready sources, without waiting.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut sources = self.sources();
        *tokens = self.check(&mut sources);
        Ok(())
    }

    /// Makes the poller report sources again that were ready before.
    pub(crate) fn rearm(&self) {
        self.check(&mut self.sources());
    }

    /// Waits until a source is ready; fails with `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        loop {
            // Without this check, a source that is always ready would hide the deadline.
            milliseconds(deadline)?;
            if self.has_ready() {
                return Ok(());
            }
            wait(&[&self.event], deadline)?;
        }
    }

    /// Returns whether a source is ready. If not, the event is set as soon as a source is ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.check(&mut self.sources()).is_empty()
    }

    /// Returns the tokens of ready sources, and sets the event if there are any.
    fn check(&self, sources: &mut BTreeMap<u64, Weak<dyn Watched>>) -> Vec<u64> {
        self.event.reset();
        let mut all = Vec::with_capacity(sources.len());
        sources.retain(|token, watched| {
            let watched = watched.upgrade();
            let lives = watched.is_some();
            all.extend(watched.map(|watched| (*token, watched)));
            lives
        });
        // All sources are armed before any is checked, because arming one source can reset the event that another has
        // set.
        all.iter().for_each(|(_, watched)| watched.arm(&self.event));
        all.retain(|(_, watched)| watched.take_ready());
        if !all.is_empty() {
            self.event.set();
        }
        all.into_iter().map(|(token, _)| token).collect()
    }

    pub(super) fn event(&self) -> &Event {
        &self.event
    }
}

impl AsHandle for Poller {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.event.as_handle()
    }
}
