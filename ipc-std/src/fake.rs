//! A runtime in this process: what other people's tests, and the demonstration, talk to when there is no .NET.
mod answers;
mod profile;
mod recording;
mod replay;
mod wishes;

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ipc_proto::port::Suspension;
use ipc_proto::wire::Writer;
use ipc_proto::{
    Advertise, Array, AttachProfiler, Code, Command, Continuation, Encode, HResult, Message, Parsed, Reply,
    Request, SendEnvironment, Serve, ServerError, Text,
};
#[cfg(unix)]
use tempfile::TempDir;

#[cfg(unix)]
use crate::client::Deadline;
use crate::sys::Socket;
use crate::{DriveError, Incoming, Server, ServerStopper, Stream, Turn, drive};

pub use profile::{Port, Profile};

use recording::Recording;
use replay::Replay;
use wishes::Wishes;

/// A runtime that is none, but answers as one.
///
/// It is a [`Server`]: it listens under the real name of a runtime's socket, and calls the monitors that its
/// [`Profile`] names, each again as soon as its command is answered, until it is dropped. Microsoft's client takes it
/// for a runtime of the version and kind that its profile says. Where it differs:
///
/// | a real one | this one |
/// |---|---|
/// | serves one connection at a time, and waits for a silent tool for ever | serves all at once |
/// | has one back-off for all monitors that it calls | has one for each |
/// | runs a moment after its last `ResumeRuntime`, and attaches no profiler until then | runs at once |
/// | writes dumps | refuses, in words where the command has them |
/// | loads a profiler | does not find it to attach (0x8007007E); takes one for its start, and [notes](Self::requests) it |
/// | runs startup hooks; of one that is not there .NET 9 and 10 end, and .NET 8 says [`HResult::INVALID_ARG`] | notes them |
/// | writes perf maps | notes that it should |
/// | registers tracepoints, and writes to them | keeps the descriptor (`user_events_data`), and writes nothing |
/// | traces its program | tells a recording of another, again and again: [`Response::Replay`] |
/// | writes NetPerf (V3) if it is asked for format 0 | writes NetTrace (V4), which readers tell apart by its first bytes |
/// | reads past the end of a payload that is too short, and often dies | answers [`HResult::BAD_ENCODING`] |
/// | dies of a variable's removal (NativeAOT) | removes it |
/// | dies of EnablePerfMap while it is suspended (.NET 8 and 9) | notes that it should write them |
/// | takes every command about profilers for AttachProfiler (.NET Core 3) | does not know the others |
/// | takes an empty variable's name, and event ids that stand twice (some versions) | refuses by [`Request::check`] |
///
/// ```
/// use ipc_std::{Client, fake::{FakeRuntime, Profile}};
///
/// let runtime = FakeRuntime::start(Profile::net8())?;
/// let info = Client::at(runtime.path()).process_info()?;
/// assert_eq!(info.clr_product_version, "8.0.31");
/// assert_eq!(runtime.requests().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Of a monitor, seen from both ends:
///
/// ```
/// use ipc_proto::{Advertise, Parsed, ResumeRuntime};
/// use ipc_std::{Connection, fake::{FakeRuntime, Port, Profile}};
/// use std::{io::Read, os::unix::net::UnixListener};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("monitor");
/// let monitor = UnixListener::bind(&path)?;
/// let ports = vec![Port { path, suspended: true }];
/// let runtime = FakeRuntime::without_listener(Profile { ports, ..Profile::net10() })?;
///
/// let (mut stream, _) = monitor.accept()?;
/// let mut frame = [0; Advertise::LEN];
/// stream.read_exact(&mut frame)?;
/// let Parsed::Complete { value, .. } = Advertise::parse(&frame)? else { unreachable!() };
/// assert_eq!(value.runtime_cookie, runtime.profile().runtime_cookie);
/// Connection::new(stream).call(&ResumeRuntime {})?;
/// assert!(!runtime.is_suspended());
/// monitor.accept()?; // it calls again
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FakeRuntime {
    shared: Arc<Shared>,
    path: PathBuf,
    serving: Option<Serving>,
    /// Removed with its content.
    #[cfg(unix)]
    _directory: Option<TempDir>,
}

