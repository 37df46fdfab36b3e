//! `MonitorCore`: the loop of a monitor around a `MonitorPort` of `ipc_proto`; and `MonitorWaker`.
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use ipc_proto::Guid;
use ipc_proto::port::{MonitorChange, MonitorFull, MonitorPort, MonitorSlot, Rejection, RuntimeState};

use super::event::{AdvertisedRuntime, MonitorEvent};
use super::process_checks::{Peer, ProcessChecks};
use crate::drive::is_closed;
use crate::sys::{Hub, Listener};
use crate::timeouts::milliseconds;
use crate::transport::{Channel, Lease, Stream};

/// Drives a [`MonitorPort`], for a monitor and its clients: it has the sockets, the clock, and the waiting threads.
pub(super) struct MonitorCore {
    /// `None` if the caller accepts all connections.
    listener: Option<Listener>,
    waker: MonitorWaker,
    /// The time 0 of the port's clock, which counts milliseconds.
    epoch: Instant,
    state: Mutex<State>,
    /// The tokens of taken connections that have ended. They have a lock of their own, because a connection can be dropped
    /// while a thread has the lock of the state.
    released: Mutex<Vec<u64>>,
}

type Slot = Option<MonitorSlot<Arc<Channel>, Peer>>;

struct State {
    port: MonitorPort<Arc<Channel>, Peer, Vec<Slot>>,
    events: VecDeque<MonitorEvent>,
    checks: ProcessChecks,
    /// The subject of the thread that polls; `None` if no thread polls. One thread polls for itself and for all
    /// sleeping threads.
    poller: Option<Subject>,
    sleeping: Vec<(Subject, Arc<Condvar>)>,
}

/// The subject that a thread waits for: an event (`None`), or the runtime with this cookie.
type Subject = Option<Guid>;
const EVENT: Subject = None;

/// The token of the listener. The tokens of a [`MonitorPort`] are larger.
const LISTENER: u64 = 0;
/// The number of stored events from which on rejections are not stored.
const MAX_EVENTS: usize = 1024;

/// Ends a [wait](crate::Monitor::next_event) for the events of a [`Monitor`](crate::Monitor) from another thread.
#[derive(Debug, Clone)]
pub struct MonitorWaker {
    /// Watches the listener and all connections. It is raised while there are events, or when
    /// [`Monitor::due`](crate::Monitor::due) becomes earlier, so that the event loop of a caller wakes.
    hub: Arc<Hub>,
    is_requested: Arc<AtomicBool>,
}

impl MonitorWaker {
    /// Makes [`Monitor::next_event`](crate::Monitor::next_event) return `None` once if there is no event: the current
    /// call, or else the next. It has no effect after the monitor is dropped.
    pub fn wake(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
        // The hub wakes only the polling thread, which then wakes the thread that waits for events.
        self.hub.wake();
    }
}

/// The claim of a monitor on a connection that was taken. Unless the connection stays in use after it was dropped, dropping
/// the claim releases the runtime.
#[derive(Debug)]
struct TakenConnection {
    core: Weak<MonitorCore>,
    token: u64,
    /// Whether the runtime stays in use although its connection was dropped: its process can be checked, and may still
    /// carry out the command.
    stays_in_use: bool,
}

impl Lease for TakenConnection {
    fn end(mut self: Box<Self>) {
        self.stays_in_use = false;
    }
}

impl Drop for TakenConnection {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade().filter(|_| !self.stays_in_use) {
            core.released().push(self.token);
            core.hub().raise();
            core.hub().wake();
        }
    }
}

