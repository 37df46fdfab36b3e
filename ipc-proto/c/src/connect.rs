//! The runtime's role: a diagnostic port that connects to a monitor, and the ports that suspend the runtime.
use core::ptr;

use ipc_proto::port::{ConnectEvent, ConnectPort as ProtoPort, ConnectStep, Suspension};
use ipc_proto::{Advertise, Guid as ProtoGuid};

use crate::command::Guid;
use crate::exchange::{DIPC_STEP_SEND, Step};
use crate::memory;
use crate::place::{Opaque, content, place};
use crate::session::DIPC_STEP_CONNECT;
use crate::status::{Outcome, Status, report};

/// A runtime's connections to a monitor, one after the other: it connects, sends its advertise frame, waits for a command,
/// and connects again. In memory of the caller; set it to zeros or initialise it before another function receives it. It
/// can be moved and copied with `memcpy`.
///
/// It has no clock and no socket. Do what `dipc_connect_port_step` says, and report it with `dipc_connect_port_advance`:
///
/// * `DIPC_STEP_CONNECT`: connect without blocking for long. Then `DIPC_CONNECT_CONNECTED` or `DIPC_CONNECT_FAILED`.
/// * `DIPC_STEP_WAIT`: wait so many milliseconds as `len` says. Then `DIPC_CONNECT_WAITED`.
/// * `DIPC_STEP_SEND`: write the bytes, within `DIPC_ADVERTISE_SEND_MS`. Then `DIPC_CONNECT_SENT`, or
///   `DIPC_CONNECT_FAILED`.
/// * `DIPC_STEP_SERVE`: wait for a command, without a limit, and reply to it, as with `dipc_serve_init`. Then
///   `DIPC_CONNECT_ANSWERED`. If a stream follows the reply, the connection belongs to the stream, and the port makes
///   another one. A request with a `len` of 0 is not a command: the monitor has closed the connection. Then
///   `DIPC_CONNECT_HUNG_UP`, without a reply. Who can poll the connection checks for that first, as runtimes do.
///
/// The caller closes a connection that failed, was hung up, or is answered.
#[repr(C)]
pub struct ConnectPort {
    /// The state.
    pub opaque: [u64; 9],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for ConnectPort {
    type Content = ProtoPort;
    const TAG: u64 = 0x6470_6363_9a75_e706;
}

/// Wait as many milliseconds as the `len` of the step.
pub const DIPC_STEP_WAIT: u32 = 4;
/// Wait for a command on the connection, and serve it.
pub const DIPC_STEP_SERVE: u32 = 5;

/// The connection is established.
pub const DIPC_CONNECT_CONNECTED: u32 = 0;
/// Connecting failed, or sending the frame did.
pub const DIPC_CONNECT_FAILED: u32 = 1;
/// The wait is over.
pub const DIPC_CONNECT_WAITED: u32 = 2;
/// `value` bytes were written; 0 counts as `DIPC_CONNECT_FAILED`.
pub const DIPC_CONNECT_SENT: u32 = 3;
/// The monitor closed the connection before a command.
pub const DIPC_CONNECT_HUNG_UP: u32 = 4;
/// The command is answered, or its stream has started.
pub const DIPC_CONNECT_ANSWERED: u32 = 5;

/// Initialises a port that advertises this runtime: with its identity, which is random for each process, and its process
/// id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_connect_port_init(
    port: *mut ConnectPort,
    runtime_cookie: Guid,
    process_id: u64,
) -> Status {
    let frame = Advertise { runtime_cookie: ProtoGuid(runtime_cookie.bytes), process_id, future: 0 };
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { place(port, ProtoPort::new(&frame)) };
    // SAFETY: `detail` is null.
    unsafe { report(outcome.map(|()| 0), ptr::null_mut()) }
}

/// Returns the size of a `dipc_connect_port` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_connect_port_size() -> usize {
    size_of::<ConnectPort>()
}

/// Stores the next action in `step`. It stays the same until `dipc_connect_port_advance`. The bytes of `DIPC_STEP_SEND` are
/// in the port, and are only read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_connect_port_step(port: *mut ConnectPort, step: *mut Step) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(port) }.and_then(|port| -> Outcome {
        let without_bytes = |kind, len| Step { kind, data: ptr::null_mut(), len };
        let next = match port.step() {
            ConnectStep::Connect => without_bytes(DIPC_STEP_CONNECT, 0),
            ConnectStep::Wait { milliseconds } => {
                without_bytes(DIPC_STEP_WAIT, usize::try_from(milliseconds).unwrap_or(usize::MAX))
            }
            ConnectStep::Send(bytes) => {
                Step { kind: DIPC_STEP_SEND, data: bytes.as_ptr().cast_mut(), len: bytes.len() }
            }
            ConnectStep::Serve => without_bytes(DIPC_STEP_SERVE, 0),
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(step, next) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Reports the result of the step: one of `DIPC_CONNECT_*`, with its `value`. An event that does not fit the step is
/// ignored. Returns `DIPC_STATUS_OVERRUN` for a `DIPC_CONNECT_SENT` with more bytes than the step lent, which counts as
/// `DIPC_CONNECT_FAILED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_connect_port_advance(
    port: *mut ConnectPort,
    event: u32,
    value: usize,
) -> Status {
    let event = match event {
        DIPC_CONNECT_CONNECTED => ConnectEvent::Connected,
        DIPC_CONNECT_FAILED => ConnectEvent::Failed,
        DIPC_CONNECT_WAITED => ConnectEvent::Waited,
        DIPC_CONNECT_SENT => ConnectEvent::Sent(value),
        DIPC_CONNECT_HUNG_UP => ConnectEvent::HungUp,
        DIPC_CONNECT_ANSWERED => ConnectEvent::Answered,
        _ => return Status::InvalidArgument,
    };
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(port) }.and_then(|port| -> Outcome {
        let overruns = match (port.step(), event) {
            (ConnectStep::Send(bytes), ConnectEvent::Sent(n)) => n > bytes.len(),
            _ => false,
        };
        port.advance(event);
        if overruns { Err(Status::Overrun.into()) } else { Ok(0) }
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Records a ResumeRuntime on the port with this index. `suspending` is an array of the caller with one flag for each port,
/// in any order: at startup whether the port suspends the runtime, later whether it still does.
///
/// Returns whether the port suspended the runtime until now. Another ResumeRuntime has no effect, and is answered with OK,
/// too; so is one on a port that does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_suspension_resume(suspending: *mut bool, count: usize, port: usize) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { memory::slice_mut(suspending, count) }.is_ok_and(|ports| Suspension::new(ports).resume(port))
}

/// Returns whether a port still suspends the runtime, which starts after each has received its ResumeRuntime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_suspension_is_suspended(suspending: *mut bool, count: usize) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { memory::slice_mut(suspending, count) }.is_ok_and(|ports| Suspension::new(ports).is_suspended())
}
