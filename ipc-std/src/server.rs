//! `Server`: the role of a runtime, with its own socket and connections to monitors.
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_discover::sys::endpoint;
use ipc_proto::Advertise;
use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep};

use crate::sys::{self, Address, Listener, Poller, Socket};
use crate::transport::{Connector, Dialer, FnConnector, Stream};

/// A runtime's role at its diagnostic ports: it listens for tools, connects to monitors, and returns the connections
/// that have a command.
///
/// It is for programs that implement a runtime. A server has no thread and no buffers: [`accept`](Self::accept) waits
/// for all ports on the caller's thread. The caller serves the command with [`Serve`](ipc_proto::Serve). The example
/// `toy_runtime` is a whole runtime.
///
/// * A [listening](Self::listen) port returns a connection immediately, before any byte arrives. So a runtime that
///   serves one connection at a time waits indefinitely for a silent tool.
/// * A [connecting](Self::connect) port is a [`ConnectPort`]: it connects, sends its advertise frame, and returns the
///   connection when a command arrives. After a failure it tries again after 10, 12, 15 … 571, 500, 500 ms; a monitor
///   with a full backlog counts as a failure. Connecting never waits. [`connect_over`](Self::connect_over) does the same
///   over any transport.
/// * A port with an [`Inlet`](Self::inlet) has the connections that the caller accepts: from a TCP listener, a WebSocket
///   server, a test.
///
/// Ports have numbers in the order in which they were added, as in [`Suspension`](ipc_proto::port::Suspension): a
/// `ResumeRuntime` counts for the port at which it arrived.
///
/// ```
/// use ipc_std::ipc_proto::plan::{Flavour, Runtime};
/// use ipc_std::ipc_proto::port::Suspension;
/// use ipc_std::ipc_proto::{Advertise, Guid, HResult, Message, Request, Serve, types::Status};
/// use ipc_std::{Client, Incoming, Server, drive};
///
/// let directory = tempfile::tempdir()?;
/// let advertise = Advertise { runtime_cookie: Guid(*b"drawn at startup"), process_id: 42, future: 0 };
/// let mut server = Server::new(&advertise)?;
/// let default_port = server.listen(directory.path())?;
/// let monitor = server.connect(&directory.path().join("monitor"))?; // no monitor listens there
/// assert_eq!((default_port, monitor), (0, 1));
/// let mut suspension = Suspension::new([true, false]);
/// let kind = Runtime { version: Some(10), flavour: Some(Flavour::Mono), ..Runtime::default() };
///
/// let path = server.path().map(std::path::Path::to_owned).unwrap_or_default();
/// let tool = std::thread::spawn(move || Client::at(path).resume());
/// let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; Message::MAX_LEN]);
/// while suspension.is_suspended() {
///     let Some(Incoming { mut stream, port, turn }) = server.accept()? else { break };
///     let mut serve = Serve::new(&mut receive, &mut send)?;
///     drive(&mut serve, &mut stream)?;
///     let (request, mut reply) = serve.finish_for(&kind);
///     match request {
///         Ok(Request::ResumeRuntime(resume)) => {
///             suspension.resume(port);
///             reply.answer(&resume, &Status::OK)?;
///         }
///         Ok(_) => reply.refuse(HResult::NOT_SUPPORTED)?,
///         Err(_) => {} // the reply refuses it already
///     }
///     drive(&mut reply, &mut stream)?;
///     drop(turn); // a trace would keep its stream
/// }
/// tool.join().expect("it does not panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    advertise: Advertise,
    ports: Vec<Port>,
    /// The poller of the ports, with their numbers as tokens, and of the flag of `inbox`.
    poller: Poller,
    /// The port of the last returned connection. The other ports have precedence at the next call.
    last: usize,
    inbox: Arc<Inbox>,
}

/// A connection to serve, from [`Server::accept`].
#[derive(Debug)]
pub struct Incoming {
    /// The connection. It has no deadline until [`Stream::set_deadline`].
    pub stream: Stream,
    /// The number of the port to which the connection belongs.
    pub port: usize,
    /// Keeps the port from connecting again until it is dropped.
    pub turn: Turn,
}

