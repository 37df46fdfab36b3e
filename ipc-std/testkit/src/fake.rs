//! `FakeRuntime`: a runtime in this process, for tests and demonstrations on machines without .NET.
mod answers;
mod deviation;
mod fake_core;
mod fault;
mod logged_request;
mod program;
mod recorded_deviations;
mod response;
mod served_connection;
mod serving;
mod streaming;
#[cfg(unix)]
mod tracepoints;

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::Shutdown;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ipc_proto::{Advertise, Code, Request};
#[cfg(unix)]
use tempfile::TempDir;

use ipc_std::{Server, ServerStopper};

use crate::profile::Profile;

pub use fault::Fault;
pub use logged_request::LoggedRequest;
pub use response::Response;

use fake_core::FakeCore;

/// A fake runtime, which answers as a real runtime does.
///
/// It is a [`Server`]: it listens under the name of a runtime's socket, and connects to the monitors that its
/// [`Profile`] names, again after each answered command, until it is dropped. Microsoft's client accepts it as a
/// runtime of the version and kind of its profile. It differs from a real runtime in these points:
///
/// | real runtime | fake runtime |
/// |---|---|
/// | serves one connection at a time, and waits for a silent client indefinitely | serves all connections at the same time, and closes the connection of a silent client after [`client_timeout`](Profile::client_timeout) |
/// | has one back-off for all its monitors | has one back-off for each monitor |
/// | runs a moment after its last `ResumeRuntime`, and attaches no profiler until then | runs immediately |
/// | writes dumps | refuses, with a message if the command has one |
/// | loads a profiler | does not find the profiler to attach (0x8007007E); accepts the startup profiler and [logs](Self::requests) the request |
/// | runs startup hooks | logs the request |
/// | writes perf maps | logs the request |
/// | refuses the descriptor of another file than `user_events_data` | writes the records of tracepoints to any file: [`Response::UserEvents`] |
/// | traces its program | replays a recording of another program: [`Response::Replay`] |
/// | ends after EnablePerfMap while it is suspended (.NET 8 and 9) | logs the request |
/// | takes every profiler command for AttachProfiler (.NET Core 3) | answers that the other profiler commands are unknown |
/// | ends | closes the connection, and serves the next one |
///
/// A [careful](Profile::careful) runtime differs in these points, too:
///
/// | real runtime | careful fake runtime |
/// |---|---|
/// | reads past the end of a payload that is too short, and often ends (before .NET 11) | answers [`HResult::BAD_ENCODING`](ipc_proto::HResult::BAD_ENCODING) |
/// | reserves memory for a count of the request, and answers no client meanwhile | answers [`HResult::BAD_ENCODING`](ipc_proto::HResult::BAD_ENCODING) |
/// | counts the bytes of a string in 32 bits: the highest bit of the number of units has no effect | answers [`HResult::BAD_ENCODING`](ipc_proto::HResult::BAD_ENCODING) |
/// | answers a request for process information that has a payload with this payload | ignores the payload |
/// | ends when a variable is removed (NativeAOT) | removes the variable |
/// | ends on a dump whose name is null (CoreCLR) | refuses the dump |
/// | ends on a session of `user_events` with an event id twice or a tracepoint name that is too long | refuses by [`Request::check`] |
/// | ends on a startup hook that it cannot load (.NET 9 and 10), or answers [`HResult::INVALID_ARG`](ipc_proto::HResult::INVALID_ARG) (.NET 8 and 11) | accepts the hook |
/// | accepts an empty variable name, duplicate event ids, and perf map types above 0x7fffffff | refuses by [`Request::check`] |
///
/// ```
/// use ipc_testkit::ipc_std::Client;
/// use ipc_testkit::{FakeRuntime, Profile};
///
/// let runtime = FakeRuntime::start(Profile::net8())?;
/// let info = Client::at(runtime.path()).process_info()?;
/// assert_eq!(info.clr_product_version, "8.0.31");
/// assert_eq!(runtime.requests().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A runtime at the port of a monitor, with both ends in one program:
///
/// ```
/// use ipc_testkit::ipc_proto::{Advertise, Parsed, ResumeRuntime};
/// use ipc_testkit::ipc_std::Connection;
/// use ipc_testkit::{FakePort, FakeRuntime, Profile};
/// use std::{io::Read, os::unix::net::UnixListener};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("monitor");
/// let monitor = UnixListener::bind(&path)?;
/// let ports = vec![FakePort { path, suspended: true }];
/// let runtime = FakeRuntime::without_listener(Profile { ports, ..Profile::net10() })?;
///
/// let (mut stream, _) = monitor.accept()?;
/// let mut frame = [0; Advertise::LEN];
/// stream.read_exact(&mut frame)?;
/// let Parsed::Complete { value, .. } = Advertise::parse(&frame)? else { unreachable!() };
/// assert_eq!(value.runtime_cookie, runtime.profile().runtime_cookie);
/// Connection::new(stream).call(&ResumeRuntime {})?;
/// assert!(!runtime.is_suspended());
/// monitor.accept()?; // the runtime connects again
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FakeRuntime {
    core: Arc<FakeCore>,
    path: PathBuf,
    accepting: Option<Accepting>,
    /// The folder of the socket, which is removed with its content.
    #[cfg(unix)]
    _directory: Option<TempDir>,
}

