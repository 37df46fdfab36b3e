//! [`MonitorPort`]: the connections and runtimes at a port of a monitor, without I/O.
use core::{fmt, iter, marker::PhantomData};

use super::Rejection;
use crate::wire::{low_u32, to_usize};
use crate::{Advertise, Exchange, Guid, ReceiveAdvertise, Step};

/// The runtimes at a monitor's port, and the newest connection of each.
///
/// A runtime connects, sends its [`Advertise`] frame, and waits for one command; then it connects again. This machine
/// assigns each connection to its runtime. It has no sockets and no clock: the caller accepts and reads, and passes the
/// time in milliseconds since a moment of its choice.
///
/// ```text
/// accept() ──► arriving ── frame complete ──► idle ──────── take() ───────► in use
///                 │                          ▲   │                            │
///                 │               new connection │ closed by the runtime,     │ released(), or
///                 │                          │   ▼ or data before a command   │ the process ended
///                 │                        disconnected ◄──────────────────── │
///                 ▼                          │                                ▼
///             rejected                       └────► left, after `grace_ms` or when the process ended
/// ```
///
/// | state | connection | ends by | after, in ms |
/// |---|---|---|---|
/// | arriving | yes | the frame; a wrong byte; a close; more than `max_arriving` others | `advertise_ms`, 250 |
/// | idle | yes | [`take`](Self::take); a close; data, which a runtime may not send yet | |
/// | in use | the caller has it | a new connection; [`released`](Self::released); the end of the process, checked every | `in_use_check_ms`, 100 |
/// | disconnected | no | a new connection; the end of the process, checked every | `disconnected_check_ms`, 20 |
/// | disconnected | no | the end of its grace time | `grace_ms`, 1000 |
///
/// A cookie identifies a runtime. A process id does not: systems reuse ids, and two containers can have the same ids.
/// The last connection of a runtime is the live one. An older connection of that runtime is dead, or will be soon.
///
/// The process id in a frame is that of another machine, or of a browser, if the connection comes from there. So
/// [`on_due`](Self::on_due) must be told only about processes for which the operating system vouches, for example by the
/// credentials of a local socket. Every other runtime leaves after the end of its connection: report the end of a
/// connection that was taken to [`released`](Self::released).
///
/// # Storage
/// `S` is any storage of `Option<MonitorSlot<C, P>>`: an array, a slice, a `Vec`. Each slot holds one arriving
/// connection or one runtime. `C` is the caller's connection, `P` the caller's facts about the peer, for example its
/// credentials.
///
/// A connection has a token, which names its slot; the caller passes the token to its poller. A token is never less
/// than 2³², so that smaller numbers are free for other entries of the poller. The token of a closed connection has no
/// effect.
///
/// ```text
/// 63                                  32 31                                   0
/// | serial number of the connection, ≥ 1 | index of the slot                   |
/// ```
///
/// # Example
/// ```
/// use ipc_proto::Guid;
/// use ipc_proto::port::{MonitorChange, MonitorPort, RuntimeState};
/// use std::io::Read;
///
/// let mut port = MonitorPort::new([const { None }; 8]);
/// let token = port.accept("connection 1", (), 0)?.token;
///
/// // The poller reports the token as readable: read into the space until reading would block.
/// let mut incoming = &b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0"[..];
/// let mut arrived = None;
/// while let (None, Some((_connection, space))) = (&arrived, port.receive(token)) {
///     let n = incoming.read(space).unwrap_or(0);
///     arrived = port.advance(token, n, 1);
/// }
/// let cookie = Guid(*b"a runtime's name");
/// assert_eq!(arrived, Some(MonitorChange::Arrived { runtime_cookie: cookie, first: true, stale: None }));
/// assert_eq!(port.runtime(&cookie).unwrap().process_id, 4242);
///
/// // Each connection carries one command.
/// assert_eq!(port.take(&cookie, 2), Some("connection 1"));
/// assert_eq!(port.state(&cookie), Some(RuntimeState::InUse));
///
/// // The process of a local runtime is checked every 100 ms until the runtime connects again.
/// assert_eq!(port.due(), Some(102));
/// assert_eq!(port.on_due(102, |_| false), None);
///
/// // The connection has ended. The runtime does not connect again within a second.
/// port.released(token, 150);
/// assert_eq!(port.on_due(170, |_| false), None);
/// assert!(matches!(port.on_due(1150, |_| false), Some(MonitorChange::Left(runtime)) if runtime.cookie == cookie));
/// # Ok::<(), ipc_proto::port::MonitorFull<&str, ()>>(())
/// ```
#[derive(Debug, Clone)]
pub struct MonitorPort<C, P, S> {
    slots: S,
    limits: MonitorLimits,
    /// The serial number of the newest connection.
    serial: u32,
    /// How many slots hold an arriving connection.
    arriving: usize,
    /// All slots before this index are in use.
    first_free: usize,
    /// The index of the next slot that [`on_due`](Self::on_due) examines.
    examined: usize,
    accept_at: Option<u64>,
    /// No event is due before this time.
    due: Option<u64>,
    /// The space that is lent for an idle connection, on which a runtime may send no byte.
    unsolicited: [u8; 1],
    types: PhantomData<(C, P)>,
}

