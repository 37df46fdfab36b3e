//! `AsyncConnector`: the trait of an asynchronous transport that opens connections.
use core::future::Future;
use core::pin::Pin;
use std::io;

use ipc_std::Phase;

use crate::async_transport::AsyncTransport;

/// A future in a box, as the type [`Connecting`](AsyncConnector::Connecting) of a transport that can move to another
/// thread. Without `Send`, it is the type of a transport that cannot.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An asynchronous transport that opens connections to one runtime, one for each command.
///
/// ```
/// use core::task::{Context, Poll};
/// use core::time::Duration;
/// use ipc_async::{AsyncClient, AsyncConnector, AsyncTransport, BoxedFuture, Step};
/// use std::io;
/// use tokio::net::TcpStream;
///
/// struct Router(&'static str);
///
/// impl AsyncConnector for Router {
///     type Connecting = BoxedFuture<io::Result<TcpStream>>;
///
///     fn connect(&self) -> Self::Connecting {
///         Box::pin(TcpStream::connect(self.0))
///     }
/// }
/// # impl AsyncTransport for Router {
/// #     type Stream = TcpStream;
/// #     type Sleep = tokio::time::Sleep;
/// #     fn sleep(&self, limit: Duration) -> Self::Sleep { tokio::time::sleep(limit) }
/// #     fn poll_transfer(_: &mut TcpStream, _: &mut Context<'_>, _: Step<'_>) -> Poll<io::Result<usize>> {
/// #         Poll::Ready(Ok(0))
/// #     }
/// # }
/// // Router also implements AsyncTransport.
/// let client = AsyncClient::new(Router("127.0.0.1:9000"));
/// # let _ = client;
/// ```
pub trait AsyncConnector: AsyncTransport {
    /// The type of an attempt to connect. It does not borrow the connector, because a session stores it.
    type Connecting: Future<Output = io::Result<Self::Stream>>;

    /// Opens a connection. The future is dropped at the deadline of its caller.
    ///
    /// An error of the kind `WouldBlock` or `TimedOut` means that the runtime is busy: the next attempt follows after
    /// 1 to 50 ms. An [`Error`](crate::Error) inside the [`io::Error`] is returned to the caller as it is.
    fn connect(&self) -> Self::Connecting;

    /// Returns the name of the runtime in errors.
    fn peer(&self) -> &str {
        "the runtime"
    }

    /// Returns the phase in which [`connect`](Self::connect) waits, for errors.
    fn phase(&self) -> Phase {
        Phase::Connecting
    }
}
