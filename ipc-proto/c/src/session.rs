//! The client's role: a tracing session, and the Stop that ends it without a deadlock.
use core::ptr;

use ipc_proto::plan::{TraceConfig, stop_hazard};
use ipc_proto::{Answer, HResult, Session as ProtoSession, SessionEnd, StopEvent, StopStep as ProtoStopStep};

use crate::exchange::{DIPC_STEP_DONE, DIPC_STEP_RECEIVE, DIPC_STEP_SEND, Step};
use crate::facts::Facts;
use crate::memory;
use crate::message::complete;
use crate::place::{Opaque, content, place, with};
use crate::status::{Outcome, Status, report};

/// A tracing session over two connections: one has the stream, the other the StopTracing that ends it. In memory of the
/// caller; set it to zeros or initialise it before another function receives it.
///
/// A runtime that receives StopTracing first writes its buffered events to the stream, and only then answers. A client
/// that waits for the answer without reading the stream waits indefinitely. So do whichever of the two can proceed:
///
/// * As long as `dipc_session_wants_stream`, read the stream, and report its bytes with `dipc_session_stream_advance`.
/// * `dipc_session_stop` only requests the Stop. After it, do what `dipc_session_stop_step` says on a second connection,
///   and report it with `dipc_session_stop_advance`.
/// * Call `dipc_session_tick` at the time of `dipc_session_until` at the latest. The session has no clock: all times are
///   milliseconds of yours.
/// * It is over when `dipc_session_end` is not `DIPC_SESSION_RUNNING`. Then close both connections.
///
/// ```c
/// while (dipc_session_end(&session) == DIPC_SESSION_RUNNING) {
///     dipc_step step;
///     dipc_session_tick(&session, now_ms());
///     dipc_session_stop_step(&session, &step);
///     if (step.kind == DIPC_STEP_CONNECT) {
///         // connect, and report it: dipc_session_stop_advance(&session, DIPC_STOP_CONNECTED, 0)
///         continue;
///     }
///     // Wait until `dipc_session_until`, for the stream if dipc_session_wants_stream(&session), and for the second
///     // connection as the step says: to write with DIPC_STEP_SEND, to read with DIPC_STEP_RECEIVE. Then do what is ready.
/// }
/// ```
#[repr(C)]
pub struct Session {
    /// The state.
    pub opaque: [u64; 44],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for Session {
    type Content = ProtoSession;
    const TAG: u64 = 0x6470_6363_9a75_e703;
}

/// Connect to the runtime without blocking for long; then report `DIPC_STOP_CONNECTED`, `DIPC_STOP_BUSY` or
/// `DIPC_STOP_FAILED`. The other steps are `DIPC_STEP_DONE`: nothing now, `DIPC_STEP_SEND` and `DIPC_STEP_RECEIVE`.
pub const DIPC_STEP_CONNECT: u32 = 3;

/// The connection is established.
pub const DIPC_STOP_CONNECTED: u32 = 0;
/// The runtime accepts no connection, or no bytes, at the time `value`. The step is attempted again later.
pub const DIPC_STOP_BUSY: u32 = 1;
/// The runtime is not reachable, or the connection is broken: connecting or writing failed. A connection that breaks while
/// the answer is read counts as closed: `DIPC_STOP_RECEIVED` with 0.
pub const DIPC_STOP_FAILED: u32 = 2;
/// `value` bytes were written; 0 means that the peer closed the connection.
pub const DIPC_STOP_SENT: u32 = 3;
/// `value` bytes were read; 0 means that the peer closed the connection.
pub const DIPC_STOP_RECEIVED: u32 = 4;

/// The session is not over.
pub const DIPC_SESSION_RUNNING: u32 = 0;
/// The stream was read to its end and has the end mark of its format.
pub const DIPC_SESSION_COMPLETE: u32 = 1;
/// The stream ended without that mark, in most cases because the process exited; also if the deadline of the Stop passed
/// after the end of the stream.
pub const DIPC_SESSION_CUT_OFF: u32 = 2;
/// The deadline of the Stop passed before the end of the stream.
pub const DIPC_SESSION_TIMED_OUT: u32 = 3;
/// The session was abandoned.
pub const DIPC_SESSION_ABANDONED: u32 = 4;

/// Initialises a session that the runtime has just started, with the id from its answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_init(session: *mut Session, session_id: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { place(session, ProtoSession::new(session_id)) };
    // SAFETY: `detail` is null.
    unsafe { report(outcome.map(|()| 0), ptr::null_mut()) }
}