impl MonitorCore {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        Self::new(Some(Listener::bind_over_dead(path)?))
    }

    pub(super) fn new(listener: Option<Listener>) -> io::Result<Self> {
        let hub = Hub::new()?;
        listener.iter().try_for_each(|listener| hub.watch(listener, LISTENER))?;
        let waker = MonitorWaker { hub: Arc::new(hub), is_requested: Arc::default() };
        let port = MonitorPort::new(Vec::new());
        let (events, checks) = (VecDeque::new(), ProcessChecks::default());
        let state = State { port, events, checks, poller: None, sleeping: Vec::new() };
        Ok(Self {
            listener,
            waker,
            epoch: Instant::now(),
            state: Mutex::new(state),
            released: Mutex::default(),
        })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.listener.as_ref().map(Listener::path)
    }

    pub(super) fn waker(&self) -> MonitorWaker {
        self.waker.clone()
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.waker.hub
    }

    /// Waits for the next event until `deadline`; without a deadline, returns an event only if it is available already.
    pub(super) fn event(&self, deadline: Option<Instant>) -> io::Result<Option<MonitorEvent>> {
        let event = self.wait_for(EVENT, deadline, |state| {
            let event = state.events.pop_front();
            if state.events.is_empty() {
                self.hub().lower();
                if !self.released().is_empty() {
                    self.hub().raise();
                }
            }
            let is_woken = || deadline.is_some() && self.waker.is_requested.swap(false, Ordering::SeqCst);
            (event.is_some() || is_woken()).then_some(event)
        });
        match event {
            Err(e) if e.kind() == ErrorKind::TimedOut => Ok(None),
            event => event,
        }
    }

    /// Takes the connection of a runtime as soon as there is one; `None` if the runtime is unknown. Fails with an error
    /// of kind `TimedOut` after `deadline`.
    pub(super) fn take(
        self: &Arc<Self>,
        cookie: &Guid,
        deadline: Instant,
    ) -> io::Result<Option<Arc<Channel>>> {
        self.wait_for(Some(*cookie), Some(deadline), |state| {
            let Some(runtime) = state.port.runtime(cookie).copied() else { return Some(None) };
            let (token, socket) = state.port.idle(cookie)?;
            if socket.has_hung_up() {
                let change = state.port.advance(token, 0, self.now());
                self.apply(state, change);
                return None;
            }
            let socket = state.port.take(cookie, self.now())?;
            self.unwatch(&socket);
            let stays_in_use = runtime.peer.process_id(runtime.process_id).is_some();
            socket.lend(TakenConnection { core: Arc::downgrade(self), token, stays_in_use });
            Some(Some(socket))
        })
    }

    /// Returns when [`event`](Self::event) has something to do even if nothing becomes readable.
    pub(super) fn due(&self) -> Option<Instant> {
        self.instant(self.state().port.due()?)
    }

    pub(super) fn runtimes(&self) -> Vec<AdvertisedRuntime> {
        self.state().port.runtimes().map(AdvertisedRuntime::new).collect()
    }

    pub(super) fn runtime(&self, cookie: &Guid) -> Option<AdvertisedRuntime> {
        self.state().port.runtime(cookie).map(AdvertisedRuntime::new)
    }

    /// Returns the process of a runtime if the system vouches for it.
    pub(super) fn process_id(&self, cookie: &Guid) -> Option<u32> {
        let state = self.state();
        let runtime = state.port.runtime(cookie)?;
        runtime.peer.process_id(runtime.process_id)
    }

    pub(super) fn is_waiting(&self, cookie: &Guid) -> bool {
        self.state().port.state(cookie) == Some(RuntimeState::Idle)
    }

    /// Forgets a runtime; returns whether it was known.
    pub(super) fn remove(&self, cookie: &Guid) -> bool {
        self.forget(&mut self.state(), cookie)
    }

    fn forget(&self, state: &mut State, cookie: &Guid) -> bool {
        let Some((_, connection)) = state.port.remove(cookie) else { return false };
        connection.iter().for_each(|socket| self.unwatch(socket));
        self.notify(state, Some(*cookie));
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn released(&self) -> MutexGuard<'_, Vec<u64>> {
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        milliseconds(self.epoch.elapsed())
    }

    fn instant(&self, time: u64) -> Option<Instant> {
        self.epoch.checked_add(Duration::from_millis(time))
    }

    /// Waits until `attempt` returns something. Fails with an error of kind `TimedOut` after `deadline`; without a
    /// deadline, already if the first attempt returns nothing.
    fn wait_for<T>(
        &self,
        subject: Subject,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut State) -> Option<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        let result = loop {
            let due = state.port.due();
            let attempted = self.poll(&mut state).map(|()| attempt(&mut state));
            if state.port.due().is_some_and(|new| due.is_none_or(|old| new < old)) {
                // The port is due earlier than before, so the polling thread and the event loop of a caller must wake.
                state.poller.iter().for_each(|_| self.hub().wake());
                subject.iter().for_each(|_| self.hub().raise());
            }
            if let Some(result) = attempted.transpose() {
                break result;
            }
            let deadline = deadline.filter(|deadline| *deadline > Instant::now());
            let Some(deadline) = deadline else { break Err(ErrorKind::TimedOut.into()) };
            let (guard, waited) = self.wait(state, subject, deadline);
            state = guard;
            if let Err(e) = waited {
                break Err(e);
            }
        };
        if let (None, Some((_, sleeper))) = (state.poller, state.sleeping.first()) {
            // This thread stops polling, so another thread must poll.
            sleeper.notify_one();
        }
        result
    }

    /// Waits until there is something to do, or another thread has done something for `subject`.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        subject: Subject,
        deadline: Instant,
    ) -> (MutexGuard<'s, State>, io::Result<()>) {
        if state.poller.is_some() {
            let condvar = Arc::new(Condvar::new());
            state.sleeping.push((subject, Arc::clone(&condvar)));
            let limit = deadline.saturating_duration_since(Instant::now());
            let waited = condvar.wait_timeout(state, limit);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.sleeping.retain(|(_, other)| !Arc::ptr_eq(other, &condvar));
            return (state, Ok(()));
        }
        state.poller = Some(subject);
        let due = state.port.due().and_then(|due| self.instant(due));
        drop(state);
        let waited = self.hub().wait(due.map_or(deadline, |due| due.min(deadline)));
        let mut state = self.state();
        state.poller = None;
        self.hub().waited();
        if self.waker.is_requested.load(Ordering::SeqCst) {
            self.notify(&state, EVENT);
        }
        match waited {
            Err(e) if e.kind() != ErrorKind::TimedOut => (state, Err(e)),
            _ => (state, Ok(())),
        }
    }

    /// Wakes the threads that wait for `subject`.
    fn notify(&self, state: &State, subject: Subject) {
        state
            .sleeping
            .iter()
            .filter(|(other, _)| *other == subject)
            .for_each(|(_, condvar)| condvar.notify_one());
        if state.poller == Some(subject) {
            self.hub().wake();
        }
    }

    /// Does all work that needs no wait.
    fn poll(&self, state: &mut State) -> io::Result<()> {
        /// The limit of rounds. More work can always arrive for other threads, and the caller must not do all of it.
        const ROUNDS: usize = 4;
        let mut tokens = Vec::new();
        for _ in 0..ROUNDS {
            self.hub().ready(&mut tokens)?;
            if tokens.is_empty() {
                break;
            }
            for token in &tokens {
                match *token {
                    LISTENER => self.listener.iter().try_for_each(|listener| self.accept(state, listener))?,
                    token => self.read(state, token),
                }
            }
        }
        let now = self.now();
        self.released().drain(..).for_each(|token| state.port.released(token, now));
        loop {
            let State { port, checks, .. } = &mut *state;
            let change = port.on_due(now, |runtime| checks.has_ended(runtime, now));
            if change.is_none() {
                break;
            }
            self.apply(state, change);
        }
        if !state.events.is_empty() {
            self.hub().raise();
        }
        Ok(())
    }

    fn accept(&self, state: &mut State, listener: &Listener) -> io::Result<()> {
        /// The limit of connections that are accepted before other tokens have their turn.
        const BATCH: usize = 64;
        for _ in 0..BATCH {
            let socket = match listener.accept() {
                Ok(socket) => Some(socket),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The peer closed the connection before it was accepted, or a signal interrupted the call.
                Err(e) if is_closed(&e) || e.kind() == ErrorKind::Interrupted => continue,
                // The system has no descriptor or no memory left.
                Err(_) => None,
            };
            let is_scarce = socket.as_ref().is_none_or(Listener::is_nearly_exhausted_by);
            if is_scarce {
                // Runtimes send their frame immediately. So the newest connection can be that of a runtime; the oldest
                // connection without a frame is not.
                match state.port.evict_oldest() {
                    None => {
                        state.port.pause_accept(self.now());
                        return self.hub().forget(listener);
                    }
                    evicted => self.apply(state, evicted),
                }
            }
            let Some(socket) = socket else { continue };
            // The eviction has freed a low descriptor number. Unless this connection moves there, the next one gets
            // that number, passes the check, and the reserve shrinks.
            let socket = if is_scarce { socket.with_lowest_descriptor() } else { socket };
            self.admit(state, Arc::new(socket.into()), true);
        }
        Ok(())
    }

    /// Takes a connection that the caller has accepted.
    pub(super) fn push(&self, stream: Stream) {
        let mut state = self.state();
        self.admit(&mut state, Arc::clone(stream.channel()), false);
        if !state.events.is_empty() {
            self.hub().raise();
        }
        if state.poller.is_some() {
            // A thread that polls may have to wake earlier, for the deadline of the frame.
            self.hub().wake();
        }
    }

    /// Waits for the frame on a new connection.
    fn admit(&self, state: &mut State, channel: Arc<Channel>, is_local: bool) {
        let peer = Peer { credentials: channel.credentials(), is_local };
        let mut accepted = state.port.accept(channel, peer, self.now());
        while let Err(MonitorFull { connection, peer }) = accepted {
            state.port.grow(1);
            accepted = state.port.accept(connection, peer, self.now());
        }
        let Ok(accepted) = accepted else { return };
        self.apply(state, accepted.evicted);
        let watched = state.port.receive(accepted.token);
        if watched.is_some_and(|(channel, _)| self.hub().watch(&**channel, accepted.token).is_ok()) {
            // Runtimes send their frame immediately, so it may have arrived already.
            self.read(state, accepted.token);
        } else {
            let change = state.port.advance(accepted.token, 0, self.now());
            self.apply(state, change);
        }
    }

    fn read(&self, state: &mut State, token: u64) {
        while let Some((socket, space)) = state.port.receive(token) {
            let n = match socket.read(space) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap_or(0),
            };
            let change = state.port.advance(token, n, self.now());
            if change.is_some() {
                return self.apply(state, change);
            }
        }
    }

    /// Closes the connections that `change` returns, and reports the change to the waiting threads.
    fn apply(&self, state: &mut State, change: Option<MonitorChange<Arc<Channel>, Peer>>) {
        match change {
            Some(MonitorChange::Arrived { runtime_cookie, first, stale }) => {
                stale.iter().for_each(|stale| self.unwatch(stale));
                let connection = state.port.idle(&runtime_cookie);
                if first && connection.as_ref().is_some_and(|(_, socket)| socket.has_hung_up()) {
                    // The runtime ended before its connection was accepted.
                    self.forget(state, &runtime_cookie);
                    return;
                }
                connection.into_iter().for_each(|(_, socket)| socket.expect_end());
                self.notify(state, Some(runtime_cookie));
                let runtime = state.port.runtime(&runtime_cookie).map(AdvertisedRuntime::new);
                if let Some(runtime) = runtime.filter(|_| first) {
                    self.report(state, MonitorEvent::Arrived(runtime));
                }
            }
            Some(MonitorChange::Rejected { connection, peer, rejection }) => {
                self.unwatch(&connection);
                if !rejection.is_probe() {
                    let credentials = peer.credentials;
                    self.report(state, MonitorEvent::Rejected { rejection, credentials });
                }
            }
            Some(MonitorChange::Disconnected { runtime_cookie, connection, unsolicited }) => {
                self.unwatch(&connection);
                if unsolicited {
                    let credentials =
                        state.port.runtime(&runtime_cookie).and_then(|runtime| runtime.peer.credentials);
                    let rejection = Rejection::Unsolicited;
                    self.report(state, MonitorEvent::Rejected { rejection, credentials });
                }
            }
            Some(MonitorChange::Left(runtime)) => {
                self.notify(state, Some(runtime.cookie));
                self.report(state, MonitorEvent::Left(AdvertisedRuntime::new(&runtime)));
            }
            Some(MonitorChange::AcceptAgain)
                if self.listener.as_ref().is_some_and(|l| self.hub().watch(l, LISTENER).is_err()) =>
            {
                state.port.pause_accept(self.now());
            }
            None | Some(MonitorChange::AcceptAgain) => {}
        }
    }

    fn report(&self, state: &mut State, event: MonitorEvent) {
        let is_optional = matches!(event, MonitorEvent::Rejected { .. });
        if !is_optional || state.events.len() < MAX_EVENTS {
            state.events.push_back(event);
            self.notify(state, EVENT);
        }
    }

    /// Stops watching a connection that leaves the port.
    fn unwatch(&self, channel: &Channel) {
        // The system also forgets a connection when its last descriptor is closed, so an error does not matter.
        let _ = self.hub().forget(channel);
    }
}

