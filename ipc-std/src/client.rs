use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc_proto::plan::{self, LostFeatures, Runtime};
use ipc_proto::types::{ClientData, DumpFlags, DumpType, PerfMapType};
use ipc_proto::{
    ApplyStartupHook, AttachProfiler, Code, Command, DisablePerfMap, EnablePerfMap, GenerateCoreDump,
    GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, Guid, HResult,
    ResumeRuntime, SetEnvironmentVariable, StartupProfiler, StopTracing, Text,
};

use crate::connection::Connection;
use crate::connector::{ConnectError, Connector, SocketConnector};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, check};
use crate::observer::Observer;
use crate::process_info::ProcessInfo;
use crate::stream::Stream;
use crate::timeouts::{Deadline, Timeouts};

/// A client of one runtime.
///
/// The protocol carries one command on a connection, so every method opens a new one: it connects to the runtime's
/// socket, or takes the next connection of a runtime at a [`Monitor`](crate::Monitor)'s port.
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
    observer: Option<Observer>,
}

impl Client {
    /// The longest environment that [`environment`](Self::environment) receives, in bytes. Linux allows 6 MiB of UTF-8.
    pub const ENVIRONMENT_LIMIT: u32 = 64 << 20;

    /// Creates a client of the runtime that listens at this path. Nothing is connected yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::with_connector(Arc::new(SocketConnector::at(path.into())))
    }

    /// Creates a client that uses the connections of `connector`.
    pub(crate) fn with_connector(connector: Arc<dyn Connector>) -> Self {
        Self { connector, timeouts: Timeouts::default(), observer: None }
    }

    /// Sets the deadlines in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Shows `observer` every message on every connection.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.observer = observer.into();
        self
    }

    /// Returns the path of the runtime's socket, or of the port that the runtime connects to.
    #[must_use]
    pub fn path(&self) -> &Path {
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

    pub(crate) fn connector(&self) -> &dyn Connector {
        &*self.connector
    }

    /// Returns the name of the runtime in errors.
    pub(crate) fn peer(&self) -> &str {
        self.connector.peer()
    }

    /// Opens a connection for one command; [`Timeouts::call`] begins now. At a port, this waits for the runtime to
    /// connect.
    ///
    /// # Errors
    /// [`Error::NoSuchPath`], [`Error::NoListener`], [`Error::Permission`], [`Error::PathTooLong`], [`Error::Impostor`]
    /// or [`Error::Io`]; [`Error::Timeout`] if the runtime does not accept the connection in time; at a port
    /// [`Error::Left`].
    pub fn connect(&self) -> Result<Connection<Stream>, Error> {
        self.connect_by(Deadline::after(self.timeouts.call))
    }

    pub(crate) fn connect_by(&self, deadline: Deadline) -> Result<Connection<Stream>, Error> {
        let socket = self.connector.connect(deadline.end).map_err(|e| match e {
            ConnectError::Failed(error) => error,
            ConnectError::NotReady => Error::Timeout {
                peer: self.peer().to_owned(),
                phase: self.connector.phase(),
                command: None,
                after: deadline.begin.elapsed(),
                sent: 0,
                received: 0,
            },
        })?;
        let stream = Stream::over(socket, deadline.end);
        Ok(Connection::to(self.peer().to_owned(), deadline.begin, stream).with_observer(self.observer()))
    }

    /// Returns what the runtime reports about its process. It requests the newest description first, then older ones,
    /// each on a connection of its own and all within one deadline.
    ///
    /// # Errors
    /// If connecting or the call fails. .NET Core 3 has no such command: [`Error::Refused`] with
    /// [`HResult::UNKNOWN_COMMAND`].
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        let deadline = Deadline::after(self.timeouts.call);
        self.try_steps(plan::process_info(&Runtime::default()), |command| {
            let mut connection = self.connect_by(deadline)?;
            match command {
                GetProcessInfo3::CODE => connection.call(&GetProcessInfo3 {}).map(Into::into),
                GetProcessInfo2::CODE => connection.call(&GetProcessInfo2 {}).map(Into::into),
                _ => connection.call(&GetProcessInfo {}).map(Into::into),
            }
        })
    }

    /// Tries the steps of a plan until the runtime knows the command.
    pub(crate) fn try_steps<S, T>(
        &self,
        steps: impl Iterator<Item = S>,
        mut call: impl FnMut(S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut last = None;
        for step in steps {
            let result = call(step);
            if !result.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unsupported) {
                return result;
            }
            last = Some(result);
        }
        // A plan for a runtime of unknown version has at least one step.
        last.unwrap_or_else(|| {
            let (peer, hresult) = (self.peer().to_owned(), HResult::UNKNOWN_COMMAND);
            Err(Error::Refused { peer, command: Code::OK, hresult, message: None })
        })
    }

    /// Returns the current environment of the process.
    ///
    /// # Errors
    /// If connecting or the call fails, or the environment is longer than [`Self::ENVIRONMENT_LIMIT`].
    pub fn environment(&self) -> Result<Environment, Error> {
        self.connect()?.environment(Self::ENVIRONMENT_LIMIT)
    }

    /// Resumes a runtime that is suspended at startup; has no effect on any other.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn resume(&self) -> Result<(), Error> {
        self.call(&ResumeRuntime {})
    }

    /// Stops a session by its id, which another client may have started. For a [`TraceSession`](crate::TraceSession) of
    /// this process use its own `stop`: this one waits for a response that the runtime sends only after a client has
    /// read the stream to its end.
    ///
    /// # Errors
    /// If connecting or the call fails. No runtime refuses an unknown id.
    pub fn stop_tracing(&self, session_id: u64) -> Result<(), Error> {
        self.call_by(Deadline::after(self.timeouts.stop), &StopTracing { session_id })
    }

    /// Sets an environment variable of the process, or removes it.
    ///
    /// The program sees it if it has not read the variable before. Variables that configure the runtime itself
    /// (`DOTNET_gcServer`, `DOTNET_TieredCompilation`, …) have an effect only while the runtime is suspended at
    /// startup, as by [`Monitor::spawn`](crate::Monitor::spawn); a running runtime has read them already.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name. If connecting or the call fails: [`HResult::ENVVAR_NOT_FOUND`] for the
    /// removal of a variable that does not exist.
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

    /// Makes the runtime run a startup hook: immediately, or at its start if it is suspended there. The path is one in
    /// the target's file system.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.call(&ApplyStartupHook { startup_hook_path: path.into() })
    }

    /// Makes the runtime load a profiler. The deadline is `attach_timeout` after that of a call. The path is one in the
    /// target's file system.
    ///
    /// # Errors
    /// If connecting or the call fails: [`HResult::MOD_NOT_FOUND`] for a library that does not exist.
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

    /// Sets the profiler that a runtime loads when it is resumed; it must be suspended at startup. The path is one in
    /// the target's file system.
    ///
    /// # Errors
    /// If connecting or the call fails: [`HResult::INVALID_ARG`] if the runtime is not suspended.
    pub fn set_startup_profiler(&self, profiler_guid: Guid, profiler_path: &str) -> Result<(), Error> {
        self.call(&StartupProfiler { profiler_guid, profiler_path: profiler_path.into() })
    }

    /// Makes the runtime write a dump of its process, with the newest command that it knows and within
    /// [`Timeouts::dump`].
    ///
    /// # Errors
    /// If connecting or the call fails; since .NET 7 a refusal has a message.
    pub fn write_dump(&self, config: &DumpConfig<'_>) -> Result<DumpOutcome, Error> {
        let &DumpConfig { path, dump_type, flags } = config;
        let dump_name = Text::from(path);
        let deadline = Deadline::after(self.timeouts.dump);
        self.try_steps(plan::dump(flags, &Runtime::default()), |plan::DumpStep { command, lost }| {
            match command {
                GenerateCoreDump3::CODE => {
                    self.call_by(deadline, &GenerateCoreDump3 { dump_name, dump_type, flags })?;
                }
                GenerateCoreDump2::CODE => {
                    self.call_by(deadline, &GenerateCoreDump2 { dump_name, dump_type, flags })?;
                }
                _ => {
                    let diagnostics = flags.0 & DumpFlags::LOGGING_ENABLED.0;
                    self.call_by(deadline, &GenerateCoreDump { dump_name, dump_type, diagnostics })?;
                }
            }
            Ok(DumpOutcome { command, lost })
        })
    }

    /// Calls a command whose response has no content, within [`Timeouts::call`].
    fn call<C: Command>(&self, command: &C) -> Result<(), Error> {
        self.call_by(Deadline::after(self.timeouts.call), command)
    }

    fn call_by<C: Command>(&self, deadline: Deadline, command: &C) -> Result<(), Error> {
        check(command)?;
        self.connect_by(deadline)?.call(command).map(|_| ())
    }
}

/// The dump to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpConfig<'a> {
    /// The path in the target's file system. The runtime expands `%p` and other templates.
    pub path: &'a str,
    /// The part of the process that the dump contains.
    pub dump_type: DumpType,
    /// Options for the dump's writer.
    pub flags: DumpFlags,
}

/// How a dump was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpOutcome {
    /// The command that the runtime executed.
    pub command: Code,
    /// The parts of the configuration that this command cannot carry.
    pub lost: LostFeatures,
}