/// The limits of a [`MonitorPort`]. All times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorLimits {
    /// How many connections can be arriving at the same time, at least 1. For one more, the oldest is dropped.
    pub max_arriving: usize,
    /// The time in which the whole frame must arrive.
    pub advertise_ms: u64,
    /// The interval of the process checks while the caller uses the runtime's connection for a command.
    pub in_use_check_ms: u64,
    /// The interval of the process checks after the end of the runtime's connection.
    pub disconnected_check_ms: u64,
    /// The time in which a runtime whose connection has ended must connect again. It should be longer than the longest
    /// wait of a [`Backoff`](super::Backoff).
    pub grace_ms: u64,
    /// The time from [`pause_accept`](MonitorPort::pause_accept) to [`MonitorChange::AcceptAgain`].
    pub accept_pause_ms: u64,
}

impl MonitorLimits {
    /// 256 arriving connections, 250 ms for the frame, process checks every 100 and 20 ms, grace 1 s, pauses of 100 ms.
    pub const DEFAULT: Self = Self {
        max_arriving: 256,
        advertise_ms: ReceiveAdvertise::DEADLINE_MS as u64,
        in_use_check_ms: 100,
        disconnected_check_ms: 20,
        grace_ms: 1000,
        accept_pause_ms: 100,
    };
}

impl Default for MonitorLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One arriving connection or one runtime in the storage of a [`MonitorPort`].
#[derive(Debug, Clone)]
pub struct MonitorSlot<C, P> {
    /// The serial number of the slot's connection.
    serial: u32,
    content: Content<C, P>,
}

#[derive(Debug, Clone)]
enum Content<C, P> {
    Arriving { connection: C, peer: P, receive: ReceiveAdvertise, deadline: u64 },
    Runtime { runtime: RuntimeEntry<P>, phase: Phase<C> },
}

#[derive(Debug, Clone)]
struct Phase<C> {
    /// The connection of an idle runtime. `check_at` and `left_at` count only while there is none.
    connection: Option<C>,
    /// When to check whether the process of the runtime has ended.
    check_at: u64,
    /// When a disconnected runtime counts as left; `None` while the caller has the runtime's connection.
    left_at: Option<u64>,
}

/// A runtime that a [`MonitorPort`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeEntry<P> {
    /// The runtime's identity.
    pub cookie: Guid,
    /// The process id in the runtime's own PID namespace, from the last frame: [`Advertise::process_id`].
    pub process_id: u64,
    /// The caller's facts about the peer of the last connection.
    pub peer: P,
}

/// Whether a runtime can take a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeState {
    /// The runtime waits for a command.
    Idle,
    /// The caller has taken the connection, and the runtime has not connected again.
    InUse,
    /// The connection of the runtime ended, and the runtime has not connected again.
    Disconnected,
}

/// A connection that a [`MonitorPort`] accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted<C, P> {
    /// The number by which the caller refers to the connection.
    pub token: u64,
    /// The oldest arriving connection, if it was dropped because too many were arriving: [`MonitorChange::Rejected`].
    pub evicted: Option<MonitorChange<C, P>>,
}

