//! The monitor's role: the frame with which a runtime introduces itself.
use core::ptr;

use ipc_proto::{Advertise as ProtoAdvertise, Exchange as _, Parsed, ReceiveAdvertise};

use crate::command::Guid;
use crate::exchange::{Exchange, Functions, Placed, Step, Stored};
use crate::memory;
use crate::status::{Failure, Outcome, Status, report};

/// The length of an advertise frame in bytes.
pub const DIPC_ADVERTISE_LEN: usize = 34;
/// The time in milliseconds after which a monitor drops a connection without a frame.
pub const DIPC_ADVERTISE_RECEIVE_MS: u32 = 250;
/// The time in milliseconds after which a runtime stops sending its frame.
pub const DIPC_ADVERTISE_SEND_MS: u32 = 100;

const _: () = assert!(
    DIPC_ADVERTISE_LEN == ProtoAdvertise::LEN
        && DIPC_ADVERTISE_RECEIVE_MS == ReceiveAdvertise::DEADLINE_MS
        && DIPC_ADVERTISE_SEND_MS == ProtoAdvertise::SEND_DEADLINE_MS,
    "the header needs numbers"
);

/// The frame that a runtime sends first on each connection to a monitor.
#[repr(C)]
pub struct Advertise {
    /// The runtime's identity, the same as in `dipc_process_info`.
    pub runtime_cookie: Guid,
    /// The process id, in the PID namespace of the process.
    pub process_id: u64,
    /// 0, which monitors ignore.
    pub future: u16,
}

impl From<ProtoAdvertise> for Advertise {
    fn from(frame: ProtoAdvertise) -> Self {
        let runtime_cookie = frame.runtime_cookie.into();
        Self { runtime_cookie, process_id: frame.process_id, future: frame.future }
    }
}

// A `ReceiveAdvertise` has a buffer of its own, so it needs no memory but that of the exchange.
impl Stored for ReceiveAdvertise {
    const NUMBER: u8 = 5;
    const FUNCTIONS: &'static Functions = &Functions { step, advance, fits };
}

unsafe fn step(exchange: *mut Exchange) -> Result<Step, Failure> {
    // SAFETY: the caller vouches for the exchange.
    let placed = unsafe { Placed::<ReceiveAdvertise>::of(exchange) }?;
    Ok(placed.state_mut().step().into())
}

unsafe fn advance(exchange: *mut Exchange, n: usize) -> Result<(), Failure> {
    // SAFETY: the caller vouches for the exchange.
    let placed = unsafe { Placed::<ReceiveAdvertise>::of(exchange) }?;
    Ok(placed.state_mut().advance(n)?)
}

/// It needs no other buffer.
unsafe fn fits(_: *mut Exchange) -> Result<(), Failure> {
    Ok(())
}

/// Initialises `exchange` as the receiver of an advertise frame, on a connection that a monitor has accepted. It needs no
/// buffer. After the frame, the connection can carry one call.
///
/// Drive it for at most `DIPC_ADVERTISE_RECEIVE_MS`: any process can connect and send nothing. A
/// `dipc_monitor_port` receives the frames of all its connections itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_advertise_init(exchange: *mut Exchange) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { Placed::place(exchange, ReceiveAdvertise::new(), ptr::null_mut(), 0) };
    // SAFETY: `detail` is null.
    unsafe { report(outcome.map(|()| 0), ptr::null_mut()) }
}

/// Stores the frame that was received in `advertise`.
///
/// Returns the error that ended the exchange, or `DIPC_STATUS_CLOSED` if it is not over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_advertise_finish(
    exchange: *mut Exchange,
    advertise: *mut Advertise,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Placed::<ReceiveAdvertise>::of(exchange) }.and_then(|placed| -> Outcome {
        let frame = placed.state_mut().finish()?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(advertise, frame.into()) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Parses the advertise frame at the front of `bytes`, and stores it in `advertise`.
///
/// Returns `DIPC_STATUS_MORE` if the frame is longer than `bytes`, and `DIPC_STATUS_BAD_ADVERTISE` at the first wrong byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_advertise_parse(
    bytes: *const u8,
    len: usize,
    advertise: *mut Advertise,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        match ProtoAdvertise::parse(bytes)? {
            Parsed::Partial { needed } => Err(Failure { status: Status::More, detail: needed }),
            // SAFETY: the caller vouches for the pointers.
            Parsed::Complete { value, .. } => unsafe { memory::store(advertise, value.into()) }.map(|()| 0),
        }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
