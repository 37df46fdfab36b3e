mod shared;

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Instant;

use ipc_proto::{Advertise, Guid, ProtocolError, ReceiveAdvertise};

use crate::client::Deadline;
use crate::{Client, Connection, Error, Observer, Stream, Timeouts, sys};

pub(crate) use shared::Shared;
use shared::{Bell, MAX_ARRIVING};

/// A monitor: owns a diagnostic port, to which runtimes connect.
///
/// A runtime that is started with [`variable`](Self::variable) in its environment connects, says who it is, and waits
/// for one command; then it connects again. It may wait at its start until it is resumed.
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
///         client.resume()?; // not a line of managed code has run before this one
///     }
/// }
/// child.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It has no thread of its own. Whoever waits for a runtime, or for an event, looks after all of them meanwhile. To have
/// it in a loop of one's own, poll its descriptor (`AsFd`) for being readable, until [`due`](Self::due) at the latest,
/// and then take [events](Self::poll_event) until there are none.
///
/// Anybody who may open the socket, which is its owner, can connect and be silent, or send garbage: such a connection
/// is dropped after [250 ms](ReceiveAdvertise::DEADLINE_MS), or at its first wrong byte, and holds nobody up.
///
/// Events are kept until somebody takes them, but for rejections, of which there may be too many.
///
/// The socket is removed when the monitor and its clients are dropped.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
    timeouts: Timeouts,
    observer: Option<Observer>,
}

/// Ends a [wait](Monitor::next_event) of a [`Monitor`]'s, from another thread.
#[derive(Debug, Clone)]
pub struct MonitorWaker(Bell);

impl MonitorWaker {
    /// Has [`Monitor::next_event`] give `None` if there is no event, now or when it is called next, and once. After the
    /// monitor it does nothing.
    pub fn wake(&self) {
        self.0.ring();
    }
}

/// What happens at a port.
#[derive(Debug)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// A runtime that was not there before. It is told of once, however often it connects, until it has left.
    Arrived(AdvertisedRuntime),
    /// A runtime is gone: its process has ended, or it has closed its connection and has not made another for a second.
    ///
    /// While a runtime has a command it may take its time. It is not told then if its process, which cannot be seen in
    /// other PID namespaces, ends: the command fails.
    Left(AdvertisedRuntime),
    /// A connection that came to nothing. While nobody takes events these are the first not to be kept.
    Rejected {
        /// Why.
        rejection: Rejection,
        /// Who it was.
        credentials: Option<Credentials>,
    },
}

/// A runtime, as it says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdvertisedRuntime {
    /// Its identity.
    pub runtime_cookie: Guid,
    /// The process, as it sees itself: in a container, another than out here.
    pub process_id: u64,
    /// Who it is to the operating system, where that tells.
    pub credentials: Option<Credentials>,
}

impl AdvertisedRuntime {
    /// The process as it is seen from here: by the operating system, or else as it sees itself.
    #[must_use]
    pub fn local_process_id(&self) -> u64 {
        let seen = self.credentials.map(|credentials| credentials.process_id).filter(|seen| *seen != 0);
        seen.map_or(self.process_id, u64::from)
    }
}

/// Who is at the other end, as the operating system knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// The process, as seen from here; 0 if it cannot be seen from here.
    pub process_id: u32,
    /// Its user. Windows has no such numbers.
    #[cfg(unix)]
    pub user_id: u32,
    /// Its group. Windows has no such numbers.
    #[cfg(unix)]
    pub group_id: u32,
}

/// `process 42 of user 1000`
impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process_id {
            0 => f.write_str("a process")?,
            process_id => write!(f, "process {process_id}")?,
        }
        #[cfg(unix)]
        write!(f, " of user {}", self.user_id)?;
        Ok(())
    }
}

/// Why a connection came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// It did not say who it is in time.
    TooLate {
        /// Bytes that had come.
        received: usize,
    },
    /// What it said is not what a runtime says.
    Protocol(ProtocolError),
    /// It spoke before it was asked.
    Unasked,
    /// Too many said nothing at the same time, and it was the first of them.
    Crowded,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate { received } => write!(
                f,
                "sent {received} of the {} bytes that say who it is in {} ms",
                Advertise::LEN,
                ReceiveAdvertise::DEADLINE_MS
            ),
            Self::Protocol(ProtocolError::Closed { received }) => {
                write!(f, "closed after {received} of the {} bytes that say who it is", Advertise::LEN)
            }
            Self::Protocol(e) => write!(f, "is no runtime: {e}"),
            Self::Unasked => f.write_str("sent something before it was asked"),
            Self::Crowded => write!(f, "was one of more than {MAX_ARRIVING} that had said nothing yet"),
        }
    }
}

impl Monitor {
    /// The variable that tells a runtime where its ports are.
    pub const VARIABLE: &str = "DOTNET_DiagnosticPorts";