/// A change at a [`MonitorPort`]. The caller must close the connections in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorChange<C, P> {
    /// A runtime has connected and waits for a command.
    Arrived {
        /// The runtime's identity.
        runtime_cookie: Guid,
        /// Whether the runtime was unknown.
        first: bool,
        /// The runtime's older idle connection, which the new one replaces.
        stale: Option<C>,
    },
    /// A connection was dropped before its frame was complete.
    Rejected {
        /// The connection.
        connection: C,
        /// The caller's facts about the peer.
        peer: P,
        /// The reason.
        rejection: Rejection,
    },
    /// The connection of an idle runtime ended. The runtime is expected to connect again.
    Disconnected {
        /// The runtime's identity.
        runtime_cookie: Guid,
        /// The connection.
        connection: C,
        /// `true`: the peer sent data before a command. `false`: the connection was closed or broken.
        unsolicited: bool,
    },
    /// A runtime is gone: its process has ended, or it did not connect again in time.
    Left(RuntimeEntry<P>),
    /// The pause of [`MonitorPort::pause_accept`] is over.
    AcceptAgain,
}

/// The storage of a [`MonitorPort`] has no free slot. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorFull<C, P> {
    /// The connection that was not accepted. If the caller closes it, the runtime connects again.
    pub connection: C,
    /// The caller's facts about the peer of the connection.
    pub peer: P,
}

impl<C, P> fmt::Display for MonitorFull<C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no slot for another connection: remove a runtime, or provide more slots")
    }
}
impl<C: fmt::Debug, P: fmt::Debug> core::error::Error for MonitorFull<C, P> {}

impl<C, P, S: AsRef<[Option<MonitorSlot<C, P>>]> + AsMut<[Option<MonitorSlot<C, P>>]>> MonitorPort<C, P, S> {
    /// Creates a port without connections. The content of the storage is dropped.
    #[must_use]
    pub fn new(slots: S) -> Self {
        Self::with_limits(slots, MonitorLimits::DEFAULT)
    }

    /// Creates a port with other limits.
    #[must_use]
    pub fn with_limits(mut slots: S, limits: MonitorLimits) -> Self {
        slots.as_mut().fill_with(|| None);
        Self {
            slots,
            limits,
            serial: 0,
            arriving: 0,
            first_free: 0,
            examined: 0,
            accept_at: None,
            due: None,
            unsolicited: [0],
            types: PhantomData,
        }
    }

    /// Adds a new connection, on which a runtime must now send its frame.
    ///
    /// A runtime sends the frame immediately, so read the connection now: see [`receive`](Self::receive).
    ///
    /// # Errors
    /// [`MonitorFull`], which contains the connection, if there is no free slot.
    pub fn accept(&mut self, connection: C, peer: P, now: u64) -> Result<Accepted<C, P>, MonitorFull<C, P>> {
        let is_crowded = self.arriving >= self.limits.max_arriving.max(1);
        let evicted = if is_crowded { self.evict_oldest() } else { None };
        let serial = self.serial.checked_add(1).unwrap_or(1);
        let deadline = now.saturating_add(self.limits.advertise_ms);
        let mut slots = self.slots.as_mut().iter_mut().enumerate().skip(self.first_free);
        let free = slots.find_map(|(index, slot)| match slot {
            None => Some((index, u32::try_from(index).ok()?, slot)),
            Some(_) => None,
        });
        let Some((index, low, slot)) = free else { return Err(MonitorFull { connection, peer }) };
        let content = Content::Arriving { connection, peer, receive: ReceiveAdvertise::new(), deadline };
        *slot = Some(MonitorSlot { serial, content });
        self.first_free = index.saturating_add(1);
        self.serial = serial;
        self.arriving = self.arriving.saturating_add(1);
        self.schedule(deadline);
        Ok(Accepted { token: token(serial, low), evicted })
    }

    /// Lends a connection, and the space to read its bytes into; `None` if the port no longer has the connection.
    ///
    /// Call `receive` when the connection is readable, read without blocking, call [`advance`](Self::advance), and
    /// repeat until reading would block. The space is the rest of the frame, or one byte for an idle connection.
    pub fn receive(&mut self, token: u64) -> Option<(&mut C, &mut [u8])> {
        let slot = find_mut(self.slots.as_mut(), token)?;
        match &mut slot.content {
            Content::Arriving { connection, receive, .. } => match receive.step() {
                Step::Receive(space) => Some((connection, space)),
                Step::Send(_) | Step::Done => None,
            },
            Content::Runtime { phase, .. } => Some((phase.connection.as_mut()?, &mut self.unsolicited)),
        }
    }

