//! The property of a monitor port: it agrees with a model that has a list and a map.
use std::collections::{BTreeMap, VecDeque};

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::port::{
    Accepted, MonitorChange, MonitorFull, MonitorLimits, MonitorPort, MonitorSlot, Rejection, RuntimeEntry,
    RuntimeState,
};
use ipc_proto::{Guid, ProtocolError};

/// A [`MonitorPort`] does what a model with a list and a map does, for any limits and any storage: it reports each
/// change once, returns each connection once, ignores the tokens of closed connections, and is never due too late.
pub fn monitor(bytes: &[u8]) {
    let _ = compare(&mut Unstructured::new(bytes));
}

fn compare(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let limits = MonitorLimits {
        max_arriving: u.int_in_range(0..=4)?,
        advertise_ms: *u.choose(&[0, 1, 250])?,
        in_use_check_ms: *u.choose(&[0, 7, 100])?,
        disconnected_check_ms: *u.choose(&[0, 3, 20])?,
        grace_ms: *u.choose(&[0, 10, 1000])?,
        accept_pause_ms: *u.choose(&[0, 100])?,
    };
    let room = u.int_in_range(0..=4)?;
    let now = *u.choose(&[0, 0, 0, u64::MAX - 700])?;
    let slots = (0..room).map(|_| None).collect();
    let port = MonitorPort::with_limits(slots, limits);
    let model = Model { limits, room, arriving: VecDeque::new(), runtimes: BTreeMap::new(), accept_at: None };
    let mut pair = Pair { port, model, wires: Vec::new(), now };
    for _ in 0..200 {
        if u.is_empty() {
            break;
        }
        pair.apply(u.arbitrary()?);
        pair.check();
    }
    pair.drain(0xff);
    Ok(())
}

/// An operation; `at` is the number of a connection, counted from the newest, and `who` the number of a runtime.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Operation {
    /// A connection is accepted. Its frame has this content.
    Accept { who: u8, process_id: u8, peer: u8 },
    /// A connection is accepted, and its whole frame arrives.
    Arrive { who: u8, process_id: u8, peer: u8 },
    /// The next bytes of the connection's frame arrive.
    Send { at: u8, n: u8 },
    /// This byte arrives instead of the next byte of the frame.
    Corrupt { at: u8, byte: u8 },
    /// The peer closes a connection.
    Close { at: u8 },
    /// The caller takes the connection of a runtime.
    Take { who: u8 },
    /// The caller reports the end of a connection, which it may not have taken.
    Release { at: u8 },
    /// The caller removes a runtime.
    Remove { who: u8 },
    /// The caller evicts the oldest connection whose frame is incomplete.
    Evict,
    /// The caller pauses accepting.
    PauseAccept,
    /// The caller adds a slot.
    Grow,
    /// A short time passes.
    Sleep { ms: u8 },
    /// A long time passes.
    SleepLong { ms: u16 },
    /// Performs up to `calls` steps that are due. The bits of `ended` are the runtimes whose processes have ended.
    OnDue { calls: u8, ended: u8 },
    /// The caller handles all that is due.
    Drain { ended: u8 },
}

/// A connection, by its index in [`Pair::wires`].
type Id = usize;
type Change = MonitorChange<Id, u8>;

struct Wire {
    token: u64,
    frame: Vec<u8>,
}

/// The expected content of a [`MonitorPort`].
struct Model {
    limits: MonitorLimits,
    room: usize,
    /// The connections without a frame, the oldest first.
    arriving: VecDeque<Arriving>,
    runtimes: BTreeMap<Guid, ExpectedRuntime>,
    accept_at: Option<u64>,
}

struct Arriving {
    id: Id,
    peer: u8,
    received: Vec<u8>,
    deadline: u64,
}

struct ExpectedRuntime {
    process_id: u64,
    peer: u8,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Idle(Id),
    InUse { id: Id, check_at: u64 },
    Disconnected { check_at: u64, left_at: u64 },
}

impl ExpectedRuntime {
    fn entry(&self, cookie: Guid) -> RuntimeEntry<u8> {
        RuntimeEntry { cookie, process_id: self.process_id, peer: self.peer }
    }
}

impl Phase {
    fn id(self) -> Option<Id> {
        match self {
            Self::Idle(id) => Some(id),
            Self::InUse { .. } | Self::Disconnected { .. } => None,
        }
    }

