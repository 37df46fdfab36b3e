//! The loops that run an exchange of the core over a stream, blocking and asynchronous.
use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use std::io::{self, ErrorKind, Read, Write};

use ipc_proto::{Exchange, PollError, ProtocolError, Step, poll_exchange};

/// The reason why [`drive`] or [`drive_async`] did not finish an exchange.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Writing to the stream failed.
    #[error("sending failed: {0}")]
    Send(#[source] io::Error),
    /// Reading from the stream failed.
    #[error("receiving failed: {0}")]
    Receive(#[source] io::Error),
    /// The peer violated the protocol or closed the connection.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// Runs `exchange` over `stream` until it is done.
///
/// A reset is 0 bytes: a read or write that fails because the peer has closed the connection ([`is_closed`]) counts as
/// the end of the stream. Bytes that the peer sent before are still read, and the exchange decides whether they
/// suffice. A loop of your own does the same with [`transferred`].
///
/// # Errors
/// If the stream or the peer fails. After [`ProtocolError::BufferTooSmall`] the caller can suspend the exchange, resume
/// it with a larger buffer, and drive it again.
///
/// ```
/// use ipc_std::ipc_proto::{Answer, Call, ResumeRuntime, types::Status};
/// use std::io::{self, Cursor, Read, Write};
///
/// struct Scripted(Cursor<Vec<u8>>);
/// # impl Read for Scripted { fn read(&mut self, b: &mut [u8]) -> io::Result<usize> { self.0.read(b) } }
/// # impl Write for Scripted {
/// #     fn write(&mut self, b: &[u8]) -> io::Result<usize> { Ok(b.len()) }
/// #     fn flush(&mut self) -> io::Result<()> { Ok(()) }
/// # }
/// let mut stream = Scripted(Cursor::new(b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0".to_vec()));
/// let mut buf = [0; 64];
/// let mut call = Call::new(&ResumeRuntime {}, &mut buf)?;
/// ipc_std::drive(&mut call, &mut stream)?;
/// assert_eq!(call.finish()?, Answer::Ok(Status::OK));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn drive(exchange: &mut impl Exchange, stream: &mut (impl Read + Write)) -> Result<(), DriveError> {
    let mut is_flushed = true;
    loop {
        let (result, failed): (_, fn(io::Error) -> DriveError) = match exchange.step() {
            Step::Send(bytes) => {
                is_flushed = false;
                (stream.write(bytes), DriveError::Send)
            }
            // Flush before the first receive: the peer answers only to bytes that it has received.
            Step::Receive(_) if !is_flushed => match stream.flush() {
                Err(e) if !is_closed(&e) => return Err(DriveError::Send(e)),
                Ok(()) | Err(_) => {
                    is_flushed = true;
                    continue;
                }
            },
            Step::Receive(space) => (stream.read(space), DriveError::Receive),
            Step::Done => return stream.flush().map_err(DriveError::Send),
        };
        if let Some(n) = transferred(result).map_err(failed)? {
            exchange.advance(n)?;
        }
    }
}

/// Runs `exchange` until it is done, over any transport that is polled: of tokio, of `futures-io`, or your own. It is
/// [`poll_exchange`] for transports with `std::io` errors: an interrupted operation is repeated.
///
/// `transfer` polls the transport for one step, and returns the number of transferred bytes. Its contract is that of
/// [`poll_exchange`]: with [`Step::Done`] it flushes, before bytes are received and at the end. As with [`drive`], a
/// transport that was reset counts as closed. The future is [`Send`] if the exchange and `transfer` are.
///
/// `transfer` is a poll function, not an async closure, for two reasons. For the compiler, the future of an async
/// closure with a borrowing parameter is not `Send`, so it could not be spawned. And that future could be dropped in
/// the middle of a transfer.
///
/// # Deadlines
/// This function has no timer. Limit its future with the timer of your executor, as in the example. After a timeout,
/// close the transport or drive the same exchange again, but do not start another exchange on it: the runtime can still
/// answer the first one. A runtime that has received a whole command carries it out, even if nothing reads its answer.
///
/// # Cancellation
/// The future can be dropped at any time. The exchange keeps its state, and nothing is transferred outside of a poll.
/// So a second call with the same exchange and transport continues where the dropped future stopped.
///
/// # Errors
/// As [`drive`].
///
/// # Example
/// A client over tokio. For a stream of `futures-io`, `poll_read(context, space)` is the whole step.
///
#[cfg_attr(unix, doc = "```")]
#[cfg_attr(not(unix), doc = "```ignore")]
/// use ipc_std::ipc_proto::{Answer, Call, Exchange, GetProcessInfo2, Step};
/// use std::{path::Path, pin::Pin, task::{Poll, ready}, time::Duration};
/// use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
///
/// async fn drive(
///     exchange: &mut impl Exchange,
///     mut stream: impl AsyncRead + AsyncWrite + Unpin,
/// ) -> Result<(), ipc_std::DriveError> {
///     ipc_std::drive_async(exchange, |context, step| match step {
///         Step::Send(bytes) => Pin::new(&mut stream).poll_write(context, bytes),
///         Step::Receive(space) => {
///             let mut space = ReadBuf::new(space);
///             ready!(Pin::new(&mut stream).poll_read(context, &mut space))?;
///             Poll::Ready(Ok(space.filled().len()))
///         }
///         Step::Done => Pin::new(&mut stream).poll_flush(context).map_ok(|()| 0),
///     })
///     .await
/// }
///
/// async fn command_line(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
///     let mut stream = tokio::net::UnixStream::connect(path).await?;
///     let mut buf = [0; 4096];
///     let mut call = Call::new(&GetProcessInfo2 {}, &mut buf)?;
///     drive(&mut call, &mut stream).await?;
///     match call.finish()? {
///         Answer::Ok(info) => Ok(info.command_line.to_string()),
///         Answer::Refused(error) => Err(error.hresult.to_string().into()),
///     }
/// }
/// # let fake = ipc_testkit::FakeRuntime::start(ipc_testkit::Profile::net10())?;
/// # let path = fake.path();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
///
/// let command_line = tokio::time::timeout(Duration::from_secs(10), command_line(path)).await??;
/// # assert!(command_line.contains("Fake"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn drive_async(
    exchange: &mut impl Exchange,
    mut transfer: impl FnMut(&mut Context<'_>, Step<'_>) -> Poll<io::Result<usize>>,
) -> Result<(), DriveError> {
    let mut unflushed = None;
    let mut transfer = |context: &mut Context<'_>, mut step: Step<'_>| {
        unflushed = None;
        loop {
            match (ready!(transfer(context, reborrow(&mut step))), &step) {
                // A closed connection is still read, because the peer may have answered before it closed the
                // connection.
                (Err(e), Step::Done) if is_closed(&e) => unflushed = Some(e),
                (result, _) => match transferred(result)? {
                    Some(n) => return Poll::Ready(Ok(n)),
                    None => continue,
                },
            }
            return Poll::Ready(Ok(0));
        }
    };
    poll_fn(|context| poll_exchange(exchange, context, &mut transfer)).await?;
    // The last step was the flush at the end.
    unflushed.map_or(Ok(()), |e| Err(DriveError::Send(e)))
}