    /// Processes `n` bytes that were read into the space of [`receive`](Self::receive); 0 after a close or an error.
    pub fn advance(&mut self, token: u64, n: usize, now: u64) -> Option<MonitorChange<C, P>> {
        let index = index(token);
        let slot = find_mut(self.slots.as_mut(), token)?;
        let rejection = match &mut slot.content {
            Content::Runtime { .. } => return self.disconnect(index, n > 0, now),
            Content::Arriving { receive, .. } => match receive.advance(n) {
                Ok(()) if matches!(receive.step(), Step::Receive(_)) => return None,
                Ok(()) => match receive.finish() {
                    Ok(advertise) => return self.arrive(index, &advertise),
                    Err(error) => Rejection::Protocol(error),
                },
                Err(error) => Rejection::Protocol(error),
            },
        };
        self.reject(index, rejection)
    }

    /// Drops the oldest arriving connection as [`Rejection::Crowded`], for example to free a descriptor for a new one.
    pub fn evict_oldest(&mut self) -> Option<MonitorChange<C, P>> {
        let newest = self.serial;
        let slots = self.slots.as_ref().iter().enumerate();
        let arriving = slots.filter_map(|(index, slot)| match slot {
            Some(MonitorSlot { serial, content: Content::Arriving { .. } }) => Some((index, *serial)),
            _ => None,
        });
        let (index, _) = arriving.max_by_key(|(_, serial)| newest.wrapping_sub(*serial))?;
        self.reject(index, Rejection::Crowded)
    }

    /// Schedules [`MonitorChange::AcceptAgain`]. Call it if accepting failed and would fail again immediately.
    pub fn pause_accept(&mut self, now: u64) {
        let at = now.saturating_add(self.limits.accept_pause_ms);
        self.accept_at = Some(at);
        self.schedule(at);
    }

    /// Takes the connection of an idle runtime, to send one command over it. Report the end of the connection to
    /// [`released`](Self::released).
    pub fn take(&mut self, cookie: &Guid, now: u64) -> Option<C> {
        let check_at = now.saturating_add(self.limits.in_use_check_ms.max(1));
        let (_, _, phase) = find_runtime(self.slots.as_mut(), cookie)?;
        let connection = phase.connection.take()?;
        (phase.check_at, phase.left_at) = (check_at, None);
        self.schedule(check_at);
        Some(connection)
    }

    /// Reports that a connection has ended which was [taken](Self::take): the peer or the caller has closed it. The
    /// runtime must now connect again within its grace time, or leaves.
    ///
    /// `token` is that of the connection: see [`accept`](Self::accept) and [`idle`](Self::idle). It has no effect after
    /// the runtime has connected again.
    ///
    /// Do not report a connection that the caller has closed while its command ran in a process which
    /// [`on_due`](Self::on_due) can check: a runtime connects again only after its command.
    pub fn released(&mut self, token: u64, now: u64) {
        let (check_at, left_at) = self.grace(now);
        if let Some(MonitorSlot { content: Content::Runtime { phase, .. }, .. }) =
            find_mut(self.slots.as_mut(), token)
        {
            if phase.connection.is_none() && phase.left_at.is_none() {
                (phase.check_at, phase.left_at) = (check_at, Some(left_at));
                self.schedule(check_at.min(left_at));
            }
        }
    }

    /// Removes a runtime; returns it and its idle connection. A runtime that connects again then counts as unknown.
    pub fn remove(&mut self, cookie: &Guid) -> Option<(RuntimeEntry<P>, Option<C>)> {
        let (index, ..) = find_runtime(self.slots.as_mut(), cookie)?;
        match self.vacate(index)?.content {
            Content::Arriving { .. } => None,
            Content::Runtime { runtime, phase } => Some((runtime, phase.connection)),
        }
    }

    /// Returns the token and the connection of an idle runtime.
    pub fn idle(&mut self, cookie: &Guid) -> Option<(u64, &mut C)> {
        let (index, serial, phase) = find_runtime(self.slots.as_mut(), cookie)?;
        Some((token(serial, u32::try_from(index).ok()?), phase.connection.as_mut()?))
    }