    fn due(self) -> Option<u64> {
        match self {
            Self::Idle(_) => None,
            Self::InUse { check_at, .. } => Some(check_at),
            Self::Disconnected { check_at, left_at } => Some(check_at.min(left_at)),
        }
    }
}

impl Model {
    fn due(&self) -> Option<u64> {
        let arriving = self.arriving.iter().map(|arriving| arriving.deadline);
        let runtimes = self.runtimes.values().filter_map(|runtime| runtime.phase.due());
        arriving.chain(runtimes).chain(self.accept_at).min()
    }

    fn evict(&mut self) -> Option<Change> {
        let Arriving { id: connection, peer, .. } = self.arriving.pop_front()?;
        Some(Change::Rejected { connection, peer, rejection: Rejection::Crowded })
    }

    /// Returns what these bytes on a connection change. Without bytes, the peer has closed the connection.
    fn receive(&mut self, id: Id, bytes: &[u8], now: u64) -> Option<Change> {
        if let Some(index) = self.arriving.iter().position(|arriving| arriving.id == id) {
            let arriving = &mut self.arriving[index];
            arriving.received.extend(bytes);
            let received = &arriving.received;
            let wrong = received.iter().zip(b"ADVR_V1\0").position(|(a, b)| a != b);
            let error = match wrong {
                Some(offset) => {
                    let kind = ipc_proto::DecodeErrorKind::BadAdvertise;
                    Some(ipc_proto::DecodeError { kind, offset }.into())
                }
                None if bytes.is_empty() => Some(ProtocolError::Closed { received: received.len() }),
                None => None,
            };
            if error.is_none() && received.len() < 34 {
                return None;
            }
            let Arriving { id: connection, peer, received, .. } = self.arriving.remove(index)?;
            if let Some(error) = error {
                return Some(Change::Rejected { connection, peer, rejection: Rejection::Protocol(error) });
            }
            let runtime_cookie = Guid(received[8..24].try_into().expect("16 bytes"));
            let process_id = u64::from_le_bytes(received[24..32].try_into().expect("8 bytes"));
            let before = self
                .runtimes
                .insert(runtime_cookie, ExpectedRuntime { process_id, peer, phase: Phase::Idle(id) });
            let stale = before.as_ref().and_then(|before| before.phase.id());
            return Some(Change::Arrived { runtime_cookie, first: before.is_none(), stale });
        }
        let disconnected = self.disconnected(now);
        let (cookie, runtime) = self.runtimes.iter_mut().find(|(_, r)| r.phase == Phase::Idle(id))?;
        runtime.phase = disconnected;
        Some(Change::Disconnected { runtime_cookie: *cookie, connection: id, unsolicited: !bytes.is_empty() })
    }

    fn disconnected(&self, now: u64) -> Phase {
        Phase::Disconnected {
            check_at: now.saturating_add(self.limits.disconnected_check_ms.max(1)),
            left_at: now.saturating_add(self.limits.grace_ms),
        }
    }

    /// Checks a change that time caused, and applies it.
    fn on_due(&mut self, change: Change, now: u64, has_ended: impl Fn(&Guid) -> bool) {
        match change {
            Change::AcceptAgain => assert!(self.accept_at.take().expect("it was scheduled") <= now),
            Change::Rejected { connection, peer, rejection } => {
                let late = self.arriving.iter().position(|arriving| arriving.id == connection);
                let late = self.arriving.remove(late.expect("it is arriving")).expect("it has an index");
                assert!(late.deadline <= now);
                let received = late.received.len();
                assert_eq!((peer, rejection), (late.peer, Rejection::TooLate { received }));
            }
            Change::Left(entry) => {
                let runtime = self.runtimes.remove(&entry.cookie).expect("it was known");
                assert_eq!(entry, runtime.entry(entry.cookie));
                let is_over = matches!(runtime.phase, Phase::Disconnected { left_at, .. } if left_at <= now);
                assert!(is_over || has_ended(&entry.cookie), "it left too early");
                assert_eq!(runtime.phase.id(), None, "its connection is lost");
            }
            Change::Arrived { .. } | Change::Disconnected { .. } => panic!("time does not cause {change:?}"),
        }
    }
}

struct Pair {
    port: MonitorPort<Id, u8, Vec<Option<MonitorSlot<Id, u8>>>>,
    model: Model,
    /// All connections so far.
    wires: Vec<Wire>,
    now: u64,
}

