//! The monitor's role: the runtimes at a diagnostic port.
use core::ffi::c_void;
use core::ptr;

use ipc_proto::Guid as ProtoGuid;
use ipc_proto::port::{
    MonitorChange as ProtoChange, MonitorPort as ProtoPort, MonitorSlot as ProtoSlot, Rejection,
    RuntimeEntry, RuntimeState,
};

use crate::command::Guid;
use crate::exchange::{DIPC_STEP_RECEIVE, Step};
use crate::memory;
use crate::place::{Opaque, content, place, with};
use crate::status::{Failure, Outcome, Status, report};

/// The runtimes at a monitor's port, and the newest connection of each. In memory of the caller; set it to zeros or
/// initialise it before another function receives it.
///
/// A runtime connects, sends its advertise frame, and waits for one command; then it connects again. The port decides what
/// each connection means. It has no sockets and no clock: a connection is a number of the caller, for example its
/// descriptor, and a time is a number of milliseconds since a moment of the caller's choice.
///
/// * `dipc_monitor_port_accept` for each connection that was accepted; it returns the token of the connection.
/// * Whenever the connection is readable, and immediately after accepting it: read without waiting into the space of
///   `dipc_monitor_port_receive`, and report it with `dipc_monitor_port_advance`, until reading would block.
/// * `dipc_monitor_port_take` takes the connection of a runtime, for one call; `dipc_monitor_port_released` after its end.
/// * `dipc_monitor_port_on_due` at the time of `dipc_monitor_port_due` at the latest, until nothing has changed.
///
/// These functions report what has happened as a `dipc_monitor_change`. Its connection, if it has one, is the caller's to
/// close.
#[repr(C)]
pub struct MonitorPort {
    /// The state.
    pub opaque: [u64; 24],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for MonitorPort {
    type Content = ProtoPort<u64, u64, Slots>;
    const TAG: u64 = 0x6470_6363_9a75_e707;
}

/// Memory of the caller for one connection or one runtime. It needs no initialisation.
#[repr(C)]
pub struct MonitorSlot {
    /// The content.
    pub opaque: [u64; 16],
}

/// The content of a [`MonitorSlot`]. The content of several is dense.
type Slot = Option<ProtoSlot<u64, u64>>;

const _: () = assert!(
    size_of::<Slot>() <= size_of::<MonitorSlot>() && align_of::<Slot>() <= align_of::<MonitorSlot>(),
    "the size of `MonitorSlot` is too small"
);

/// The slots of a port, which the caller lends as long as it uses the port.
pub struct Slots {
    first: *mut Slot,
    count: usize,
}

impl Slots {
    /// Initialises slots.
    ///
    /// # Safety
    /// `slots` points to `count` slots that nothing else uses as long as the result.
    unsafe fn new(slots: *mut MonitorSlot, count: usize) -> Result<Self, Failure> {
        if count > 0 {
            memory::check(slots, count)?;
        }
        let first: *mut Slot = slots.cast();
        for index in 0..count {
            // SAFETY: a slot of the caller has room for one of these, and the caller vouches for the pointer.
            unsafe { first.wrapping_add(index).write(None) };
        }
        Ok(Self { first, count })
    }
}

impl AsRef<[Slot]> for Slots {
    fn as_ref(&self) -> &[Slot] {
        // SAFETY: `new` has initialised the slots, and its caller vouches for the rest.
        unsafe { memory::slice(self.first, self.count) }.unwrap_or_default()
    }
}
impl AsMut<[Slot]> for Slots {
    fn as_mut(&mut self) -> &mut [Slot] {
        // SAFETY: `new` has initialised the slots, and its caller vouches for the rest.
        unsafe { memory::slice_mut(self.first, self.count) }.unwrap_or_default()
    }
}

/// The runtime waits for a command.
pub const DIPC_RUNTIME_IDLE: u32 = 0;
/// The caller has taken the connection, and the runtime has not connected again.
pub const DIPC_RUNTIME_IN_USE: u32 = 1;
/// The connection of the runtime ended, and the runtime has not connected again.
pub const DIPC_RUNTIME_DISCONNECTED: u32 = 2;
/// The port does not know the runtime any more.
pub const DIPC_RUNTIME_LEFT: u32 = 3;

/// A runtime that a port knows, or knew until now.
#[repr(C)]
pub struct Runtime {
    /// The runtime's identity. Process ids are not one: systems use them again, and containers have the same ones.
    pub cookie: Guid,
    /// The process id from the last frame, in the PID namespace of the process.
    pub process_id: u64,
    /// What the caller knows of the peer of the last connection.
    pub peer: u64,
    /// One of `DIPC_RUNTIME_*`.
    pub state: u32,
}

impl Runtime {
    const NONE: Self =
        Self { cookie: Guid { bytes: [0; 16] }, process_id: 0, peer: 0, state: DIPC_RUNTIME_LEFT };

