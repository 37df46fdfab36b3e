use core::time::Duration;
use std::borrow::Cow;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ipc_proto::plan::{self, Flavour, Hazard, Lost, Runtime};
#[cfg(unix)]
use ipc_proto::types::UserEventsSession;
use ipc_proto::types::{ClientData, DumpFlags, DumpType, PerfMapType};
use ipc_proto::{
    ApplyStartupHook, AttachProfiler, Code, Command, DisablePerfMap, EnablePerfMap, GenerateCoreDump,
    GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, Guid, HResult,
    Request, ResumeRuntime, SetEnvironmentVariable, StartupProfiler, StopTracing, Text,
};

use crate::discover::{Denied, Target};
use crate::sys::{self, Socket};
use crate::{
    Connection, Environment, Error, Observer, Phase, ProcessInfo, Stream, Timeouts, TraceConfig,
    TraceSession, discover, monitor,
};
#[cfg(unix)]
use crate::{UserEvents, procfs};

/// A tool's way to one runtime. It connects anew for every command, as the protocol has it; or waits for the runtime
/// to connect anew, if it is at a [`Monitor`](crate::Monitor)'s port.
///
/// ```no_run
/// use ipc_std::Client;
///
/// let client = Client::for_process(4242)?;
/// let info = client.process_info()?;
/// println!("{} runs .NET {}", info.command_line, info.clr_product_version);
/// for (name, value) in client.environment()?.variables() {
///     println!("{name}={value}");
/// }
/// # Ok::<(), ipc_std::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    way: Way,
    peer: String,
    timeouts: Timeouts,
    observer: Option<Observer>,
}

/// How connections are had.
#[derive(Debug, Clone)]
enum Way {
    /// By connecting to the runtime's socket.
    Socket(PathBuf),
    /// By connecting to the socket that a search for its process has found, if it is that process that listens there.
    Found { path: PathBuf, pinned: Option<sys::Pinned>, target: Option<Target> },
    /// By waiting for the runtime to connect to a port.
    Port { monitor: Arc<monitor::Shared>, runtime_cookie: Guid },
}

impl Client {
    /// The longest environment that [`environment`](Self::environment) takes, in bytes. Linux allows 6 MiB of UTF-8.
    pub const ENVIRONMENT_LIMIT: u32 = 64 << 20;

    /// To the runtime in the process with this id, found as [`discover::find`] does. Nobody is asked who it is if the
    /// socket's name leaves no doubt. Whenever it connects, it makes sure by the operating system that it is this
    /// process that listens there, before it sends anything.
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn for_process(process_id: u32) -> Result<Self, Error> {
        let timeouts = Timeouts::default();
        discover::search(process_id, &timeouts).client(&timeouts)
    }

    /// To who listens at a socket that a search has found; only to the target, if there is one.
    pub(crate) fn found(
        process_id: u32,
        path: PathBuf,
        pinned: Option<sys::Pinned>,
        target: Option<Target>,
    ) -> Self {
        let way = Way::Found { path, pinned, target };
        Self::by(way, format!("process {process_id}"))
    }

