//! A monitor: the listener of a diagnostic port, for runtimes that connect to it.
mod event;
mod monitor_core;
mod process_checks;

use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_discover::sys::{absolute, port_address};
use ipc_proto::Guid;
use ipc_proto::port::{Port, PortList, Variable};

use crate::client::Client;
use crate::connection::Connection;
use crate::error::{Error, Phase};
use crate::observer::Observer;
use crate::timeouts::Timeouts;
use crate::transport::{ConnectError, Connector, Stream};

use monitor_core::MonitorCore;

pub use event::{AdvertisedRuntime, MonitorEvent};
pub use monitor_core::MonitorWaker;

/// A monitor: it owns a diagnostic port, to which runtimes connect.
///
/// A runtime that is started with [`variable`](Self::variable) in its environment connects, sends its
/// [`Advertise`](ipc_proto::Advertise) frame, and waits for one command; then it connects again. The runtime can be
/// suspended at startup until a client resumes it.
///
/// ```no_run
/// use ipc_std::{Monitor, MonitorEvent};
/// use std::{process::Command, time::Duration};
///
/// let monitor = Monitor::bind("/tmp/app.port")?;
/// let mut child = monitor.spawn(Command::new("app").arg("--fast"), true)?;
/// while let Some(event) = monitor.next_event(Duration::from_secs(10))? {
///     if let MonitorEvent::Arrived(runtime) = event {
///         let client = monitor.client(runtime.runtime_cookie);
///         client.set_environment_variable("SEEN_BY", Some("a monitor"))?;
///         client.resume()?; // no managed code has run before
///     }
/// }
/// child.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A monitor has no thread of its own. While a thread waits for a runtime or an event, it serves the whole port. To use
/// a monitor in an event loop, poll its descriptor (`AsFd`) for readability, until [`due`](Self::due) at the latest,
/// and then take [events](Self::poll_event) until there are none. [`MonitorPort`](ipc_proto::port::MonitorPort) makes
/// the decisions, and can be used without this crate.
///
/// Only the owner of the socket can connect to it. A silent connection is dropped after [250
/// ms](ipc_proto::ReceiveAdvertise::DEADLINE_MS). A connection that sends anything but a frame is dropped at its first
/// wrong byte. Neither delays the other connections.
///
/// Events are stored until the caller takes them. Rejections are the exception, because a peer can cause any number of
/// them: a rejection is not stored while 1,024 events are stored.
///
/// The socket is removed when the monitor and its clients are dropped.
#[derive(Debug)]
pub struct Monitor {
    core: Arc<MonitorCore>,
    timeouts: Timeouts,
    observer: Option<Observer>,
}

impl Monitor {
    /// The environment variable that contains a runtime's ports.
    pub const VARIABLE: &str = Variable::DiagnosticPorts.name();