impl fmt::Debug for MonitorCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("MonitorCore");
        debug.field("path", &self.path());
        // The thread that formats may already hold the lock, so waiting for the lock could deadlock.
        if let Ok(state) = self.state.try_lock() {
            debug.field("runtimes", &state.port.runtimes().count());
            debug.field("arriving", &state.port.arriving()).field("capacity", &state.port.capacity());
        }
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use core::sync::atomic::AtomicUsize;
    use std::os::unix::net::UnixStream;
    use std::{io::Write, thread};

    use super::*;

    const HANGS: Duration = Duration::from_secs(60);

    fn core() -> (tempfile::TempDir, MonitorCore) {
        let directory = tempfile::tempdir().unwrap();
        let core = MonitorCore::bind(&directory.path().join("port")).unwrap();
        (directory, core)
    }

    fn advertise(core: &MonitorCore, cookie: [u8; 16]) -> UnixStream {
        let mut stream = UnixStream::connect(core.path().unwrap()).unwrap();
        stream.write_all(&[&b"ADVR_V1\0"[..], &cookie, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat()).unwrap();
        stream
    }

    /// Watching a connection can fail, for example without memory. Here it fails because the listener is watched
    /// already.
    #[test]
    fn a_listener_that_cannot_be_watched_is_watched_later() {
        let (_directory, core) = core();
        let mut state = core.state();
        assert_eq!(state.port.due(), None);
        core.apply(&mut state, Some(MonitorChange::AcceptAgain));
        assert!(state.port.due().is_some(), "there is another attempt");
        core.hub().forget(core.listener.as_ref().unwrap()).unwrap();
        core.apply(&mut state, Some(MonitorChange::AcceptAgain));
        drop(state);
        let _stream = advertise(&core, [7; 16]);
        assert!(matches!(core.event(Some(Instant::now() + HANGS)), Ok(Some(MonitorEvent::Arrived(_)))));
    }

    /// A thread that waits for one runtime is not woken for other runtimes. Otherwise each arrival of a runtime would
    /// wake every thread.
    #[test]
    fn a_thread_wakes_only_for_its_runtime() {
        const WAITING: u8 = 16;
        const OTHERS: u8 = 100;
        let (_directory, core) = core();
        let arrived =
            || matches!(core.event(Some(Instant::now() + HANGS)), Ok(Some(MonitorEvent::Arrived(_))));
        let attempts = AtomicUsize::new(0);
        let finished = &|number: u8| {
            core.wait_for(Some(Guid([number; 16])), Some(Instant::now() + HANGS), |state| {
                attempts.fetch_add(1, Ordering::SeqCst);
                state.port.take(&Guid([number; 16]), core.now())
            })
        };
        thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..WAITING).map(|number| scope.spawn(move || finished(number).is_ok())).collect();
            let begin = Instant::now();
            while attempts.load(Ordering::SeqCst) < usize::from(WAITING) {
                assert!(begin.elapsed() < HANGS, "the threads do not wait");
                thread::yield_now();
            }
            let others: Vec<_> = (0..OTHERS)
                .map(|number| {
                    let stream = advertise(&core, [100 + number; 16]);
                    assert!(arrived());
                    stream
                })
                .collect();
            // One thread polls for all threads, and makes an attempt at each arrival. Another thread may poll after
            // each event, so the number of attempts varies.
            let all = usize::from(WAITING) * usize::from(OTHERS);
            let attempts = attempts.load(Ordering::SeqCst);
            assert!(attempts < all / 2, "{attempts} attempts, for {OTHERS} other runtimes");
            let own: Vec<_> = (0..WAITING).map(|number| advertise(&core, [number; 16])).collect();
            for thread in waiting {
                assert!(thread.join().unwrap());
            }
            drop((others, own));
        });
    }
}