/// Returns the size of a `dipc_session` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_session_size() -> usize {
    size_of::<Session>()
}

/// Returns whether the stream must be read; false if `session` is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_wants_stream(session: *mut Session) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(session) }.is_ok_and(|session| session.wants_stream())
}

/// Reports bytes that were read from the stream, in a piece of any size. No bytes mean that the stream has ended or is
/// broken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stream_advance(
    session: *mut Session,
    bytes: *const u8,
    len: usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let bytes = unsafe { memory::slice(bytes, len) };
    // SAFETY: the caller vouches for the pointers.
    unsafe { with(session, ptr::null_mut(), |session| bytes.map(|bytes| session.stream_advance(bytes))) }
}

/// Requests the Stop. `until` is the deadline for everything that follows: connecting, the rest of the stream, the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stop(session: *mut Session, until: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.stop(until)) }
}

/// Stores the next action on the second connection in `step`. It stays the same until `dipc_session_stop_advance` or
/// `dipc_session_tick`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stop_step(session: *mut Session, step: *mut Step) -> Status {
    let run = |session: &mut ProtoSession| {
        let next = match session.stop_step() {
            ProtoStopStep::Nothing => Step { kind: DIPC_STEP_DONE, data: ptr::null_mut(), len: 0 },
            ProtoStopStep::Connect => Step { kind: DIPC_STEP_CONNECT, data: ptr::null_mut(), len: 0 },
            ProtoStopStep::Send(bytes) => {
                Step { kind: DIPC_STEP_SEND, data: bytes.as_ptr().cast_mut(), len: bytes.len() }
            }
            ProtoStopStep::Receive(space) => {
                Step { kind: DIPC_STEP_RECEIVE, data: space.as_mut_ptr(), len: space.len() }
            }
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(step, next) }
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { with(session, ptr::null_mut(), run) }
}

/// Reports the result of the step on the second connection: one of `DIPC_STOP_*`, with its `value`. An event that does not
/// fit the step is ignored. Returns `DIPC_STATUS_OVERRUN` for a `DIPC_STOP_SENT` or `DIPC_STOP_RECEIVED` with more bytes
/// than the step lent, which counts as `DIPC_STOP_FAILED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stop_advance(session: *mut Session, event: u32, value: u64) -> Status {
    let count = usize::try_from(value).unwrap_or(usize::MAX);
    let event = match event {
        DIPC_STOP_CONNECTED => StopEvent::Connected,
        DIPC_STOP_BUSY => StopEvent::Busy(value),
        DIPC_STOP_FAILED => StopEvent::Failed,
        DIPC_STOP_SENT => StopEvent::Sent(count),
        DIPC_STOP_RECEIVED => StopEvent::Received(count),
        _ => return Status::InvalidArgument,
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        with(session, ptr::null_mut(), |session| -> Outcome {
            let overruns = match (session.stop_step(), event) {
                (ProtoStopStep::Send(bytes), StopEvent::Sent(n)) => n > bytes.len(),
                (ProtoStopStep::Receive(space), StopEvent::Received(n)) => n > space.len(),
                _ => false,
            };
            session.stop_advance(event);
            if overruns { Err(Status::Overrun.into()) } else { Ok(0) }
        })
    }
}

/// Returns whether the last Stop failed or was refused. `dipc_session_stop` then requests another one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stop_failed(session: *mut Session) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(session) }.is_ok_and(|session| session.stop_failed())
}

