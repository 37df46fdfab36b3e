use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_proto::plan::{self, Lost, Runtime, TraceStep, TraceWishes};
use ipc_proto::types::{
    EventFilter, Format, Provider, SessionBufferMode, SessionConfig, SessionConfig6, SessionId,
    StreamingProvider, StreamingSession, StreamingSession6,
};
use ipc_proto::{
    Answer, Array, Code, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6,
    Command, HResult, Message, ServerError, Session, SessionEnd, SessionPhase, SessionTimeout, StopEvent,
    StopStep, StopTracing, encode_to_vec,
};

use crate::client::Deadline;
use crate::drive::is_closed;
use crate::error::Context;
use crate::observer::Tap;
use crate::sys::{self, Socket};
use crate::{Client, Connection, Error, Phase, Stream};

/// What to trace, and what to be particular about: whatever is left as [`new`](Self::new) has it, every runtime has.
///
/// ```
/// use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
/// use ipc_std::TraceConfig;
///
/// let providers = [Provider {
///     keywords: 1,
///     level: EventLevel::VERBOSE,
///     name: "Microsoft-Windows-DotNETRuntime".into(),
///     arguments: "".into(),
/// }];
/// let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
/// assert_eq!(config.buffer_mb, 256);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceConfig<'a> {
    /// Size of the runtime's buffer in MB, not 0.
    pub buffer_mb: u32,
    /// Keywords of the rundown, which ends the stream and describes the methods behind the addresses in stacks;
    /// 0 for none.
    pub rundown_keyword: u64,
    /// Whether events carry stacks.
    pub stackwalk: bool,
    /// What happens when the buffer is full.
    pub buffer_mode: SessionBufferMode,
    /// What to switch on: 1 to 1,000.
    pub providers: &'a [Provider<'a>],
    /// Which events of each provider, in their order; a provider behind the last has no filter.
    pub filters: &'a [EventFilter<'a>],
}

impl<'a> TraceConfig<'a> {
    /// The rundown that runtimes send when they are not asked for another.
    pub const DEFAULT_RUNDOWN: u64 = plan::DEFAULT_RUNDOWN;

    /// These providers, as Microsoft's tools trace: 256 MB, the default rundown, stacks, and events lost when the buffer
    /// is full.
    #[must_use]
    pub const fn new(providers: &'a [Provider<'a>]) -> Self {
        Self {
            buffer_mb: 256,
            rundown_keyword: Self::DEFAULT_RUNDOWN,
            stackwalk: true,
            buffer_mode: SessionBufferMode::DROP,
            providers,
            filters: &[],
        }
    }

    /// What it wants beside its providers.
    #[must_use]
    pub fn wishes(&self) -> TraceWishes {
        TraceWishes {
            rundown_keyword: self.rundown_keyword,
            stackwalk: self.stackwalk,
            event_filters: self.filters.iter().any(|filter| *filter != EventFilter::ALL),
            buffer_mode: self.buffer_mode,
            user_events: false,
        }
    }

    fn streaming_providers(&self) -> Vec<StreamingProvider<'a>> {
        let filters = self.filters.iter().copied().chain(core::iter::repeat(EventFilter::ALL));
        let with = |(provider, filter): (&Provider<'a>, _)| {
            let Provider { keywords, level, name, arguments } = *provider;
            StreamingProvider { keywords, level, name, arguments, filter }
        };
        self.providers.iter().zip(filters).map(with).collect()
    }
}

