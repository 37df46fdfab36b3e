use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_proto::port::{Arrival, Entry, Roster};
use ipc_proto::{Advertise, Exchange, Guid, ProtocolError, ReceiveAdvertise, Step};

use super::{AdvertisedRuntime, Credentials, MonitorEvent, Rejection};
use crate::client::Deadline;
use crate::drive::is_closed;
use crate::sys::{self, Hub, Listener, Socket};

/// What a [`Monitor`] and its clients share.
pub(crate) struct Shared {
    listener: Listener,
    /// Watches the listener and every connection; raised while there are events, or another time when there is something
    /// to do.
    hub: Hub,
    state: Mutex<State>,
    /// Whenever `state` is, by somebody who watched.
    changed: Condvar,
}

struct State {
    roster: Roster<Idle, Vec<Option<Entry<Idle>>>>,
    /// Connections that have not said who they are, by their tokens: the oldest first.
    arriving: BTreeMap<u64, Arriving>,
    /// The tokens of the connections in the roster.
    idle: BTreeMap<u64, Guid>,
    /// Runtimes that have no connection just now.
    away: BTreeMap<Guid, Away>,
    events: VecDeque<MonitorEvent>,
    last_token: u64,
    /// Whether somebody polls, whom a change has to wake.
    polled: bool,
    /// Whether who waits for an event is to wait no longer.
    woken: bool,
    /// When to accept again, if there were no descriptors left.
    accept_at: Option<Instant>,
    /// When there is something to do at the latest.
    due: Option<Instant>,
}

/// A runtime's connection, which waits for a command.
struct Idle {
    socket: Socket,
    token: u64,
    credentials: Option<Credentials>,
}

struct Arriving {
    socket: Socket,
    receive: ReceiveAdvertise,
    deadline: Instant,
    credentials: Option<Credentials>,
}

/// A runtime without a connection.
struct Away {
    credentials: Option<Credentials>,
    /// Its process, as seen from here; 0 if it cannot be.
    process_id: u32,
    /// When to look whether its process is still there.
    look: Instant,
    /// When it has left, if it closed its connection by itself.
    left: Option<Instant>,
}

/// The listener's; connections have those from 1 on.
const LISTENER: u64 = 0;
/// How many connections may be silent at the same time. Runtimes say who they are at once.
pub(super) const MAX_ARRIVING: usize = 256;
/// How many events are kept if nobody takes them, before rejections are not kept any more.
const MAX_EVENTS: usize = 1024;
/// How often the process of a runtime that has a command is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How often that of one that has hung up is, and for how long: longer than the worst back-off.
const LOOK_CLOSELY: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(1);
/// For how long nobody is accepted when there are no descriptors left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

impl State {
    fn new() -> Self {
        Self {
            roster: Roster::new(Vec::new()),
            arriving: BTreeMap::new(),
            idle: BTreeMap::new(),
            away: BTreeMap::new(),
            events: VecDeque::new(),
            last_token: LISTENER,
            polled: false,
            woken: false,
            accept_at: None,
            due: None,
        }
    }

    fn describe(&self, entry: &Entry<Idle>) -> AdvertisedRuntime {
        let credentials = match &entry.connection {
            Some(idle) => idle.credentials,
            None => self.away.get(&entry.cookie).and_then(|away| away.credentials),
        };
        AdvertisedRuntime { runtime_cookie: entry.cookie, process_id: entry.process_id, credentials }
    }

    /// There is something to do at `instant`, too.
    fn by(&mut self, instant: Instant) {
        self.due = Some(self.due.map_or(instant, |due| due.min(instant)));
    }