    /// Returns the runtime with this cookie.
    #[must_use]
    pub fn runtime(&self, cookie: &Guid) -> Option<&RuntimeEntry<P>> {
        self.runtimes().find(|runtime| runtime.cookie == *cookie)
    }

    /// Returns the state of the runtime with this cookie.
    #[must_use]
    pub fn state(&self, cookie: &Guid) -> Option<RuntimeState> {
        self.entries().find(|(runtime, _)| runtime.cookie == *cookie).map(|(_, phase)| match phase {
            Phase { connection: Some(_), .. } => RuntimeState::Idle,
            Phase { left_at: None, .. } => RuntimeState::InUse,
            Phase { left_at: Some(_), .. } => RuntimeState::Disconnected,
        })
    }

    /// Returns the runtimes that have arrived and not left, in no particular order.
    pub fn runtimes(&self) -> impl Iterator<Item = &RuntimeEntry<P>> {
        self.entries().map(|(runtime, _)| runtime)
    }

    /// Returns how many connections are arriving.
    #[must_use]
    pub const fn arriving(&self) -> usize {
        self.arriving
    }

    /// Returns how many slots there are.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.as_ref().len()
    }

    /// Returns the latest time for the next call of [`on_due`](Self::on_due); `None` if no event is scheduled.
    #[must_use]
    pub const fn due(&self) -> Option<u64> {
        self.due
    }

    /// Returns the next event that is due at `now`. Call `on_due` until it returns `None`.
    ///
    /// `has_ended` reports whether the process of a runtime has ended; `false` if that is unknown, as for every runtime
    /// for whose process the operating system does not vouch.
    pub fn on_due(
        &mut self,
        now: u64,
        mut has_ended: impl FnMut(&RuntimeEntry<P>) -> bool,
    ) -> Option<MonitorChange<C, P>> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        if self.accept_at.take_if(|at| *at <= now).is_some() {
            return Some(MonitorChange::AcceptAgain);
        }
        while let Some(slot) = self.slots.as_mut().get_mut(self.examined) {
            let index = self.examined;
            self.examined = index.saturating_add(1);
            let Some(MonitorSlot { content, .. }) = slot else { continue };
            let Content::Runtime { runtime, phase } = content else {
                if let Content::Arriving { receive, deadline, .. } = content {
                    if *deadline <= now {
                        let received = receive.bytes().len();
                        return self.reject(index, Rejection::TooLate { received });
                    }
                }
                continue;
            };
            let (interval, is_over) = match phase {
                Phase { connection: Some(_), .. } => continue,
                Phase { left_at: None, .. } => (self.limits.in_use_check_ms, false),
                Phase { left_at: Some(at), .. } => (self.limits.disconnected_check_ms, *at <= now),
            };
            let is_checked = phase.check_at <= now;
            if is_checked {
                phase.check_at = now.saturating_add(interval.max(1));
            }
            if is_over || (is_checked && has_ended(runtime)) {
                if let Some(Content::Runtime { runtime, .. }) = self.vacate(index).map(|slot| slot.content) {
                    return Some(MonitorChange::Left(runtime));
                }
            }
        }
        self.examined = 0;
        let slots = self.slots.as_ref().iter().flatten().filter_map(|slot| slot.content.due());
        self.due = slots.chain(self.accept_at).min();
        None
    }

    /// Processes the complete frame in this slot. The slot then holds the runtime, with the same connection and token.
    fn arrive(&mut self, index: usize, advertise: &Advertise) -> Option<MonitorChange<C, P>> {
        let cookie = advertise.runtime_cookie;
        let known = find_runtime(self.slots.as_mut(), &cookie).map(|(known, ..)| known);
        let known = known.and_then(|known| self.vacate(known));
        let MonitorSlot { serial, content } = self.vacate(index)?;
        let Content::Arriving { connection, peer, .. } = content else { return None };
        let runtime = RuntimeEntry { cookie, process_id: advertise.process_id, peer };
        let content = Content::Runtime {
            runtime,
            phase: Phase { connection: Some(connection), check_at: 0, left_at: None },
        };
        *self.slots.as_mut().get_mut(index)? = Some(MonitorSlot { serial, content });
        let first = known.is_none();
        let stale = match known.map(|slot| slot.content) {
            Some(Content::Runtime { phase, .. }) => phase.connection,
            _ => None,
        };
        Some(MonitorChange::Arrived { runtime_cookie: cookie, first, stale })
    }

    fn reject(&mut self, index: usize, rejection: Rejection) -> Option<MonitorChange<C, P>> {
        match self.vacate(index)?.content {
            Content::Arriving { connection, peer, .. } => {
                Some(MonitorChange::Rejected { connection, peer, rejection })
            }
            Content::Runtime { .. } => None,
        }
    }

    fn disconnect(&mut self, index: usize, unsolicited: bool, now: u64) -> Option<MonitorChange<C, P>> {
        let (check_at, left_at) = self.grace(now);
        let slot = self.slots.as_mut().get_mut(index)?.as_mut()?;
        let Content::Runtime { runtime, phase } = &mut slot.content else { return None };
        let (runtime_cookie, connection) = (runtime.cookie, phase.connection.take()?);
        (phase.check_at, phase.left_at) = (check_at, Some(left_at));
        self.schedule(check_at.min(left_at));
        Some(MonitorChange::Disconnected { runtime_cookie, connection, unsolicited })
    }

    /// Returns when to check the process of a runtime that disconnects at `now`, and when the runtime counts as left.
    fn grace(&self, now: u64) -> (u64, u64) {
        let check_at = now.saturating_add(self.limits.disconnected_check_ms.max(1));
        (check_at, now.saturating_add(self.limits.grace_ms))
    }

    fn vacate(&mut self, index: usize) -> Option<MonitorSlot<C, P>> {
        let slot = self.slots.as_mut().get_mut(index)?.take()?;
        self.first_free = self.first_free.min(index);
        if let Content::Arriving { .. } = slot.content {
            self.arriving = self.arriving.saturating_sub(1);
        }
        Some(slot)
    }

    fn schedule(&mut self, at: u64) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn entries(&self) -> impl Iterator<Item = (&RuntimeEntry<P>, &Phase<C>)> {
        self.slots.as_ref().iter().flatten().filter_map(|slot| match &slot.content {
            Content::Runtime { runtime, phase } => Some((runtime, phase)),
            Content::Arriving { .. } => None,
        })
    }
}

