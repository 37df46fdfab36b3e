//! `Stopper` and its `Mailbox`: requests from any thread to stop or cancel a session.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys;

/// Stops or cancels a [`TraceSession`](crate::TraceSession) from any thread.
///
/// A stopper has no descriptor of its own. On Unix, the two descriptors of the alarm of a session that was made
/// [nonblocking](crate::TraceSession::set_nonblocking) stay open until the session and all of its stoppers are dropped.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Mailbox>);

/// Carries requests from other threads to the thread that reads the session.
#[derive(Debug)]
pub(super) struct Mailbox {
    requests: Mutex<StopRequests>,
    /// An alarm that is raised while a request waits for the reader.
    alarm: Arc<sys::Alarm>,
}

/// All requests so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopRequests {
    pub(super) stop: bool,
    pub(super) cancel: bool,
    /// Whether the reader has not taken the requests yet.
    new: bool,
}

impl Stopper {
    pub(super) fn new(mailbox: &Arc<Mailbox>) -> Self {
        Self(Arc::clone(mailbox))
    }

    /// Requests the Stop, as [`TraceSession::stop`](crate::TraceSession::stop) does.
    pub fn stop(&self) {
        self.0.request_stop();
    }

    /// Abandons the session. A read that waits fails immediately with [`Error::Cancelled`](crate::Error::Cancelled),
    /// and so does every later read.
    pub fn cancel(&self) {
        self.0.request(|requests| requests.cancel = true);
    }
}

impl Mailbox {
    pub(super) fn new(alarm: &Arc<sys::Alarm>) -> Self {
        Self { requests: Mutex::default(), alarm: Arc::clone(alarm) }
    }

    pub(super) fn request_stop(&self) {
        self.request(|requests| requests.stop = true);
    }

    pub(super) fn is_stop_requested(&self) -> bool {
        self.requests().stop
    }

    /// Withdraws the Stop, so that it can be requested again.
    pub(super) fn withdraw_stop(&self) {
        self.requests().stop = false;
    }

    /// Returns all requests if one of them is new.
    pub(super) fn take(&self) -> Option<StopRequests> {
        let mut requests = self.requests();
        if !requests.new {
            return None;
        }
        requests.new = false;
        // The alarm is lowered while the lock is held. Otherwise this call could lower the alarm of a later request.
        self.alarm.lower();
        Some(*requests)
    }

    fn request(&self, change: impl FnOnce(&mut StopRequests)) {
        let mut requests = self.requests();
        let before = *requests;
        change(&mut requests);
        if *requests != before {
            requests.new = true;
            self.alarm.raise();
        }
    }

    fn requests(&self) -> MutexGuard<'_, StopRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