    /// To the runtime that listens at this path. Nothing is connected yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let peer = path.display().to_string();
        Self::by(Way::Socket(path), peer)
    }

    /// To a runtime at a monitor's port.
    pub(crate) fn over(monitor: &Arc<monitor::Shared>, runtime_cookie: Guid) -> Self {
        let peer = match monitor.runtime(&runtime_cookie) {
            Some(runtime) => format!("process {}", runtime.local_process_id()),
            None => format!("runtime {runtime_cookie}"),
        };
        let way = Way::Port { monitor: Arc::clone(monitor), runtime_cookie };
        Self::by(way, peer)
    }

    fn by(way: Way, peer: String) -> Self {
        Self { way, peer, timeouts: Timeouts::default(), observer: None }
    }

    /// With other deadlines than the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Shows `observer` every message, on every connection.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.observer = observer.into();
        self
    }

    /// The socket: the runtime's, or that of the port to which it connects.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.way {
            Way::Socket(path) | Way::Found { path, .. } => path,
            Way::Port { monitor, .. } => monitor.path(),
        }
    }

    /// Who sees its messages.
    pub(crate) fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    /// Who it is, in an error.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Its deadlines.
    #[must_use]
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Connects, for one command; [`Timeouts::call`] begins to run. At a port, waits for the runtime to connect.
    ///
    /// # Errors
    /// [`Error::NoSuchPath`], [`Error::NoListener`], [`Error::Permission`], [`Error::PathTooLong`], [`Error::Impostor`],
    /// [`Error::Timeout`] if the runtime accepts nobody, or [`Error::Io`]; at a port [`Error::Left`].
    pub fn connect(&self) -> Result<Connection<Stream>, Error> {
        self.connect_for(Deadline::after(self.timeouts.call))
    }

    pub(crate) fn connect_for(&self, deadline: Deadline) -> Result<Connection<Stream>, Error> {
        let phase = self.connecting();
        let socket = self.reach(deadline.end).map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => Error::Timeout {
                peer: self.peer.clone(),
                phase,
                command: None,
                after: deadline.begin.elapsed(),
                sent: 0,
                received: 0,
            },
            _ => self.connect_error(e, phase),
        })?;
        self.check(&socket)?;
        let stream = Stream::over(socket, deadline.end);
        Ok(Connection::to(self.peer.clone(), deadline.begin, stream).with_observer(self.observer.clone()))
    }

    /// Connects for a session's stop; an error of kind `WouldBlock` if the runtime is not ready for it just now.
    pub(crate) fn connect_at_once(&self) -> io::Result<Socket> {
        let socket = self.reach(Instant::now()).map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
            _ => e,
        })?;
        self.check(&socket).map_err(io::Error::other)?;
        Ok(socket)
    }

    /// A new connection: `TimedOut` if there is none by `end`, `NotFound` if nobody is there to connect to.
    fn reach(&self, end: Instant) -> io::Result<Socket> {
        match &self.way {
            Way::Socket(_) | Way::Found { .. } => Socket::connect(&self.place(), end),
            Way::Port { monitor, runtime_cookie } => {
                monitor.take(runtime_cookie, end)?.ok_or_else(|| io::ErrorKind::NotFound.into())
            }
        }
    }

    /// Where to connect to.
    fn place(&self) -> Cow<'_, Path> {
        match &self.way {
            Way::Found { pinned: Some(pinned), .. } => pinned.path().into(),
            _ => self.path().into(),
        }
    }

    /// Whether it is the process looked for that listens there: nothing is sent to any other.
    fn check(&self, socket: &Socket) -> Result<(), Error> {
        let Way::Found { path, target: Some(target), .. } = &self.way else { return Ok(()) };
        target.check(socket).map_err(|peer| {
            let (process_id, path) = (target.process_id, path.clone());
            Error::Impostor { process_id, path, peer }
        })
    }

    /// What is being done to connect.
    pub(crate) const fn connecting(&self) -> Phase {
        match &self.way {
            Way::Socket(_) | Way::Found { .. } => Phase::Connecting,
            Way::Port { .. } => Phase::AwaitingRuntime,
        }
    }

    /// What it means that connecting failed.
    pub(crate) fn connect_error(&self, source: io::Error, phase: Phase) -> Error {
        let source = match source.downcast() {
            Ok(error) => return error,
            Err(source) => source,
        };
        let peer = self.peer.clone();
        match (&self.way, source.kind()) {
            (Way::Port { .. }, io::ErrorKind::NotFound) => Some(Error::Left { peer: peer.clone() }),
            _ => self.no_socket(&source),
        }
        .unwrap_or(Error::Io { peer, phase, source })
    }

    /// What it means that there is no way to connect to the runtime's socket.
    fn no_socket(&self, error: &io::Error) -> Option<Error> {
        let (Way::Socket(path) | Way::Found { path, .. }) = &self.way else { return None };
        let path = path.clone();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Some(Error::NoSuchPath { path }),
            // The system says the same of what is no socket at all.
            io::ErrorKind::ConnectionRefused if !sys::is_socket(&path) => Some(Error::NoSuchPath { path }),
            io::ErrorKind::ConnectionRefused => Some(Error::NoListener { path }),
            io::ErrorKind::PermissionDenied => {
                let denied = Denied::new(&path, error);
                Some(Error::Permission { path, denied })
            }
            _ if sys::is_too_long(error) => Some(Error::PathTooLong { path, limit: sys::LONGEST_PATH }),
            _ => None,
        }
    }

    /// Who the process is: asks for the newest description, then for older ones, each on a connection of its own and
    /// all of them by one deadline.
    ///
    /// # Errors
    /// If connecting or the call fails. .NET Core 3 knows none of the commands: [`Error::Refused`] by
    /// [`HResult::UNKNOWN_COMMAND`].
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        let deadline = Deadline::after(self.timeouts.call);
        self.step_down(plan::process_info(&Runtime::default()), |command| {
            let mut connection = self.connect_for(deadline)?;
            match command {
                GetProcessInfo3::CODE => connection.call(&GetProcessInfo3 {}).map(Into::into),
                GetProcessInfo2::CODE => connection.call(&GetProcessInfo2 {}).map(Into::into),
                _ => connection.call(&GetProcessInfo {}).map(Into::into),
            }
        })
    }

    /// Tries the steps of a plan as long as the runtime is too old for them.
    pub(crate) fn step_down<S, T>(
        &self,
        steps: impl Iterator<Item = S>,
        mut take: impl FnMut(S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut last = None;
        for step in steps {
            let result = take(step);
            if !result.as_ref().is_err_and(is_unknown) {
                return result;
            }
            last = Some(result);
        }
        // No plan for a runtime of unknown age is empty.
        last.unwrap_or_else(|| {
            let (peer, hresult) = (self.peer.clone(), HResult::UNKNOWN_COMMAND);
            Err(Error::Refused { peer, command: Code::OK, hresult, message: None })
        })
    }

    /// The environment of the process as it is now.
    ///
    /// # Errors
    /// If connecting or the call fails, or the environment is longer than [`Self::ENVIRONMENT_LIMIT`].
    pub fn environment(&self) -> Result<Environment, Error> {
        self.connect()?.environment(Self::ENVIRONMENT_LIMIT)
    }

    /// Lets a runtime that waits at its start go on; does nothing to any other.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn resume(&self) -> Result<(), Error> {
        self.status(&ResumeRuntime {})
    }

    /// Starts a session, with the oldest command that carries the wishes, as Microsoft's client does: one round trip
    /// on every age of runtime. A runtime that does not know it is asked by an older one;
    /// [`TraceSession::lost`] tells what that one does not carry.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what every runtime refuses, and some die of; nothing is sent then. If connecting or the call
    /// fails: [`Error::TooManySessions`] for the 65th.
    pub fn start_tracing(&self, config: &TraceConfig<'_>) -> Result<TraceSession, Error> {
        TraceSession::start(self, config)
    }

    /// Starts a session that writes to `user_events`, whose `user_events_data` is given. Since .NET 10, on Linux.
    ///
    /// # Errors
    /// [`Error::Invalid`] as above. If connecting or the call fails. [`HResult::FAIL`] where the kernel has no `user_events`.
    #[cfg(unix)]
    pub fn start_user_events(
        &self,
        session: &UserEventsSession<'_>,
        user_events_data: impl AsFd,
    ) -> Result<UserEvents, Error> {
        UserEvents::start(self, session, user_events_data.as_fd())
    }

    /// Stops a session by its id, which may be somebody else's. A [`TraceSession`] of one's own stops itself better:
    /// this waits for an answer that comes only once somebody has read the stream to its end.
    ///
    /// # Errors
    /// If connecting or the call fails. An unknown id is no error to any runtime.
    pub fn stop_tracing(&self, session_id: u64) -> Result<(), Error> {
        let mut connection = self.connect_for(Deadline::after(self.timeouts.stop))?;
        connection.call(&StopTracing { session_id }).map(|_| ())
    }

    /// Sets an environment variable of the process, or removes it. Managed code that has read it before may not see it.
    ///
    /// # Errors
    /// If connecting or the call fails: [`HResult::ENVVAR_NOT_FOUND`] for the removal of one that is not there.
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        self.status(&SetEnvironmentVariable { name: name.into(), value: value.into() })
    }

    /// Has the runtime write files for `perf`, on Linux.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn enable_perf_map(&self, perf_map_type: PerfMapType) -> Result<(), Error> {
        self.status(&EnablePerfMap { perf_map_type })
    }

    /// Has the runtime write no more files for `perf`.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn disable_perf_map(&self) -> Result<(), Error> {
        self.status(&DisablePerfMap {})
    }

    /// Has the runtime run a startup hook: at once, or at its start if it is suspended there. The path is the target's.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.status(&ApplyStartupHook { startup_hook_path: path.into() })
    }

    /// Has the runtime load a profiler, and waits for as long as it may take beside what a call takes. The path is the
    /// target's.
    ///
    /// # Errors
    /// If connecting or the call fails: [`HResult::MOD_NOT_FOUND`] for a library that is not there.
    pub fn attach_profiler(
        &self,
        attach_timeout: Duration,
        profiler_guid: Guid,
        profiler_path: &str,
        client_data: &[u8],
    ) -> Result<(), Error> {
        let request = AttachProfiler {
            attach_timeout: u32::try_from(attach_timeout.as_millis()).unwrap_or(u32::MAX),
            profiler_guid,
            profiler_path: profiler_path.into(),
            client_data: ClientData(client_data),
        };
        let deadline = Deadline::after(self.timeouts.call.saturating_add(attach_timeout));
        self.connect_for(deadline)?.call(&request).map(|_| ())
    }

    /// Has a runtime that is suspended at its start load a profiler then. The path is the target's.
    ///
    /// # Errors
    /// If connecting or the call fails: [`HResult::INVALID_ARG`] if it is not suspended any more.
    pub fn set_startup_profiler(&self, profiler_guid: Guid, profiler_path: &str) -> Result<(), Error> {
        self.status(&StartupProfiler { profiler_guid, profiler_path: profiler_path.into() })
    }

    /// Has the runtime write a dump of its process: with the newest command that it knows, all of it by
    /// [`Timeouts::dump`].
    ///
    /// # Errors
    /// If connecting or the call fails; since .NET 7 a refusal has words.
    pub fn write_dump(&self, config: &DumpConfig<'_>) -> Result<Written, Error> {
        let &DumpConfig { path, dump_type, flags } = config;
        let dump_name = Text::from(path);
        let deadline = Deadline::after(self.timeouts.dump);
        self.step_down(plan::dump(flags, &Runtime::default()), |plan::DumpStep { command, lost }| {
            let mut connection = self.connect_for(deadline)?;
            match command {
                GenerateCoreDump3::CODE => {
                    connection.call(&GenerateCoreDump3 { dump_name, dump_type, flags })?;
                }
                GenerateCoreDump2::CODE => {
                    connection.call(&GenerateCoreDump2 { dump_name, dump_type, flags })?;
                }
                _ => {
                    let diagnostics = flags.0 & DumpFlags::LOGGING_ENABLED.0;
                    connection.call(&GenerateCoreDump { dump_name, dump_type, diagnostics })?;
                }
            }
            Ok(Written { command, lost })
        })
    }

    /// Whether the request may end the process: see [`plan::hazard`]. Asks the runtime who it is, and the system what
    /// can be known of the process; what cannot be known counts as the worse.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn hazard(&self, request: &Request<'_>) -> Result<Option<Hazard>, Error> {
        if plan::hazard(request, &Runtime::default(), None).is_none() {
            return Ok(None);
        }
        let info = match self.process_info() {
            Err(e) if is_unknown(&e) => None,
            info => Some(info?),
        };
        let version = match &info {
            // .NET Core 3 does not say, and .NET 5 not the version.
            None => Some(3),
            Some(info) if info.clr_product_version.as_text().is_null() => Some(5),
            Some(info) => {
                let version = info.clr_product_version.to_string();
                version.split('.').next().and_then(|major| major.parse().ok())
            }
        };
        let linux = info.as_ref().map(|info| info.os == "Linux");
        let (flavour, suspended) = self.seen_from_here();
        let runtime = Runtime { version, flavour, linux, suspended };
        let file_is_there = match request {
            Request::ApplyStartupHook(hook) => self.has_file(&hook.startup_hook_path.to_string()),
            _ => None,
        };
        Ok(plan::hazard(request, &runtime, file_is_there))
    }

    /// What kind of runtime it is, and whether it may wait at its start.
    #[cfg(unix)]
    fn seen_from_here(&self) -> (Option<Flavour>, Option<bool>) {
        let process_id = self.process_id();
        (process_id.and_then(procfs::flavour), process_id.and_then(procfs::suspended))
    }
    /// Of another process neither can be known.
    #[cfg(windows)]
    const fn seen_from_here(&self) -> (Option<Flavour>, Option<bool>) {
        (None, None)
    }

    /// Whether the process finds a file at this path.
    #[cfg(unix)]
    fn has_file(&self, path: &str) -> Option<bool> {
        self.process_id().and_then(|process_id| procfs::has_file(process_id, path))
    }
    /// There are no other roots; where it has another working directory, it cannot be known.
    #[cfg(windows)]
    fn has_file(&self, path: &str) -> Option<bool> {
        let path = Path::new(path);
        path.is_absolute().then(|| path.is_file())
    }

    /// The process, if it can be told: by the name of the socket, or at a port by the operating system.
    #[cfg(unix)]
    fn process_id(&self) -> Option<u32> {
        match &self.way {
            Way::Found { path, target: Some(target), .. } => {
                // A router's is another program than the runtime behind it.
                let name: Option<ipc_proto::SocketName> = path.file_name()?.to_str()?.parse().ok();
                name.map(|_| target.process_id)
            }
            Way::Socket(path) | Way::Found { path, .. } => sys::owner(path),
            Way::Port { monitor, runtime_cookie } => {
                let seen = monitor.runtime(runtime_cookie)?.credentials?.process_id;
                (seen != 0).then_some(seen)
            }
        }
    }

    fn status<C: Command>(&self, command: &C) -> Result<(), Error> {
        self.connect()?.call(command).map(|_| ())
    }
}

/// What dump to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpConfig<'a> {
    /// Where to, in the target's file system; `%p` and its kin are expanded by the runtime.
    pub path: &'a str,
    /// How much of the process.
    pub dump_type: DumpType,
    /// How to go about it.
    pub flags: DumpFlags,
}

/// How a dump was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// By which command.
    pub command: Code,
    /// What of the wishes that command does not carry.
    pub lost: Lost,
}

/// When a call began and has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        /// For limits that the clock cannot add up.
        const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let begin = Instant::now();
        let end = begin.checked_add(limit).or_else(|| begin.checked_add(FOR_EVER)).unwrap_or(begin);
        Self { begin, end }
    }
}

/// Whether the runtime is too old for the command.
pub(crate) const fn is_unknown(e: &Error) -> bool {
    matches!(e, Error::Refused { hresult: HResult::UNKNOWN_COMMAND, .. })
}