/// The turn of a connecting port, which lasts until its command is answered.
///
/// The port does not connect again during its turn. Drop the turn, on any thread, after the response; for a session
/// with a stream, immediately after the OK. Then [`Server::accept`] connects again immediately.
///
/// A listening port has no turns: dropping its `Turn` has no effect.
#[derive(Debug)]
pub struct Turn(Option<(Arc<Inbox>, usize)>);

/// Ends [`Server::accept`] from another thread.
#[derive(Debug, Clone)]
pub struct ServerStopper(Arc<Inbox>);

/// Gives a [`Server`] the connections that the caller has accepted, from any thread and over any transport.
///
/// ```
/// use ipc_std::ipc_proto::{Advertise, Guid};
/// use ipc_std::{Client, Server, Stream};
/// use std::net::{TcpListener, TcpStream};
///
/// let mut server = Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 })?;
/// let inlet = server.inlet();
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// std::thread::spawn(move || {
///     for tcp in listener.incoming().flatten() {
///         let _ = Stream::tcp(tcp).map(|stream| inlet.push(stream));
///     }
/// });
/// let client = Client::over("the server", move |_| Stream::tcp(TcpStream::connect(address)?));
/// let tool = std::thread::spawn(move || client.resume());
/// let incoming = server.accept()?;
/// assert_eq!(incoming.map(|incoming| incoming.port), Some(0));
/// # assert!(tool.join().unwrap().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inlet {
    inbox: Arc<Inbox>,
    port: usize,
}

/// Requests of other threads.
struct Inbox {
    requests: Mutex<ServerRequests>,
    /// A flag that is raised when there is a request.
    flag: sys::Flag,
}

#[derive(Default)]
struct ServerRequests {
    stop: bool,
    /// The ports whose turn is over.
    answered: Vec<usize>,
    /// The connections that inlets have delivered, with their ports.
    delivered: Vec<(usize, Stream)>,
}

#[derive(Debug)]
enum Port {
    Listening {
        listener: Listener,
        /// The end of a pause after a failure, during which the listener is not watched.
        pause: Option<Instant>,
    },
    Connecting {
        monitor: MonitorAddress,
        machine: ConnectPort,
        /// The connection, until it is returned to the caller.
        stream: Option<Stream>,
        /// The time of the next attempt.
        next_attempt: Option<Instant>,
    },
    /// A port whose connections the caller accepts.
    Fed(VecDeque<Stream>),
}

/// The address to which a port connects.
#[derive(Debug)]
enum MonitorAddress {
    Socket(Address),
    Connector {
        connector: Arc<dyn Connector>,
        /// The thread that is opening a connection.
        dialer: Option<Dialer>,
    },
}

