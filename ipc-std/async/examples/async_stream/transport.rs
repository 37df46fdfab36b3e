//! Tokio as a transport: anything that is `AsyncRead + AsyncWrite`. Here it is the socket of a runtime.
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use std::path::PathBuf;

use ipc_async::{AsyncConnector, AsyncTransport, BoxedFuture, Step};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

pub(crate) struct Tokio(pub(crate) PathBuf);

impl AsyncTransport for Tokio {
    type Stream = UnixStream;
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, limit: Duration) -> Self::Sleep {
        tokio::time::sleep(limit)
    }
    fn poll_transfer(
        stream: &mut UnixStream,
        cx: &mut Context<'_>,
        step: Step<'_>,
    ) -> Poll<io::Result<usize>> {
        match step {
            Step::Send(bytes) => Pin::new(stream).poll_write(cx, bytes),
            Step::Receive(space) => {
                let mut space = ReadBuf::new(space);
                ready!(Pin::new(stream).poll_read(cx, &mut space))?;
                Poll::Ready(Ok(space.filled().len()))
            }
            Step::Done => Pin::new(stream).poll_flush(cx).map_ok(|()| 0),
        }
    }
}

impl AsyncConnector for Tokio {
    type Connecting = BoxedFuture<io::Result<UnixStream>>;

    fn connect(&self) -> Self::Connecting {
        Box::pin(UnixStream::connect(self.0.clone()))
    }
}