    fn reject(&mut self, rejection: Rejection, credentials: Option<Credentials>) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(MonitorEvent::Rejected { rejection, credentials });
        }
    }

    /// A runtime has no connection any more: because it hung up, or because that has a command now.
    fn send_away(&mut self, cookie: Guid, credentials: Option<Credentials>, hung_up: bool) {
        // Systems that do not tell have no processes that see themselves in another way.
        let process_id = match (credentials, self.roster.get(&cookie)) {
            (Some(credentials), _) => credentials.process_id,
            (None, Some(entry)) => u32::try_from(entry.process_id).unwrap_or(0),
            (None, None) => 0,
        };
        let after = |pause| Deadline::after(pause).end;
        let (look, left) = if hung_up { (LOOK_CLOSELY, Some(after(GRACE))) } else { (LOOK, None) };
        let away = Away { credentials, process_id, look: after(look), left };
        self.by(away.look);
        self.away.insert(cookie, away);
    }
}

impl Shared {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let listener = Listener::bind_over_dead(path)?;
        let hub = Hub::new()?;
        hub.watch(&listener, LISTENER)?;
        Ok(Self { listener, hub, state: Mutex::new(State::new()), changed: Condvar::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        self.listener.path()
    }

    /// The next event, by `deadline`; without one, if it is there already.
    pub(super) fn event(&self, deadline: Option<Instant>) -> io::Result<Option<MonitorEvent>> {
        let mut state = self.state();
        loop {
            self.step(&mut state)?;
            let event = state.events.pop_front();
            if state.events.is_empty() {
                self.hub.lower();
            }
            let (None, Some(deadline)) = (&event, deadline) else { return Ok(event) };
            if core::mem::take(&mut state.woken) {
                return Ok(None);
            }
            state = match self.wait(state, deadline) {
                Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(None),
                waited => waited?,
            };
        }
    }

    /// Has who waits for an event, or is the next to do so, go on.
    pub(super) fn wake(&self) {
        let mut state = self.state();
        state.woken = true;
        self.tell(&state);
    }

    /// When there is something to do at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.state().due
    }

    pub(super) fn runtimes(&self) -> Vec<AdvertisedRuntime> {
        let state = self.state();
        state.roster.iter().map(|entry| state.describe(entry)).collect()
    }

    pub(super) fn is_waiting(&self, runtime_cookie: &Guid) -> bool {
        self.state().roster.get(runtime_cookie).is_some_and(|entry| entry.connection.is_some())
    }

    /// Forgets a runtime; whether it was there.
    pub(super) fn remove(&self, runtime_cookie: &Guid) -> bool {
        let mut state = self.state();
        state.away.remove(runtime_cookie);
        let Some(entry) = state.roster.remove(runtime_cookie) else { return false };
        if let Some(idle) = entry.connection {
            self.drop_idle(&mut state, &idle);
        }
        self.tell(&state);
        true
    }

    /// The runtime, if it is there.
    pub(crate) fn runtime(&self, runtime_cookie: &Guid) -> Option<AdvertisedRuntime> {
        let state = self.state();
        state.roster.get(runtime_cookie).map(|entry| state.describe(entry))
    }