impl Server {
    /// Creates a server without ports, which identifies itself with this frame.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn new(advertise: &Advertise) -> io::Result<Self> {
        let inbox = Arc::new(Inbox { requests: Mutex::default(), flag: sys::Flag::new()? });
        let poller = Poller::new()?;
        poller.watch(&inbox.flag, INBOX)?;
        Ok(Self { advertise: *advertise, ports: Vec::new(), poller, last: 0, inbox })
    }

    /// Listens in this directory, under the [name](ipc_proto::SocketName) of a runtime's socket; returns the port's
    /// number.
    ///
    /// Tools search the directory [`discover::directory`](crate::discover::directory). Only the current user can
    /// connect. The backlog is 255 connections. The socket is removed when the server is dropped.
    ///
    /// # Errors
    /// If listening fails; of kind `AddrInUse` if the file exists, even a stale socket, as in a real runtime; of kind
    /// `InvalidInput` if the path or the process id is too long.
    pub fn listen(&mut self, directory: &Path) -> io::Result<usize> {
        let process_id = u32::try_from(self.advertise.process_id)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        let listener = Listener::bind(&endpoint(directory, process_id))?;
        self.poller.watch(&listener, token(self.ports.len()))?;
        Ok(self.add(Port::Listening { listener, pause: None }))
    }

    /// Connects to the monitor at `path` during each [`accept`](Self::accept), even if no monitor listens there yet;
    /// returns the port's number.
    ///
    /// # Errors
    /// If the path is too long for a socket.
    pub fn connect(&mut self, path: &Path) -> io::Result<usize> {
        Ok(self.add_connecting(MonitorAddress::Socket(Address::new(path)?)))
    }

    /// Connects to a monitor over any transport, as [`connect`](Self::connect) does; returns the port's number.
    /// `connect` opens a connection on a thread of its own; its argument is a deadline, 10 seconds after the call. After
    /// an error or a panic of `connect`, the port tries again.
    ///
    /// ```
    /// use ipc_std::ipc_proto::{Advertise, Guid};
    /// use ipc_std::{Server, Stream};
    /// use std::net::TcpStream;
    ///
    /// let mut server = Server::new(&Advertise { runtime_cookie: Guid::NIL, process_id: 42, future: 0 })?;
    /// let port = server.connect_over(|_| Stream::tcp(TcpStream::connect("127.0.0.1:9000")?));
    /// assert_eq!(port, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_over(
        &mut self,
        connect: impl Fn(Instant) -> io::Result<Stream> + Send + Sync + 'static,
    ) -> usize {
        let connector = Arc::new(FnConnector { peer: String::new(), connect });
        self.add_connecting(MonitorAddress::Connector { connector, dialer: None })
    }

    fn add_connecting(&mut self, monitor: MonitorAddress) -> usize {
        let machine = ConnectPort::new(&self.advertise);
        self.add(Port::Connecting { monitor, machine, stream: None, next_attempt: None })
    }

    /// Adds a port whose connections the caller accepts, and returns the [`Inlet`] that delivers them.
    pub fn inlet(&mut self) -> Inlet {
        let port = self.add(Port::Fed(VecDeque::new()));
        Inlet { inbox: Arc::clone(&self.inbox), port }
    }

    fn add(&mut self, port: Port) -> usize {
        let number = self.ports.len();
        self.ports.push(port);
        number
    }

    /// Returns the path of the first listening socket of the server.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.ports.iter().find_map(|port| match port {
            Port::Listening { listener, .. } => Some(listener.path()),
            Port::Connecting { .. } | Port::Fed(_) => None,
        })
    }

    /// Returns a handle that ends [`accept`](Self::accept).
    #[must_use]
    pub fn stopper(&self) -> ServerStopper {
        ServerStopper(Arc::clone(&self.inbox))
    }

    /// Waits without a limit for a connection to serve; returns `None` after [`stop`](ServerStopper::stop).
    ///
    /// Ports take turns. A port makes no progress between two calls of `accept`, so serve slow commands on another
    /// thread.
    ///
    /// # Errors
    /// If waiting fails. A connection that cannot be accepted, for example without descriptors, is not an error: it
    /// stays in the backlog, and the server tries again after 10 ms.
    pub fn accept(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            if self.inbox.apply_requests(&mut self.ports) {
                return Ok(None);
            }
            for (number, port) in self.ports.iter_mut().enumerate() {
                port.advance(&self.poller, token(number))?;
            }
            for number in self.wait()? {
                let Some(port) = self.ports.get_mut(number) else { continue };
                let Some(stream) = port.take(&self.poller)? else { continue };
                self.last = number;
                let connects = matches!(port, Port::Connecting { .. });
                let turn = Turn(connects.then(|| (Arc::clone(&self.inbox), number)));
                return Ok(Some(Incoming { stream, port: number, turn }));
            }
        }
    }

    /// Waits until there is work; returns the ports that are ready, in the order of their turns.
    fn wait(&self) -> io::Result<Vec<usize>> {
        let fed = self.ports.iter().enumerate().filter(|(_, port)| port.is_fed()).map(|(number, _)| number);
        let mut ready: Vec<_> = fed.collect();
        if ready.is_empty() {
            let next = self.ports.iter().filter_map(Port::due).min();
            match self.poller.wait(next.unwrap_or_else(|| Deadline::after(Duration::MAX).end)) {
                Err(e) if e.kind() == ErrorKind::TimedOut => {}
                result => result?,
            }
        }
        let mut tokens = Vec::new();
        self.poller.ready(&mut tokens)?;
        // The token of the flag can be among the ready tokens. `accept` skips it, because no port has this number.
        ready.extend(tokens.into_iter().filter_map(|token| usize::try_from(token).ok()));
        ready.sort_by_key(|number| (*number <= self.last, *number));
        Ok(ready)
    }
}