/// The thread that accepts, and hands each connection to one of its own.
#[derive(Debug)]
struct Serving {
    stopper: ServerStopper,
    thread: JoinHandle<()>,
}

/// What a handler answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// OK, with this payload.
    Ok(Vec<u8>),
    /// A refusal.
    Refuse(HResult),
    /// A refusal in words, as GenerateCoreDump3 has it.
    RefuseWith(HResult, String),
    /// OK, with the environment announced and following: `NAME=value` each.
    Environment(Vec<String>),
    /// OK, with the id of a new session, and this stream following: all of it but the last byte at once (of a suspended
    /// runtime, once it runs), the last when the session is stopped. Nothing of it if that is before the runtime runs.
    Trace(Vec<u8>),
    /// OK, with the id of a new session, and the events of this recording following, as if they happened now: NetTrace
    /// of any version, to be had from `dotnet-ipc trace` or from a [`Writer`](ipc_proto::nettrace::Writer).
    ///
    /// From the start of the session on (of a suspended runtime, from when it runs), each event is sent as long after
    /// the first one as it was recorded after it; behind the last they begin anew, 100 ms after the first at the
    /// soonest. The stream is one of a runtime, in V4:
    ///
    /// * It comes in pieces, ten a second, and what a reader is too slow for waits.
    /// * Only those events are sent that the session's providers, keywords, levels, and filters let through, with stacks
    ///   if those are wanted.
    /// * A capture thread's numbers go on from round to round. Events that are not sent do not count; a gap in the
    ///   recording's numbers does, as events lost in each round.
    /// * A sequence point ends each round; behind it, stacks come again.
    /// * The process, the time, and the event `ProcessInfo` are the [`Profile`]'s. Recorded events of the provider
    ///   `Microsoft-Windows-DotNETRuntimeRundown` come at the end, if a rundown is asked for.
    /// * Of V6, what V4 has no place for is left out, as [`Rewrite`](ipc_proto::nettrace::Rewrite) does it: labels other
    ///   than activity ids, and what is known of a thread besides its number.
    /// * When the session is stopped, it ends with a sequence point and the end mark. If that is before the runtime
    ///   runs, there is not a byte. When the runtime is dropped, it breaks off, as that of a process that is killed.
    ///
    /// One event lost of three, each round:
    ///
    /// ```
    /// use ipc_proto::{CollectTracing2, Command};
    /// use ipc_proto::nettrace::{Event, Fields, Metadata, Scalar, Trace, Version, WriteError, Writer};
    /// use ipc_std::fake::{FakeRuntime, Profile, Response};
    ///
    /// fn recording() -> Result<Vec<u8>, WriteError> {
    ///     let (mut out, mut buf, mut space) = (Vec::new(), vec![0; Writer::BUFFER], [0; 32]);
    ///     let mut writer = Writer::new(Version::V4, &mut buf)?;
    ///     while let Some(bytes) = writer.trace(&Trace::new(Version::V4))? {
    ///         out.extend(bytes);
    ///     }
    ///     let mut tick = Metadata::default();
    ///     (tick.id, tick.provider, tick.event_id, tick.name) = (1, "My-App".into(), 7, "Tick".into());
    ///     tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space).unwrap_or_default();
    ///     while let Some(bytes) = writer.describe(&tick)? {
    ///         out.extend(bytes);
    ///     }
    ///     for count in [1u32, 3] {
    ///         let event = Event {
    ///             metadata_id: 1,
    ///             sequence: count,
    ///             timestamp: 30_000_000 * u64::from(count),
    ///             payload: &count.to_le_bytes(),
    ///             ..Event::default()
    ///         };
    ///         while let Some(bytes) = writer.event(&event)? {
    ///             out.extend(bytes);
    ///         }
    ///     }
    ///     while let Some(bytes) = writer.finish() {
    ///         out.extend(bytes);
    ///     }
    ///     Ok(out)
    /// }
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// let events = recording()?;
    /// runtime.on(CollectTracing2::CODE, move |_| Response::Replay(events.clone()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Replay(Vec<u8>),
    /// OK, with the id of a new session that has the descriptor which came behind the request, and nothing following:
    /// see `FakeRuntime::user_events_data`. The session ends when it is stopped, or the tool closes the connection.
    /// [`HResult::BAD_ENCODING`] if no descriptor came.
    UserEvents,
    /// These bytes in place of any message.
    Raw(Vec<u8>),
}

