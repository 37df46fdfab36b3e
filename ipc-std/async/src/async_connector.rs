//! `AsyncConnector`: the trait of an asynchronous transport.
use core::future::Future;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use ipc_proto::Step;
use ipc_std::is_closed;

/// An asynchronous transport: it opens connections, transfers bytes and waits, on the caller's executor.
///
/// ```
/// use core::{pin::Pin, task::{Context, Poll, ready}, time::Duration};
/// use ipc_proto::Step;
/// use ipc_async::AsyncConnector;
/// use std::io;
/// use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
/// use tokio::net::TcpStream;
///
/// struct Router(&'static str);
///
/// impl AsyncConnector for Router {
///     type Stream = TcpStream;
///
///     async fn connect(&self) -> io::Result<TcpStream> {
///         TcpStream::connect(self.0).await
///     }
///     async fn sleep(&self, limit: Duration) {
///         tokio::time::sleep(limit).await;
///     }
///     fn poll_transfer(
///         mut stream: &mut TcpStream,
///         context: &mut Context<'_>,
///         step: Step<'_>,
///     ) -> Poll<io::Result<usize>> {
///         match step {
///             Step::Send(bytes) => Pin::new(&mut stream).poll_write(context, bytes),
///             Step::Receive(space) => {
///                 let mut space = ReadBuf::new(space);
///                 ready!(Pin::new(&mut stream).poll_read(context, &mut space))?;
///                 Poll::Ready(Ok(space.filled().len()))
///             }
///             Step::Done => Pin::new(&mut stream).poll_flush(context).map_ok(|()| 0),
///         }
///     }
/// }
/// let client = ipc_async::AsyncClient::new(Router("127.0.0.1:9000"));
/// # let _ = client;
/// ```
pub trait AsyncConnector: Send + Sync + 'static {
    /// The type of a connection. Dropping a value closes its connection.
    type Stream: Send;

    /// Opens a connection. The future is dropped at the deadline of its caller.
    ///
    /// An error of the kind `WouldBlock` or `TimedOut` means that the runtime is busy: the next attempt follows after
    /// 1 to 50 ms.
    fn connect(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Waits for the time `limit`.
    fn sleep(&self, limit: Duration) -> impl Future<Output = ()> + Send;

    /// Polls the connection for one step, and returns the number of transferred bytes; 0 means that the peer closed the
    /// connection. [`Step::Done`] flushes the bytes that the transport has buffered, before an answer is received; the
    /// returned number is ignored then.
    fn poll_transfer(
        stream: &mut Self::Stream,
        context: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>>;

    /// Returns the name of the runtime in errors.
    fn peer(&self) -> &str {
        "the runtime"
    }
}

/// Flushes the connection, then polls it for bytes: the peer answers only to bytes that it has received.
pub(crate) fn poll_receive<A: AsyncConnector>(
    stream: &mut A::Stream,
    context: &mut Context<'_>,
    space: &mut [u8],
) -> Poll<io::Result<usize>> {
    match ready!(A::poll_transfer(stream, context, Step::Done)) {
        // A closed connection is still read, because the peer may have answered before it closed the connection.
        Err(e) if !is_closed(&e) => Poll::Ready(Err(e)),
        Ok(_) | Err(_) => A::poll_transfer(stream, context, Step::Receive(space)),
    }
}
