//! The blocking `Client`: a method for every command except those that start a session. The methods that start a
//! session are in `trace.rs`, `user_events.rs` and `counter_stream.rs`.
use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_proto::plan::{DumpConfig, Fallback, FallbackStep, InfoConfig, PlanStep, Runtime, Single};
use ipc_proto::types::{ClientData, PerfMapType};
use ipc_proto::{
    ApplyStartupHook, AttachProfiler, BusyBackoff, Command, DisablePerfMap, EnablePerfMap, Guid,
    ResumeRuntime, SetEnvironmentVariable, StartupProfiler, StopTracing,
};

use crate::connection::Connection;
use crate::dump_outcome::DumpOutcome;
use crate::environment::Environment;
use crate::error::Error;
use crate::observer::Observer;
use crate::process_info::ProcessInfo;
use crate::timeouts::Timeouts;
use crate::transport::{ConnectError, Connector, Dialer, FnConnector, SocketConnector, Stream, connect};

/// A client of one runtime.
///
/// The protocol carries one command on a connection, so every method uses a new connection. The client connects to the
/// runtime's socket, takes the next connection of the runtime to the port of a [`Monitor`](crate::Monitor), or opens a
/// connection over another transport: see [`over`](Self::over).
///
/// ```no_run
/// use ipc_std::Client;
///
/// let client = Client::for_process(4242)?;
/// let info = client.process_info()?;
/// println!("{} runs .NET {}", info.command_line, info.clr_product_version);
/// for variable in client.environment()?.variables() {
///     println!("{} is {}", variable.name, variable.value);
/// }
/// # Ok::<(), ipc_std::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    connector: Arc<dyn Connector>,
    timeouts: Timeouts,
    /// When the calls of the client end at the latest.
    deadline: Option<Instant>,
    observer: Option<Observer>,
}

