//! Exchanges: the conversation on one connection. All kinds have one type and are driven by the same two functions.
use core::marker::PhantomData;

use ipc_proto::{Exchange as ProtoExchange, ProtocolError, Step as ProtoStep};

use crate::memory;
use crate::status::{Failure, Outcome, Status, report};

/// Nothing: the exchange is over, or waits for the caller.
pub const DIPC_STEP_DONE: u32 = 0;
/// Write some of the bytes. Write all of them in one piece if possible: .NET Core 3.1 refuses a message in two pieces.
pub const DIPC_STEP_SEND: u32 = 1;
/// Read some bytes into the space.
pub const DIPC_STEP_RECEIVE: u32 = 2;

/// The next action of an exchange.
#[repr(C)]
pub struct Step {
    /// One of `DIPC_STEP_*`.
    pub kind: u32,
    /// The bytes to write, or the space to fill, in the buffer of the exchange; in that of `dipc_advertise_init`, in the
    /// exchange.
    pub data: *mut u8,
    /// The number of bytes.
    pub len: usize,
}

impl From<ProtoStep<'_>> for Step {
    fn from(step: ProtoStep<'_>) -> Self {
        match step {
            ProtoStep::Send(bytes) => {
                Self { kind: DIPC_STEP_SEND, data: bytes.as_ptr().cast_mut(), len: bytes.len() }
            }
            ProtoStep::Receive(space) => {
                Self { kind: DIPC_STEP_RECEIVE, data: space.as_mut_ptr(), len: space.len() }
            }
            ProtoStep::Done => Self { kind: DIPC_STEP_DONE, data: core::ptr::null_mut(), len: 0 },
        }
    }
}

/// An exchange of any kind, in memory of the caller. It can be moved and copied with `memcpy`, as long as only one copy
/// is used further.
///
/// Set it to zeros or initialise it before another function receives it: functions then return
/// `DIPC_STATUS_WRONG_KIND` for one that is not initialised, or of another kind.
#[repr(C)]
pub struct Exchange {
    /// The state.
    pub opaque: [u64; 14],
}

/// What an exchange stores.
pub(crate) trait Stored: Sized {
    /// The number of this kind.
    const NUMBER: u8;
    const FUNCTIONS: &'static Functions;
}

impl<K: Kind> Stored for K {
    const NUMBER: u8 = <K as Kind>::NUMBER;
    const FUNCTIONS: &'static Functions = Of::<K>::FUNCTIONS;
}

/// A kind of exchange: the state without the buffer.
pub(crate) trait Kind: Copy {
    /// The number of this kind.
    const NUMBER: u8;
    type Running<'b>: ProtoExchange;

    fn resume(self, buf: &mut [u8]) -> Result<Self::Running<'_>, ProtocolError>;
    fn suspend(self, running: Self::Running<'_>) -> Self;
}

/// All tags: this number and, in the lowest byte, the kind.
const TAGS: u64 = 0x6470_6363_5e1b_a900;

/// The content of an [`Exchange`].
#[repr(C)]
pub(crate) struct Placed<K> {
    head: Head,
    state: K,
}

/// The fields with which all kinds begin.
#[repr(C)]
struct Head {
    tag: u64,
    functions: &'static Functions,
    buf: *mut u8,
    size: usize,
}

/// The functions of a kind.
pub(crate) struct Functions {
    pub(crate) step: unsafe fn(*mut Exchange) -> Result<Step, Failure>,
    pub(crate) advance: unsafe fn(*mut Exchange, usize) -> Result<(), Failure>,
    pub(crate) fits: unsafe fn(*mut Exchange) -> Result<(), Failure>,
}

/// The functions of the kind `K`.
struct Of<K>(PhantomData<K>);

impl<K: Kind> Of<K> {
    const FUNCTIONS: &'static Functions =
        &Functions { step: Self::step, advance: Self::advance, fits: Self::fits };

    unsafe fn step(exchange: *mut Exchange) -> Result<Step, Failure> {
        // SAFETY: the caller vouches for the exchange.
        let placed = unsafe { Placed::<K>::of(exchange) }?;
        let step: Step = placed.run(|running| running.step().into())?;
        Ok(Step { data: placed.in_buffer(step.data), ..step })
    }

    unsafe fn advance(exchange: *mut Exchange, n: usize) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the exchange.
        Ok(unsafe { Placed::<K>::of(exchange) }?.run(|running| running.advance(n))??)
    }

    unsafe fn fits(exchange: *mut Exchange) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the exchange.
        unsafe { Placed::<K>::of(exchange) }?.run(|_| ())
    }
}

impl<K: Stored> Placed<K> {
    const TAG: u64 = TAGS | K::NUMBER as u64;
    const FITS: () = assert!(
        size_of::<Self>() <= size_of::<Exchange>() && align_of::<Self>() <= align_of::<Exchange>(),
        "the size of `Exchange` is too small"
    );

    /// Initialises an exchange.
    ///
    /// # Safety
    /// `exchange` points to space for an exchange; `buf` points to `size` bytes, which were checked.
    pub(crate) unsafe fn place(
        exchange: *mut Exchange,
        state: K,
        buf: *mut u8,
        size: usize,
    ) -> Result<(), Failure> {
        const { Self::FITS };
        memory::check(exchange, 1)?;
        let head = Head { tag: Self::TAG, functions: K::FUNCTIONS, buf, size };
        let placed = Self { head, state };
        // SAFETY: it fits, and the caller vouches for the pointer.
        unsafe { memory::store(exchange.cast(), placed) }
    }