    /// Takes the runtime's connection as soon as there is one; `None` if the runtime is not there.
    pub(crate) fn take(&self, runtime_cookie: &Guid, deadline: Instant) -> io::Result<Option<Socket>> {
        let mut state = self.state();
        loop {
            self.step(&mut state)?;
            if state.roster.get(runtime_cookie).is_none() {
                return Ok(None);
            }
            if let Some(idle) = state.roster.take(runtime_cookie) {
                self.drop_idle(&mut state, &idle);
                let gone = idle.socket.has_hung_up();
                let due = state.due;
                state.send_away(*runtime_cookie, idle.credentials, gone);
                if due != state.due {
                    // Whoever waits does so for too long.
                    self.tell(&state);
                    self.hub.raise();
                }
                if !gone {
                    return Ok(Some(idle.socket));
                }
            }
            state = self.wait(state, deadline)?;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to do, or somebody has done something; an error of kind `TimedOut` after
    /// `deadline`.
    ///
    /// One of those who wait polls, for all of them.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        deadline: Instant,
    ) -> io::Result<MutexGuard<'s, State>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        if state.polled {
            let waited = self.changed.wait_timeout(state, left);
            return Ok(waited.unwrap_or_else(PoisonError::into_inner).0);
        }
        state.polled = true;
        let until = state.due.map_or(deadline, |due| due.min(deadline));
        drop(state);
        let waited = self.hub.wait(until);
        let mut state = self.state();
        state.polled = false;
        self.hub.waited();
        // Somebody else has to poll when this one has what it waits for.
        self.changed.notify_all();
        match waited {
            Err(e) if e.kind() != ErrorKind::TimedOut => Err(e),
            _ => Ok(state),
        }
    }

    /// Does what there is to do, and waits for nothing.
    fn step(&self, state: &mut State) -> io::Result<()> {
        /// However much goes on, whoever calls is to get on too.
        const ROUNDS: usize = 4;
        let mut tokens = Vec::new();
        let mut changed = false;
        for _ in 0..ROUNDS {
            self.hub.ready(&mut tokens)?;
            if tokens.is_empty() {
                break;
            }
            changed = true;
            for token in &tokens {
                self.on_ready(state, *token)?;
            }
        }
        let now = Instant::now();
        if state.due.is_some_and(|due| due <= now) {
            changed = true;
            self.on_time(state, now)?;
        }
        if !state.events.is_empty() {
            self.hub.raise();
        }
        if changed {
            self.tell(state);
        }
        Ok(())
    }

    /// Has everybody who waits look again.
    fn tell(&self, state: &State) {
        self.changed.notify_all();
        if state.polled {
            self.hub.wake();
        }
    }

    fn on_ready(&self, state: &mut State, token: u64) -> io::Result<()> {
        if token == LISTENER {
            return self.accept(state);
        }
        if let Some(arriving) = state.arriving.get_mut(&token) {
            match receive(arriving) {
                Ok(None) => {}
                Ok(Some(advertise)) => self.arrive(state, token, &advertise),
                Err(e) => self.reject(state, token, Rejection::Protocol(e)),
            }
            return Ok(());
        }
        // One that was dropped in this round already has none.
        let Some(cookie) = state.idle.get(&token).copied() else { return Ok(()) };
        let entry = state.roster.get(&cookie).and_then(|entry| entry.connection.as_ref());
        let Some(idle) = entry.filter(|idle| idle.token == token) else { return Ok(()) };
        match (&idle.socket).read(&mut [0]) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Ok(n) if n > 0 => {
                let credentials = idle.credentials;
                state.reject(Rejection::Unasked, credentials);
            }
            _ => {}
        }
        if let Some(idle) = state.roster.take(&cookie) {
            self.drop_idle(state, &idle);
            state.send_away(cookie, idle.credentials, true);
        }
        Ok(())
    }

    fn accept(&self, state: &mut State) -> io::Result<()> {
        /// However many come, the others get on too.
        const BATCH: usize = 64;
        for _ in 0..BATCH {
            let socket = match self.listener.accept_within_limits() {
                Ok(socket) => socket,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The peer has gone again.
                Err(e) if is_closed(&e) || e.kind() == ErrorKind::Interrupted => continue,
                // There are no descriptors, or no memory, left: the same would be said again at once.
                Err(_) => {
                    let again = Instant::now().checked_add(ACCEPT_AGAIN);
                    state.accept_at = again;
                    self.hub.forget(&self.listener)?;
                    again.into_iter().for_each(|again| state.by(again));
                    return Ok(());
                }
            };
            state.last_token = state.last_token.saturating_add(1);
            let token = state.last_token;
            let limit = Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into());
            let deadline = Deadline::after(limit).end;
            let credentials = socket.credentials();
            let mut arriving = Arriving { socket, receive: ReceiveAdvertise::new(), deadline, credentials };
            // Runtimes send at once, so it is mostly there.
            let received = receive(&mut arriving);
            if self.hub.watch(&arriving.socket, token).is_err() {
                continue;
            }
            state.arriving.insert(token, arriving);
            match received {
                Ok(Some(advertise)) => self.arrive(state, token, &advertise),
                Ok(None) => state.by(deadline),
                Err(e) => self.reject(state, token, Rejection::Protocol(e)),
            }
            if state.arriving.len() > MAX_ARRIVING {
                let oldest = state.arriving.keys().next().copied();
                oldest.into_iter().for_each(|oldest| self.reject(state, oldest, Rejection::Crowded));
            }
        }
        Ok(())
    }

    /// Closes a connection that has not said who it is.
    fn reject(&self, state: &mut State, token: u64, rejection: Rejection) {
        if let Some(arriving) = state.arriving.remove(&token) {
            // It is forgotten when it is closed, too.
            let _ = self.hub.forget(&arriving.socket);
            // Whoever only looked whether somebody is here, as another monitor does, has done no harm.
            if rejection != Rejection::Protocol(ProtocolError::Closed { received: 0 }) {
                state.reject(rejection, arriving.credentials);
            }
        }
    }

    /// A connection has said who it is.
    fn arrive(&self, state: &mut State, token: u64, advertise: &Advertise) {
        let Some(Arriving { socket, credentials, .. }) = state.arriving.remove(&token) else { return };
        if socket.has_hung_up() {
            // Its runtime was gone before it was accepted.
            return;
        }
        let cookie = advertise.runtime_cookie;
        let mut idle = Idle { socket, token, credentials };
        let Arrival { first, stale } = loop {
            match state.roster.arrive(cookie, advertise.process_id, idle) {
                Ok(arrival) => break arrival,
                Err(full) => {
                    idle = full.connection;
                    state.roster.grow(1);
                }
            }
        };
        state.idle.insert(token, cookie);
        state.away.remove(&cookie);
        if let Some(stale) = stale {
            self.drop_idle(state, &stale);
        }
        if first {
            let process_id = advertise.process_id;
            let runtime = AdvertisedRuntime { runtime_cookie: cookie, process_id, credentials };
            state.events.push_back(MonitorEvent::Arrived(runtime));
        }
    }

    /// A connection is no longer in the roster.
    fn drop_idle(&self, state: &mut State, idle: &Idle) {
        state.idle.remove(&idle.token);
        // It is forgotten when it is closed, too.
        let _ = self.hub.forget(&idle.socket);
    }

    fn on_time(&self, state: &mut State, now: Instant) -> io::Result<()> {
        while let Some((token, arriving)) = state.arriving.first_key_value() {
            if arriving.deadline > now {
                break;
            }
            let (token, received) = (*token, arriving.receive.bytes().len());
            self.reject(state, token, Rejection::TooLate { received });
        }
        let mut left = Vec::new();
        for (cookie, away) in &mut state.away {
            if away.look > now {
                continue;
            }
            let ended = away.process_id != 0 && sys::process_has_ended(away.process_id);
            if ended || away.left.is_some_and(|left| left <= now) {
                left.push(*cookie);
            }
            away.look = Deadline::after(if away.left.is_some() { LOOK_CLOSELY } else { LOOK }).end;
        }
        for cookie in left {
            if let Some(entry) = state.roster.get(&cookie) {
                let runtime = state.describe(entry);
                state.events.push_back(MonitorEvent::Left(runtime));
            }
            state.roster.remove(&cookie);
            state.away.remove(&cookie);
        }
        if state.accept_at.is_some_and(|at| at <= now) {
            state.accept_at = None;
            self.hub.watch(&self.listener, LISTENER)?;
        }
        let arriving = state.arriving.values().next().map(|arriving| arriving.deadline);
        let away = state.away.values().map(|away| away.look).min();
        state.due = [arriving, away, state.accept_at].into_iter().flatten().min();
        Ok(())
    }
}

/// Receives what is there of a frame; the frame once it is whole.
fn receive(arriving: &mut Arriving) -> Result<Option<Advertise>, ProtocolError> {
    while let Step::Receive(space) = arriving.receive.step() {
        let n = match (&arriving.socket).read(space) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            // However it ended, nothing more comes.
            read => read.unwrap_or(0),
        };
        arriving.receive.advance(n)?;
    }
    arriving.receive.finish().map(Some)
}

#[cfg(unix)]
impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hub.as_fd()
    }
}

#[cfg(windows)]
impl AsHandle for Shared {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.hub.as_handle()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("path", &self.path()).finish_non_exhaustive()
    }
}
