//! `Flag`: a flag that wakes a wait.
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::Event;
use super::poller::{Source, Watched};

/// A flag that any thread can raise. The source is ready while the flag is raised.
#[derive(Debug, Default)]
pub(crate) struct Flag(Arc<Raised>);

#[derive(Debug, Default)]
struct Raised {
    raised: AtomicBool,
    /// The event of the poller that watches the flag.
    event: Mutex<Option<Arc<Event>>>,
}

impl Flag {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::default()))
    }

    pub(crate) fn raise(&self) {
        self.0.raised.store(true, Ordering::SeqCst);
        if let Some(event) = &*self.0.event() {
            event.set();
        }
    }

    pub(crate) fn lower(&self) {
        self.0.raised.store(false, Ordering::SeqCst);
    }
}

impl Source for Flag {
    fn watched(&self) -> Arc<dyn Watched> {
        Arc::clone(&self.0) as _
    }
}

impl Raised {
    fn event(&self) -> MutexGuard<'_, Option<Arc<Event>>> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched for Raised {
    fn arm(&self, event: &Arc<Event>) {
        self.event().get_or_insert_with(|| Arc::clone(event));
    }
    fn take_ready(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }
    fn disarm(&self) {
        *self.event() = None;
    }
}
