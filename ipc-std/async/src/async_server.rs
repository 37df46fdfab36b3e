//! `AsyncServer`: the role of a runtime at a port of a monitor.
use core::future::poll_fn;
use core::time::Duration;

use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep};
use ipc_proto::{Advertise, EncodeError, Serve, Step};
use ipc_std::transferred;

use crate::async_connector::AsyncConnector;
use crate::async_transport::{drive, within};

/// A runtime's role at the port of a monitor: it connects, sends its advertise frame, receives a command, and connects
/// again. It is a [`ConnectPort`] over an [`AsyncConnector`].
///
/// A program with several ports has a server for each. A port at which the program itself listens needs no server:
/// [`drive`] a [`Serve`] on each connection that it accepts.
///
/// ```
/// use ipc_async::{AsyncConnector, AsyncServer, drive};
/// use ipc_async::ipc_proto::plan::{Flavour, Runtime};
/// use ipc_async::ipc_proto::{Advertise, Guid, HResult, Message, Request, types::Status};
///
/// async fn serve<A: AsyncConnector>(monitor: A) -> Result<(), Box<dyn core::error::Error>> {
///     let advertise = Advertise { runtime_cookie: Guid(*b"drawn at startup"), process_id: 42, future: 0 };
///     let mut server = AsyncServer::new(monitor, &advertise);
///     let kind = Runtime { version: Some(10), flavour: Some(Flavour::Mono), ..Runtime::default() };
///     let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; Message::MAX_LEN]);
///     loop {
///         let (mut stream, serve) = server.accept(&mut receive, &mut send).await?;
///         let (request, mut reply) = serve.finish_for(&kind);
///         match request {
///             Ok(Request::ResumeRuntime(resume)) => reply.answer(&resume, &Status::OK)?,
///             Ok(_) => reply.refuse(HResult::NOT_SUPPORTED)?,
///             Err(_) => {} // the reply refuses it already
///         }
///         let _ = drive::<A>(&mut reply, &mut stream).await; // a trace would keep its stream
///     }
/// }
/// ```
#[derive(Debug)]
pub struct AsyncServer<A> {
    monitor: A,
    port: ConnectPort,
}

impl<A: AsyncConnector> AsyncServer<A> {
    /// Creates a server that connects by `monitor`, and identifies itself with this frame. Nothing is connected yet.
    pub fn new(monitor: A, advertise: &Advertise) -> Self {
        Self { monitor, port: ConnectPort::new(advertise) }
    }

    /// Connects until a command has arrived; returns its connection, and the command. After a failure the server tries
    /// again after 10, 12, 15 … 571, 500, 500 ms. There is no other error, and no deadline.
    ///
    /// A call means that the last command is answered, or that its stream has started. If the future is dropped, its
    /// connection closes.
    ///
    /// # Errors
    /// As [`Serve::new`], for buffers that are too small.
    pub async fn accept<'b>(
        &mut self,
        receive: &'b mut [u8],
        send: &'b mut [u8],
    ) -> Result<(A::Stream, Serve<'b>), EncodeError> {
        let mut stream = None;
        self.port.advance(ConnectEvent::Answered);
        let (stream, serve) = loop {
            let event = match (self.port.step(), &mut stream) {
                (ConnectStep::Wait { milliseconds }, _) => {
                    stream = None;
                    self.monitor.sleep(Duration::from_millis(milliseconds.into())).await;
                    ConnectEvent::Waited
                }
                (ConnectStep::Send(frame), Some(stream)) => {
                    let limit = Duration::from_millis(Advertise::SEND_DEADLINE_MS.into());
                    let end = A::now().saturating_add(limit);
                    let send = poll_fn(|context| A::poll_transfer(stream, context, Step::Send(frame)));
                    match within(&self.monitor, end, send).await.map(transferred) {
                        Some(Ok(Some(n))) => ConnectEvent::Sent(n),
                        Some(Ok(None)) => continue, // interrupted
                        Some(Err(_)) | None => ConnectEvent::Failed,
                    }
                }
                (ConnectStep::Serve, Some(_)) => {
                    let Some(mut received) = stream.take() else { continue };
                    let mut serve = Serve::new(receive, send)?;
                    // After a failure the request counts as cut off, and the answer fails.
                    let _ = drive::<A>(&mut serve, &mut received).await;
                    if !serve.is_untouched() {
                        break (received, serve.suspend());
                    }
                    ConnectEvent::HungUp
                }
                (ConnectStep::Connect, _) => {
                    stream = self.monitor.connect().await.ok();
                    if stream.is_some() { ConnectEvent::Connected } else { ConnectEvent::Failed }
                }
                // A future was dropped, and its connection with it.
                (ConnectStep::Send(_), None) => ConnectEvent::Failed,
                (ConnectStep::Serve, None) => ConnectEvent::HungUp,
            };
            self.port.advance(event);
        };
        Ok((stream, serve.resume(receive, send)?))
    }
}
