use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::Event;
use super::event::{milliseconds, wait};

/// Sources that are watched for being ready, each under a token.
///
/// All of them share one event, so that there may be any number and other people's loops can wait for it. To start an
/// operation resets its event: so whoever has started one looks at all of them again before anybody waits.
#[derive(Debug)]
pub(crate) struct Poller {
    event: Arc<Event>,
    sources: Mutex<BTreeMap<u64, Weak<dyn Watched>>>,
}

/// What a [`Poller`] can watch.
pub(crate) trait Source {
    fn watched(&self) -> Arc<dyn Watched>;
}

/// Its part that the poller sees, as long as there is one.
pub(crate) trait Watched: core::fmt::Debug + Send + Sync {
    /// Has the event set when this becomes ready, if it is not so already.
    fn arm(&self, event: &Arc<Event>);
    /// Whether it is ready, or was since it was armed. If so it is to be armed again, which shows whether it still is.
    fn take_ready(&self) -> bool;
    /// The event is of no concern any more.
    fn disarm(&self);
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { event: Arc::new(Event::new()?), sources: Mutex::default() })
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<dyn Watched>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a source until it is forgotten, or dropped.
    pub(crate) fn watch(&self, source: &impl Source, token: u64) -> io::Result<()> {
        let mut sources = self.sources();
        sources.insert(token, Arc::downgrade(&source.watched()));
        self.look(&mut sources);
        Ok(())
    }

    /// Watches it no more.
    pub(crate) fn forget(&self, source: &impl Source) -> io::Result<()> {
        let forgotten = source.watched();
        self.sources().retain(|_, watched| !core::ptr::addr_eq(watched.as_ptr(), Arc::as_ptr(&forgotten)));
        forgotten.disarm();
        Ok(())
    }

    /// The tokens of those that are ready; none if none is.
    pub(crate) fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        let mut sources = self.sources();
        *tokens = self.look(&mut sources);
        Ok(())
    }

    /// What was ready was acted upon: the event is set again when there is something new.
    pub(crate) fn rearm(&self) {
        self.look(&mut self.sources());
    }

    /// Waits until one is ready; an error of kind `TimedOut` after `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        loop {
            // What is always ready does not go beyond it either.
            milliseconds(deadline)?;
            if self.has_ready() {
                return Ok(());
            }
            wait(&[&self.event], deadline)?;
        }
    }

    /// Whether one is ready. If not, the event is set as soon as one is.
    pub(super) fn has_ready(&self) -> bool {
        !self.look(&mut self.sources()).is_empty()
    }

    /// The tokens of those that are ready; the event is set if there are any.
    fn look(&self, sources: &mut BTreeMap<u64, Weak<dyn Watched>>) -> Vec<u64> {
        self.event.reset();
        let mut all = Vec::with_capacity(sources.len());
        sources.retain(|token, watched| {
            let watched = watched.upgrade();
            let lives = watched.is_some();
            all.extend(watched.map(|watched| (*token, watched)));
            lives
        });
        // First all of these, as each may reset what another one has set.
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