/// Reports the time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_tick(session: *mut Session, now: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.tick(now)) }
}

/// Returns the latest time for the next `dipc_session_tick`; 0 if the session is over, and `UINT64_MAX` before a Stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_until(session: *mut Session) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { content(session) }.map_or(u64::MAX, |session| match session.end() {
        Some(_) => 0,
        None => session.until().unwrap_or(u64::MAX),
    })
}

/// Stores the reason of a refused Stop in `hresult`, otherwise 0.
///
/// Returns `DIPC_STATUS_OK` if the runtime has answered the Stop, `DIPC_STATUS_MORE` if it has not yet,
/// `DIPC_STATUS_REFUSED` for a refusal, and the error of an answer that is malformed or did not arrive whole. The last
/// is not a failure of the Stop: the end of the stream decides, and until the deadline the session waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_stop_answer(
    session: *mut Session,
    hresult: *mut u32,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { content(session) }.and_then(|session| -> Outcome {
        let answer = session.stop_answer();
        let reason = match answer {
            Some(Ok(Answer::Refused(error))) => error.hresult,
            _ => HResult::OK,
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(hresult, reason.0) }?;
        match answer {
            Some(Ok(Answer::Ok(_))) => Ok(0),
            Some(Ok(Answer::Refused(_))) => Err(reason.into()),
            Some(Err(error)) => Err(error.into()),
            None => Err(Status::More.into()),
        }
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Sets for how many milliseconds a stopped session may receive and send no byte: from then on, it has timed out. There is
/// no limit by default; a usual one is 10,000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_limit_silence(session: *mut Session, milliseconds: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.limit_silence(milliseconds)) }
}

/// Delays a requested Stop: the first step for it is returned from the time `until` on, or after
/// `dipc_session_send_stop`. For the times of `dipc_stop_hazard`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_delay_stop(session: *mut Session, until: u64) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.delay_stop(until)) }
}

/// Ends the delay of `dipc_session_delay_stop`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_send_stop(session: *mut Session) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.send_stop()) }
}

/// Stores when the session that a request starts must not be stopped, in milliseconds after its start. A StopTracing that
/// arrives shortly before the first collection of `System.Diagnostics.Metrics` blocks the diagnostics of a .NET since 9
/// indefinitely; the first event `CollectionStop` of that provider ends the danger. `facts` is what is known of the
/// runtime, or null.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if there is no such time, and an error for a malformed request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_stop_hazard(
    request: *const u8,
    len: usize,
    facts: *const Facts,
    from_ms: *mut u64,
    until_ms: *mut u64,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(request, len) }.and_then(|request| -> Outcome {
        // SAFETY: the caller vouches for the pointer.
        let runtime = unsafe { Facts::runtime(facts) }?.unwrap_or_default();
        let config = TraceConfig::try_from(&complete(request)?.0.request()?).map_err(|_| Status::NotFound)?;
        let hazard = stop_hazard(&config, &runtime).ok_or(Status::NotFound)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(from_ms, hazard.from_ms) }?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(until_ms, hazard.until_ms) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Ends the session without the runtime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_abandon(session: *mut Session) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(session, ptr::null_mut(), |session| session.abandon()) }
}

/// Returns how the session has ended: one of `DIPC_SESSION_*`; `DIPC_SESSION_RUNNING` if it is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_session_end(session: *mut Session) -> u32 {
    // SAFETY: the caller vouches for the pointer.
    match unsafe { content(session) }.ok().and_then(|session| session.end()) {
        None => DIPC_SESSION_RUNNING,
        Some(SessionEnd::Complete) => DIPC_SESSION_COMPLETE,
        Some(SessionEnd::CutOff) => DIPC_SESSION_CUT_OFF,
        Some(SessionEnd::TimedOut(_)) => DIPC_SESSION_TIMED_OUT,
        Some(SessionEnd::Abandoned) => DIPC_SESSION_ABANDONED,
    }
}
