//! `AsyncTraceSession`: a tracing session of the asynchronous client.
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use ipc_proto::plan::LostFeatures;
use ipc_proto::{Answer, Code, ProtocolError, SessionEnd, Step, StopEvent, StopStep};
use ipc_std::{CallContext, Error, Phase, TimedSession, is_not_ready, is_shortage, transferred};

use crate::async_connector::AsyncConnector;
use crate::async_transport::poll_receive;

/// A tracing session over an [`AsyncConnector`]: a [`Session`](ipc_proto::Session) and its two connections.
///
/// [`read`](Self::read) returns the stream, NetTrace bytes from the first to the last. After a call of
/// [`stop`](Self::stop), `read` also drives the Stop. All state belongs to the session and not to the future of `read`,
/// even a connection that is being opened. So a `read` can be dropped at any time and repeated, as `select!` does.
///
/// Dropping the session cancels it: both connections close, and the runtime ends the session the next time that it has
/// something to send.
///
/// ```
/// use ipc_async::nettrace::{AssemblerStep, EventAssembler, EventOrder, ReadOptions};
/// use ipc_async::{AsyncConnector, AsyncTraceSession};
///
/// /// Returns the number of events until the end of the session, which is stopped after the first 100.
/// async fn count<A: AsyncConnector>(session: &mut AsyncTraceSession<A>) -> std::io::Result<u64> {
///     let (mut trace, mut events) = (EventAssembler::new(EventOrder::Stream, ReadOptions::default()), 0);
///     loop {
///         match trace.step() {
///             AssemblerStep::More => {
///                 let n = session.read(trace.space()).await?;
///                 trace.advance(n);
///             }
///             AssemblerStep::Event(_) => {
///                 events += 1;
///                 if events == 100 {
///                     session.stop();
///                 }
///             }
///             AssemblerStep::End(_) => return Ok(events),
///         }
///     }
/// }
/// ```
pub struct AsyncTraceSession<A: AsyncConnector> {
    connector: Arc<A>,
    stream: A::Stream,
    state: TimedSession,
    stop: Option<A::Stream>,
    connecting: Option<Pin<Box<A::Connecting>>>,
    /// The next time at which the session has work, and the wait for this time.
    timer: Option<(Duration, Pin<Box<A::Sleep>>)>,
    /// The longest silence of the stream, and since when it is silent.
    silence: Duration,
    silent_since: Duration,
}

impl<A: AsyncConnector> AsyncTraceSession<A> {
    pub(crate) fn new(connector: Arc<A>, stream: A::Stream, state: TimedSession, silence: Duration) -> Self {
        let silent_since = A::now();
        Self { connector, stream, state, stop: None, connecting: None, timer: None, silence, silent_since }
    }