    /// Listens at `path`, with mode 0600: only the current user can connect.
    ///
    /// A socket at which no process listens is replaced. A socket in use is not replaced, nor is a file of another
    /// kind.
    ///
    /// # Errors
    /// [`Error::InUse`] if a process listens there, otherwise [`Error::Listen`].
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let path = absolute(path).map_err(|source| Error::Listen { path: path.to_owned(), source })?;
        let core = MonitorCore::bind(&path).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => Error::InUse { path },
            _ => Error::Listen { path, source },
        })?;
        Ok(Self { core: Arc::new(core), timeouts: Timeouts::default(), observer: None })
    }

    /// Sets the deadlines of the monitor's clients, in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Makes the monitor's clients show `observer` every message.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.observer = observer.into();
        self
    }

    /// Creates a monitor without a socket, for runtimes whose connections the caller [accepts](Self::push).
    ///
    /// # Errors
    /// [`Error::Listen`] if the process has no descriptors left.
    pub fn unbound() -> Result<Self, Error> {
        let core = MonitorCore::new(None)
            .map_err(|source| Error::Listen { path: PathBuf::from(Self::UNBOUND), source })?;
        Ok(Self { core: Arc::new(core), timeouts: Timeouts::default(), observer: None })
    }

    /// Gives the monitor a connection that the caller has accepted, over any transport. The runtime at its other end
    /// must send its frame. Any thread can call this method.
    ///
    /// The process id in the frame can be that of another machine, so the monitor checks no process unless the operating
    /// system reports it as the peer. Such a runtime leaves when it does not connect again after the end of a connection.
    /// To notice the end at once, the monitor must read while it may have to write: for a transport that only blocks, push
    /// [`Stream::halves`] or [`Stream::timed`].
    ///
    /// ```
    /// use ipc_std::ipc_proto::{Advertise, Encode, Guid, wire::Writer};
    /// use ipc_std::{Monitor, MonitorEvent, Stream};
    /// use std::{io::Write, net::{TcpListener, TcpStream}, time::Duration};
    ///
    /// let monitor = Monitor::unbound()?;
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let mut runtime = TcpStream::connect(listener.local_addr()?)?;
    /// let mut frame = [0; Advertise::LEN];
    /// Advertise { runtime_cookie: Guid([7; 16]), process_id: 42, future: 0 }.encode(&mut Writer::new(&mut frame));
    /// runtime.write_all(&frame)?;
    /// monitor.push(Stream::tcp(listener.accept()?.0)?);
    /// let Some(MonitorEvent::Arrived(runtime)) = monitor.next_event(Duration::from_secs(10))? else { panic!() };
    /// assert_eq!(runtime.process_id, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&self, stream: Stream) {
        self.core.push(stream);
    }

    /// The path of a monitor without a socket, in errors.
    const UNBOUND: &str = "(no socket)";

    fn path_in_errors(&self) -> PathBuf {
        self.path().map_or_else(|| PathBuf::from(Self::UNBOUND), Path::to_owned)
    }

    /// Returns the absolute path of the socket; `None` for a monitor [without a socket](Self::unbound).
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.core.path()
    }

    /// Returns the environment variable, and its value, for a runtime that must connect to this monitor. With
    /// `suspend`, the runtime runs no managed code until it is resumed. Child processes inherit the variable.
    ///
    /// # Errors
    /// [`Error::Listen`] for a monitor [without a socket](Self::unbound), or for a path that a [port](Port::connect) of
    /// the variable cannot contain: a path with a `,` or a `;`, or a path that is not UTF-8.
    ///
    /// ```
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("port");
    /// let (name, value) = ipc_std::Monitor::bind(&path)?.variable(true)?;
    /// assert_eq!(name, "DOTNET_DiagnosticPorts");
    /// assert_eq!(value.to_str(), Some(format!("{},suspend", path.display()).as_str()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn variable(&self, suspend: bool) -> Result<(&'static str, OsString), Error> {
        Ok((Self::VARIABLE, self.port(suspend)?.to_string().into()))
    }

    /// Starts a command whose runtimes connect to this monitor, and to the ports that the environment of the command
    /// names already.
    ///
    /// # Errors
    /// As [`variable`](Self::variable); [`Error::Spawn`] if the command cannot be started.
    pub fn spawn(&self, command: &mut Command, suspend: bool) -> Result<Child, Error> {
        let name = Self::VARIABLE;
        let program = command.get_program().to_owned();
        let set = command.get_envs().find(|(variable, _)| *variable == name);
        let ports = set.map_or_else(|| std::env::var_os(name), |(_, ports)| ports.map(ToOwned::to_owned));
        let ports = ports.unwrap_or_default();
        // If a command is started a second time, its environment names this port already; `followed_by` leaves out the
        // copy.
        let ours = [self.port(suspend)?];
        let list = PortList::new(&ours);
        let value = match ports.to_str() {
            Some(ports) => list.followed_by(ports).to_string().into(),
            // The value cannot be parsed, so the port is appended even if the value names it.
            None => {
                let mut value = OsString::from(list.to_string());
                value.push(";");
                value.push(ports);
                value
            }
        };
        command.env(name, value).spawn().map_err(|source| Error::Spawn { program, source })
    }

    /// Returns the port as a runtime's environment names it.
    fn port(&self, suspend: bool) -> Result<Port<'_>, Error> {
        let invalid = |reason: &dyn fmt::Display| {
            let source = io::Error::new(ErrorKind::InvalidInput, reason.to_string());
            Error::Listen { path: self.path_in_errors(), source }
        };
        let path =
            self.path().ok_or_else(|| invalid(&"the monitor has no socket that a variable can name"))?;
        let address =
            port_address(path).ok_or_else(|| invalid(&"the path of a port must be UTF-8: choose another"))?;
        Port::connect(address, suspend).map_err(|e| invalid(&e))
    }

    /// Waits for the next event; returns `None` after `timeout`, or if [woken](MonitorWaker::wake).
    ///
    /// # Errors
    /// [`Error::Listen`] if the operating system fails.
    pub fn next_event(&self, timeout: Duration) -> Result<Option<MonitorEvent>, Error> {
        let event = self.core.event(Some(Deadline::after(timeout).end));
        event.map_err(|source| self.failed(source))
    }

    /// Returns the next event if there is one. It does not wait.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn poll_event(&self) -> Result<Option<MonitorEvent>, Error> {
        self.core.event(None).map_err(|source| self.failed(source))
    }

    /// Returns a handle that ends a wait for events.
    #[must_use]
    pub fn waker(&self) -> MonitorWaker {
        self.core.waker()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Listen { path: self.path_in_errors(), source }
    }

    /// Returns when an event loop must [poll for events](Self::poll_event) at the latest, even if the descriptor does not
    /// become readable.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.core.due()
    }

    /// Returns the known runtimes, which have arrived and not left.
    #[must_use]
    pub fn runtimes(&self) -> Vec<AdvertisedRuntime> {
        self.core.runtimes()
    }

    /// Returns whether the runtime waits for a command. A runtime that has taken a command waits again only after it
    /// has connected again.
    #[must_use]
    pub fn is_waiting(&self, runtime_cookie: Guid) -> bool {
        self.core.is_waiting(&runtime_cookie)
    }

    /// Creates a client of a runtime. Each command takes the runtime's next connection. A command that is tried in
    /// several versions takes several connections, within one deadline. After the runtime has left, commands fail with
    /// [`Error::Left`].
    #[must_use]
    pub fn client(&self, runtime_cookie: Guid) -> Client {
        let peer = match self.core.runtime(&runtime_cookie) {
            Some(runtime) => format!("process {}", runtime.local_process_id()),
            None => format!("runtime {runtime_cookie}"),
        };
        let connector = PortConnector { core: Arc::clone(&self.core), runtime_cookie, peer };
        Client::new(connector).with_timeouts(self.timeouts).with_observer(self.observer.clone())
    }

    /// Takes a connection of the runtime, for one command, as soon as the runtime has connected; [`Timeouts::call`]
    /// begins now.
    ///
    /// # Errors
    /// [`Error::Left`] if the runtime is unknown, or leaves; [`Error::Timeout`] if it does not connect in time.
    pub fn wait_for(&self, runtime_cookie: Guid) -> Result<Connection<Stream>, Error> {
        self.client(runtime_cookie).connect()
    }

    /// Forgets a runtime and closes its connection; returns whether the runtime was known. If it connects again, there
    /// is a new [`MonitorEvent::Arrived`].
    pub fn remove(&self, runtime_cookie: Guid) -> bool {
        self.core.remove(&runtime_cookie)
    }
}

/// Takes the connections that a runtime makes to the port.
#[derive(Debug)]
struct PortConnector {
    core: Arc<MonitorCore>,
    runtime_cookie: Guid,
    peer: String,
}

impl Connector for PortConnector {
    fn connect(&self, deadline: Instant) -> Result<Stream, ConnectError> {
        match self.core.take(&self.runtime_cookie, deadline) {
            Ok(Some(channel)) => Ok(Stream::sharing(channel)),
            Ok(None) => Err(ConnectError::Failed(Error::Left { peer: self.peer.clone() })),
            Err(e) => Err(e.into()),
        }
    }

    fn is_prompt(&self) -> bool {
        true
    }

    fn path(&self) -> Option<&Path> {
        self.core.path()
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn phase(&self) -> Phase {
        Phase::AwaitingRuntime
    }

    fn process_id(&self) -> Option<u32> {
        self.core.process_id(&self.runtime_cookie)
    }
}

/// The descriptor is readable when the monitor has work.
#[cfg(unix)]
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core.hub().as_fd()
    }
}

/// An event that is set when the monitor has work.
#[cfg(windows)]
impl AsHandle for Monitor {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.core.hub().as_handle()
    }
}
