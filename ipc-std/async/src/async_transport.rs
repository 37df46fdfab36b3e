//! `AsyncTransport`: the trait of asynchronous streams and their timer; and `drive`, the loop over such a stream.
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use ipc_proto::{Exchange, Step};
use ipc_std::{DriveError, drive_async, is_closed};

/// The streams of an asynchronous transport, and the timer of its executor.
///
/// Nothing here has to be [`Send`], so executors of one thread and browsers can implement the trait. What the crate
/// makes of a transport is `Send` if the types of the transport are.
///
/// ```
/// use core::{pin::Pin, task::{Context, Poll, ready}, time::Duration};
/// use ipc_async::{AsyncTransport, Step};
/// use std::io;
/// use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
/// use tokio::net::TcpStream;
///
/// struct Tcp;
///
/// impl AsyncTransport for Tcp {
///     type Stream = TcpStream;
///     type Sleep = tokio::time::Sleep;
///
///     fn sleep(&self, limit: Duration) -> Self::Sleep {
///         tokio::time::sleep(limit)
///     }
///     fn poll_transfer(
///         stream: &mut TcpStream,
///         context: &mut Context<'_>,
///         step: Step<'_>,
///     ) -> Poll<io::Result<usize>> {
///         match step {
///             Step::Send(bytes) => Pin::new(stream).poll_write(context, bytes),
///             Step::Receive(space) => {
///                 let mut space = ReadBuf::new(space);
///                 ready!(Pin::new(stream).poll_read(context, &mut space))?;
///                 Poll::Ready(Ok(space.filled().len()))
///             }
///             Step::Done => Pin::new(stream).poll_flush(context).map_ok(|()| 0),
///         }
///     }
/// }
/// # let _ = Tcp;
/// ```
pub trait AsyncTransport {
    /// The type of a connection. Dropping a value closes its connection.
    type Stream;

    /// The type of a wait.
    type Sleep: Future<Output = ()>;

    /// Waits for the time `limit`.
    ///
    /// A transport without a timer returns [`core::future::pending`]. Then nothing has a deadline, a busy runtime is
    /// not tried again, and a [monitor](crate::AsyncMonitor) does not notice by itself that a runtime has left.
    fn sleep(&self, limit: Duration) -> Self::Sleep;

    /// Returns the time since any moment, which is always the same. The default is the clock of the standard library,
    /// which panics on `wasm32-unknown-unknown`: in a browser return `performance.now()`.
    fn now() -> Duration {
        ipc_std::clock()
    }

    /// Polls the connection for one step, and returns the number of transferred bytes; 0 means that the peer closed the
    /// connection. The contract is that of [`poll_exchange`](ipc_proto::poll_exchange): with [`Step::Done`] it flushes,
    /// before bytes are received and at the end.
    fn poll_transfer(
        stream: &mut Self::Stream,
        context: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>>;
}

/// Runs an exchange until it is done: that of a server, or any other. The future can be dropped at any time, and the
/// exchange continued: see [`drive_async`].
///
/// ```
/// use ipc_async::{AsyncTransport, DriveError, drive};
/// use ipc_async::ipc_proto::{HResult, Message, Request, Serve, types::Status};
///
/// /// Serves one command on a connection that the program has accepted.
/// async fn serve<T: AsyncTransport>(stream: &mut T::Stream) -> Result<(), DriveError> {
///     let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; 64]);
///     let Ok(mut serve) = Serve::new(&mut receive, &mut send) else { return Ok(()) };
///     drive::<T>(&mut serve, stream).await?;
///     let (request, mut reply) = serve.finish();
///     let _ = match request {
///         Ok(Request::ResumeRuntime(resume)) => reply.answer(&resume, &Status::OK),
///         Ok(_) => reply.refuse(HResult::NOT_SUPPORTED),
///         Err(_) => Ok(()), // the reply refuses it already
///     };
///     drive::<T>(&mut reply, stream).await
/// }
/// ```
///
/// # Errors
/// If the transport or the peer fails.
pub async fn drive<T: AsyncTransport>(
    exchange: &mut impl Exchange,
    stream: &mut T::Stream,
) -> Result<(), DriveError> {
    drive_async(exchange, |context, step| T::poll_transfer(stream, context, step)).await
}

/// Flushes the connection, then polls it for bytes: the peer answers only to bytes that it has received.
pub(crate) fn poll_receive<T: AsyncTransport>(
    stream: &mut T::Stream,
    context: &mut Context<'_>,
    space: &mut [u8],
) -> Poll<io::Result<usize>> {
    match ready!(T::poll_transfer(stream, context, Step::Done)) {
        // A closed connection is still read, because the peer may have answered before it closed the connection.
        Err(e) if !is_closed(&e) => Poll::Ready(Err(e)),
        Ok(_) | Err(_) => T::poll_transfer(stream, context, Step::Receive(space)),
    }
}

/// Returns the result of `work`; `None` if the work is not done at the time `end`.
pub(crate) async fn within<T: AsyncTransport, R>(
    transport: &T,
    end: Duration,
    work: impl Future<Output = R>,
) -> Option<R> {
    let (mut work, mut timer) = (pin!(work), pin!(transport.sleep(end.saturating_sub(T::now()))));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => timer.as_mut().poll(context).map(|()| None),
    })
    .await
}