/// A tracing session: reads as the stream that the runtime sends, NetTrace bytes from the first to the last.
///
/// ```no_run
/// use ipc_proto::types::{EventLevel, Provider};
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
/// It cannot deadlock, and never waits without a deadline. It is a [`Session`] over two connections:
///
/// * [`stop`](Self::stop) only asks. Whoever reads then asks the runtime, on a connection of its own, and collects its
///   answer, while it reads on to the end: a runtime writes all that it still has, and the rundown, before it answers, and
///   waits for ever for somebody who does not read. All of it has [`Timeouts::stop`](crate::Timeouts::stop), from when
///   the reader hears of it; [`Timeouts::call`](crate::Timeouts::call) of that is for finding the runtime ready to be
///   asked.
/// * [`finish`](Self::finish) stops it and writes the rest. **Dropping** it stops it too, and reads the rest to throw it
///   away, by the same deadline: so a reader that fails does not leave the runtime with a session that nobody reads. Only
///   one that has failed to be stopped is closed at once. [`abandon`](Self::abandon) does not wait: it closes the stream,
///   and the runtime gives the session up the next time that it has something to send.
/// * It has no thread of its own and keeps nothing of the stream. To have it in a loop of one's own, poll its descriptor
///   (`AsFd`) for being readable, until [`due`](Self::due) at the latest, and then [`poll_read`](Self::poll_read) until
///   there is nothing.
///
/// Reading fails with an [`Error`] inside of the [`io::Error`]:
///
/// | error | then |
/// |---|---|
/// | [`Error::Timeout`] in [`Phase::ReadingTrace`]: nothing came for [`Timeouts::silence`](crate::Timeouts::silence) | reading may go on |
/// | of connecting, of sending, or [`Error::Refused`], as of any command: the runtime was not to be asked to stop, or says no | reading may go on, the stop be asked for again |
/// | [`Error::Timeout`] in [`Phase::StoppingTrace`]: it has not ended by the deadline of the stop | it is over, [`TimedOut`](SessionEnd::TimedOut) |
/// | [`Error::Cancelled`]: by [`Stopper::cancel`] | it is over, [`Abandoned`](SessionEnd::Abandoned) |
///
/// A runtime that goes away is no error of reading: the stream ends, and is [cut off](SessionEnd::CutOff).
#[derive(Debug)]
pub struct TraceSession {
    client: Client,
    command: Code,
    lost: Lost,
    session: Session,
    stream: Arc<Socket>,
    /// On which the stop is asked for.
    stop: Option<Tap<AtOnce>>,
    /// When all has to be over, and when the runtime has to be ready to be asked.
    stop_by: Deadline,
    ask_by: Deadline,
    /// When it is tried again, if it was not, and how long after that if it still is not.
    again: Option<Instant>,
    pause: Duration,
    /// Whether it was given up to ask.
    given_up: bool,
    /// Readable when there is something to do on a connection, or somebody has said something.
    poller: sys::Poller,
    told: Arc<Told>,
    /// What the session's milliseconds count from.
    epoch: Instant,
    /// Bytes of the request, and of its answer.
    sent: u64,
    answered: u64,
    stop_error: Option<Error>,
}

/// Ends a session from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Told>);

/// What other threads have to say.
#[derive(Debug)]
struct Told {
    said: Mutex<Said>,
    /// Raised when something was said.
    flag: sys::Flag,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Said {
    stop: bool,
    cancel: bool,
    /// Whether that is new.
    new: bool,
}

/// A socket on which nothing is waited for.
#[derive(Debug)]
struct AtOnce(Socket);

impl Read for AtOnce {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buf)
    }
}
impl Write for AtOnce {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&self.0).write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// In the poller.
const STREAM: u64 = 0;
const STOP: u64 = 1;
const TOLD: u64 = 2;

impl TraceSession {
    pub(crate) fn start(client: &Client, config: &TraceConfig<'_>) -> Result<Self, Error> {
        let deadline = Deadline::after(client.timeouts().call);
        client.step_down(plan::trace(config.wishes(), &Runtime::default()), |step| {
            let mut connection = client.connect_for(deadline)?;
            let session = call_step(&mut connection, config, &step).map_err(|e| match e {
                // All that it may refuse a session for otherwise was looked at before it was sent.
                Error::Refused { peer, command, hresult: HResult::FAIL, .. } => {
                    Error::TooManySessions { peer, command }
                }
                e => e,
            })?;
            Self::over(client, connection, session, &step)
        })
    }