    /// Listens at `path`, which only the user may open (mode 0600).
    ///
    /// A socket that nobody listens at is replaced; one that somebody does is not, and neither is a file of another
    /// kind.
    ///
    /// # Errors
    /// [`Error::InUse`] if somebody listens there, else [`Error::Listen`].
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let path = sys::absolute(path).map_err(|source| Error::Listen { path: path.to_owned(), source })?;
        let shared = Shared::bind(&path).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => Error::InUse { path },
            _ => Error::Listen { path, source },
        })?;
        Ok(Self { shared: Arc::new(shared), timeouts: Timeouts::default(), observer: None })
    }

    /// Its clients have these deadlines, in place of the default ones.
    #[must_use]
    pub const fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Its clients show `observer` every message.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Into<Option<Observer>>) -> Self {
        self.observer = observer.into();
        self
    }

    /// Its socket: an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// The variable, and the value to give it, for a runtime that is to connect here: suspended, so that it waits to be
    /// resumed before it runs a line of managed code, or not. Its children inherit it.
    ///
    /// # Errors
    /// [`Error::Listen`] for a path with a `,` or a `;`, which the variable cannot hold.
    ///
    /// ```
    /// let directory = tempfile::tempdir()?;
    /// let monitor = ipc_std::Monitor::bind(directory.path().join("port"))?;
    /// let (name, value) = monitor.variable(true)?;
    /// assert_eq!(name, "DOTNET_DiagnosticPorts");
    /// assert_eq!(value.to_str(), Some(format!("{},suspend", monitor.path().display()).as_str()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn variable(&self, suspend: bool) -> Result<(&'static str, OsString), Error> {
        let mut value = sys::port_address(self.path()).to_owned();
        if value.as_encoded_bytes().iter().any(|byte| matches!(byte, b',' | b';')) {
            let message = "the path of a port cannot have a comma or a semicolon";
            let source = io::Error::new(ErrorKind::InvalidInput, message);
            return Err(Error::Listen { path: self.path().to_owned(), source });
        }
        value.push(if suspend { ",suspend" } else { ",nosuspend" });
        Ok((Self::VARIABLE, value))
    }

    /// Starts a command whose runtimes connect here, and to the ports that its environment has already.
    ///
    /// # Errors
    /// As [`variable`](Self::variable); [`Error::Spawn`] if the command cannot be started.
    pub fn spawn(&self, command: &mut Command, suspend: bool) -> Result<Child, Error> {
        let (name, mut value) = self.variable(suspend)?;
        let program = command.get_program().to_owned();
        let set = command.get_envs().find(|(variable, _)| *variable == name);
        let ports = set.map_or_else(|| std::env::var_os(name), |(_, ports)| ports.map(ToOwned::to_owned));
        // All but this one, which a command has that is started again.
        let ours = |port: &OsStr| {
            sys::split(port, b',').first().is_some_and(|address| *address == *sys::port_address(self.path()))
        };
        for port in sys::split(&ports.unwrap_or_default(), b';') {
            if !port.is_empty() && !ours(&port) {
                value.push(";");
                value.push(port);
            }
        }
        command.env(name, value).spawn().map_err(|source| Error::Spawn { program, source })
    }

    /// The next event, as soon as there is one; `None` after `timeout`, or if [woken](MonitorWaker::wake).
    ///
    /// # Errors
    /// [`Error::Listen`] if the operating system fails.
    pub fn next_event(&self, timeout: Duration) -> Result<Option<MonitorEvent>, Error> {
        let event = self.shared.event(Some(Deadline::after(timeout).end));
        event.map_err(|source| self.failed(source))
    }

    /// The next event that is there already; waits for nothing.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn poll_event(&self) -> Result<Option<MonitorEvent>, Error> {
        self.shared.event(None).map_err(|source| self.failed(source))
    }

    /// What ends a wait for events.
    #[must_use]
    pub fn waker(&self) -> MonitorWaker {
        MonitorWaker(self.shared.bell())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Listen { path: self.path().to_owned(), source }
    }

    /// When events are to be asked for even if the descriptor has not become readable.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.shared.due()
    }

    /// The runtimes that are there.
    #[must_use]
    pub fn runtimes(&self) -> Vec<AdvertisedRuntime> {
        self.shared.runtimes()
    }

    /// Whether the runtime waits for a command just now. It does not while it has one, and until it has connected again.
    #[must_use]
    pub fn is_waiting(&self, runtime_cookie: Guid) -> bool {
        self.shared.is_waiting(&runtime_cookie)
    }

    /// The way to one of the runtimes. Each of its commands takes the runtime's next connection; so does each step down
    /// of a plan, all of them by one deadline. A runtime that has left answers no more: [`Error::Left`].
    #[must_use]
    pub fn client(&self, runtime_cookie: Guid) -> Client {
        Client::over(&self.shared, runtime_cookie)
            .with_timeouts(self.timeouts)
            .with_observer(self.observer.clone())
    }

    /// Takes the runtime's connection, for one command, as soon as there is one; [`Timeouts::call`] begins to run.
    ///
    /// # Errors
    /// [`Error::Left`] if the runtime is not there (any more), [`Error::Timeout`] if it does not connect in time.
    pub fn wait_for(&self, runtime_cookie: Guid) -> Result<Connection<Stream>, Error> {
        self.client(runtime_cookie).connect()
    }

    /// Forgets a runtime, and closes its connection; whether it was there. If it connects again, it arrives again.
    pub fn remove(&self, runtime_cookie: Guid) -> bool {
        self.shared.remove(&runtime_cookie)
    }
}

/// Readable when there is something to do.
#[cfg(unix)]
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }
}

/// An event that is set when there is something to do.
#[cfg(windows)]
impl AsHandle for Monitor {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.shared.as_handle()
    }
}
