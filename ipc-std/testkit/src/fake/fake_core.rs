//! The state of a fake runtime that its threads share.
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use ipc_proto::port::Suspension;
use ipc_proto::{Code, Request};
use ipc_std::Stream;

use super::fault::Fault;
use super::logged_request::RequestLog;
use super::recorded_deviations::RecordedDeviations;
use super::response::Response;
use crate::profile::Profile;

/// A handler of one command.
pub(super) type Handler = Arc<Mutex<dyn FnMut(&Request<'_>) -> Response + Send>>;

/// The descriptor of a `user_events` session.
#[cfg(unix)]
pub(super) type Descriptor = Arc<OwnedFd>;
/// A type without values, because Windows has no sessions with a descriptor.
#[cfg(windows)]
pub(super) type Descriptor = core::convert::Infallible;

/// The state that the threads of a fake runtime share.
pub(super) struct FakeCore {
    pub(super) profile: Profile,
    /// The zero of the runtime's clock.
    pub(super) started: Instant,
    pub(super) recorded_deviations: OnceLock<RecordedDeviations>,
    state: Mutex<State>,
    /// Signalled when `state` changes.
    changed: Condvar,
}

pub(super) struct State {
    pub(super) ending: bool,
    /// Which ports still suspend the runtime: those of the profile, then the port that listens.
    pub(super) suspension: Suspension<Vec<bool>>,
    pub(super) fault: Option<Fault>,
    /// Whether the runtime was suspended and is not any more.
    pub(super) resumed: bool,
    pub(super) environment: Vec<String>,
    pub(super) log: RequestLog,
    pub(super) handlers: BTreeMap<Code, Handler>,
    pub(super) sessions: BTreeMap<u64, FakeSession>,
    pub(super) next_session: u64,
    /// Open connections, which are shut down when the runtime is dropped.
    pub(super) open: BTreeMap<u64, Stream>,
    pub(super) next_connection: u64,
}

/// A session with a stream, or with a descriptor instead.
#[derive(Default)]
pub(super) struct FakeSession {
    /// Whether a client has stopped the session.
    pub(super) stopped: bool,
    /// Whether the runtime serves no other request before the client has read the session's heap snapshot.
    pub(super) blocks_requests: bool,
    #[cfg(unix)]
    pub(super) user_events_data: Option<Descriptor>,
}

impl fmt::Debug for FakeCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeCore").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl FakeCore {
    pub(super) fn new(profile: Profile) -> Self {
        let suspended = profile.ports.iter().map(|port| port.suspended).chain([profile.suspended]);
        let state = State {
            ending: false,
            suspension: Suspension::new(suspended.collect()),
            resumed: false,
            environment: profile.environment.clone(),
            fault: None,
            log: RequestLog::default(),
            handlers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            next_session: 0x7f00_0000_1000,
            open: BTreeMap::new(),
            next_connection: 0,
        };
        Self {
            profile,
            started: Instant::now(),
            recorded_deviations: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that wait for a change of the state.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until `done` returns true. Returns `false` if the runtime is dropped first, or if `peer` closes the
    /// connection.
    pub(super) fn wait_until(&self, peer: Option<&Stream>, done: impl FnMut(&mut State) -> bool) -> bool {
        self.wait(peer, None, done) == Some(true)
    }

    /// Waits as [`wait_until`](Self::wait_until) does, until `deadline`. Returns whether `done` returned true, or
    /// `None` for an end of the runtime or the connection.
    pub(super) fn wait(
        &self,
        peer: Option<&Stream>,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Option<bool> {
        /// The interval at which the connection is checked, because a closed connection does not signal `changed`.
        const CHECK: Duration = Duration::from_millis(50);
        let mut state = self.state();
        loop {
            if state.ending || peer.is_some_and(Stream::has_hung_up) {
                return None;
            }
            if done(&mut state) {
                return Some(true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Some(false);
            }
            let longest = match (left, peer) {
                (left, Some(_)) => Some(left.unwrap_or(CHECK).min(CHECK)),
                (left, None) => left,
            };
            state = match longest {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(longest) => {
                    self.changed.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Returns when the time of a client is over; `None` if that is beyond the range of the clock.
    pub(super) fn client_deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.profile.client_timeout)
    }

    /// Pauses, but ends the pause with the runtime.
    pub(super) fn pause(&self, pause: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), pause, |state| !state.ending);
        drop(waited);
    }
}

impl State {
    /// Returns whether the session is stopped.
    pub(super) fn is_stopped(&self, session_id: u64) -> bool {
        self.sessions.get(&session_id).is_none_or(|session| session.stopped)
    }
}
