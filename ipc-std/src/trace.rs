use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_proto::plan::{self, Lost, Runtime, TraceStep, TraceWishes};
use ipc_proto::types::{
    EventFilter, Format, Provider, SessionBufferMode, SessionConfig, SessionConfig6, SessionId,
    StreamingProvider, StreamingSession, StreamingSession6,
};
use ipc_proto::{
    Array, Code, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6,
    Command, Message, StopTracing, encode_to_vec,
};
use rustix::event::{PollFd, PollFlags};

use crate::client::Deadline;
use crate::drive::is_closed;
use crate::error::Context;
use crate::{Client, Connection, Error, Phase, Stream, sys};

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
///     stopper.stop()
/// });
/// std::io::copy(&mut session, &mut std::fs::File::create("five-seconds.nettrace")?)?;
/// assert!(session.is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`stop`](Self::stop) only asks. Read on to the end: a runtime writes all that it still has, and the rundown, before
/// it answers, and waits for ever for somebody who does not read. Dropping the session closes the stream; the runtime
/// gives it up the next time that it has something to send.
///
/// An error of the stream is an [`Error`] inside of the [`io::Error`]. After one of kind `TimedOut` reading may go on.
#[derive(Debug)]
pub struct TraceSession {
    stream: Stream,
    command: Code,
    lost: Lost,
    shared: Arc<Shared>,
    /// Bytes of the request, of its answer, and of the stream behind that.
    sent: u64,
    answer: u64,
    received: u64,
    /// The last two bytes.
    tail: [u8; 2],
    ended: bool,
    stop_error: Option<Error>,
}

/// Asks a session to stop, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    session_id: u64,
    /// Raised when the stop was asked for.
    woken: sys::Flag,
    /// Whether somebody asks for the stop, has asked, or need not any more.
    asking: AtomicBool,
    asked: Mutex<Option<Asked>>,
}

#[derive(Debug)]
struct Asked {
    /// On which the answer comes.
    connection: Connection<Stream>,
    /// For the end of the stream and the answer.
    deadline: Deadline,
}

impl TraceSession {
    pub(crate) fn start(client: &Client, config: &TraceConfig<'_>) -> Result<Self, Error> {
        let deadline = Deadline::after(client.timeouts().call);
        client.step_down(plan::trace(config.wishes(), &Runtime::default()), |step| {
            let mut connection = client.connect_for(deadline)?;
            let session = call_step(&mut connection, config, &step)?;
            Self::over(client, connection, session, &step)
        })
    }

    fn over(
        client: &Client,
        connection: Connection<Stream>,
        session: SessionId,
        step: &TraceStep,
    ) -> Result<Self, Error> {
        let (sent, answer) = connection.passed();
        let local = |source| Error::Io { peer: client.peer().to_owned(), phase: Phase::Connecting, source };
        let woken = sys::Flag::new().map_err(local)?;
        let shared = Shared {
            client: client.clone(),
            session_id: session.session_id,
            woken,
            asking: AtomicBool::new(false),
            asked: Mutex::new(None),
        };
        Ok(Self {
            stream: connection.into_stream(),
            sent,
            answer,
            command: step.command,
            lost: step.lost,
            shared: Arc::new(shared),
            received: 0,
            tail: [0; 2],
            ended: false,
            stop_error: None,
        })
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> u64 {
        self.shared.session_id
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
        self.received
    }

    /// Asks the runtime to stop the session, on a connection of its own; does nothing the second time.
    ///
    /// # Errors
    /// If connecting or sending fails.
    pub fn stop(&self) -> Result<(), Error> {
        self.shared.stop()
    }

    /// What asks the session to stop from other threads, while this one reads.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Whether the stream was read to its end and that end is the one that the format has: nothing is cut off.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        /// The end of an object, and the tag of no object.
        const END: [u8; 2] = [6, 1];
        self.ended && matches!(self.tail, END)
    }

    /// What went wrong with the answer to [`stop`](Self::stop), after the stream was read to its end.
    #[must_use]
    pub const fn stop_error(&self) -> Option<&Error> {
        self.stop_error.as_ref()
    }

    /// The bytes that are here; 0 at the end of the stream.
    fn read_ready(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // A stream that never runs dry would never be waited for.
        if self.stop_deadline().is_some_and(|deadline| deadline.end <= Instant::now()) {
            self.wait()?;
        }
        loop {
            match self.stream.socket().read(buf) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if is_closed(&e) => return Ok(0),
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.wait()?,
                result => return result,
            }
        }
    }

    fn stop_deadline(&self) -> Option<Deadline> {
        self.shared.asked().as_ref().map(|asked| asked.deadline)
    }

    /// Waits for bytes, by the deadline of the stop once that is asked for.
    fn wait(&self) -> io::Result<()> {
        let (phase, deadline) = match self.stop_deadline() {
            Some(deadline) => (Phase::StoppingTrace, deadline),
            None => (Phase::ReadingTrace, Deadline::after(self.shared.client.timeouts().silence)),
        };
        let mut fds = [self.stream.socket().as_fd(), self.shared.woken.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        sys::wait(&mut fds, deadline.end).map_err(|e| {
            let (peer, kind) = (self.shared.client.peer(), e.kind());
            let context = Context {
                peer,
                command: self.command,
                sent: self.sent,
                received: self.answer.saturating_add(self.received),
                waited: deadline.begin.elapsed(),
            };
            io::Error::new(kind, context.io(e, phase))
        })?;
        // What woke us has been seen by the next round; an error would be seen there too.
        self.shared.woken.lower();
        Ok(())
    }

    fn end(&mut self) {
        self.ended = true;
        self.shared.asking.store(true, Ordering::Relaxed);
        let asked = self.shared.asked().take();
        if let Some(Asked { mut connection, .. }) = asked {
            let session_id = self.shared.session_id;
            self.stop_error = connection.receive(&StopTracing { session_id }).err();
        }
    }
}

impl Read for TraceSession {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.ended {
            return Ok(0);
        }
        let n = self.read_ready(buf)?;
        match buf.get(..n).unwrap_or_default() {
            [] => self.end(),
            [only] => self.tail = [self.tail[1], *only],
            [.., last_but_one, last] => self.tail = [*last_but_one, *last],
        }
        self.received = self.received.saturating_add(n as u64);
        Ok(n)
    }
}

impl Stopper {
    /// As [`TraceSession::stop`].
    ///
    /// # Errors
    /// If connecting or sending fails.
    pub fn stop(&self) -> Result<(), Error> {
        self.0.stop()
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Option<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) -> Result<(), Error> {
        if self.asking.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        // Whoever reads goes on meanwhile, so nothing is locked.
        let asked = self.ask().inspect_err(|_| self.asking.store(false, Ordering::Relaxed))?;
        *self.asked() = Some(asked);
        self.woken.raise();
        Ok(())
    }

    fn ask(&self) -> Result<Asked, Error> {
        let deadline = Deadline::after(self.client.timeouts().stop);
        let mut connection = self.client.connect_for(deadline)?;
        connection.send(&StopTracing { session_id: self.session_id })?;
        Ok(Asked { connection, deadline })
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
