//! `TraceSession`: a tracing session that is read as its stream. The folder `trace` has the Stop.
mod mailbox;
mod stop_connection;

use core::task::Poll;
use std::io::{self, ErrorKind, Read, Write};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::Arc;
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_proto::plan::{LostFeatures, Runtime, TraceConfig};
use ipc_proto::types::SessionId;
use ipc_proto::{Code, SessionEnd};

use crate::client::{CarriedPlan, Client};
use crate::drive::is_closed;
use crate::error::{CallContext, Error, Phase};
use crate::sys;
use crate::timed_session::TimedSession;
use crate::timeouts::{clock, instant};
use crate::transport::Channel;

use mailbox::Mailbox;
use stop_connection::StopConnection;

pub use mailbox::Stopper;

/// A tracing session. It reads as the stream that the runtime sends: NetTrace bytes from the first to the last.
///
/// ```no_run
/// use ipc_std::ipc_proto::types::{EventLevel, Provider};
/// use ipc_std::{Client, TraceConfig};
///
/// let providers = [Provider {
///     keywords: u64::MAX,
///     level: EventLevel::INFORMATIONAL,
///     name: "System.Runtime".into(),
///     arguments: "EventCounterIntervalSec=1".into(),
/// }];
/// let mut session = Client::for_process(4242)?.start_tracing(&TraceConfig::new(&providers))?;
/// let stopper = session.stopper();
/// std::thread::spawn(move || {
///     std::thread::sleep(std::time::Duration::from_secs(5));
///     stopper.stop();
/// });
/// std::io::copy(&mut session, &mut std::fs::File::create("five-seconds.nettrace")?)?;
/// assert!(session.is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A session never deadlocks, and never waits without a deadline. It is a [`Session`](ipc_proto::Session) over two
/// connections:
///
/// * [`stop`](Self::stop) only requests the Stop. The next read sends it on a second connection, and receives its
///   answer while it reads the stream to the end. This order matters: a runtime writes its buffered events and the
///   rundown before it answers, and waits indefinitely if no client reads them. The whole Stop has the deadline
///   [`Timeouts::stop`](crate::Timeouts::stop), which begins when a read takes the request. The runtime must accept the
///   second connection within [`Timeouts::call`](crate::Timeouts::call). A runtime that sends no byte for
///   [`Timeouts::stop_silence`](crate::Timeouts::stop_silence) hangs.
/// * A Stop shortly before the first collection of `System.Diagnostics.Metrics` would block the runtime's diagnostics
///   indefinitely: see [`StopHazard`](ipc_proto::plan::StopHazard). It is sent after the collection, or two seconds
///   later.
/// * [`finish`](Self::finish) stops the session and writes the rest of the stream. **Dropping** the session also stops
///   it, then reads and discards the rest, with the same deadline. So a reader that fails does not leave the runtime
///   with a session that no client reads. Only a session whose Stop has failed is closed immediately.
///   [`abandon`](Self::abandon) also closes the stream immediately; the runtime ends the session the next time that it
///   has something to send.
/// * A session has no thread of its own and buffers nothing of the stream. It has one descriptor, and a second one from
///   its Stop to its end.
/// * An event loop makes the session [nonblocking](Self::set_nonblocking), polls its descriptor (`AsFd`) for being
///   readable, until [`due`](Self::due) at the latest, and then calls [`poll_read`](Self::poll_read) until it returns
///   `Pending`. One thread can serve many sessions in this way.
///
/// Reading fails with an [`Error`] inside the [`io::Error`], which `error.downcast::<ipc_std::Error>()` returns:
///
/// | error | state afterwards |
/// |---|---|
/// | [`Error::Timeout`] in [`Phase::ReadingTrace`]: no byte for [`Timeouts::silence`](crate::Timeouts::silence) | reading can continue |
/// | an error of connecting or sending, or [`Error::Refused`]: the Stop failed | reading can continue, and the Stop can be requested again |
/// | [`Error::Timeout`] in [`Phase::StoppingTrace`]: the stream did not end before the deadline of the Stop | ended: [`TimedOut`](SessionEnd::TimedOut) |
/// | [`Error::Io`] in [`Phase::ReadingTrace`]: the transport failed before the end of the trace | ended: [`CutOff`](SessionEnd::CutOff) |
/// | [`Error::Cancelled`]: by [`Stopper::cancel`] | ended: [`Abandoned`](SessionEnd::Abandoned) |
///
/// A process that exits is not an error of reading: the stream ends and is [cut off](SessionEnd::CutOff).
#[derive(Debug)]
pub struct TraceSession {
    client: Client,
    state: TimedSession,
    stream: Arc<Channel>,
    stop_connection: StopConnection,
    /// The two connections and the alarm of the mailbox.
    sources: sys::Sources,
    mailbox: Arc<Mailbox>,
    nonblocking: bool,
    /// Bytes of the command that started the session, and of its answer.
    sent: u64,
    answered: u64,
    /// The error that ended the stream. It is reported unless the trace is complete.
    failure: Option<io::Error>,
}

