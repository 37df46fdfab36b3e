//! The client's role: a plan, which is a command and the older commands for runtimes that do not know it.
use core::ffi::c_char;
use core::ptr;

use ipc_proto::plan::{
    DumpConfig, DumpStep, Fallback as ProtoFallback, FallbackError, FallbackStep, InfoStep, LostFeatures,
    PlanStep, Runtime, TraceConfig, TraceStep,
};
use ipc_proto::wire::Writer;
use ipc_proto::{Answer as ProtoAnswer, Code, Encode, Message, Request};

use crate::call::{Answer, Anything};
use crate::connect::DIPC_STEP_WAIT;
use crate::exchange::{DIPC_STEP_DONE, DIPC_STEP_RECEIVE, DIPC_STEP_SEND, Step};
use crate::facts::Facts;
use crate::memory;
use crate::message::complete;
use crate::place::{Opaque, content, place, with};
use crate::session::DIPC_STEP_CONNECT;
use crate::status::{Failure, Outcome, Status, report};

/// A command, and the older commands that a client sends to a runtime that does not know it, each on a connection of its
/// own. In memory of the caller; set it to zeros or initialise it before another function receives it.
///
/// It has no clock and no socket. Do what `dipc_fallback_step` says, and report it with `dipc_fallback_advance`:
///
/// * `DIPC_STEP_CONNECT`: close the last connection and open a new one. Then `DIPC_FALLBACK_CONNECTED`, or
///   `DIPC_FALLBACK_BUSY` if the runtime accepts no connection at this time: `EAGAIN` of a Unix socket on Linux,
///   `ECONNREFUSED` on other systems. If it is not reachable, abandon the plan: it needs no further call.
/// * `DIPC_STEP_WAIT`: wait until `dipc_fallback_until`, then call `dipc_fallback_tick`.
/// * `DIPC_STEP_SEND`: write some of the bytes. Then `DIPC_FALLBACK_SENT`.
/// * `DIPC_STEP_RECEIVE`: read some bytes into the space. Then `DIPC_FALLBACK_RECEIVED`. A connection that was reset counts
///   as closed: 0 bytes.
/// * `DIPC_STEP_DONE`: call `dipc_fallback_finish`. What follows the answer, such as a stream, is on the last connection.
///
/// Call `dipc_fallback_tick` at the time of `dipc_fallback_until` at the latest, in any step: the machine counts in
/// milliseconds of your clock.
#[repr(C)]
pub struct Fallback {
    /// The state.
    pub opaque: [u64; 40],
}

/// A plan, and the buffer for its messages.
#[derive(Clone)]
pub(crate) struct Planned {
    fallback: ProtoFallback<AnyStep<'static>>,
    buf: *mut u8,
    size: usize,
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for Fallback {
    type Content = Planned;
    const TAG: u64 = 0x6470_6363_9a75_e709;
}

/// A command of any plan.
#[derive(Clone, Copy)]
enum AnyStep<'a> {
    Trace(TraceStep<'a>),
    Dump(DumpStep<'a>),
    Info(InfoStep),
    /// A command without an older one.
    Single(Message<'a>),
}

impl<'a> AnyStep<'a> {
    /// Returns the first command for what a request asks.
    fn first(message: Message<'a>, runtime: &Runtime) -> Result<Self, Failure> {
        let request = message.request()?;
        Ok(if let Ok(config) = TraceConfig::try_from(&request) {
            Self::Trace(config.first_step(runtime))
        } else if let Ok(config) = DumpConfig::try_from(&request) {
            Self::Dump(config.first_step(runtime))
        } else if matches!(request, Request::GetProcessInfo3(_)) {
            Self::Info(ipc_proto::plan::InfoConfig.first_step(runtime))
        } else if let Some(step) = InfoStep::of(message.code) {
            Self::Info(step)
        } else {
            Self::Single(message)
        })
    }
}

impl Encode for AnyStep<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Trace(step) => step.encode(w),
            Self::Dump(step) => step.encode(w),
            Self::Info(step) => step.encode(w),
            Self::Single(message) => w.bytes(message.payload),
        }
    }
}

impl PlanStep for AnyStep<'_> {
    type Response<'r> = Anything;

    fn code(&self) -> Code {
        match self {
            Self::Trace(step) => step.code(),
            Self::Dump(step) => step.code(),
            Self::Info(step) => step.code(),
            Self::Single(message) => message.code,
        }
    }

    fn lost_features(&self) -> LostFeatures {
        match self {
            Self::Trace(step) => step.lost_features(),
            Self::Dump(step) => step.lost_features(),
            Self::Info(step) => step.lost_features(),
            Self::Single(_) => LostFeatures::default(),
        }
    }

    fn older(&self) -> Option<Self> {
        match self {
            Self::Trace(step) => step.older().map(Self::Trace),
            Self::Dump(step) => step.older().map(Self::Dump),
            Self::Info(step) => step.older().map(Self::Info),
            Self::Single(_) => None,
        }
    }
}

