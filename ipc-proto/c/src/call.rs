//! The client's role: one command and its answer.
use ipc_proto::wire::{Reader, WireError};
use ipc_proto::{Answer as ProtoAnswer, Decode, HResult, ProtocolError, SuspendedCall, Untyped, UntypedCall};

use crate::exchange::{Exchange, Kind, Placed};
use crate::memory;
use crate::message::complete;
use crate::status::{Failure, Outcome, Status, report};

/// A runtime's answer to a command.
#[repr(C)]
pub struct Answer {
    /// Whether the runtime refused the command. `hresult` is the reason; the answer to GenerateCoreDump3 also has a text:
    /// the part `message`.
    pub refused: bool,
    /// The reason of a refusal, otherwise 0.
    pub hresult: u32,
    /// The bytes of the answer, a whole message in the buffer of the call. A `dipc_read_*` function decodes it; an OK answer
    /// to a command without such a function has no data. `dipc_find` finds the parts of any.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
}

impl Answer {
    /// Returns the answer at the front of a buffer, and the reason if it is a refusal.
    pub(crate) fn new(buf: &[u8], refusal: Option<HResult>) -> Result<Self, Failure> {
        let (_, len) = complete(buf)?;
        let hresult = refusal.unwrap_or(HResult::OK).0;
        Ok(Self { refused: refusal.is_some(), hresult, bytes: buf.as_ptr(), len })
    }
}

impl Kind for SuspendedCall<Untyped> {
    const NUMBER: u8 = 1;
    type Running<'b> = UntypedCall<'b>;

    fn resume(self, buf: &mut [u8]) -> Result<UntypedCall<'_>, ProtocolError> {
        Self::resume(self, buf)
    }
    fn suspend(self, running: UntypedCall<'_>) -> Self {
        running.suspend()
    }
}

/// Initialises `exchange` as a call: it sends the message of `len` bytes at the front of `buf`, which a `dipc_build_*`
/// function has written, and receives the answer into `buf`. A connection carries one call.
///
/// The call uses `buf` until its answer is not needed any more. 64 KiB are always enough, 4 KiB nearly always.
///
/// Returns an error if the `len` bytes are not exactly one message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_call_init(
    exchange: *mut Exchange,
    buf: *mut u8,
    size: usize,
    len: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice_mut(buf, size) }.and_then(|bytes| -> Outcome {
        let call = UntypedCall::encoded(len, bytes)?.suspend();
        // SAFETY: the caller vouches for the pointers.
        unsafe { Placed::place(exchange, call, buf, size) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// A payload of any bytes, which are not checked.
pub(crate) struct Anything;

impl Decode<'_> for Anything {
    const MIN_LEN: usize = 0;

    fn decode(_: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self)
    }
}

/// Stores the answer that a call has received in `answer`, which then points into the buffer of the call. A refusal is an
/// answer too. The payload of an OK answer is not checked yet.
///
/// Returns the error that ended the exchange, `DIPC_STATUS_CLOSED` if it is not over, or that a refusal is malformed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_call_finish(
    exchange: *mut Exchange,
    answer: *mut Answer,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { Placed::<SuspendedCall<Untyped>>::of(exchange) }.and_then(|placed| -> Outcome {
        let refusal = match placed.finish()?.finish_as::<Anything>()? {
            ProtoAnswer::Ok(_) => None,
            ProtoAnswer::Refused(error) => Some(error.hresult),
        };
        let received = Answer::new(placed.bytes()?, refusal)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(answer, received) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}