/// The token of the stream in the sources. Token 1 is [`StopConnection::TOKEN`], and 2 is that of the alarm.
const STREAM: u64 = 0;

/// The number of bytes that [`TraceSession::finish`] reads at a time.
const BUFFER: usize = 64 << 10;

impl Client {
    /// Starts a session with the oldest command that carries the configuration, as Microsoft's client does: one round
    /// trip on every version. If the runtime does not know that command, an older one is tried;
    /// [`TraceSession::lost_features`] returns the features that the older command cannot carry.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that every runtime refuses, or that ends the process of some runtimes; nothing is
    /// sent then. An error of connecting or of the call; a runtime refuses its 65th session with [`Error::Refused`].
    pub fn start_tracing(&self, config: &TraceConfig<'_>) -> Result<TraceSession, Error> {
        TraceSession::start(self, config)
    }
}

impl TraceSession {
    fn start(client: &Client, config: &TraceConfig<'_>) -> Result<Self, Error> {
        let first = config.first_step(&Runtime::default());
        let carried = client.carry_out(first, Deadline::after(client.timeouts().call))?;
        let SessionId { session_id } = carried.response()?;
        let CarriedPlan { connection, fallback } = carried;
        let (sent, answered) = connection.passed();
        let stream = Arc::clone(connection.into_stream().channel());
        let alarm = Arc::default();
        let watch = || {
            let mut sources = sys::Sources::new(&alarm)?;
            sources.watch(Arc::clone(&stream) as _, STREAM)?;
            Ok(sources)
        };
        let local = |source| Error::Io { peer: client.peer().to_owned(), phase: Phase::Connecting, source };
        let sources = watch().map_err(local)?;
        Ok(Self {
            client: client.clone(),
            state: TimedSession::new(session_id, config, fallback.command(), *client.timeouts(), clock),
            stream,
            stop_connection: StopConnection::new(),
            sources,
            mailbox: Arc::new(Mailbox::new(&alarm)),
            nonblocking: false,
            sent,
            answered,
            failure: None,
        })
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

    /// Requests the Stop. A read that waits, or else the next one, sends the Stop, and the reads after it return the rest
    /// of the stream. A second call does nothing.
    pub fn stop(&self) {
        self.mailbox.request_stop();
    }

    /// Returns whether the Stop was requested and has not failed.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.mailbox.is_stop_requested()
    }

