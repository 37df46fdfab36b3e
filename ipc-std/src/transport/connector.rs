//! `Connector`: the trait that opens connections to a runtime; and `ConnectError`.
use core::fmt;
use std::io;
use std::path::Path;
use std::time::Instant;

use super::stream::Stream;
use crate::drive::is_not_ready;
use crate::error::{Error, Phase};
use crate::sys;

/// Opens connections to one runtime, one for each command.
///
/// Sockets, pipes and a [`Monitor`](crate::Monitor) are connectors; [`Client::over`](crate::Client::over) makes a
/// connector of a function. Implement the trait for a transport that knows more than a function:
///
/// ```
/// use ipc_std::{Client, ConnectError, Connector, Stream};
/// use std::{net::TcpStream, time::Instant};
///
/// #[derive(Debug)]
/// struct Router {
///     address: String,
/// }
///
/// impl Connector for Router {
///     fn connect(&self, deadline: Instant) -> Result<Stream, ConnectError> {
///         let limit = deadline.saturating_duration_since(Instant::now());
///         let address = self.address.parse().map_err(std::io::Error::other)?;
///         Ok(Stream::tcp(TcpStream::connect_timeout(&address, limit)?)?)
///     }
///     fn peer(&self) -> &str {
///         &self.address
///     }
/// }
/// let client = Client::new(Router { address: "127.0.0.1:9000".to_owned() });
/// assert_eq!(client.path(), None);
/// ```
pub trait Connector: fmt::Debug + Send + Sync {
    /// Opens a connection, and waits for the runtime until `deadline`.
    ///
    /// Unless [`is_prompt`](Self::is_prompt) returns true, this method is called on a thread of its own. Then a
    /// deadline or a cancel of the caller holds even if this method overruns `deadline`. A stream that comes too late
    /// is dropped. A panic of this method is an error of the call.
    ///
    /// # Errors
    /// [`ConnectError::NotReady`] if the runtime may accept a connection later.
    fn connect(&self, deadline: Instant) -> Result<Stream, ConnectError>;

    /// Returns the name of the runtime in errors.
    fn peer(&self) -> &str;

    /// Returns whether [`connect`](Self::connect) returns at the deadline at the latest, and immediately after the
    /// deadline has passed.
    fn is_prompt(&self) -> bool {
        false
    }

    /// Returns the path of the runtime's socket or pipe, or of the port that the runtime connects to; `None` for other
    /// transports.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the process at the other end, if it is visible on this machine, and the operating system or the name of
    /// the socket proves it.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// Returns the phase in which [`connect`](Self::connect) waits, for errors.
    fn phase(&self) -> Phase {
        Phase::Connecting
    }
}

/// The reason why a connection was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The runtime did not accept a connection before the deadline. A later attempt may succeed.
    NotReady,
    /// The transport failed.
    Io(io::Error),
    /// Connecting failed, with the whole error for the user.
    Failed(Error),
}

/// An error of the kind `TimedOut` or `WouldBlock` means [`NotReady`](ConnectError::NotReady).
impl From<io::Error> for ConnectError {
    fn from(e: io::Error) -> Self {
        if is_not_ready(&e) { Self::NotReady } else { Self::Io(e) }
    }
}

impl From<Error> for ConnectError {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

impl ConnectError {
    /// Returns whether to try again. A runtime that serves other connections accepts a later one. A process that is
    /// ending has removed its socket already; the attempts then end with its trace. Descriptors and memory become free.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use Error::{Io, Left, NoListener, NoSuchPath};
        match self {
            Self::NotReady | Self::Failed(NoListener { .. } | NoSuchPath { .. } | Left { .. }) => true,
            Self::Failed(Io { source, .. }) => sys::is_shortage(source),
            Self::Io(e) => e.kind() == io::ErrorKind::ConnectionRefused || sys::is_shortage(e),
            Self::Failed(_) => false,
        }
    }
}

/// Connects with a function of the caller.
pub(crate) struct FnConnector<F> {
    pub(crate) peer: String,
    pub(crate) connect: F,
}

impl<F: Fn(Instant) -> io::Result<Stream> + Send + Sync> Connector for FnConnector<F> {
    fn connect(&self, deadline: Instant) -> Result<Stream, ConnectError> {
        Ok((self.connect)(deadline)?)
    }
    fn peer(&self) -> &str {
        &self.peer
    }
}

impl<F> fmt::Debug for FnConnector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnConnector").field("peer", &self.peer).finish_non_exhaustive()
    }
}