impl Response {
    /// OK, with this payload.
    ///
    /// ```
    /// use ipc_proto::types::Status;
    /// use ipc_std::fake::Response;
    /// assert_eq!(Response::ok(&Status::OK), Response::Ok(vec![0; 4]));
    /// ```
    pub fn ok(payload: &(impl Encode + ?Sized)) -> Self {
        let mut bytes = vec![0; payload.encoded_len()];
        payload.encode(&mut Writer::new(&mut bytes));
        Self::Ok(bytes)
    }
}

/// What goes wrong on purpose, on every connection from now on: behind the frame with which a runtime calls.
///
/// A connection that stays open without an answer keeps its port from calling again, until the monitor closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No answer ever, and the connection stays open.
    Silent,
    /// The connection is closed after this many bytes of what should be sent.
    CloseAfter(usize),
    /// These bytes in place of the answer, and then the end.
    Garbage(Vec<u8>),
    /// The answer comes this much later.
    Delay(Duration),
    /// Every byte comes this much after the one before.
    Drip(Duration),
    /// Nothing comes after this many bytes of a trace, and the connection stays open.
    StallStream(usize),
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// Its bytes, as far as they came.
    pub bytes: Vec<u8>,
}

impl LoggedRequest {
    /// The message; `None` for bytes that are none.
    #[must_use]
    pub fn message(&self) -> Option<Message<'_>> {
        match Message::parse(&self.bytes) {
            Ok(Parsed::Complete { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// What it asks for; `None` for bytes that are no message.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.message().map(|message| message.code)
    }
}

type Handler = Arc<Mutex<dyn FnMut(&Request<'_>) -> Response + Send>>;

struct Shared {
    profile: Profile,
    /// What ticks are counted from.
    started: Instant,
    state: Mutex<State>,
    /// Whenever `state` is.
    changed: Condvar,
}

struct State {
    ending: bool,
    /// Of the profile's ports, and then of the one that it listens at.
    suspension: Suspension<Vec<bool>>,
    fault: Option<Fault>,
    /// Whether it was suspended, and is not any more.
    resumed: bool,
    environment: Vec<String>,
    log: Vec<LoggedRequest>,
    handlers: BTreeMap<Code, Handler>,
    sessions: BTreeMap<u64, Session>,
    next_session: u64,
    /// Connections, by a number of their own, to be shut down in the end.
    live: BTreeMap<u64, Arc<Socket>>,
    next_connection: u64,
}

/// A session that has a stream, or a descriptor in its place.
#[derive(Default)]
struct Session {
    /// Whether it is to stop.
    stopped: bool,
    #[cfg(unix)]
    user_events_data: Option<Descriptor>,
}

#[cfg(unix)]
type Descriptor = OwnedFd;
/// There is nothing to pass.
#[cfg(windows)]
type Descriptor = core::convert::Infallible;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl FakeRuntime {
    /// Listens in a temporary directory of its own, or on Windows under a name of its own.
    ///
    /// # Errors
    /// If it cannot be made or listened in; else as [`without_listener`](Self::without_listener).
    #[cfg(unix)]
    pub fn start(profile: Profile) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("fake-runtime-").tempdir()?;
        let mut runtime = Self::start_in(directory.path(), profile)?;
        runtime._directory = Some(directory);
        Ok(runtime)
    }
    /// Listens under a name of its own.
    ///
    /// # Errors
    /// If it cannot be listened under; else as [`without_listener`](Self::without_listener).
    #[cfg(windows)]
    pub fn start(profile: Profile) -> io::Result<Self> {
        let mut directory = crate::discover::directory().into_os_string();
        directory.push(format!("fake-runtime-{}-", profile::random()));
        Self::start_in(Path::new(&directory), profile)
    }

    /// Listens in this directory. Tools that look for this process there find it: those whose `TMPDIR` it is, and on
    /// Linux, if it was in `TMPDIR` when this process started, all of them.
    ///
    /// # Errors
    /// If it cannot be listened in; of kind `AddrInUse` if this process has a runtime there already. Else as
    /// [`without_listener`](Self::without_listener).
    pub fn start_in(directory: &Path, profile: Profile) -> io::Result<Self> {
        Self::serving(profile, Some(directory))
    }

    /// Listens nowhere: it calls the monitors of its profile, and [`serve`](Self::serve) hands it connections.
    ///
    /// # Errors
    /// If the path of a port is too long for a socket's, or there are too many descriptors or threads.
    pub fn without_listener(profile: Profile) -> io::Result<Self> {
        Self::serving(profile, None)
    }

    fn serving(profile: Profile, directory: Option<&Path>) -> io::Result<Self> {
        let (process_id, runtime_cookie) = (profile.process_id.into(), profile.runtime_cookie);
        let mut server = Server::new(&Advertise { runtime_cookie, process_id, future: 0 })?;
        for port in &profile.ports {
            server.call(&port.path)?;
        }
        if let Some(directory) = directory {
            server.listen(directory)?;
        }
        let path = server.path().map(Path::to_owned).unwrap_or_default();
        let suspended = profile.ports.iter().map(|port| port.suspended).chain([profile.suspended]);
        let state = State {
            ending: false,
            suspension: Suspension::new(suspended.collect()),
            resumed: false,
            environment: profile.environment.clone(),
            fault: None,
            log: Vec::new(),
            handlers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            next_session: 0x7f00_0000_1000,
            live: BTreeMap::new(),
            next_connection: 0,
        };
        let shared = Arc::new(Shared {
            profile,
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let serving = {
            let (stopper, shared) = (server.stopper(), Arc::clone(&shared));
            let thread = thread::Builder::new().name("fake-runtime".to_owned());
            Serving { stopper, thread: thread.spawn(move || accept(&shared, server))? }
        };
        Ok(Self {
            shared,
            path,
            serving: Some(serving),
            #[cfg(unix)]
            _directory: None,
        })
    }

    /// Serves one connection, over whatever stream, until it ends, as one to where it listens.
    ///
    /// ```
    /// use ipc_std::{Connection, fake::{FakeRuntime, Profile}};
    ///
    /// let runtime = FakeRuntime::without_listener(Profile::net10())?;
    /// let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| runtime.serve(theirs));
    ///     Connection::new(ours).call(&ipc_proto::ResumeRuntime {}).map(|_| ())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve(&self, stream: impl Read + Write) {
        self.shared.serve(stream, None, self.profile().ports.len(), &mut None);
    }

    /// Its socket; empty if it listens nowhere.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says it is.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.shared.profile
    }

    /// The id of the process that it says it is.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.shared.profile.process_id
    }

    /// Whether it still waits for `ResumeRuntime`, at any of its ports.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.shared.state().suspension.is_suspended()
    }