/// The connection is established.
pub const DIPC_FALLBACK_CONNECTED: u32 = 0;
/// The runtime accepts no connection at the time `value`. The step is attempted again later.
pub const DIPC_FALLBACK_BUSY: u32 = 1;
/// `value` bytes were written; 0 means that the peer closed the connection.
pub const DIPC_FALLBACK_SENT: u32 = 2;
/// `value` bytes were read; 0 means that the peer closed the connection.
pub const DIPC_FALLBACK_RECEIVED: u32 = 3;

/// Initialises a plan for what a request asks. `request` is one of `dipc_build_*`, of the newest command that has all that
/// is wanted. The plan begins with another command if that serves more runtimes:
///
/// | the request | the first command | the older ones |
/// |---|---|---|
/// | CollectTracing to CollectTracing6 | the oldest that has all that is wanted, as in Microsoft's client | each lacks a feature: see `dipc_fallback_lost_feature` |
/// | a dump | GenerateCoreDump3 | GenerateCoreDump2, GenerateCoreDump |
/// | GetProcessInfo to GetProcessInfo3 | the same | the older ones |
/// | any other, and a session for `user_events` | the same | none |
///
/// `facts` is what is known of the runtime, or null: the plan skips commands that a runtime of this version does not have.
/// `buf` is the buffer for messages, other memory than `request`; 64 KiB are always enough. Both are lent until the plan is
/// over. `until` is the deadline of all commands together.
///
/// Returns an error for a malformed request, `DIPC_STATUS_MORE` for one that is cut off, and
/// `DIPC_STATUS_INVALID_ARGUMENT` for facts that do not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_init(
    fallback: *mut Fallback,
    request: *const u8,
    len: usize,
    facts: *const Facts,
    buf: *mut u8,
    size: usize,
    until: u64,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(request, len) }.and_then(|request| -> Outcome {
        memory::check(buf, size)?;
        let (message, _) = complete(request)?;
        // SAFETY: the caller vouches for the facts.
        let runtime = unsafe { Facts::runtime(facts) }?.unwrap_or_default();
        let machine = ProtoFallback::new(AnyStep::first(message, &runtime)?, until);
        // SAFETY: the caller vouches for the pointer.
        unsafe { place(fallback, Planned { fallback: machine, buf, size }) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Returns the size of a `dipc_fallback` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_fallback_size() -> usize {
    size_of::<Fallback>()
}

/// Replaces the buffer by one that begins with the same bytes: after `DIPC_STATUS_BUFFER_TOO_SMALL`, which it returns as
/// well if `buf` is still too small; the plan then has its old buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_set_buffer(
    fallback: *mut Fallback,
    buf: *mut u8,
    size: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(fallback) }.and_then(|planned| -> Outcome {
        // SAFETY: the caller vouches for the pointer.
        let bytes = unsafe { memory::slice_mut(buf, size) }?;
        if let FallbackStep::Grow { needed } = planned.fallback.step(bytes) {
            return Err(Failure { status: Status::BufferTooSmall, detail: needed });
        }
        (planned.buf, planned.size) = (buf, size);
        Ok(0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Stores the next action in `step`. It stays the same until `dipc_fallback_advance` or `dipc_fallback_tick`.
///
/// Returns `DIPC_STATUS_BUFFER_TOO_SMALL` while the plan needs a larger buffer: see `dipc_fallback_set_buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_step(
    fallback: *mut Fallback,
    step: *mut Step,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(fallback) }.and_then(|planned| -> Outcome {
        // SAFETY: `dipc_fallback_init` has checked the buffer, which the caller lends.
        let buf = unsafe { memory::slice_mut(planned.buf, planned.size) }?;
        let without_bytes = |kind| Step { kind, data: ptr::null_mut(), len: 0 };
        let in_buffer = |at: *const u8| planned.buf.with_addr(at.addr());
        let next = match planned.fallback.step(buf) {
            FallbackStep::Connect => without_bytes(DIPC_STEP_CONNECT),
            FallbackStep::Wait => without_bytes(DIPC_STEP_WAIT),
            FallbackStep::Send(bytes) => {
                Step { kind: DIPC_STEP_SEND, data: in_buffer(bytes.as_ptr()), len: bytes.len() }
            }
            FallbackStep::Receive(space) => {
                Step { kind: DIPC_STEP_RECEIVE, data: in_buffer(space.as_ptr()), len: space.len() }
            }
            FallbackStep::Grow { needed } => {
                return Err(Failure { status: Status::BufferTooSmall, detail: needed });
            }
            FallbackStep::Done => without_bytes(DIPC_STEP_DONE),
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(step, next) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Reports the result of the step: one of `DIPC_FALLBACK_*`, with its `value`. An event that does not fit the step is
/// ignored. Returns `DIPC_STATUS_OVERRUN` for more bytes than the step lent, which ends the plan; errors in received bytes
/// are those of `dipc_fallback_finish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_advance(fallback: *mut Fallback, event: u32, value: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(fallback) }.and_then(|planned| -> Outcome {
        // SAFETY: `dipc_fallback_init` has checked the buffer, which the caller lends.
        let buf = unsafe { memory::slice_mut(planned.buf, planned.size) }?;
        let lent = match (planned.fallback.step(buf), event) {
            (FallbackStep::Send(bytes), DIPC_FALLBACK_SENT) => Some(bytes.len()),
            (FallbackStep::Receive(space), DIPC_FALLBACK_RECEIVED) => Some(space.len()),
            _ => None,
        };
        match (event, lent) {
            (DIPC_FALLBACK_CONNECTED, _) => planned.fallback.connected(),
            (DIPC_FALLBACK_BUSY, _) => planned.fallback.busy(value),
            (DIPC_FALLBACK_SENT | DIPC_FALLBACK_RECEIVED, None) => {}
            (DIPC_FALLBACK_SENT | DIPC_FALLBACK_RECEIVED, Some(lent)) => {
                let n = usize::try_from(value).unwrap_or(usize::MAX);
                planned.fallback.advance(n, buf);
                if n > lent {
                    return Err(Failure { status: Status::Overrun, detail: lent });
                }
            }
            _ => return Err(Status::InvalidArgument.into()),
        }
        Ok(0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Reports the time. At the deadline, a plan that is not over fails with `DIPC_STATUS_TIMED_OUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_tick(fallback: *mut Fallback, now: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(fallback, ptr::null_mut(), |planned| planned.fallback.tick(now)) }
}

/// Returns the latest time for the next `dipc_fallback_tick`; 0 if the plan is over, and `UINT64_MAX` if it is not
/// initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_until(fallback: *mut Fallback) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(fallback) }.map_or(u64::MAX, |planned| planned.fallback.until().unwrap_or(0))
}

/// Returns the code of the command that is being sent, or that was answered, for `dipc_read_process_info` and others; 0 if
/// the plan is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_command(fallback: *mut Fallback) -> u16 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(fallback) }.map_or(0, |planned| planned.fallback.command().code().0)
}

/// Writes a sentence about a requested feature that this command lacks into `text`, as UTF-8 with a NUL at the end: the
/// feature with this `index`, from 0 on. Returns `DIPC_STATUS_NOT_FOUND` after the last one. It can be called before the
/// command is sent, too.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_lost_feature(
    fallback: *mut Fallback,
    index: usize,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(fallback) }.and_then(|planned| -> Outcome {
        let feature = planned.fallback.command().lost_features().iter().nth(index).ok_or(Status::NotFound)?;
        // SAFETY: the caller vouches for the buffer.
        unsafe { memory::store_text(text, size, feature) }
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

/// Stores the answer to the last command in `answer`, which then points into the buffer of the plan. A refusal is an answer
/// too. The payload of an OK answer is not checked yet.
///
/// Returns the error that ended the plan: `DIPC_STATUS_TIMED_OUT`, with 1 in `detail` if a connection was open; or
/// `DIPC_STATUS_CLOSED` if the plan is not over, or that an answer is malformed. For `dipc_status_field` such an answer is at
/// the front of the buffer, and belongs to `dipc_fallback_command`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_fallback_finish(
    fallback: *mut Fallback,
    answer: *mut Answer,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(fallback) }.and_then(|planned| -> Outcome {
        // SAFETY: `dipc_fallback_init` has checked the buffer, which the caller lends.
        let buf = unsafe { memory::slice(planned.buf.cast_const(), planned.size) }?;
        let refusal = match planned.fallback.finish(buf) {
            Ok(ProtoAnswer::Ok(Anything)) => None,
            Ok(ProtoAnswer::Refused(error)) => Some(error.hresult),
            Err(FallbackError::Encode(error)) => return Err(error.into()),
            Err(FallbackError::Protocol(error)) => return Err(error.into()),
            Err(FallbackError::TimedOut { connected }) => {
                return Err(Failure { status: Status::TimedOut, detail: connected.into() });
            }
            Err(_) => return Err(Status::MalformedBytes.into()),
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(answer, Answer::new(buf, refusal)?) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
