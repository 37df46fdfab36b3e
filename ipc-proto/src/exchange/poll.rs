//! [`poll_exchange`], the loop of an asynchronous driver, and its error.
use core::fmt;
use core::task::{Context, Poll, ready};

use super::{Exchange, Step};
use crate::ProtocolError;

/// Runs an exchange to its end over a polled transport: the loop of an asynchronous driver, without executor or `std`.
///
/// `transfer` polls the transport for one step, and returns the number of transferred bytes: 0 if the peer has closed.
/// [`core::future::poll_fn`] makes a future of `poll_exchange`.
///
/// | step | the transport |
/// |---|---|
/// | [`Step::Send`] | takes some of the bytes; it can buffer them |
/// | [`Step::Receive`] | fills some of the space |
/// | [`Step::Done`] | flushes what it has buffered; the returned number is ignored |
///
/// `transfer` has a `Done` before bytes are received, because the peer answers only a request that has arrived, and at
/// the end. It can have several without a `Send` in between, which then do nothing. `drive_async` of `ipc-std` and the
/// transports of `ipc-async` have the same contract, so one function serves all three.
///
/// Bytes are transferred only during a call, and the exchange keeps its state. So a future that calls `poll_exchange`
/// can be dropped at any time, for example by a timer. A new future can continue the same exchange.
///
/// ```
/// use core::task::{Context, Poll, Waker};
/// use ipc_proto::{Answer, Call, ResumeRuntime, Step, poll_exchange, types::Status};
///
/// let mut incoming = &b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0"[..];
/// let mut has_arrived = false;
/// let mut buf = [0; 64];
/// let mut call = Call::new(&ResumeRuntime {}, &mut buf)?;
/// let mut poll = || {
///     let mut context = Context::from_waker(Waker::noop());
///     poll_exchange(&mut call, &mut context, |_, step| match step {
///         Step::Send(bytes) => Poll::Ready(Ok::<_, core::fmt::Error>(bytes.len())),
///         // A driver makes its interrupt wake `context.waker()`.
///         Step::Receive(_) if !core::mem::replace(&mut has_arrived, true) => Poll::Pending,
///         Step::Receive(space) => {
///             let n = space.len();
///             space.copy_from_slice(&incoming[..n]);
///             incoming = &incoming[n..];
///             Poll::Ready(Ok(n))
///         }
///         Step::Done => Poll::Ready(Ok(0)),
///     })
/// };
/// assert_eq!((poll(), poll()), (Poll::Pending, Poll::Ready(Ok(()))));
/// assert_eq!(call.finish()?, Answer::Ok(Status::OK));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the transport or the peer fails. After [`ProtocolError::BufferTooSmall`] the caller can suspend the exchange,
/// resume it with a larger buffer, and poll it again.
pub fn poll_exchange<E>(
    exchange: &mut (impl Exchange + ?Sized),
    context: &mut Context<'_>,
    mut transfer: impl FnMut(&mut Context<'_>, Step<'_>) -> Poll<Result<usize, E>>,
) -> Poll<Result<(), PollError<E>>> {
    let mut is_flushed = false;
    loop {
        let step = exchange.step();
        let is_receive = matches!(step, Step::Receive(_));
        if is_receive && !is_flushed {
            if let Err(error) = ready!(transfer(context, Step::Done)) {
                return Poll::Ready(Err(PollError::Send(error)));
            }
        }
        is_flushed = is_receive;
        let failed = if is_receive { PollError::Receive } else { PollError::Send };
        let is_done = matches!(step, Step::Done);
        let n = match ready!(transfer(context, step)) {
            Ok(n) => n,
            Err(error) => return Poll::Ready(Err(failed(error))),
        };
        if is_done {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = exchange.advance(n) {
            return Poll::Ready(Err(PollError::Protocol(error)));
        }
    }
}

/// The reason why [`poll_exchange`] did not finish an exchange. `E` is the error of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollError<E> {
    /// Sending or flushing failed.
    Send(E),
    /// Receiving failed.
    Receive(E),
    /// The peer violated the protocol or closed the connection.
    Protocol(ProtocolError),
}

impl<E: fmt::Display> fmt::Display for PollError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(error) => write!(f, "sending failed: {error}"),
            Self::Receive(error) => write!(f, "receiving failed: {error}"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for PollError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Send(error) | Self::Receive(error) => Some(error),
            Self::Protocol(error) => error.source(),
        }
    }
}