    /// What has been asked so far, in order, good or bad.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.shared.state().log.clone()
    }

    /// The descriptor that a session of `user_events` writes to, if there is such a session now: a duplicate, so that
    /// one can see what it is. The session closes its own when it ends.
    ///
    /// ```
    /// use ipc_proto::types::{EventFilter, EventLevel, TracepointConfig, UserEventsProvider, UserEventsSession};
    /// use ipc_proto::Array;
    /// use ipc_std::{Client, fake::{FakeRuntime, Profile}};
    /// use std::{fs::File, io::{Read, Seek, Write}};
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// let providers = [UserEventsProvider {
    ///     keywords: 1,
    ///     level: EventLevel::VERBOSE,
    ///     name: "My-App".into(),
    ///     arguments: "".into(),
    ///     filter: EventFilter::ALL,
    ///     tracepoints: TracepointConfig { default_tracepoint_name: "my_app".into(), sets: Array::EMPTY },
    /// }];
    /// let wanted = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
    /// let mut data = tempfile::tempfile()?; // in place of /sys/kernel/tracing/user_events_data
    /// let session = Client::at(runtime.path()).start_user_events(&wanted, &data)?;
    ///
    /// let there = runtime.user_events_data(session.session_id()).ok_or("no session")?;
    /// File::from(there).write_all(b"seen here")?;
    /// data.rewind()?;
    /// let mut seen = String::new();
    /// data.read_to_string(&mut seen)?;
    /// assert_eq!(seen, "seen here");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(unix)]
    #[must_use]
    pub fn user_events_data(&self, session_id: u64) -> Option<OwnedFd> {
        self.shared.state().sessions.get(&session_id)?.user_events_data.as_ref()?.try_clone().ok()
    }

    /// Has something go wrong from now on, or nothing any more.
    pub fn set_fault(&self, fault: impl Into<Option<Fault>>) {
        self.shared.state().fault = fault.into();
    }

    /// Answers this command by `handler` from now on, whether the runtime's version knows it or not.
    ///
    /// ```
    /// use ipc_proto::{Command, GenerateCoreDump3, types::Status};
    /// use ipc_std::fake::{FakeRuntime, Profile, Response};
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// runtime.on(GenerateCoreDump3::CODE, |_| Response::ok(&Status::OK)); // the disk is large today
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on(&self, code: Code, handler: impl FnMut(&Request<'_>) -> Response + Send + 'static) {
        self.shared.state().handlers.insert(code, Arc::new(Mutex::new(handler)));
    }
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        let live = {
            let mut state = self.shared.state();
            state.ending = true;
            core::mem::take(&mut state.live)
        };
        self.shared.changed.notify_all();
        live.values().for_each(|socket| socket.shut_down());
        if let Some(Serving { stopper, thread }) = self.serving.take() {
            stopper.stop();
            // A handler that panicked is a test that failed, on whatever thread.
            if let Err(panic) = thread.join() {
                if !thread::panicking() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Serves whoever comes, each on a thread of its own, until stopped; then waits for those threads.
fn accept(shared: &Shared, mut server: Server) {
    thread::scope(move |scope| {
        loop {
            let served = match server.accept() {
                Ok(Some(incoming)) => {
                    thread::Builder::new().spawn_scoped(scope, || shared.serve_incoming(incoming))
                }
                Ok(None) => return,
                Err(e) => Err(e),
            };
            if served.is_err() {
                // There are too many threads just now, or there is no memory; it would be asked for the same at once.
                shared.pause(Duration::from_millis(10));
            }
        }
    });
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` says so; `false` if the runtime ends before that, or the peer goes, if its socket is known.
    fn wait_until(&self, socket: Option<&Socket>, done: impl FnMut(&mut State) -> bool) -> bool {
        self.wait(socket, None, done) == Some(true)
    }

    /// The same, but not beyond some time: whether it is done then, or `None` for an end.
    fn wait(
        &self,
        socket: Option<&Socket>,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Option<bool> {
        /// How often a peer is looked after, which wakes nobody when it goes.
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = self.state();
        loop {
            if state.ending || socket.is_some_and(Socket::has_hung_up) {
                return None;
            }
            if done(&mut state) {
                return Some(true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Some(false);
            }
            let longest = match (left, socket) {
                (left, Some(_)) => Some(left.unwrap_or(LOOK).min(LOOK)),
                (left, None) => left,
            };
            state = match longest {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(longest) => {
                    self.changed.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Does nothing for a while, or until the runtime ends.
    fn pause(&self, pause: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), pause, |state| !state.ending);
        drop(waited);
    }

    /// Serves a connection that the end of the runtime shuts down.
    fn serve_incoming(&self, Incoming { stream, port, turn }: Incoming) {
        // Over after the connection is, and the next one is made then.
        let mut turn = Some(turn);
        let number = {
            let mut state = self.state();
            if state.ending {
                return;
            }
            let number = state.next_connection;
            state.next_connection = number.wrapping_add(1);
            state.live.insert(number, Arc::clone(stream.socket()));
            number
        };
        let socket = Arc::clone(stream.socket());
        let mut live = Live { shared: self, number, stream };
        self.serve(&mut live.stream, Some(&socket), port, &mut turn);
    }

    /// Serves a connection of a port; `socket` is what tells that the peer has gone, if there is one.
    fn serve(
        &self,
        stream: impl Read + Write,
        socket: Option<&Socket>,
        port: usize,
        turn: &mut Option<Turn>,
    ) {
        let fault = self.state().fault.clone();
        let mut stream = Served { stream, socket, port, turn, fault, written: 0, streamed: 0, shared: self };
        // A peer that is gone, or a fault that was asked for, is nobody's concern here.
        let _ = self.converse(&mut stream);
    }

    fn converse<S: Read + Write>(&self, stream: &mut Served<'_, S>) -> Result<(), DriveError> {
        let (mut receive, mut send) = (vec![0; Message::MAX_LEN], vec![0; Message::MAX_LEN]);
        let Ok(mut serve) = Serve::new(&mut receive, &mut send) else { return Ok(()) };
        drive(&mut serve, stream)?;
        self.state().log.push(LoggedRequest { bytes: serve.bytes().to_vec() });
        let at_once = serve.code().and_then(|code| self.refuses(code));
        let (request, mut reply) = serve.finish();
        match stream.fault.clone() {
            Some(Fault::Silent) => {
                let until_closed = io::copy(&mut stream.stream, &mut io::sink());
                return until_closed.map(|_| ()).map_err(DriveError::Receive);
            }
            Some(Fault::Garbage(bytes)) => return stream.write_all(&bytes).map_err(DriveError::Send),
            Some(Fault::Delay(delay)) => self.pause(delay),
            _ => {}
        }
        let scripted = |request: &Request<'_>| self.state().handlers.contains_key(&request.code());
        let refusal = match &request {
            Ok(request) if at_once.is_none() || scripted(request) => {
                return self.respond(request, reply, stream);
            }
            Ok(_) => at_once,
            Err(error) => at_once.or_else(|| self.profile.refuses_instead(error)),
        };
        if let Some(refusal) = refusal {
            let _ = reply.refuse(refusal);
        }
        drive(&mut reply, stream)
    }

    /// What is refused by its code, before the payload is looked at.
    fn refuses(&self, code: Code) -> Option<HResult> {
        let not_yet = code == AttachProfiler::CODE && self.state().suspension.is_suspended();
        self.profile.refuses(code).or_else(|| not_yet.then_some(HResult::NOT_YET_AVAILABLE))
    }

    fn respond<S: Read + Write>(
        &self,
        request: &Request<'_>,
        mut reply: Reply<'_>,
        stream: &mut Served<'_, S>,
    ) -> Result<(), DriveError> {
        // It is there before anything is decided, as in a runtime.
        let wants_descriptor = request.continuation() == Continuation::UserEvents;
        let descriptor = if wants_descriptor { stream.receive_descriptor() } else { None };
        let answered = match self.response(request, stream.port) {
            Response::Ok(payload) => reply.answer_untyped(&Bytes(&payload)),
            Response::Refuse(hresult) => reply.refuse(hresult),
            Response::RefuseWith(hresult, message) => {
                reply.refuse_with(&ServerError { hresult, message: Some(message.as_str().into()) })
            }
            Response::Raw(bytes) => return stream.write_all(&bytes).map_err(DriveError::Send),
            Response::Environment(entries) => return send_environment(&entries, reply, stream),
            Response::Trace(bytes) => {
                let session = Session::default();
                return self
                    .send_session(session, reply, stream, |stream, id| self.send_trace(&bytes, stream, id));
            }
            Response::Replay(bytes) => {
                let wishes = Wishes::of(request);
                return self.send_session(Session::default(), reply, stream, |stream, id| {
                    self.replay(&bytes, &wishes, stream, id)
                });
            }
            Response::UserEvents if descriptor.is_none() => reply.refuse(HResult::BAD_ENCODING),
            Response::UserEvents => {
                let session = Session {
                    stopped: false,
                    #[cfg(unix)]
                    user_events_data: descriptor,
                };
                return self.send_session(session, reply, stream, |stream, id| {
                    self.wait_until(stream.socket, |state| state.is_stopped(id));
                    Ok(())
                });
            }
        };
        // An answer that does not fit has left a refusal behind, as in a real runtime.
        let _ = answered;
        drive(&mut reply, stream)
    }

    /// What the handler for the request says, ours or the user's.
    fn response(&self, request: &Request<'_>, port: usize) -> Response {
        let handler = self.state().handlers.get(&request.code()).cloned();
        match handler {
            Some(handler) => (handler.lock().unwrap_or_else(PoisonError::into_inner))(request),
            None => self.default_response(request, port),
        }
    }

    /// Announces a session, and has its stream sent once the runtime runs; not if the session is stopped before that.
    fn send_session<S: Read + Write>(
        &self,
        session: Session,
        mut reply: Reply<'_>,
        stream: &mut Served<'_, S>,
        send: impl FnOnce(&mut Served<'_, S>, u64) -> io::Result<()>,
    ) -> Result<(), DriveError> {
        /// As many as a runtime has at the most.
        const SESSIONS: usize = 64;
        let session_id = {
            let mut state = self.state();
            if state.sessions.len() >= SESSIONS {
                drop(state);
                // It is a refusal already.
                return drive(&mut reply, stream);
            }
            let session_id = state.next_session;
            state.next_session = session_id.wrapping_add(0x100);
            state.sessions.insert(session_id, session);
            session_id
        };
        let _ = reply.answer_untyped(&session_id);
        let sent = drive(&mut reply, stream).and_then(|()| {
            // The connection is the session's now, and the port makes another.
            *stream.turn = None;
            let mut runs = false;
            let woken = self.wait_until(stream.socket, |state| {
                runs = !state.suspension.is_suspended();
                runs || state.is_stopped(session_id)
            });
            let sent = if woken && runs { send(stream, session_id) } else { Ok(()) };
            sent.map_err(DriveError::Send)
        });
        self.state().sessions.remove(&session_id);
        self.changed.notify_all();
        sent
    }

    /// Sends a stream: up to the last byte, and that when the session is to stop.
    fn send_trace<S: Read + Write>(
        &self,
        bytes: &[u8],
        stream: &mut Served<'_, S>,
        session_id: u64,
    ) -> io::Result<()> {
        let (last, most) =
            bytes.split_last().map_or((&[][..], bytes), |(last, most)| (core::slice::from_ref(last), most));
        stream.send_stream(most)?;
        if self.wait_until(stream.socket, |state| state.is_stopped(session_id)) {
            stream.send_stream(last)?;
        }
        Ok(())
    }

    /// Sends the events of a recording as if they happened now, until the session is to stop.
    fn replay<S: Read + Write>(
        &self,
        recording: &[u8],
        wishes: &Wishes,
        stream: &mut Served<'_, S>,
        session_id: u64,
    ) -> io::Result<()> {
        /// How often a runtime sends what it has.
        const FLUSH: Duration = Duration::from_millis(100);
        let ticks = || u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut buf = Replay::buffer(recording.len());
        let recording = Recording::in_v4(recording, &mut buf).map_err(io::Error::other)?;
        let recording = Recording::read(&recording);
        let mut replay = Replay::new(&recording, wishes, &self.profile, ticks(), &mut buf)?;
        loop {
            stream.send_stream(&replay.advance(ticks())?)?;
            let next = Instant::now().checked_add(FLUSH);
            match self.wait(stream.socket, next, |state| state.is_stopped(session_id)) {
                Some(false) => {}
                Some(true) => return stream.send_stream(&replay.finish(ticks())?),
                None => return Ok(()),
            }
        }
    }
}

impl State {
    /// Whether a session is to stop.
    fn is_stopped(&self, session_id: u64) -> bool {
        self.sessions.get(&session_id).is_none_or(|session| session.stopped)
    }
}

/// Announces the environment, and sends it.
fn send_environment(
    entries: &[String],
    mut reply: Reply<'_>,
    stream: &mut (impl Read + Write),
) -> Result<(), DriveError> {
    let entries: Vec<Text<'_>> = entries.iter().map(|entry| entry.as_str().into()).collect();
    let mut buf = vec![0; Message::MAX_LEN];
    let Ok(mut send) = SendEnvironment::new(Array::from(entries.as_slice()), &mut buf) else {
        return drive(&mut reply, stream);
    };
    let _ = reply.answer_untyped(&send.announcement());
    drive(&mut reply, stream)?;
    drive(&mut send, stream)
}

/// Bytes as they are.
struct Bytes<'a>(&'a [u8]);

impl Encode for Bytes<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}

/// A connection that is served, and is shut down when it is not any more, should a handler panic.
struct Live<'r> {
    shared: &'r Shared,
    number: u64,
    stream: Stream,
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.stream.socket().shut_down();
        self.shared.state().live.remove(&self.number);
    }
}

/// A connection that is served, on which something may go wrong on purpose.
struct Served<'r, S> {
    stream: S,
    socket: Option<&'r Socket>,
    port: usize,
    turn: &'r mut Option<Turn>,
    fault: Option<Fault>,
    /// Bytes written so far.
    written: usize,
    /// Bytes of a trace among them.
    streamed: usize,
    shared: &'r Shared,
}

impl<S: Write> Served<'_, S> {
    /// Writes what belongs to a trace.
    fn send_stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(Fault::StallStream(n)) = self.fault else { return self.write_all(bytes) };
        let left = n.saturating_sub(self.streamed);
        self.streamed = self.streamed.saturating_add(bytes.len());
        self.write_all(bytes.get(..left).unwrap_or(bytes))?;
        self.stream.flush()?;
        if self.streamed > n {
            self.shared.wait_until(None, |_| false);
        }
        Ok(())
    }
}

impl<S: Read> Served<'_, S> {
    /// The descriptor that comes with the next byte; only over a socket that is known.
    fn receive_descriptor(&mut self) -> Option<Descriptor> {
        #[cfg(unix)]
        if let Some(socket) = self.socket {
            let never = Deadline::after(Duration::MAX).end;
            return crate::sys::receive_descriptor(socket.as_fd(), never).ok().flatten();
        }
        self.read(&mut [0]).map_or(None, |_| None)
    }
}

impl<S: Read> Read for Served<'_, S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf)
    }
}
impl<S: Write> Write for Served<'_, S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let allowed = match self.fault {
            Some(Fault::CloseAfter(n)) => n.saturating_sub(self.written),
            Some(Fault::Drip(pause)) => {
                self.shared.pause(pause);
                1
            }
            _ => usize::MAX,
        };
        let n = self.stream.write(buf.get(..allowed).unwrap_or(buf))?;
        self.written = self.written.saturating_add(n);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