/// Returns the same step with a shorter borrow, so that an interrupted operation can be repeated.
const fn reborrow<'s>(step: &'s mut Step<'_>) -> Step<'s> {
    match step {
        Step::Send(bytes) => Step::Send(bytes),
        Step::Receive(space) => Step::Receive(space),
        Step::Done => Step::Done,
    }
}

impl From<PollError<io::Error>> for DriveError {
    fn from(error: PollError<io::Error>) -> Self {
        match error {
            PollError::Send(error) => Self::Send(error),
            PollError::Receive(error) => Self::Receive(error),
            PollError::Protocol(error) => Self::Protocol(error),
        }
    }
}

/// Returns the number of transferred bytes, 0 if the peer has closed. `None` if the operation was interrupted.
///
/// # Errors
/// Any other error of the operation.
pub fn transferred(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if e.kind() == ErrorKind::Interrupted => Ok(None),
        Err(e) if is_closed(&e) => Ok(Some(0)),
        Err(e) => Err(e),
    }
}

/// Returns `n`, the number of bytes that a transport reports for `lent` bytes.
///
/// # Errors
/// If the transport reports more bytes than it was lent: it is unknown then which bytes were transferred.
pub(crate) fn within(n: usize, lent: usize) -> io::Result<usize> {
    match n > lent {
        true => Err(io::Error::other(ProtocolError::Overrun { advanced: n, lent })),
        false => Ok(n),
    }
}

/// Returns whether the error means that the transport is not ready, or that a timeout has elapsed. A stream of the
/// standard library reports an elapsed timeout as `WouldBlock`.
#[must_use]
pub fn is_not_ready(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns whether the error means that the peer has closed the connection. A transport with frames reports an end in
/// the middle of a frame as `UnexpectedEof`.
#[must_use]
pub fn is_closed(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof
    )
}