    const fn new(entry: &RuntimeEntry<u64>, state: Option<RuntimeState>) -> Self {
        let RuntimeEntry { cookie, process_id, peer } = *entry;
        let state = match state {
            Some(RuntimeState::Idle) => DIPC_RUNTIME_IDLE,
            Some(RuntimeState::InUse) => DIPC_RUNTIME_IN_USE,
            Some(RuntimeState::Disconnected) => DIPC_RUNTIME_DISCONNECTED,
            None => DIPC_RUNTIME_LEFT,
        };
        Self { cookie: Guid { bytes: cookie.0 }, process_id, peer, state }
    }

    /// Returns a known runtime.
    fn find(port: &ProtoPort<u64, u64, Slots>, cookie: &ProtoGuid) -> Option<Self> {
        port.runtime(cookie).map(|entry| Self::new(entry, port.state(cookie)))
    }
}

/// Nothing has changed.
pub const DIPC_CHANGE_NOTHING: u32 = 0;
/// `runtime` has connected and waits for a command. The connection, if there is one, is its older one.
pub const DIPC_CHANGE_ARRIVED: u32 = 1;
/// The connection did not become a runtime's, for the reason in `rejection`.
pub const DIPC_CHANGE_REJECTED: u32 = 2;
/// The connection of the idle `runtime` ended. The runtime is expected to connect again.
pub const DIPC_CHANGE_DISCONNECTED: u32 = 3;
/// `runtime` is gone: its process has ended, or it did not connect again in time.
pub const DIPC_CHANGE_LEFT: u32 = 4;
/// The pause of `dipc_monitor_port_pause_accept` is over.
pub const DIPC_CHANGE_ACCEPT_AGAIN: u32 = 5;

/// The connection was not rejected.
pub const DIPC_REJECTION_NONE: u32 = 0;
/// The frame did not arrive in time; `detail` is the number of its bytes that arrived.
pub const DIPC_REJECTION_TOO_LATE: u32 = 1;
/// The bytes are not a frame, or the peer closed the connection before its end: `status`, with its `detail`. If that is
/// `DIPC_STATUS_CLOSED` with 0, the peer is harmless: so does a monitor that checks whether another one listens here.
pub const DIPC_REJECTION_PROTOCOL: u32 = 2;
/// The peer sent data after the frame, before a command.
pub const DIPC_REJECTION_UNSOLICITED: u32 = 3;
/// Too many connections had not sent their frame, and this was the oldest.
pub const DIPC_REJECTION_CROWDED: u32 = 4;

/// What has happened at a port.
#[repr(C)]
pub struct MonitorChange {
    /// One of `DIPC_CHANGE_*`.
    pub kind: u32,
    /// One of `DIPC_REJECTION_*`.
    pub rejection: u32,
    /// The reason for `DIPC_REJECTION_PROTOCOL`; otherwise `DIPC_STATUS_OK`.
    pub status: Status,
    /// The number of the reason.
    pub detail: usize,
    /// Whether the runtime was unknown before it arrived.
    pub first: bool,
    /// Whether there is a connection for the caller to close.
    pub has_connection: bool,
    /// The connection.
    pub connection: u64,
    /// The runtime, for a change that has one; for others only `peer`, if they have a connection.
    pub runtime: Runtime,
}

impl MonitorChange {
    const NOTHING: Self = Self {
        kind: DIPC_CHANGE_NOTHING,
        rejection: DIPC_REJECTION_NONE,
        status: Status::Ok,
        detail: 0,
        first: false,
        has_connection: false,
        connection: 0,
        runtime: Runtime::NONE,
    };

    const fn new(kind: u32, connection: Option<u64>) -> Self {
        let (has_connection, connection) = match connection {
            Some(connection) => (true, connection),
            None => (false, 0),
        };
        Self { kind, has_connection, connection, ..Self::NOTHING }
    }