impl Client {
    /// Creates a client of the runtime that listens at this path. Nothing is connected yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::new(SocketConnector::at(path.display().to_string(), path))
    }

    /// Creates a client over any transport. `connect` opens a connection for each command; its argument is the
    /// deadline. `peer` is the name of the runtime in errors.
    ///
    /// The [`Stream`] of the connection is made from a socket, a child process or anything that reads and writes. An
    /// error of the kind `TimedOut` or `WouldBlock` means that the runtime is busy: `connect` is called again until the
    /// deadline. `connect` is called on a thread of its own; see [`Connector::connect`].
    ///
    /// ```no_run
    /// use ipc_std::{Client, Stream};
    /// use std::net::TcpStream;
    ///
    /// let client = Client::over("the router", |_| Stream::tcp(TcpStream::connect("127.0.0.1:9000")?));
    /// println!("{}", client.process_info()?.command_line);
    /// # Ok::<(), ipc_std::Error>(())
    /// ```
    pub fn over(
        peer: impl Into<String>,
        connect: impl Fn(Instant) -> io::Result<Stream> + Send + Sync + 'static,
    ) -> Self {
        Self::new(FnConnector { peer: peer.into(), connect })
    }

    /// Creates a client that uses the connections of `connector`.
    pub fn new(connector: impl Connector + 'static) -> Self {
        Self { connector: Arc::new(connector), timeouts: Timeouts::default(), deadline: None, observer: None }
    }

    /// Sets the deadlines in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Ends every call at `deadline` at the latest, so that several calls have one deadline. The Stop of a session does
    /// not: it has the limit [`Timeouts::stop`], because a session that is not stopped would burden the runtime.
    ///
    /// ```no_run
    /// use core::time::Duration;
    /// use ipc_std::Client;
    /// use std::time::Instant;
    ///
    /// // Both calls together take at most 3 seconds.
    /// let client = Client::for_process(4242)?.with_deadline(Instant::now() + Duration::from_secs(3));
    /// println!("{} {:?}", client.process_info()?.command_line, client.environment()?);
    /// # Ok::<(), ipc_std::Error>(())
    /// ```
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Option<Instant>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Shows `observer` every message on every connection.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.observer = observer.into();
        self
    }

    /// Returns the path of the runtime's socket, or of the port that the runtime connects to; `None` for other
    /// transports.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.connector.path()
    }

    /// Returns the deadlines.
    #[must_use]
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    pub(crate) fn connector(&self) -> &Arc<dyn Connector> {
        &self.connector
    }

    /// Returns the name of the runtime in errors.
    pub(crate) fn peer(&self) -> &str {
        self.connector.peer()
    }

    /// Opens a connection for one command; [`Timeouts::call`] begins now. For a runtime at the port of a monitor, this
    /// method waits until the runtime connects.
    ///
    /// # Errors
    /// [`Error::NoSuchPath`], [`Error::NoListener`], [`Error::Permission`], [`Error::PathTooLong`], [`Error::Impostor`]
    /// or [`Error::Io`]; [`Error::Timeout`] if the runtime does not accept the connection in time; [`Error::Left`] for
    /// a runtime that has left the port of its monitor.
    pub fn connect(&self) -> Result<Connection<Stream>, Error> {
        self.connect_by(Deadline::after(self.timeouts.call))
    }

    pub(crate) fn connect_by(&self, deadline: Deadline) -> Result<Connection<Stream>, Error> {
        let deadline = self.deadline.map_or(deadline, |end| deadline.limited(end));
        let mut backoff = BusyBackoff::new();
        let mut stream = loop {
            let opened = match self.connector.is_prompt() {
                true => connect(&*self.connector, deadline.end),
                false => Dialer::start(Arc::clone(&self.connector), deadline.end)
                    .map_err(ConnectError::Io)
                    .and_then(|dialer| dialer.wait(deadline.end)),
            };
            match opened {
                Err(ConnectError::NotReady) if Instant::now() < deadline.end => {
                    let remaining = deadline.end.saturating_duration_since(Instant::now());
                    thread::sleep(Duration::from_millis(backoff.next().into()).min(remaining));
                }
                opened => break opened.map_err(|e| self.connect_error(e, deadline))?,
            }
        };
        stream.set_deadline(deadline.end);
        Ok(Connection::begun(self.peer().to_owned(), deadline.begin, stream).with_observer(self.observer()))
    }

    fn connect_error(&self, error: ConnectError, deadline: Deadline) -> Error {
        let (peer, phase) = (self.peer().to_owned(), self.connector.phase());
        match error {
            ConnectError::Failed(error) => error,
            ConnectError::Io(source) => Error::Io { peer, phase, source },
            ConnectError::NotReady => {
                let after = deadline.begin.elapsed();
                Error::Timeout { peer, phase, command: None, after, sent: 0, received: 0 }
            }
        }
    }

    /// Carries out a plan: each command on a connection of its own, and all of them within one deadline.
    pub(crate) fn carry_out<P: PlanStep>(
        &self,
        first: P,
        deadline: Deadline,
    ) -> Result<CarriedPlan<P>, Error> {
        first.check().map_err(|value| Error::invalid(first.code(), value))?;
        let mut fallback = Fallback::new(first, u64::MAX);
        let mut connection = self.connect_by(deadline)?;
        loop {
            connection.drive(&mut fallback, |_| Ok(()))?;
            let FallbackStep::Connect = fallback.step(&mut []) else {
                return Ok(CarriedPlan { connection, fallback });
            };
            let buf = connection.into_buffer();
            connection = self.connect_by(deadline)?;
            connection.continue_with(buf);
        }
    }

    /// Returns what the runtime reports about its process. The client requests the newest description first, then older
    /// descriptions, each on a connection of its own and all within one deadline.
    ///
    /// # Errors
    /// If connecting or the call fails. .NET Core 3 has no command for process information: [`Error::Refused`] with
    /// [`HResult::UNKNOWN_COMMAND`](ipc_proto::HResult::UNKNOWN_COMMAND).
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        let first = InfoConfig.first_step(&Runtime::default());
        let carried = self.carry_out(first, Deadline::after(self.timeouts.call))?;
        Ok(carried.response()?.into())
    }

    /// Returns the current environment of the process.
    ///
    /// # Errors
    /// If connecting or the call fails, or the environment is longer than [`Environment::LIMIT`].
    pub fn environment(&self) -> Result<Environment, Error> {
        self.connect()?.environment(Environment::LIMIT)
    }

    /// Resumes a runtime that is suspended at startup; has no effect on any other runtime.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn resume(&self) -> Result<(), Error> {
        self.call(&ResumeRuntime {})
    }

    /// Stops a session by its id, which another client may have started. For a [`TraceSession`](crate::TraceSession) of
    /// this process use the session's own `stop`: the runtime sends the response, for which `stop_tracing` waits, only
    /// after a client has read the stream to its end.
    ///
    /// # Errors
    /// If connecting or the call fails. No runtime refuses an unknown id.
    pub fn stop_tracing(&self, session_id: u64) -> Result<(), Error> {
        self.call_by(Deadline::after(self.timeouts.stop), &StopTracing { session_id })
    }

    /// Sets an environment variable of the process, or removes it.
    ///
    /// The program sees the new value if it has not read the variable before. Variables that configure the runtime
    /// itself (`DOTNET_gcServer`, `DOTNET_TieredCompilation`, …) have an effect only while the runtime is suspended at
    /// startup, as by [`Monitor::spawn`](crate::Monitor::spawn); a running runtime has read them already.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name. An error of connecting or of the call; the runtime refuses to remove a
    /// variable that does not exist, with [`HResult::ENVVAR_NOT_FOUND`](ipc_proto::HResult::ENVVAR_NOT_FOUND).
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        self.call(&SetEnvironmentVariable { name: name.into(), value: value.into() })
    }

    /// Makes the runtime write files for `perf`. Linux only.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn enable_perf_map(&self, perf_map_type: PerfMapType) -> Result<(), Error> {
        self.call(&EnablePerfMap { perf_map_type })
    }

    /// Makes the runtime stop writing files for `perf`.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn disable_perf_map(&self) -> Result<(), Error> {
        self.call(&DisablePerfMap {})
    }

    /// Makes the runtime run a startup hook: immediately, or, if it is suspended at startup, when it is resumed. `path`
    /// is a path in the file system of the target process.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.call(&ApplyStartupHook { startup_hook_path: path.into() })
    }

    /// Makes the runtime load a profiler. The deadline is the sum of [`Timeouts::call`] and `attach_timeout`.
    /// `profiler_path` is a path in the file system of the target process.
    ///
    /// # Errors
    /// An error of connecting or of the call; the runtime refuses a library that does not exist with
    /// [`HResult::MOD_NOT_FOUND`](ipc_proto::HResult::MOD_NOT_FOUND).
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
        self.call_by(Deadline::after(self.timeouts.call.saturating_add(attach_timeout)), &request)
    }

    /// Sets the profiler that a runtime loads when it is resumed; the runtime must be suspended at startup.
    /// `profiler_path` is a path in the file system of the target process.
    ///
    /// # Errors
    /// An error of connecting or of the call; a runtime that is not suspended refuses the command with
    /// [`HResult::INVALID_ARG`](ipc_proto::HResult::INVALID_ARG).
    pub fn set_startup_profiler(&self, profiler_guid: Guid, profiler_path: &str) -> Result<(), Error> {
        self.call(&StartupProfiler { profiler_guid, profiler_path: profiler_path.into() })
    }

    /// Makes the runtime write a dump of its process, with the newest command that it knows and within
    /// [`Timeouts::dump`].
    ///
    /// # Errors
    /// If connecting or the call fails; since .NET 7 a refusal has a message.
    pub fn write_dump(&self, config: &DumpConfig<'_>) -> Result<DumpOutcome, Error> {
        let first = config.first_step(&Runtime::default());
        let carried = self.carry_out(first, Deadline::after(self.timeouts.dump))?;
        carried.response()?;
        Ok(DumpOutcome::of(carried.fallback.command()))
    }

    /// Calls a command whose response has no content, within [`Timeouts::call`].
    fn call<C: Command>(&self, command: &C) -> Result<(), Error> {
        self.call_by(Deadline::after(self.timeouts.call), command)
    }

    fn call_by<C: Command>(&self, deadline: Deadline, command: &C) -> Result<(), Error> {
        self.carry_out(Single(command), deadline)?.response().map(|_| ())
    }
}

/// A plan that was carried out, and its last connection.
#[derive(Debug)]
pub(crate) struct CarriedPlan<P> {
    pub(crate) connection: Connection<Stream>,
    pub(crate) fallback: Fallback<P>,
}

impl<P: PlanStep> CarriedPlan<P> {
    /// Returns the response to the last command.
    pub(crate) fn response(&self) -> Result<P::Response<'_>, Error> {
        self.connection.response(&self.fallback)
    }
}