    /// Returns a handle that stops the session from other threads while the current thread reads.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.mailbox)
    }

    /// Returns how the session ended: its stream was read to the end, or it was abandoned. `None` while the session
    /// lasts.
    #[must_use]
    pub const fn end(&self) -> Option<SessionEnd> {
        self.state.session().end()
    }

    /// Returns whether the stream was read to its end and has the end mark of its format.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.end(), Some(SessionEnd::Complete))
    }

    /// Returns the error of the answer to the [Stop](Self::stop), after the stream was read to its end.
    #[must_use]
    pub const fn stop_error(&self) -> Option<&Error> {
        self.stop_connection.error()
    }

    /// Stops the session and writes the rest of the stream to `to`. Returns how the session ended. If the writer fails,
    /// the rest is still read and discarded, so that the runtime is not blocked. This method waits even if the session
    /// is [nonblocking](Self::set_nonblocking).
    ///
    /// # Errors
    /// The first error of the writer. If the writer did not fail, an error of reading, after which a second call
    /// continues.
    pub fn finish(&mut self, to: &mut impl Write) -> io::Result<SessionEnd> {
        self.stop();
        let mut buf = vec![0; BUFFER];
        let mut written = Ok(());
        loop {
            match self.read_blocking(&mut buf) {
                Ok(0) => return written.map(|()| self.end().unwrap_or(SessionEnd::CutOff)),
                Ok(n) if written.is_ok() => written = to.write_all(buf.get(..n).unwrap_or_default()),
                Ok(_) => {}
                Err(e) => return written.and(Err(e)),
            }
        }
    }

    /// Closes the stream without stopping the session in an orderly way. The runtime ends the session, without a
    /// rundown, the next time that it has something to send.
    pub fn abandon(mut self) {
        self.state.session_mut().abandon();
    }

    /// Sets whether [`Read`] waits. A nonblocking session returns an error of kind
    /// [`WouldBlock`](ErrorKind::WouldBlock) instead; the next read continues where the failed read stopped.
    ///
    /// In this way a [`TraceReader`](crate::TraceReader) over the session delivers events to an event loop, with
    /// [`poll_next_event`](crate::TraceReader::poll_next_event). The loop polls the descriptor of the session until
    /// [`due`](Self::due). A nonblocking session ignores [`Timeouts::silence`](crate::Timeouts::silence). On Unix it
    /// needs three descriptors in addition to its connections.
    ///
    /// # Errors
    /// If the operating system provides no more descriptors.
    pub fn set_nonblocking(&mut self, nonblocking: bool) -> io::Result<()> {
        if nonblocking {
            self.sources.make_pollable()?;
        }
        self.nonblocking = nonblocking;
        Ok(())
    }

    /// Returns when to call [`poll_read`](Self::poll_read) even if the descriptor is not readable: for the next attempt
    /// to connect, or the deadline of the Stop.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.state.due().and_then(instant)
    }

    /// Reads the bytes that are available, and makes progress with the Stop, without waiting. Returns `Ready(0)` at the
    /// end of the stream.
    ///
    /// # Errors
    /// The same errors as [`Read`], except the timeout of [`Timeouts::silence`](crate::Timeouts::silence).
    pub fn poll_read(&mut self, buf: &mut [u8]) -> io::Result<Poll<usize>> {
        if buf.is_empty() {
            return Ok(Poll::Ready(0));
        }
        self.apply_control_requests();
        self.state.tick();
        // The Stop connection comes first, because the stream may always have bytes.
        let driven = self.stop_connection.drive(&mut self.state, &self.client, &mut self.sources);
        self.check_stop(driven)?;
        // The answer is read before the stream. A runtime ends the stream before it answers, so after the answer the
        // end can be read. In the other order, the answer could overtake the end.
        let received =
            self.stop_connection.receive(self.state.session_mut(), &self.client, &mut self.sources);
        self.check_stop(received)?;
        while self.state.session().wants_stream() {
            let n = match self.stream.read(buf) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A broken connection counts as the end of the stream: no more bytes come.
                Err(e) if is_closed(&e) => 0,
                Err(e) => {
                    self.failure = Some(self.reading_error(e, Instant::now()));
                    0
                }
                Ok(n) => n,
            };
            self.state.advance(buf.get(..n).unwrap_or_default());
            if n > 0 {
                return Ok(Poll::Ready(n));
            }
            self.sources.forget(STREAM);
        }
        let answered = self.stop_connection.conclude(&mut self.state, &self.client, &mut self.sources);
        self.check_stop(answered)?;
        self.sources.rearm();
        // A transport that fails after the end mark of the trace has done its work.
        if let Some(failure) =
            self.failure.take_if(|_| self.state.session().end() == Some(SessionEnd::CutOff))
        {
            return Err(failure);
        }
        self.state.end_of_reading(self.client.peer(), self.client.connector().phase())
    }

    /// If the Stop has failed, withdraws the request, so that the Stop can be requested again.
    fn check_stop(&self, result: io::Result<()>) -> io::Result<()> {
        result.inspect_err(|_| self.mailbox.withdraw_stop())
    }

    /// Applies the new requests of the mailbox, which come from any thread, to the session.
    fn apply_control_requests(&mut self) {
        let Some(requests) = self.mailbox.take() else { return };
        if requests.cancel {
            self.state.session_mut().abandon();
        }
        if requests.stop {
            self.state.request_stop();
        }
    }

    fn read_blocking(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.poll_read(buf)? {
                Poll::Ready(n) => return Ok(n),
                Poll::Pending => self.wait()?,
            }
        }
    }

    /// Waits until the session has work. Before the Stop, the wait ends with an error after `Timeouts::silence`.
    fn wait(&self) -> io::Result<()> {
        let silence = Deadline::after(self.client.timeouts().silence);
        let due = self.due();
        match self.sources.wait(due.unwrap_or(silence.end)) {
            Err(e) if e.kind() == ErrorKind::TimedOut && due.is_some() => Ok(()),
            result => result.map_err(|e| self.reading_error(e, silence.begin)),
        }
    }

    /// Returns the error of reading the stream, as an [`Error`] inside an [`io::Error`] of the same kind.
    fn reading_error(&self, source: io::Error, since: Instant) -> io::Error {
        let context = CallContext {
            peer: self.client.peer(),
            command: self.command(),
            sent: self.sent,
            received: self.answered.saturating_add(self.received()),
            waited: since.elapsed(),
        };
        io::Error::new(source.kind(), context.io(source, Phase::ReadingTrace))
    }
}

impl Read for TraceSession {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if !self.nonblocking {
            return self.read_blocking(buf);
        }
        match self.poll_read(buf)? {
            Poll::Ready(n) => Ok(n),
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

/// The descriptor is readable when a [nonblocking](TraceSession::set_nonblocking) session has work. A blocking session
/// has only its connections: its descriptor is that of the stream.
#[cfg(unix)]
impl AsFd for TraceSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }
}
/// An event that is set when the session has work.
#[cfg(windows)]
impl AsHandle for TraceSession {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.sources.as_handle()
    }
}

impl Drop for TraceSession {
    fn drop(&mut self) {
        if self.end().is_none() && !self.state.session().stop_failed() {
            // `drop` cannot return an error. A session whose Stop fails is closed.
            let _ = self.finish(&mut io::sink());
        }
    }
}