    /// Returns the content of an exchange of this kind.
    ///
    /// # Safety
    /// `exchange` points to an exchange that nothing else uses during `'a`.
    pub(crate) unsafe fn of<'a>(exchange: *mut Exchange) -> Result<&'a mut Self, Failure> {
        // SAFETY: the caller vouches for the exchange.
        if unsafe { tag(exchange) }? != Self::TAG {
            return Err(Status::WrongKind.into());
        }
        // SAFETY: `place` has stored this type here, as the tag shows.
        Ok(unsafe { &mut *exchange.cast() })
    }

    /// Returns the state in the memory of the exchange.
    pub(crate) const fn state_mut(&mut self) -> &mut K {
        &mut self.state
    }
}

impl<K: Kind> Placed<K> {
    /// Continues the exchange in its buffer.
    pub(crate) fn run<R>(&mut self, with: impl FnOnce(&mut K::Running<'_>) -> R) -> Result<R, Failure> {
        // SAFETY: the buffer was checked; until it is replaced or the exchange ends, the caller lends it.
        let buf = unsafe { memory::slice_mut(self.head.buf, self.head.size) }?;
        let state = self.state;
        let mut running = state.resume(buf)?;
        let result = with(&mut running);
        self.state = state.suspend(running);
        Ok(result)
    }

    /// Converts a pointer into the buffer that comes from `run` to one that the caller can use: the reference that it was
    /// derived from has ended with `run`.
    pub(crate) fn in_buffer<T>(&self, pointer: *const T) -> *mut u8 {
        self.head.buf.with_addr(pointer.addr())
    }

    /// Returns the state without the buffer.
    pub(crate) const fn state(&self) -> K {
        self.state
    }

    /// Returns the whole buffer.
    pub(crate) fn bytes(&self) -> Result<&[u8], Failure> {
        // SAFETY: as in `run`.
        unsafe { memory::slice(self.head.buf, self.head.size) }
    }

    /// Ends the exchange, as far as Rust is concerned: its buffer is lent for as long as the caller needs the result.
    pub(crate) fn finish<'b>(&self) -> Result<K::Running<'b>, Failure> {
        // SAFETY: as in `run`; the caller does not use the exchange as long as it uses the result.
        let buf: &'b mut [u8] = unsafe { memory::slice_mut(self.head.buf, self.head.size) }?;
        Ok(self.state.resume(buf)?)
    }
}

/// Returns the tag of an exchange.
///
/// # Safety
/// `exchange` points to an exchange.
unsafe fn tag(exchange: *mut Exchange) -> Result<u64, Failure> {
    memory::check(exchange, 1)?;
    // SAFETY: the pointer is checked; the caller vouches for the rest. Every kind begins with its tag.
    Ok(unsafe { exchange.cast::<u64>().read() })
}

/// Returns what the exchanges of all kinds begin with.
///
/// # Safety
/// `exchange` points to an exchange that nothing else uses during `'a`.
unsafe fn head<'a>(exchange: *mut Exchange) -> Result<&'a mut Head, Failure> {
    // SAFETY: the caller vouches for the exchange.
    if unsafe { tag(exchange) }? & !0xff != TAGS {
        return Err(Status::WrongKind.into());
    }
    // SAFETY: `place` has stored a head here, as the tag shows.
    Ok(unsafe { &mut *exchange.cast() })
}

/// Stores the next action of an exchange in `step`. Without `dipc_exchange_advance` in between, it stays the same.
///
/// Returns `DIPC_STATUS_BUFFER_TOO_SMALL` while the exchange needs a larger buffer: see `dipc_exchange_set_buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_exchange_step(
    exchange: *mut Exchange,
    step: *mut Step,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { head(exchange) }.map(|head| head.functions.step).and_then(|next| -> Outcome {
        // SAFETY: the caller vouches for the pointers.
        let next = unsafe { next(exchange) }?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { memory::store(step, next) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Reports how many of the bytes of the last step were written or filled; 0 means that the peer closed the connection. A
/// connection that was reset counts as closed.
///
/// Returns an error if the received bytes are not a message, or the peer closed too early; and `DIPC_STATUS_OVERRUN` if `n`
/// is larger than the `len` of the step. Errors are final: the next step is `DIPC_STEP_DONE`. After `DIPC_STATUS_BUFFER_TOO_SMALL` the exchange can continue in a larger buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_exchange_advance(
    exchange: *mut Exchange,
    n: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome =
        unsafe { head(exchange) }.map(|head| head.functions.advance).and_then(|advance| -> Outcome {
            // SAFETY: the caller vouches for the pointers.
            unsafe { advance(exchange, n) }.map(|()| 0)
        });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Replaces the buffer of an exchange. `buf` must begin with the bytes of the old buffer, for example because `realloc`
/// returned it. Steps and texts from before are no longer valid.
///
/// Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if `buf` is still too small; the exchange then has its old buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_exchange_set_buffer(
    exchange: *mut Exchange,
    buf: *mut u8,
    size: usize,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { head(exchange) }.and_then(|head| -> Outcome {
        memory::check(buf, size)?;
        let old = (head.buf, head.size);
        let fits = head.functions.fits;
        (head.buf, head.size) = (buf, size);
        // SAFETY: the caller vouches for the pointers.
        let fits = unsafe { fits(exchange) };
        if fits.is_err() {
            // SAFETY: the caller vouches for the pointers.
            let head = unsafe { self::head(exchange) }?;
            (head.buf, head.size) = old;
        }
        fits.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// Returns the size of a `dipc_exchange` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_exchange_size() -> usize {
    size_of::<Exchange>()
}