    fn over(
        client: &Client,
        connection: Connection<Stream>,
        session: SessionId,
        step: &TraceStep,
    ) -> Result<Self, Error> {
        let (sent, answered) = connection.passed();
        let stream = Arc::clone(connection.into_stream().socket());
        let watched = || {
            let poller = sys::Poller::new()?;
            let flag = sys::Flag::new()?;
            poller.watch(&*stream, STREAM)?;
            poller.watch(&flag, TOLD)?;
            Ok((poller, flag))
        };
        let local = |source| Error::Io { peer: client.peer().to_owned(), phase: Phase::Connecting, source };
        let (poller, flag) = watched().map_err(local)?;
        let epoch = Instant::now();
        Ok(Self {
            client: client.clone(),
            command: step.command,
            lost: step.lost,
            session: Session::new(session.session_id),
            stream,
            stop: None,
            stop_by: Deadline::after(Duration::ZERO),
            ask_by: Deadline::after(Duration::ZERO),
            again: None,
            pause: FIRST_PAUSE,
            given_up: false,
            poller,
            told: Arc::new(Told { said: Mutex::default(), flag }),
            epoch,
            sent,
            answered,
            stop_error: None,
        })
    }

    /// The session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session.session_id()
    }

    /// The command that the runtime took.
    #[must_use]
    pub const fn command(&self) -> Code {
        self.command
    }

    /// What was wanted and that command does not carry.
    #[must_use]
    pub const fn lost(&self) -> Lost {
        self.lost
    }

    /// How many bytes of the stream have been read.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.session.received()
    }

    /// Asks for the session to be stopped: by whoever reads, and on to the end. Does nothing the second time.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// Whether that was asked for; not any more if the runtime could not be asked.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.told.said().stop
    }

    /// What asks for that from other threads, while this one reads.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.told))
    }

    /// How it ended, once it has: the stream was read to its end, or given up.
    #[must_use]
    pub const fn end(&self) -> Option<SessionEnd> {
        self.session.end()
    }

    /// Whether the stream was read to its end and that end is the one that the format has: nothing is cut off.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.end(), Some(SessionEnd::Complete))
    }

    /// What went wrong with the answer to [`stop`](Self::stop), after the stream was read to its end.
    #[must_use]
    pub const fn stop_error(&self) -> Option<&Error> {
        self.stop_error.as_ref()
    }

    /// Stops the session, and writes the rest of the stream to `to`: how it ended. A writer that fails does not hold up
    /// the runtime: the rest is read all the same, and thrown away.
    ///
    /// # Errors
    /// The writer's first, or else as reading. The session may be finished again to go on.
    pub fn finish(&mut self, to: &mut impl Write) -> io::Result<SessionEnd> {
        self.stop();
        let mut buf = vec![0; BUFFER];
        let mut written = Ok(());
        loop {
            match self.read(&mut buf) {
                Ok(0) => return written.map(|()| self.end().unwrap_or(SessionEnd::CutOff)),
                Ok(n) if written.is_ok() => written = to.write_all(buf.get(..n).unwrap_or_default()),
                Ok(_) => {}
                Err(e) => return written.and(Err(e)),
            }
        }
    }

    /// Closes the stream, without stopping the session in an orderly way. The runtime ends it, without a rundown, the
    /// next time that it has something to send.
    pub fn abandon(mut self) {
        self.session.abandon();
    }

    /// When [`poll_read`](Self::poll_read) is to be called even if the descriptor has not become readable.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let until =
            self.session.until().and_then(|until| self.epoch.checked_add(Duration::from_millis(until)));
        [until, self.again].into_iter().flatten().min()
    }

    /// Reads what is there, and does for the stop what can be done; waits for nothing. `None` if there is nothing to
    /// read just now, 0 at the end of the stream.
    ///
    /// # Errors
    /// As reading, but that silence is none.
    pub fn poll_read(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        if buf.is_empty() {
            return Ok(Some(0));
        }
        self.hear();
        // Before the stream, which may never run dry; and before the deadline, so that what is in the way is told.
        self.ask()?;
        self.session.tick(self.milliseconds());
        while self.session.wants_stream() {
            let n = match (&*self.stream).read(buf) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // However it broke off, nothing more comes.
                Err(e) if is_closed(&e) => 0,
                read => read?,
            };
            self.session.stream_advance(buf.get(..n).unwrap_or_default());
            if n > 0 {
                return Ok(Some(n));
            }
            self.poller.forget(&*self.stream)?;
        }
        self.collect()?;
        self.poller.rearm();
        self.ended().transpose()
    }

    /// Hears what other threads have said.
    fn hear(&mut self) {
        let said = {
            let mut said = self.told.said();
            if !said.new {
                return;
            }
            said.new = false;
            // What is said later raises it again.
            self.told.flag.lower();
            *said
        };
        if said.cancel {
            self.session.abandon();
        }
        if said.stop && !self.is_asking() && self.end().is_none() {
            let timeouts = *self.client.timeouts();
            self.stop_by = Deadline::after(timeouts.stop);
            self.ask_by = Deadline::after(timeouts.call.min(timeouts.stop));
            (self.again, self.pause, self.given_up) = (None, FIRST_PAUSE, false);
            self.session.stop(self.since_epoch(self.stop_by.end));
        }
    }

    /// Whether the stop was heard of, and is under way.
    const fn is_asking(&self) -> bool {
        self.session.until().is_some()
    }

    /// Connects and sends, as far as that goes without waiting.
    fn ask(&mut self) -> io::Result<()> {
        if self.again.is_some_and(|again| Instant::now() < again) {
            return Ok(());
        }
        self.again = None;
        loop {
            let (asked, phase) = match (self.session.stop_step(), &mut self.stop) {
                (StopStep::Connect, stop) => {
                    let connected = self.client.connect_at_once().and_then(|socket| {
                        self.poller.watch(&socket, STOP)?;
                        let mut tap = Tap::new(AtOnce(socket));
                        tap.observe(self.client.observer());
                        tap.begin();
                        *stop = Some(tap);
                        Ok(StopEvent::Connected)
                    });
                    (connected, self.client.connecting())
                }
                (StopStep::Send(bytes), Some(tap)) => match tap.write(bytes) {
                    Err(e) if is_closed(&e) => (Ok(StopEvent::Sent(0)), Phase::Sending),
                    sent => (sent.map(StopEvent::Sent), Phase::Sending),
                },
                _ => return Ok(()),
            };
            match asked {
                Ok(event) => self.session.stop_advance(event),
                Err(e) if may_pass(&e) && Instant::now() < self.ask_by.end => {
                    // There is nothing to poll.
                    self.again = Some(Deadline::after(self.pause).end.min(self.ask_by.end));
                    self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
                    return Ok(());
                }
                Err(e) => {
                    self.session.stop_advance(StopEvent::Failed);
                    self.give_up();
                    let (kind, e) = match e.kind() {
                        ErrorKind::WouldBlock => {
                            (ErrorKind::TimedOut, self.timeout(phase, self.ask_by, 0, 0))
                        }
                        kind => (kind, self.client.connect_error(e, phase)),
                    };
                    return Err(io::Error::new(kind, e));
                }
            }
        }
    }

    /// The stop is not under way any more, and may be asked for again.
    fn give_up(&mut self) {
        self.close_stop();
        self.told.said().stop = false;
        self.given_up = true;
    }

    /// Receives what is there of the answer.
    fn collect(&mut self) -> io::Result<()> {
        while let (StopStep::Receive(space), Some(tap)) = (self.session.stop_step(), &mut self.stop) {
            let n = match tap.read(space) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // However it broke off, there will be no answer.
                read => read.unwrap_or(0),
            };
            self.session.stop_advance(StopEvent::Received(n));
        }
        if self.stop.is_none() || !matches!(self.session.stop_step(), StopStep::Nothing) {
            return Ok(());
        }
        let error = self.answer_error();
        if self.session.wants_stream() && matches!(error, Some(Error::Refused { .. })) {
            // It goes on, and nothing else is to be waited for.
            self.give_up();
            return error.map_or(Ok(()), |error| Err(io::Error::other(error)));
        }
        self.stop_error = error;
        self.close_stop();
        Ok(())
    }

    /// What is wrong with the answer to the stop.
    fn answer_error(&self) -> Option<Error> {
        let tap = self.stop.as_ref()?;
        let context = Context {
            peer: self.client.peer(),
            command: StopTracing::CODE,
            sent: tap.sent,
            received: tap.received,
            waited: self.stop_by.begin.elapsed(),
        };
        match self.session.stop_answer() {
            Some(Ok(Answer::Ok(_))) => None,
            Some(Ok(Answer::Refused(ServerError { hresult, .. }))) => {
                let (peer, command) = (self.client.peer().to_owned(), StopTracing::CODE);
                Some(Error::Refused { peer, command, hresult, message: None })
            }
            Some(Err(e)) => Some(context.protocol(e, Phase::AwaitingAnswer)),
            None => Some(context.io(ErrorKind::TimedOut.into(), Phase::AwaitingAnswer)),
        }
    }

    fn close_stop(&mut self) {
        if let Some(mut tap) = self.stop.take() {
            tap.end();
            // It is forgotten when it is closed, too.
            let _ = self.poller.forget(&tap.stream.0);
        }
    }

    /// What reading gives when it is over; `None` if it is not.
    fn ended(&self) -> Option<io::Result<usize>> {
        match self.session.end()? {
            SessionEnd::Complete | SessionEnd::CutOff => Some(Ok(0)),
            SessionEnd::TimedOut(SessionTimeout { phase, sent, received, drained }) => {
                let phase = match phase {
                    SessionPhase::Connecting => self.client.connecting(),
                    SessionPhase::Sending => Phase::Sending,
                    SessionPhase::EndOfStream => Phase::StoppingTrace { drained },
                };
                let timeout = self.timeout(phase, self.stop_by, sent, received);
                Some(Err(io::Error::new(ErrorKind::TimedOut, timeout)))
            }
            SessionEnd::Abandoned => {
                let cancelled = Error::Cancelled { peer: self.client.peer().to_owned() };
                Some(Err(io::Error::new(ErrorKind::ConnectionAborted, cancelled)))
            }
        }
    }

    /// That something about the stop has taken too long.
    fn timeout(&self, phase: Phase, deadline: Deadline, sent: u64, received: u64) -> Error {
        let (peer, after) = (self.client.peer().to_owned(), deadline.begin.elapsed());
        Error::Timeout { peer, phase, command: Some(StopTracing::CODE), after, sent, received }
    }

    /// Waits until there is something to do: or, before the stop is asked for, for as long as it may be silent.
    fn wait(&self) -> io::Result<()> {
        let silence = Deadline::after(self.client.timeouts().silence);
        let due = self.due();
        let until = due.unwrap_or(silence.end);
        match self.poller.wait(until) {
            Err(e) if e.kind() == ErrorKind::TimedOut && due.is_none() => {
                let context = Context {
                    peer: self.client.peer(),
                    command: self.command,
                    sent: self.sent,
                    received: self.answered.saturating_add(self.received()),
                    waited: silence.begin.elapsed(),
                };
                Err(io::Error::new(ErrorKind::TimedOut, context.io(e, Phase::ReadingTrace)))
            }
            // It is time for what is due.
            Err(e) if e.kind() == ErrorKind::TimedOut => Ok(()),
            result => result,
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds from the epoch to `instant`, rounded up: it is not due before.
    fn since_epoch(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.epoch);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }
}