/// The token of the inbox's flag. No port has this number.
const INBOX: u64 = 0xffff_ffff;

/// The pause after a failure of accepting.
const PAUSE: Duration = Duration::from_millis(10);

fn token(port: usize) -> u64 {
    port as u64
}

impl Port {
    /// Does all work of the port that needs no wait.
    fn advance(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        let now = Instant::now();
        match self {
            Self::Fed(_) => Ok(()),
            Self::Listening { listener, pause } => {
                if pause.is_some_and(|pause| pause <= now) {
                    // If watching fails, for example without memory, it is tried again after the pause.
                    *pause = poller.watch(listener, token).err().map(|_| Deadline::after(PAUSE).end);
                }
                Ok(())
            }
            Self::Connecting { monitor, machine, stream, next_attempt } => loop {
                let event = match machine.step() {
                    ConnectStep::Connect => match monitor.connect(poller, token) {
                        None => return Ok(()),
                        Some(Ok(connected)) if poller.watch(&**connected.channel(), token).is_ok() => {
                            *stream = Some(connected);
                            ConnectEvent::Connected
                        }
                        Some(_) => ConnectEvent::Failed,
                    },
                    ConnectStep::Wait { milliseconds } => {
                        let next = *next_attempt.get_or_insert_with(|| {
                            Deadline::after(Duration::from_millis(milliseconds.into())).end
                        });
                        if next > now {
                            return Ok(());
                        }
                        *next_attempt = None;
                        ConnectEvent::Waited
                    }
                    // The frame always fits into the buffer of a new connection, so `WouldBlock` is a failure, too.
                    ConnectStep::Send(frame) => match stream.as_ref().map(|s| s.channel().write(frame)) {
                        Some(Ok(n)) => ConnectEvent::Sent(n),
                        Some(Err(e)) if e.kind() == ErrorKind::Interrupted => continue,
                        Some(Err(_)) | None => ConnectEvent::Failed,
                    },
                    ConnectStep::Serve => {
                        stream.iter().for_each(|stream| stream.channel().expect_bytes());
                        return Ok(());
                    }
                };
                if event == ConnectEvent::Failed {
                    close(stream, poller);
                }
                machine.advance(event);
            },
        }
    }

    /// Returns the time at which there is work even if nothing becomes readable.
    const fn due(&self) -> Option<Instant> {
        match self {
            Self::Listening { pause, .. } => *pause,
            Self::Connecting { next_attempt, .. } => *next_attempt,
            Self::Fed(_) => None,
        }
    }

    /// Returns whether the caller has delivered a connection.
    fn is_fed(&self) -> bool {
        matches!(self, Self::Fed(streams) if !streams.is_empty())
    }

    /// Takes the connection that has a command.
    fn take(&mut self, poller: &Poller) -> io::Result<Option<Stream>> {
        match self {
            Self::Fed(streams) => Ok(streams.pop_front()),
            Self::Listening { listener, pause } => match listener.accept() {
                Ok(socket) => Ok(Some(Stream::over(socket))),
                // No connection waits, or its peer closed it before it was accepted.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                    Ok(None)
                }
                Err(_) => {
                    // The system has no descriptors left. The next attempt would fail immediately, so the port pauses
                    // before it.
                    *pause = Some(Deadline::after(PAUSE).end);
                    poller.forget(listener)?;
                    Ok(None)
                }
            },
            // As a runtime does, the port checks for a hang-up before it reads data.
            Self::Connecting { machine, stream, .. }
                if stream.as_ref().is_some_and(|stream| stream.has_hung_up()) =>
            {
                close(stream, poller);
                machine.advance(ConnectEvent::HungUp);
                Ok(None)
            }
            // The caller serves the connection from now on. The port does not connect again before the turn is over.
            Self::Connecting { stream, .. } => {
                let taken = stream.take();
                taken.iter().try_for_each(|taken| poller.forget(&**taken.channel()))?;
                Ok(taken)
            }
        }
    }
}