    /// Returns the session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.state.session().session_id()
    }

    /// Returns the command that the runtime accepted.
    #[must_use]
    pub const fn command(&self) -> Code {
        self.state.command()
    }

    /// Returns the features of the configuration that the [accepted command](Self::command) does not carry.
    #[must_use]
    pub const fn lost_features(&self) -> LostFeatures {
        self.state.lost_features()
    }

    /// Returns the number of stream bytes read.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.state.session().received()
    }

    /// Requests the Stop. The next reads send the Stop and return the rest of the stream, within
    /// [`Timeouts::stop`](crate::Timeouts::stop). A second call does nothing.
    pub fn stop(&mut self) {
        self.state.request_stop();
    }

    /// Returns how the session ended. `None` while the session lasts.
    #[must_use]
    pub const fn end(&self) -> Option<SessionEnd> {
        self.state.session().end()
    }

    /// Returns whether the stream was read to its end and has the end mark of its format.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.end(), Some(SessionEnd::Complete))
    }

    /// Reads some bytes of the stream; returns 0 at its end. The future can be dropped and the call repeated.
    ///
    /// # Errors
    /// An [`Error`](crate::Error) inside the [`io::Error`]. If the Stop failed, the Stop can be requested again. After
    /// its timeout the session has ended. After the timeout [`Timeouts::silence`](crate::Timeouts::silence), before a
    /// Stop, reading can continue.
    pub async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, buf)).await
    }

    /// Polls for bytes of the stream, and drives the Stop.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn poll_read(&mut self, context: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            self.state.tick();
            self.poll_stop(context)?;
            if let Poll::Ready(n) =
                self.state.end_of_reading(self.connector.peer(), self.connector.phase())?
            {
                return Poll::Ready(Ok(n));
            }
            if self.state.session().wants_stream() {
                if let Poll::Ready(read) = A::poll_transfer(&mut self.stream, context, Step::Receive(buf)) {
                    let n = match self.checked(read, buf.len()) {
                        Ok(None) => continue,
                        Ok(Some(n)) => n,
                        Err(e) => {
                            self.state.advance(&[]);
                            match self.end() {
                                Some(SessionEnd::CutOff) => return Poll::Ready(Err(e)),
                                // A transport that fails after the end mark of the trace has done its work.
                                _ => continue,
                            }
                        }
                    };
                    self.state.advance(buf.get(..n).unwrap_or_default());
                    self.silent_since = A::now();
                    match n {
                        0 => continue,
                        n => return Poll::Ready(Ok(n)),
                    }
                }
            }
            if self.poll_timer(context).is_pending() {
                return Poll::Pending;
            }
            self.check_silence()?;
        }
    }

    /// Returns the number of bytes that were read; `None` if the caller must repeat the read.
    fn checked(&self, read: io::Result<usize>, lent: usize) -> io::Result<Option<usize>> {
        let context = self.reading_context();
        match transferred(read) {
            Ok(Some(advanced)) if advanced > lent => {
                let overrun = ProtocolError::Overrun { advanced, lent };
                Err(io::Error::other(context.protocol(overrun, Phase::ReadingTrace)))
            }
            Err(e) => Err(io::Error::new(e.kind(), context.io(e, Phase::ReadingTrace))),
            checked => checked,
        }
    }

    /// Makes progress on the Stop connection, as far as possible without waiting.
    fn poll_stop(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        loop {
            let event = match (self.state.session_mut().stop_step(), &mut self.stop) {
                (StopStep::Connect, _) => {
                    let connector = &self.connector;
                    let connecting = self.connecting.get_or_insert_with(|| Box::pin(connector.connect()));
                    let Poll::Ready(connected) = connecting.as_mut().poll(context) else { return Ok(()) };
                    self.connecting = None;
                    match connected {
                        Ok(stream) => {
                            self.stop = Some(stream);
                            StopEvent::Connected
                        }
                        Err(e) if is_transient(&e) => StopEvent::Busy(self.state.now()),
                        Err(e) => return Err(self.fail_stop(e, self.connector.phase())),
                    }
                }
                (StopStep::Send(bytes), Some(stream)) => {
                    match A::poll_transfer(stream, context, Step::Send(bytes)).map(transferred) {
                        Poll::Pending => return Ok(()),
                        Poll::Ready(Ok(None)) => continue,
                        Poll::Ready(Ok(Some(n))) => StopEvent::Sent(n),
                        Poll::Ready(Err(e)) => return Err(self.fail_stop(e, Phase::Sending)),
                    }
                }
                (StopStep::Receive(space), Some(stream)) => {
                    match poll_receive::<A>(stream, context, space).map(transferred) {
                        Poll::Pending => return Ok(()),
                        Poll::Ready(Ok(None)) => continue,
                        // A read error counts as closed (0 bytes): no answer comes.
                        Poll::Ready(read) => StopEvent::Received(read.ok().flatten().unwrap_or(0)),
                    }
                }
                _ => return Ok(()),
            };
            let session = self.state.session_mut();
            session.stop_advance(event);
            if session.stop_failed() && session.wants_stream() {
                return Err(io::Error::other(match self.state.session().stop_answer() {
                    Some(Ok(Answer::Refused(error))) => self.context().refused(&error),
                    // The runtime accepted no connection in time.
                    _ => self.context().io(ErrorKind::TimedOut.into(), self.connector.phase()),
                }));
            }
        }
    }

    /// Ends the Stop, and returns the error of its connection.
    fn fail_stop(&mut self, source: io::Error, phase: Phase) -> io::Error {
        self.state.session_mut().stop_advance(StopEvent::Failed);
        io::Error::other(source.downcast().unwrap_or_else(|source| self.context().io(source, phase)))
    }

    fn context(&self) -> CallContext<'_> {
        self.state.stop_context(self.connector.peer())
    }

    /// Waits for the next time at which the session has work. Before the Stop, that is the end of the longest silence.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.state.due().unwrap_or_else(|| self.silent_since.saturating_add(self.silence));
        // An earlier timer stays: otherwise each byte of the stream would start another one.
        if self.timer.as_ref().is_none_or(|(at, _)| *at > due) {
            let limit = due.saturating_sub(A::now());
            self.timer = Some((due, Box::pin(self.connector.sleep(limit))));
        }
        let polled = self.timer.as_mut().map_or(Poll::Pending, |(_, timer)| timer.as_mut().poll(context));
        if polled.is_ready() {
            self.timer = None;
        }
        polled
    }

    fn check_silence(&mut self) -> io::Result<()> {
        let waited = A::now().saturating_sub(self.silent_since);
        if self.state.due().is_some() || waited < self.silence {
            return Ok(());
        }
        let error = self.reading_context().io(ErrorKind::TimedOut.into(), Phase::ReadingTrace);
        self.silent_since = A::now();
        Err(io::Error::new(ErrorKind::TimedOut, error))
    }

    fn reading_context(&self) -> CallContext<'_> {
        let waited = A::now().saturating_sub(self.silent_since);
        let (command, received) = (self.command(), self.received());
        CallContext { peer: self.connector.peer(), command, sent: 0, received, waited }
    }
}

/// Returns whether to connect again after this error. Descriptors and memory become free. A runtime that serves other
/// connections accepts a later one. A runtime that is ending does not listen, or has left; its trace then ends, too.
fn is_transient(e: &io::Error) -> bool {
    let has_left = matches!(e.get_ref().and_then(|e| e.downcast_ref()), Some(Error::Left { .. }));
    has_left || is_not_ready(e) || is_shortage(e) || e.kind() == ErrorKind::ConnectionRefused
}

impl<A: AsyncConnector> fmt::Debug for AsyncTraceSession<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncTraceSession").field("state", &self.state).finish_non_exhaustive()
    }
}