/// What is read at a time by whoever has no buffer.
const BUFFER: usize = 64 << 10;
/// How long after a failed try to connect the next one comes; each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Whether a failure to ask may pass: the runtime is busy with other connections; or it is about to end, upon which
/// the stream ends too, and has taken its socket away already.
fn may_pass(e: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, Interrupted, NotFound, WouldBlock};
    matches!(e.kind(), WouldBlock | NotFound | ConnectionRefused | Interrupted)
}

impl Read for TraceSession {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(n) = self.poll_read(buf)? {
                return Ok(n);
            }
            self.wait()?;
        }
    }
}

/// Readable when there is something to do.
#[cfg(unix)]
impl AsFd for TraceSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}
/// An event that is set when there is something to do.
#[cfg(windows)]
impl AsHandle for TraceSession {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.poller.as_handle()
    }
}

impl Drop for TraceSession {
    fn drop(&mut self) {
        if self.end().is_none() && !self.given_up {
            // Whatever goes wrong is nobody's concern any more; what cannot be stopped is closed.
            let _ = self.finish(&mut io::sink());
        }
    }
}

impl Stopper {
    /// As [`TraceSession::stop`].
    pub fn stop(&self) {
        self.0.say(|said| said.stop = true);
    }

    /// Gives the session up: a read that waits ends at once, with [`Error::Cancelled`], and so does every other.
    pub fn cancel(&self) {
        self.0.say(|said| said.cancel = true);
    }
}