fn cookie(who: u8) -> Guid {
    Guid([who % 5; 16])
}

impl Pair {
    fn apply(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Accept { who, process_id, peer } => self.accept(who, process_id, peer),
            Operation::Arrive { who, process_id, peer } => {
                self.accept(who, process_id, peer);
                self.send(0, 34);
            }
            Operation::Send { at, n } => self.send(at, n.into()),
            Operation::Corrupt { at, byte } => {
                if let Some(id) = self.id(at) {
                    self.receive(id, &[byte]);
                }
            }
            Operation::Close { at } => {
                if let Some(id) = self.id(at) {
                    self.receive(id, &[]);
                }
            }
            Operation::Take { who } => {
                let runtime = self.model.runtimes.get_mut(&cookie(who));
                let expected = runtime.and_then(|runtime| {
                    let id = runtime.phase.id()?;
                    let interval = self.model.limits.in_use_check_ms.max(1);
                    runtime.phase = Phase::InUse { id, check_at: now.saturating_add(interval) };
                    Some(id)
                });
                assert_eq!(self.port.take(&cookie(who), now), expected);
            }
            Operation::Release { at } => {
                if let Some(id) = self.id(at) {
                    let disconnected = self.model.disconnected(now);
                    let taken =
                        |phase: &Phase| matches!(phase, Phase::InUse { id: taken, .. } if *taken == id);
                    let mut phases = self.model.runtimes.values_mut().map(|runtime| &mut runtime.phase);
                    phases.find(|phase| taken(phase)).into_iter().for_each(|phase| *phase = disconnected);
                    self.port.released(self.wires[id].token, now);
                }
            }
            Operation::Remove { who } => {
                let expected = self.model.runtimes.remove(&cookie(who));
                let expected = expected.map(|runtime| (runtime.entry(cookie(who)), runtime.phase.id()));
                assert_eq!(self.port.remove(&cookie(who)), expected);
            }
            Operation::Evict => assert_eq!(self.port.evict_oldest(), self.model.evict()),
            Operation::PauseAccept => {
                self.port.pause_accept(now);
                self.model.accept_at = Some(now.saturating_add(self.model.limits.accept_pause_ms));
            }
            Operation::Grow => {
                if self.model.room < 8 {
                    self.port.grow(1);
                    self.model.room += 1;
                }
            }
            Operation::Sleep { ms } => self.now = now.saturating_add(ms.into()),
            Operation::SleepLong { ms } => self.now = now.saturating_add((ms % 2000).into()),
            Operation::OnDue { calls, ended } => {
                for _ in 0..calls % 4 {
                    self.on_due(ended);
                }
            }
            Operation::Drain { ended } => self.drain(ended),
        }
    }

    fn id(&self, at: u8) -> Option<Id> {
        let back = usize::from(at).checked_rem(self.wires.len())?;
        Some(self.wires.len() - 1 - back)
    }

    fn accept(&mut self, who: u8, process_id: u8, peer: u8) {
        let (id, now) = (self.wires.len(), self.now);
        let frame = [&b"ADVR_V1\0"[..], &cookie(who).0, &[process_id], &[0; 9]].concat();
        let is_crowded = self.model.arriving.len() >= self.model.limits.max_arriving.max(1);
        let expected = if is_crowded { self.model.evict() } else { None };
        let is_full = self.model.arriving.len() + self.model.runtimes.len() == self.model.room;
        match self.port.accept(id, peer, now) {
            Ok(Accepted { token, evicted }) => {
                assert!(!is_full && token >= 1 << 32);
                assert_eq!(evicted, expected);
                let deadline = now.saturating_add(self.model.limits.advertise_ms);
                self.model.arriving.push_back(Arriving { id, peer, received: Vec::new(), deadline });
                self.wires.push(Wire { token, frame });
            }
            Err(MonitorFull { connection, peer: of }) => {
                assert!(is_full && expected.is_none());
                assert_eq!((connection, of), (id, peer));
            }
        }
    }

    fn send(&mut self, at: u8, n: usize) {
        let Some(id) = self.id(at) else { return };
        let arriving = self.model.arriving.iter().find(|arriving| arriving.id == id);
        let sent = arriving.map_or(0, |arriving| arriving.received.len());
        let frame = &self.wires[id].frame;
        let piece = frame[sent..frame.len().min(sent.saturating_add(n.max(1)))].to_vec();
        self.receive(id, &piece);
    }

    fn receive(&mut self, id: Id, bytes: &[u8]) {
        let token = self.wires[id].token;
        let mut n = 0;
        if let Some((connection, space)) = self.port.receive(token) {
            assert_eq!(*connection, id);
            assert!(!space.is_empty());
            n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
        }
        let expected = self.model.receive(id, &bytes[..n], self.now);
        assert_eq!(self.port.advance(token, n, self.now), expected);
    }

    /// Performs a step that is due. Returns whether there was a change.
    fn on_due(&mut self, ended: u8) -> bool {
        let (now, mut checked) = (self.now, Vec::new());
        let has_ended = |cookie: &Guid| ended & 1_u8.checked_shl(cookie.0[0].into()).unwrap_or(0) != 0;
        let change = self.port.on_due(now, |runtime| {
            checked.push(*runtime);
            has_ended(&runtime.cookie)
        });
        for entry in checked {
            let limits = self.model.limits;
            let runtime = self.model.runtimes.get_mut(&entry.cookie).expect("it is known");
            assert_eq!(entry, runtime.entry(entry.cookie));
            let (check_at, interval) = match &mut runtime.phase {
                Phase::Idle(_) => panic!("an idle runtime closes its connection when it ends"),
                Phase::InUse { check_at, .. } => (check_at, limits.in_use_check_ms),
                Phase::Disconnected { check_at, .. } => (check_at, limits.disconnected_check_ms),
            };
            assert!(*check_at <= now, "it is checked too often");
            *check_at = now.saturating_add(interval.max(1));
        }
        if let Some(change) = change {
            self.model.on_due(change, now, has_ended);
        }
        change.is_some()
    }

    /// Performs all steps that are due, as a caller does that waits until [`MonitorPort::due`].
    fn drain(&mut self, ended: u8) {
        for _ in 0..2 {
            while self.on_due(ended) {}
        }
        let (due, expected) = (self.port.due(), self.model.due());
        assert!(self.now == u64::MAX || expected.is_none_or(|due| due > self.now), "it was not done");
        assert!(due <= expected || expected.is_none());
        assert!(self.now == u64::MAX || due.is_none_or(|due| due > self.now), "it is due immediately");
    }

    fn check(&mut self) {
        let model = &self.model;
        let expected = model.due();
        let is_early = |due| self.port.due().is_some_and(|actual| actual <= due);
        assert!(expected.is_none_or(is_early), "{:?} is too late for {expected:?}", self.port.due());
        assert_eq!((self.port.arriving(), self.port.capacity()), (model.arriving.len(), model.room));
        let runtimes = self.port.runtimes().map(|runtime| (runtime.cookie, *runtime));
        let expected = model.runtimes.iter().map(|(cookie, runtime)| (*cookie, runtime.entry(*cookie)));
        assert_eq!(self.port.runtimes().count(), model.runtimes.len());
        assert!(runtimes.collect::<BTreeMap<_, _>>().into_iter().eq(expected));
        for cookie in (0..5).map(cookie) {
            let phase = model.runtimes.get(&cookie).map(|runtime| runtime.phase);
            let state = phase.map(|phase| match phase {
                Phase::Idle(_) => RuntimeState::Idle,
                Phase::InUse { .. } => RuntimeState::InUse,
                Phase::Disconnected { .. } => RuntimeState::Disconnected,
            });
            assert_eq!(self.port.state(&cookie), state);
            assert_eq!(self.port.runtime(&cookie).is_some(), state.is_some());
            let idle = phase.and_then(Phase::id).map(|id| (self.wires[id].token, id));
            assert_eq!(self.port.idle(&cookie).map(|(token, id)| (token, *id)), idle);
        }
        // Each connection has at most one slot, and only its own token leads to it.
        for (id, wire) in self.wires.iter().enumerate() {
            let is_arriving = model.arriving.iter().any(|arriving| arriving.id == id);
            let is_idle = model.runtimes.values().any(|runtime| runtime.phase == Phase::Idle(id));
            let lent = self.port.receive(wire.token).map(|(connection, _)| *connection);
            assert_eq!(lent, (is_arriving || is_idle).then_some(id));
        }
    }
}