impl<C, P, S: Extend<Option<MonitorSlot<C, P>>>> MonitorPort<C, P, S> {
    /// Adds `more` free slots to a storage that can grow.
    ///
    /// ```
    /// use ipc_proto::port::{MonitorFull, MonitorPort};
    ///
    /// let mut port = MonitorPort::new(Vec::new());
    /// let Err(MonitorFull { connection, peer }) = port.accept("a connection", (), 0) else { unreachable!() };
    /// port.grow(16);
    /// assert!(port.accept(connection, peer, 0).is_ok());
    /// ```
    pub fn grow(&mut self, more: usize) {
        self.slots.extend(iter::repeat_with(|| None).take(more));
    }
}

impl<C, P> Content<C, P> {
    fn due(&self) -> Option<u64> {
        match self {
            Self::Arriving { deadline, .. } => Some(*deadline),
            Self::Runtime { phase: Phase { connection: Some(_), .. }, .. } => None,
            Self::Runtime { phase, .. } => phase.left_at.into_iter().chain([phase.check_at]).min(),
        }
    }
}

fn token(serial: u32, index: u32) -> u64 {
    (u64::from(serial) << 32) | u64::from(index)
}

/// Returns the index of the slot that a token names.
const fn index(token: u64) -> usize {
    to_usize(low_u32(token))
}

fn find_mut<C, P>(slots: &mut [Option<MonitorSlot<C, P>>], token: u64) -> Option<&mut MonitorSlot<C, P>> {
    let slot = slots.get_mut(index(token))?.as_mut()?;
    (u64::from(slot.serial) == token >> 32).then_some(slot)
}

/// Returns a runtime's index, the serial number of its connection, and its phase.
fn find_runtime<'s, C, P>(
    slots: &'s mut [Option<MonitorSlot<C, P>>],
    cookie: &Guid,
) -> Option<(usize, u32, &'s mut Phase<C>)> {
    slots.iter_mut().enumerate().find_map(|(index, slot)| match slot.as_mut()? {
        MonitorSlot { serial, content: Content::Runtime { runtime, phase } } if runtime.cookie == *cookie => {
            Some((index, *serial, phase))
        }
        _ => None,
    })
}