impl Told {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, say: impl FnOnce(&mut Said)) {
        let mut said = self.said();
        let before = *said;
        say(&mut said);
        if *said != before {
            said.new = true;
            self.flag.raise();
        }
    }
}

/// Sends the command of this step, with what it carries.
fn call_step(
    connection: &mut Connection<Stream>,
    config: &TraceConfig<'_>,
    step: &TraceStep,
) -> Result<SessionId, Error> {
    let TraceWishes { rundown_keyword, stackwalk, buffer_mode: session_buffer_mode, .. } = step.wishes;
    let (buffer_mb, format, rundown) = (config.buffer_mb, Format::NET_TRACE, rundown_keyword != 0);
    let providers = Array::from(config.providers);
    match step.command {
        CollectTracing6::CODE => {
            let providers = config.streaming_providers();
            let providers = Array::from(providers.as_slice());
            let session = StreamingSession6 {
                buffer_mb,
                format,
                rundown_keyword,
                stackwalk,
                providers,
                session_buffer_mode,
            };
            start(connection, &CollectTracing6 { session: SessionConfig6::Streaming(session) })
        }
        CollectTracing5::CODE => {
            let providers = config.streaming_providers();
            let providers = Array::from(providers.as_slice());
            let session = StreamingSession { buffer_mb, format, rundown_keyword, stackwalk, providers };
            start(connection, &CollectTracing5 { session: SessionConfig::Streaming(session) })
        }
        CollectTracing4::CODE => {
            start(connection, &CollectTracing4 { buffer_mb, format, rundown_keyword, stackwalk, providers })
        }
        CollectTracing3::CODE => {
            start(connection, &CollectTracing3 { buffer_mb, format, rundown, stackwalk, providers })
        }
        _ => start(connection, &CollectTracing2 { buffer_mb, format, rundown, providers }),
    }
}

/// Sends a command that starts a session, if runtimes take its values: some die of those that they do not.
fn start<C>(connection: &mut Connection<Stream>, command: &C) -> Result<SessionId, Error>
where
    C: for<'r> Command<Response<'r> = SessionId>,
{
    check(command)?;
    connection.call(command)
}

pub(crate) fn check<C: Command>(command: &C) -> Result<(), Error> {
    let bytes = encode_to_vec(C::CODE, command)?;
    let payload = bytes.get(Message::HEADER_LEN..).unwrap_or_default();
    // It was written a moment ago, so it can be read.
    let request = Message { code: C::CODE, payload }.request();
    let checked = request.map_or(Ok(()), |request| request.check());
    checked.map_err(|violation| Error::Invalid { command: C::CODE, violation })
}