    /// Converts what has happened at the port.
    fn of(port: &ProtoPort<u64, u64, Slots>, change: Option<ProtoChange<u64, u64>>) -> Self {
        let known = |cookie| Runtime::find(port, &cookie).unwrap_or(Runtime::NONE);
        match change {
            None => Self::NOTHING,
            Some(ProtoChange::Arrived { runtime_cookie, first, stale }) => {
                Self { first, runtime: known(runtime_cookie), ..Self::new(DIPC_CHANGE_ARRIVED, stale) }
            }
            Some(ProtoChange::Rejected { connection, peer, rejection }) => {
                let (rejection, failure) = match rejection {
                    Rejection::TooLate { received } => {
                        (DIPC_REJECTION_TOO_LATE, Failure { status: Status::Ok, detail: received })
                    }
                    Rejection::Protocol(error) => (DIPC_REJECTION_PROTOCOL, error.into()),
                    Rejection::Crowded => (DIPC_REJECTION_CROWDED, Status::Ok.into()),
                    _ => (DIPC_REJECTION_UNSOLICITED, Status::Ok.into()),
                };
                Self {
                    rejection,
                    status: failure.status,
                    detail: failure.detail,
                    runtime: Runtime { peer, ..Runtime::NONE },
                    ..Self::new(DIPC_CHANGE_REJECTED, Some(connection))
                }
            }
            Some(ProtoChange::Disconnected { runtime_cookie, connection, unsolicited }) => Self {
                rejection: if unsolicited { DIPC_REJECTION_UNSOLICITED } else { DIPC_REJECTION_NONE },
                runtime: known(runtime_cookie),
                ..Self::new(DIPC_CHANGE_DISCONNECTED, Some(connection))
            },
            Some(ProtoChange::Left(runtime)) => {
                Self { runtime: Runtime::new(&runtime, None), ..Self::new(DIPC_CHANGE_LEFT, None) }
            }
            Some(ProtoChange::AcceptAgain) => Self::new(DIPC_CHANGE_ACCEPT_AGAIN, None),
        }
    }
}

/// A function that returns whether the process of a runtime has ended; false if that is unknown. It must return: no
/// `longjmp`, no C++ exception; and it must not use the port. The `state` of the runtime has no meaning there.
pub type HasEnded = Option<unsafe extern "C" fn(context: *mut c_void, runtime: *const Runtime) -> bool>;

/// Runs a function with the port, and stores what has happened in `change`.
///
/// # Safety
/// `port` points to a port that nothing else uses, and `change` to space for a change.
unsafe fn with_change(
    port: *mut MonitorPort,
    change: *mut MonitorChange,
    run: impl FnOnce(&mut ProtoPort<u64, u64, Slots>) -> Option<ProtoChange<u64, u64>>,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        memory::check(change, 1)?;
        let happened = run(port);
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(change, MonitorChange::of(port, happened)) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointer; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Initialises a port without connections. It has room for `count` connections that have not sent their frame, and
/// runtimes. `slots` is used as long as the port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_init(
    port: *mut MonitorPort,
    slots: *mut MonitorSlot,
    count: usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Slots::new(slots, count) }.and_then(|slots| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        unsafe { place(port, ProtoPort::new(slots)) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Returns the size of a `dipc_monitor_port` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_monitor_port_size() -> usize {
    size_of::<MonitorPort>()
}

/// Adds a new connection, whose frame is expected; `peer` is what the caller knows of its peer, for example the process id
/// from its credentials. `token` receives the name of the connection, at least 2^32, for the other functions: it is never
/// used again for another connection, so that a late event does no harm.
///
/// `evicted` receives the connection that was dropped for it, if 256 had not sent their frame.
///
/// Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if there is no free slot; `detail` is the number of slots required. Close the
/// connection then: the runtime connects again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_accept(
    port: *mut MonitorPort,
    connection: u64,
    peer: u64,
    now: u64,
    token: *mut u64,
    evicted: *mut MonitorChange,
    detail: *mut usize,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        memory::check(token, 1)?;
        memory::check(evicted, 1)?;
        let Ok(accepted) = port.accept(connection, peer, now) else {
            let needed = port.capacity().saturating_add(1);
            return Err(Failure { status: Status::BufferTooSmall, detail: needed });
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(token, accepted.token) }?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(evicted, MonitorChange::of(port, accepted.evicted)) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { with(port, detail, run) }
}

/// Stores a connection in `connection`, and in `step` the space to read its bytes into, without waiting. It never reaches
/// beyond the frame, and has one byte for a connection that waits for a command: no byte is valid there, but the end of
/// the connection is noticed. Then call `dipc_monitor_port_advance`, and repeat until reading would block.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if the token's connection is not here any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_receive(
    port: *mut MonitorPort,
    token: u64,
    connection: *mut u64,
    step: *mut Step,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        let Some((found, space)) = port.receive(token) else { return Err(Status::NotFound.into()) };
        let next = Step { kind: DIPC_STEP_RECEIVE, data: space.as_mut_ptr(), len: space.len() };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(connection, *found) }?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(step, next) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Reports that `n` bytes were read into the space of `dipc_monitor_port_receive`; 0 if the peer closed the connection, or
/// reading failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_advance(
    port: *mut MonitorPort,
    token: u64,
    n: usize,
    now: u64,
    change: *mut MonitorChange,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { with_change(port, change, |port| port.advance(token, n, now)) }
}