fn close(stream: &mut Option<Stream>, poller: &Poller) {
    if let Some(closed) = stream.take() {
        // The system also stops watching a connection when it is closed, so an error does not matter.
        let _ = poller.forget(&**closed.channel());
    }
}

impl MonitorAddress {
    /// Connects without waiting. `None` while a thread is connecting.
    fn connect(&mut self, poller: &Poller, token: u64) -> Option<io::Result<Stream>> {
        /// The limit of an attempt. Runtimes have no such limit.
        const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
        match self {
            Self::Socket(address) => Some(Socket::connect_at_once(address).map(Stream::over)),
            Self::Connector { dialer: Some(dialing), .. } if !dialing.has_result() => None,
            Self::Connector { dialer: dialer @ Some(_), .. } => {
                let dialing = dialer.take()?;
                // Closing the descriptor also removes it from the poller, so an error does not matter.
                let _ = poller.forget(&**dialing.flag());
                // The reason for the failure does not matter, because another attempt follows.
                Some(dialing.take()?.map_err(|_| ErrorKind::NotConnected.into()))
            }
            Self::Connector { connector, dialer } => {
                let started = Dialer::start(Arc::clone(connector), Deadline::after(ATTEMPT_TIMEOUT).end);
                let watched =
                    started.and_then(|started| poller.watch(&**started.flag(), token).map(|()| started));
                match watched {
                    Ok(started) => *dialer = Some(started),
                    Err(e) => return Some(Err(e)),
                }
                None
            }
        }
    }
}

impl Inlet {
    /// Returns the number of the port.
    #[must_use]
    pub const fn port(&self) -> usize {
        self.port
    }

    /// Delivers a connection: [`Server::accept`] returns it. After the server is dropped, the connection is closed.
    pub fn push(&self, stream: Stream) {
        self.inbox.post(|requests| requests.delivered.push((self.port, stream)));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((inbox, port)) = &self.0 {
            inbox.post(|requests| requests.answered.push(*port));
        }
    }
}

impl ServerStopper {
    /// Makes the current or next call of [`Server::accept`] return `None`, and all calls after it.
    pub fn stop(&self) {
        self.0.post(|requests| requests.stop = true);
    }
}

impl Inbox {
    fn requests(&self) -> MutexGuard<'_, ServerRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, post: impl FnOnce(&mut ServerRequests)) {
        post(&mut self.requests());
        self.flag.raise();
    }

    /// Delivers connections to their ports and ends the turns of ports; returns whether to stop.
    fn apply_requests(&self, ports: &mut [Port]) -> bool {
        // The flag is lowered before the requests are taken, so that a later request raises it again.
        self.flag.lower();
        let mut requests = self.requests();
        for (number, stream) in requests.delivered.drain(..) {
            if let Some(Port::Fed(streams)) = ports.get_mut(number) {
                streams.push_back(stream);
            }
        }
        for number in requests.answered.drain(..) {
            if let Some(Port::Connecting { machine, .. }) = ports.get_mut(number) {
                machine.advance(ConnectEvent::Answered);
            }
        }
        requests.stop
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// Watching a listener can fail, for example without memory. Here it fails because the listener is watched already.
    #[test]
    fn a_listener_that_cannot_be_watched_is_watched_later() {
        let directory = tempfile::tempdir().unwrap();
        let poller = Poller::new().unwrap();
        let listener = Listener::bind(&directory.path().join("port")).unwrap();
        poller.watch(&listener, 0).unwrap();
        let over = Instant::now();
        let mut port = Port::Listening { listener, pause: Some(over) };
        port.advance(&poller, 0).unwrap();
        assert!(port.due().is_some_and(|due| due > over), "there is another attempt");
        let Port::Listening { listener, pause } = &mut port else { unreachable!() };
        poller.forget(listener).unwrap();
        *pause = Some(over);
        port.advance(&poller, 0).unwrap();
        assert_eq!(port.due(), None);
    }
}