/// The thread that accepts connections and serves each on a thread of its own.
#[derive(Debug)]
struct Accepting {
    stopper: ServerStopper,
    thread: JoinHandle<()>,
}

impl FakeRuntime {
    /// Starts a runtime that listens in a temporary directory of its own.
    ///
    /// # Errors
    /// If the directory cannot be created, or listening fails; else as [`without_listener`](Self::without_listener).
    #[cfg(unix)]
    pub fn start(profile: Profile) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("fake-runtime-").tempdir()?;
        let mut runtime = Self::start_in(directory.path(), profile)?;
        runtime._directory = Some(directory);
        Ok(runtime)
    }
    /// Starts a runtime that listens under a name of its own.
    ///
    /// # Errors
    /// If listening fails; else as [`without_listener`](Self::without_listener).
    #[cfg(windows)]
    pub fn start(profile: Profile) -> io::Result<Self> {
        let mut directory = ipc_std::discover::directory().into_os_string();
        directory.push(format!("fake-runtime-{}-", crate::profile::random()));
        Self::start_in(Path::new(&directory), profile)
    }

    /// Starts a runtime that listens in this directory. Clients find it if they search the directory for this process:
    /// clients whose `TMPDIR` is the directory. On Linux all clients find it, if the directory was the `TMPDIR` of this
    /// process at its start.
    ///
    /// # Errors
    /// If listening fails; of kind `AddrInUse` if this process has a runtime in the directory already. Else as
    /// [`without_listener`](Self::without_listener).
    pub fn start_in(directory: &Path, profile: Profile) -> io::Result<Self> {
        Self::accept_in(profile, Some(directory))
    }

    /// Starts a runtime that does not listen. It connects to the monitors of its profile, and serves the connections
    /// given to [`serve`](Self::serve).
    ///
    /// # Errors
    /// If the path of a port is too long for a socket, or if descriptors or threads are exhausted.
    pub fn without_listener(profile: Profile) -> io::Result<Self> {
        Self::accept_in(profile, None)
    }

    fn accept_in(profile: Profile, directory: Option<&Path>) -> io::Result<Self> {
        let (process_id, runtime_cookie) = (profile.process_id.into(), profile.runtime_cookie);
        let mut server = Server::new(&Advertise { runtime_cookie, process_id, future: 0 })?;
        for port in &profile.ports {
            server.connect(&port.path)?;
        }
        if let Some(directory) = directory {
            server.listen(directory)?;
        }
        let path = server.path().map(Path::to_owned).unwrap_or_default();
        let core = Arc::new(FakeCore::new(profile));
        let accepting = {
            let (stopper, core) = (server.stopper(), Arc::clone(&core));
            let thread = thread::Builder::new().name("fake-runtime".to_owned());
            Accepting { stopper, thread: thread.spawn(move || accept(&core, server))? }
        };
        Ok(Self {
            core,
            path,
            accepting: Some(accepting),
            #[cfg(unix)]
            _directory: None,
        })
    }

    /// Serves one connection over any stream, until the connection ends.
    ///
    /// ```
    /// use ipc_testkit::ipc_std::Connection;
    /// use ipc_testkit::{FakeRuntime, Profile};
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
        self.core.serve(stream, None, self.profile().ports.len(), &mut None);
    }

    /// Returns the path of the socket; empty if the runtime does not listen.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.core.profile
    }

    /// Returns the process id of the profile.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.core.profile.process_id
    }

    /// Returns whether the runtime waits for `ResumeRuntime` at any of its ports.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.core.state().suspension.is_suspended()
    }

    /// Returns the received requests in order, valid and invalid ones. Only the newest are stored, up to 16 MiB
    /// together.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.core.state().log.to_vec()
    }

    /// Returns a duplicate of the descriptor that a session of `user_events` writes to; `None` if there is no such
    /// session. The session closes its own descriptor when it ends.
    ///
    /// The client of this example reads the first record of the session, which has the metadata of its event:
    ///
    /// ```
    /// use ipc_testkit::ipc_proto::types::{EventFilter, EventLevel, TracepointConfig, UserEventsProvider, UserEventsSession};
    /// use ipc_testkit::ipc_proto::Array;
    /// use ipc_testkit::nettrace::user_events::{MetadataCache, TracepointRecord};
    /// use ipc_testkit::ipc_std::Client;
    /// use ipc_testkit::{FakeRuntime, Profile};
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// let providers = [UserEventsProvider {
    ///     keywords: u64::MAX,
    ///     level: EventLevel::VERBOSE,
    ///     name: "Microsoft-Windows-DotNETRuntime".into(),
    ///     arguments: "".into(),
    ///     filter: EventFilter::ALL,
    ///     tracepoints: TracepointConfig { default_tracepoint_name: "dotnet".into(), sets: Array::EMPTY },
    /// }];
    /// let wanted = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
    /// let (records, data) = UnixDatagram::pair()?; // in place of /sys/kernel/tracing/user_events_data
    /// let session = Client::at(runtime.path()).start_user_events(&wanted, &data)?;
    /// assert!(runtime.user_events_data(session.session_id()).is_some());
    ///
    /// let mut buf = vec![0; 0x2_0000];
    /// let len = records.recv(&mut buf)?;
    /// let record = TracepointRecord::decode(buf.get(4..len).unwrap_or_default())?; // without the write index
    /// let mut cache = MetadataCache::new(MetadataCache::LIMIT);
    /// let event = cache.read(u64::from(runtime.process_id()), &record);
    /// assert!(event.metadata.is_some_and(|metadata| metadata.provider == "Microsoft-Windows-DotNETRuntime"));
    /// session.stop()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(unix)]
    #[must_use]
    pub fn user_events_data(&self, session_id: u64) -> Option<OwnedFd> {
        self.core.state().sessions.get(&session_id)?.user_events_data.as_ref()?.try_clone().ok()
    }

    /// Injects a fault from now on, or removes it.
    pub fn set_fault(&self, fault: impl Into<Option<Fault>>) {
        self.core.state().fault = fault.into();
    }

    /// Sets the handler of this command, whether the runtime's version knows the command or not.
    ///
    /// ```
    /// use ipc_testkit::ipc_proto::{Command, GenerateCoreDump3, types::Status};
    /// use ipc_testkit::{FakeRuntime, Profile, Response};
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// runtime.on(GenerateCoreDump3::CODE, |_| Response::ok(&Status::OK)); // writes no dump, but succeeds
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on(&self, code: Code, handler: impl FnMut(&Request<'_>) -> Response + Send + 'static) {
        self.core.state().handlers.insert(code, Arc::new(Mutex::new(handler)));
    }
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        let open = {
            let mut state = self.core.state();
            state.ending = true;
            core::mem::take(&mut state.open)
        };
        self.core.notify();
        for stream in open.values() {
            // `shutdown` fails if the client has closed the connection, which is the intended state.
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(Accepting { stopper, thread }) = self.accepting.take() {
            stopper.stop();
            // A panic of a handler fails the test, on any thread.
            if let Err(panic) = thread.join() {
                if !thread::panicking() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Serves each connection on a thread of its own until the server is stopped, then waits for those threads.
fn accept(core: &FakeCore, mut server: Server) {
    thread::scope(move |scope| {
        loop {
            let served = match server.accept() {
                Ok(Some(incoming)) => {
                    thread::Builder::new().spawn_scoped(scope, || core.serve_incoming(incoming))
                }
                Ok(None) => return,
                Err(e) => Err(e),
            };
            if served.is_err() {
                // Threads or memory are exhausted. Without a pause, the next attempt would fail immediately.
                core.pause(Duration::from_millis(10));
            }
        }
    });
}