/// Drops the oldest connection that has not sent its frame, for example because no descriptor is left to accept another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_evict_oldest(
    port: *mut MonitorPort,
    change: *mut MonitorChange,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { with_change(port, change, ProtoPort::evict_oldest) }
}

/// Schedules a `DIPC_CHANGE_ACCEPT_AGAIN` in 100 ms: for when accepting failed and would fail again immediately.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_pause_accept(port: *mut MonitorPort, now: u64) -> Status {
    // SAFETY: the caller vouches for the pointer; no number is stored.
    unsafe { with(port, ptr::null_mut(), |port| port.pause_accept(now)) }
}

/// Takes the connection of an idle runtime for one call, after which the caller closes it. The runtime then connects again.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if the runtime is not known or not idle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_take(
    port: *mut MonitorPort,
    cookie: Guid,
    now: u64,
    connection: *mut u64,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        memory::check(connection, 1)?;
        let taken = port.take(&ProtoGuid(cookie.bytes), now);
        let Some(taken) = taken else { return Err(Status::NotFound.into()) };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(connection, taken) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Reports that a connection has ended which was taken: the peer or the caller has closed it. The runtime must now connect
/// again within a second, or counts as left. `token` is that of the connection; it has no effect after the runtime has
/// connected again.
///
/// Do not report a connection that the caller has closed while its command ran in a process which `has_ended` can check: a
/// runtime connects again only after its command.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_released(port: *mut MonitorPort, token: u64, now: u64) -> Status {
    // SAFETY: the caller vouches for the pointer; no number is stored.
    unsafe { with(port, ptr::null_mut(), |port| port.released(token, now)) }
}

/// Forgets a runtime, which is unknown if it connects again. `change` receives a `DIPC_CHANGE_LEFT` with its idle
/// connection, or `DIPC_CHANGE_NOTHING` if it is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_remove(
    port: *mut MonitorPort,
    cookie: Guid,
    change: *mut MonitorChange,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        memory::check(change, 1)?;
        let removed = match port.remove(&ProtoGuid(cookie.bytes)) {
            None => MonitorChange::NOTHING,
            Some((runtime, connection)) => MonitorChange {
                runtime: Runtime::new(&runtime, None),
                ..MonitorChange::new(DIPC_CHANGE_LEFT, connection)
            },
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(change, removed) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Stores the known runtime with this index, from 0, in `runtime`. The order is none, and changes with every change.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_runtime(
    port: *mut MonitorPort,
    index: usize,
    runtime: *mut Runtime,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        let Some(entry) = port.runtimes().nth(index) else { return Err(Status::NotFound.into()) };
        let found = Runtime::new(entry, port.state(&entry.cookie));
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(runtime, found) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Stores the runtime with this identity in `runtime`.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if it is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_find(
    port: *mut MonitorPort,
    cookie: Guid,
    runtime: *mut Runtime,
) -> Status {
    let run = |port: &mut ProtoPort<u64, u64, Slots>| -> Outcome {
        let found = Runtime::find(port, &ProtoGuid(cookie.bytes));
        let Some(found) = found else { return Err(Status::NotFound.into()) };
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(runtime, found) }.map(|()| 0)
    };
    // SAFETY: the caller vouches for the pointers; no number is stored.
    unsafe { with(port, ptr::null_mut(), run) }
}

/// Returns the latest time for the next `dipc_monitor_port_on_due`; `UINT64_MAX` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_due(port: *mut MonitorPort) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(port) }.ok().and_then(|port| port.due()).unwrap_or(u64::MAX)
}

/// Does one thing that is due at `now`. Call it until `change` is `DIPC_CHANGE_NOTHING`.
///
/// `has_ended` is called with `context` for runtimes that have no connection here; null if the caller cannot tell. It must
/// return false unless the operating system vouches for the process, for example by the credentials of a local socket: the
/// process id in a frame can be that of another machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_monitor_port_on_due(
    port: *mut MonitorPort,
    now: u64,
    has_ended: HasEnded,
    context: *mut c_void,
    change: *mut MonitorChange,
) -> Status {
    let has_ended = |entry: &RuntimeEntry<u64>| match has_ended {
        None => false,
        // SAFETY: the caller vouches for the function and its context.
        Some(has_ended) => unsafe { has_ended(context, &Runtime::new(entry, None)) },
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { with_change(port, change, |port| port.on_due(now, has_ended)) }
}
