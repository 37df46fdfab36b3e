use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_proto::{GetProcessInfo, GetProcessInfo2, GetProcessInfo3, HResult, ResumeRuntime, StopTracing};

use crate::error::Context;
use crate::{
    Connection, Environment, Error, Observer, Phase, ProcessInfo, Stream, Timeouts, TraceConfig,
    TraceSession, discover,
};

/// A tool's way to one runtime. It connects anew for every command, as the protocol has it.
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
    path: PathBuf,
    peer: String,
    timeouts: Timeouts,
    observer: Option<Observer>,
}

impl Client {
    /// The longest environment that [`environment`](Self::environment) takes, in bytes. Linux allows 6 MiB of UTF-8.
    pub const ENVIRONMENT_LIMIT: u32 = 64 << 20;

    /// To the runtime in the process with this id: see [`discover::find`].
    ///
    /// # Errors
    /// [`Error::NoProcess`] or [`Error::NoSocket`].
    pub fn for_process(process_id: u32) -> Result<Self, Error> {
        let path = discover::find(process_id)?.path;
        Ok(Self { peer: format!("process {process_id}"), ..Self::at(path) })
    }

    /// To the runtime that listens at this path. Nothing is connected yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let peer = path.display().to_string();
        Self { path, peer, timeouts: Timeouts::default(), observer: None }
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

    /// The runtime's socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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

    /// Connects, for one command; [`Timeouts::call`] begins to run.
    ///
    /// # Errors
    /// [`Error::NoSuchPath`], [`Error::NoListener`], [`Error::Permission`], [`Error::Timeout`] if the runtime accepts
    /// nobody, or [`Error::Io`].
    pub fn connect(&self) -> Result<Connection<Stream>, Error> {
        self.connect_for(Deadline::after(self.timeouts.call))
    }

    pub(crate) fn connect_for(&self, deadline: Deadline) -> Result<Connection<Stream>, Error> {
        let stream = Stream::connect(&self.path, deadline.end).map_err(|e| {
            let path = self.path.clone();
            match e.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NoSuchPath { path },
                io::ErrorKind::ConnectionRefused => Error::NoListener { path },
                io::ErrorKind::PermissionDenied => Error::Permission { path },
                _ => {
                    let waited = deadline.begin.elapsed();
                    let context = Context { peer: &self.peer, sent: 0, received: 0, waited };
                    context.io(e, Phase::Connecting)
                }
            }
        })?;
        Ok(Connection::to(self.peer.clone(), deadline.begin, stream).with_observer(self.observer.clone()))
    }

    /// Who the process is: asks for the newest description, then for older ones, each on a connection of its own and
    /// all of them by one deadline.
    ///
    /// # Errors
    /// If connecting or the call fails. .NET Core 3 knows none of the commands: [`Error::Refused`] by
    /// [`HResult::UNKNOWN_COMMAND`].
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        let deadline = Deadline::after(self.timeouts.call);
        match self.connect_for(deadline)?.call(&GetProcessInfo3 {}) {
            Err(e) if is_unknown(&e) => {}
            answer => return answer.map(Into::into),
        }
        match self.connect_for(deadline)?.call(&GetProcessInfo2 {}) {
            Err(e) if is_unknown(&e) => {}
            answer => return answer.map(Into::into),
        }
        self.connect_for(deadline)?.call(&GetProcessInfo {}).map(Into::into)
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
        self.connect()?.call(&ResumeRuntime {}).map(|_| ())
    }

    /// Starts a session, with the oldest command that carries the wishes, as Microsoft's client does: one round trip
    /// on every age of runtime.
    ///
    /// A runtime older than .NET 9 cannot choose its rundown by keyword. It is asked for the default rundown then,
    /// which holds more; [`TraceSession::command`] tells.
    ///
    /// # Errors
    /// If connecting or the call fails. [`HResult::FAIL`] mostly means that 64 sessions are open already.
    pub fn start_tracing(&self, config: &TraceConfig<'_>) -> Result<TraceSession, Error> {
        TraceSession::start(self, config)
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
}

/// When a call began and has to end.
#[derive(Debug, Clone, Copy)]
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
