//! The client's role: the environment, which follows the answer to GetProcessEnvironment.
use ipc_proto::types::ProcessEnvironment;
use ipc_proto::{ProtocolError, ReceiveEnvironment, SuspendedEnvironment};

use crate::exchange::{Exchange, Kind, Placed};
use crate::memory;
use crate::message::complete;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

impl Kind for SuspendedEnvironment {
    const NUMBER: u8 = 2;
    type Running<'b> = ReceiveEnvironment<'b>;

    fn resume(self, buf: &mut [u8]) -> Result<ReceiveEnvironment<'_>, ProtocolError> {
        Self::resume(self, buf)
    }
    fn suspend(self, running: ReceiveEnvironment<'_>) -> Self {
        running.suspend()
    }
}

/// Initialises `exchange` as the receiver of the environment that follows `answer`, the bytes of the OK answer to
/// GetProcessEnvironment, on the same connection.
///
/// The environment arrives in pieces of the size of `buf`, which must be large enough for the longest entry, and can be
/// the buffer of the call. Drive the exchange until its step is `DIPC_STEP_DONE`, take the entries that have arrived with
/// `dipc_environment_next`, and continue until `dipc_environment_is_finished`.
///
/// Returns `DIPC_STATUS_LIMIT_EXCEEDED` if more than `limit` bytes are announced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_environment_init(
    exchange: *mut Exchange,
    answer: *const u8,
    len: usize,
    limit: u32,
    buf: *mut u8,
    size: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let announced = unsafe { memory::slice(answer, len) }
        .and_then(|answer| -> Result<ProcessEnvironment, _> { Ok(complete(answer)?.0.decode()?) });
    // `buf` can be the memory of `answer`, whose reference has ended with the function above.
    let outcome = announced.and_then(|announced| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let bytes = unsafe { memory::slice_mut(buf, size) }?;
        let environment = ReceiveEnvironment::new(&announced, limit, bytes)?.suspend();
        // SAFETY: the caller vouches for the pointers.
        unsafe { Placed::place(exchange, environment, buf, size) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Stores the next entry, usually `NAME=value`, in `entry`. It is valid until the next function receives the exchange.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if no further entry has arrived: drive the exchange, unless it is finished. Returns
/// `DIPC_STATUS_BUFFER_TOO_SMALL` for an entry that is longer than the buffer, and an error for malformed bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_environment_next(
    exchange: *mut Exchange,
    entry: *mut Text<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Placed::<SuspendedEnvironment>::of(exchange) }.and_then(|placed| -> Outcome {
        let (data, len, form) = placed.run(|running| -> Result<_, Failure> {
            let Some(next) = running.next_entry()? else { return Err(Status::NotFound.into()) };
            let Text { data, len, form, .. } = Text::from(next);
            Ok((data, len, form))
        })??;
        let next = Text::new(placed.in_buffer(data).cast(), len, form);
        // SAFETY: the caller vouches for `entry`, which then points into the buffer.
        unsafe { memory::store(entry, next) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Returns whether every entry has been taken; false if `exchange` is of another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_environment_is_finished(exchange: *mut Exchange) -> bool {
    // SAFETY: the caller vouches for the pointer.
    let placed = unsafe { Placed::<SuspendedEnvironment>::of(exchange) };
    placed.and_then(|placed| placed.run(|running| running.is_finished())).unwrap_or(false)
}
