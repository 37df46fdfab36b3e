use core::fmt;
use core::time::Duration;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc_proto::Advertise;
use ipc_proto::port::{ConnectPort, PortEvent, PortStep};

use crate::Stream;
use crate::client::Deadline;
use crate::sys::{self, Address, Listener, Poller, Socket};

/// A runtime's side of its diagnostic ports: listens for tools, calls monitors, and hands over the connections on which
/// a command comes.
///
/// For those who make a runtime. It has no thread and no buffers: [`accept`](Self::accept) waits, on the caller's
/// thread, for all ports at once. What comes is served with [`Serve`](ipc_proto::Serve).
///
/// * A port that [listens](Self::listen) hands a connection over as soon as it is made, whether anything is said on it
///   or not; a runtime that serves one connection at a time waits for a silent tool for ever.
/// * A port that [calls](Self::call) is a [`ConnectPort`]: it connects, says who it is, and hands the connection over
///   once a command is on it. A monitor that is not there is tried again after 10, 12, 15 … 571, 500, 500 ms; one whose
///   backlog is full counts as not there. Connecting never waits.
///
/// Ports are numbered in the order in which they were added, which is what [`Suspension`](ipc_proto::port::Suspension)
/// wants: a `ResumeRuntime` counts for the port it came by.
///
/// ```
/// use ipc_proto::port::Suspension;
/// use ipc_proto::{Advertise, Guid, HResult, Message, Request, Serve, types::Status};
/// use ipc_std::{Client, Incoming, Server, drive};
///
/// let directory = tempfile::tempdir()?;
/// let advertise = Advertise { runtime_cookie: Guid(*b"drawn at startup"), process_id: 42, future: 0 };
/// let mut server = Server::new(&advertise)?;
/// let default_port = server.listen(directory.path())?;
/// let monitor = server.call(&directory.path().join("monitor"))?; // nobody is there
/// assert_eq!((default_port, monitor), (0, 1));
/// let mut suspension = Suspension::new([true, false]);
///
/// let path = server.path().map(std::path::Path::to_owned).unwrap_or_default();
/// let tool = std::thread::spawn(move || Client::at(path).resume());
/// let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; Message::MAX_LEN]);
/// while suspension.is_suspended() {
///     let Some(Incoming { mut stream, port, turn }) = server.accept()? else { break };
///     let mut serve = Serve::new(&mut receive, &mut send)?;
///     drive(&mut serve, &mut stream)?;
///     let (request, mut reply) = serve.finish();
///     match request {
///         Ok(Request::ResumeRuntime(resume)) => {
///             suspension.resume(port);
///             reply.answer(&resume, &Status::OK)?;
///         }
///         Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
///         Err(_) => {} // the reply refuses already
///     }
///     drive(&mut reply, &mut stream)?;
///     drop(turn); // as it would be here in any case; of a trace, the stream would live on
/// }
/// tool.join().expect("it does not panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    advertise: Advertise,
    ports: Vec<Port>,
    /// Watches the ports, by their numbers, and the flag of `told`.
    poller: Poller,
    /// Which port was last handed a connection of: the others come first the next time.
    last: usize,
    told: Arc<Told>,
}

/// A connection to serve, from [`Server::accept`].
#[derive(Debug)]
pub struct Incoming {
    /// The connection. It has no deadline; [`Stream::set_deadline`] gives it one.
    pub stream: Stream,
    /// The number of the port that it belongs to.
    pub port: usize,
    /// Keeps the port from calling again.
    pub turn: Turn,
}

/// A port's turn, which lasts until its command is answered.
///
/// While it lives, the port does not call. Drop it, from whatever thread, when the command is answered; of a session
/// that streams, right after the OK, while the stream lives on. Then [`Server::accept`] connects again at once.
///
/// A port that listens has no turns: dropping its one does nothing.
#[derive(Debug)]
pub struct Turn(Option<(Arc<Told>, usize)>);

/// Ends [`Server::accept`] from another thread.
#[derive(Debug, Clone)]
pub struct ServerStopper(Arc<Told>);

/// What other threads have to say.
struct Told {
    said: Mutex<Said>,
    /// Raised when something was said.
    flag: sys::Flag,
}

#[derive(Default)]
struct Said {
    stop: bool,
    /// Ports whose turn is over.
    answered: Vec<usize>,
}

#[derive(Debug)]
enum Port {
    Listening {
        listener: Listener,
        /// Until when nothing is accepted, as that failed.
        pause: Option<Instant>,
    },
    Calling {
        monitor: Address,
        machine: ConnectPort,
        /// Until it is handed over.
        stream: Option<Socket>,
        /// When the next try is due.
        next_try: Option<Instant>,
    },
}

impl Server {
    /// A runtime that says this of itself, without ports.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn new(advertise: &Advertise) -> io::Result<Self> {
        let told = Arc::new(Told { said: Mutex::default(), flag: sys::Flag::new()? });
        let poller = Poller::new()?;
        poller.watch(&told.flag, TOLD)?;
        Ok(Self { advertise: *advertise, ports: Vec::new(), poller, last: 0, told })
    }

    /// Listens in this directory, under the [name](SocketName) of a runtime's socket; gives the port's number.
    ///
    /// Tools look in [`discover::directory`](crate::discover::directory). Only the owner may connect, from the first
    /// moment on; 255 connections may wait. The socket is removed when the server is dropped.
    ///
    /// # Errors
    /// If it cannot be listened there; of kind `AddrInUse` if something lies there, be it dead, as in a real runtime; of
    /// kind `InvalidInput` if the path, or the process id, is too long for one.
    pub fn listen(&mut self, directory: &Path) -> io::Result<usize> {
        let process_id = u32::try_from(self.advertise.process_id)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        let listener = Listener::bind(&sys::endpoint(directory, process_id))?;
        self.poller.watch(&listener, token(self.ports.len()))?;
        Ok(self.add(Port::Listening { listener, pause: None }))
    }

    /// Calls the monitor whose socket is at `path`, there or not, from the next [`accept`](Self::accept) on; gives the
    /// port's number.
    ///
    /// # Errors
    /// If the path is too long for a socket's.
    pub fn call(&mut self, path: &Path) -> io::Result<usize> {
        let monitor = Address::new(path)?;
        let machine = ConnectPort::new(&self.advertise);
        Ok(self.add(Port::Calling { monitor, machine, stream: None, next_try: None }))
    }

    fn add(&mut self, port: Port) -> usize {
        let number = self.ports.len();
        self.ports.push(port);
        number
    }

    /// The socket that it listens at; the first, if there are several.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.ports.iter().find_map(|port| match port {
            Port::Listening { listener, .. } => Some(listener.path()),
            Port::Calling { .. } => None,
        })
    }

    /// What ends [`accept`](Self::accept).
    #[must_use]
    pub fn stopper(&self) -> ServerStopper {
        ServerStopper(Arc::clone(&self.told))
    }

    /// Waits for a connection to serve, for as long as it takes; `None` once it is [stopped](ServerStopper::stop).
    ///
    /// Ports take turns. All of them stand still between two calls; so serve what takes time on another thread.
    ///
    /// # Errors
    /// If the operating system cannot wait. Connections that cannot be accepted, for want of descriptors say, are no
    /// error: they wait, and are tried again after 10 ms.
    pub fn accept(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            if self.told.take(&mut self.ports) {
                return Ok(None);
            }
            for (number, port) in self.ports.iter_mut().enumerate() {
                port.go_on(&self.poller, token(number))?;
            }
            for number in self.wait()? {
                let Some(port) = self.ports.get_mut(number) else { continue };
                let Some(socket) = port.take(&self.poller)? else { continue };
                self.last = number;
                let calls = matches!(port, Port::Calling { .. });
                let turn = Turn(calls.then(|| (Arc::clone(&self.told), number)));
                // Who serves it reads until it has all.
                let stream = Stream::over(socket, Deadline::after(Duration::MAX).end);
                return Ok(Some(Incoming { stream, port: number, turn }));
            }
        }
    }

    /// Waits until there is something to do; says which ports are ready, in the order of their turns.
    fn wait(&self) -> io::Result<Vec<usize>> {
        let next = self.ports.iter().filter_map(Port::due).min();
        match self.poller.wait(next.unwrap_or_else(|| Deadline::after(Duration::MAX).end)) {
            Err(e) if e.kind() == ErrorKind::TimedOut => {}
            result => result?,
        }
        let mut ready = Vec::new();
        self.poller.ready(&mut ready)?;
        // All but that of the flag.
        let mut ready: Vec<_> = ready.into_iter().filter_map(|token| usize::try_from(token).ok()).collect();
        ready.sort_by_key(|number| (*number <= self.last, *number));
        Ok(ready)
    }
}

/// The token of [`Told`]'s flag, which is no port's.
const TOLD: u64 = 0xffff_ffff;

fn token(port: usize) -> u64 {
    port as u64
}

impl Port {
    /// Does what can be done without waiting.
    fn go_on(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        let now = Instant::now();
        match self {
            Self::Listening { listener, pause } => {
                if pause.take_if(|pause| *pause <= now).is_some() {
                    poller.watch(listener, token)?;
                }
                Ok(())
            }
            Self::Calling { monitor, machine, stream, next_try } => loop {
                let event = match machine.step() {
                    PortStep::Connect => match Socket::connect_at_once(monitor) {
                        Ok(connected) if poller.watch(&connected, token).is_ok() => {
                            *stream = Some(connected);
                            PortEvent::Connected
                        }
                        Ok(_) | Err(_) => PortEvent::Failed,
                    },
                    PortStep::Wait { milliseconds } => {
                        let next = *next_try.get_or_insert_with(|| {
                            Deadline::after(Duration::from_millis(milliseconds.into())).end
                        });
                        if next > now {
                            return Ok(());
                        }
                        *next_try = None;
                        PortEvent::Waited
                    }
                    // It always fits a fresh socket, so that there is nothing to wait for.
                    PortStep::Send(frame) => match stream.as_ref().map(|mut stream| stream.write(frame)) {
                        Some(Ok(n)) => PortEvent::Sent(n),
                        Some(Err(e)) if e.kind() == ErrorKind::Interrupted => continue,
                        Some(Err(_)) | None => PortEvent::Failed,
                    },
                    PortStep::Await | PortStep::Serve => return Ok(()),
                };
                if event == PortEvent::Failed {
                    close(stream, poller);
                }
                machine.advance(event);
            },
        }
    }

    /// When there is something to do even if nothing comes.
    const fn due(&self) -> Option<Instant> {
        match self {
            Self::Listening { pause, .. } => *pause,
            Self::Calling { next_try, .. } => *next_try,
        }
    }

    /// Takes the connection that is to be served, if that is what it is ready for.
    fn take(&mut self, poller: &Poller) -> io::Result<Option<Socket>> {
        match self {
            Self::Listening { listener, pause } => match listener.accept() {
                Ok(socket) => Ok(Some(socket)),
                // Somebody was there and has gone.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                    Ok(None)
                }
                Err(_) => {
                    // There are too many connections just now; the next one would be asked for at once.
                    *pause = Some(Deadline::after(Duration::from_millis(10)).end);
                    poller.forget(listener)?;
                    Ok(None)
                }
            },
            // First, even if there is data too: as a runtime does.
            Self::Calling { machine, stream, .. } if stream.as_ref().is_some_and(Socket::has_hung_up) => {
                close(stream, poller);
                machine.advance(PortEvent::HungUp);
                Ok(None)
            }
            Self::Calling { machine, stream, .. } => {
                machine.advance(PortEvent::Readable);
                let taken = stream.take();
                taken.iter().try_for_each(|taken| poller.forget(taken))?;
                Ok(taken)
            }
        }
    }
}

fn close(stream: &mut Option<Socket>, poller: &Poller) {
    if let Some(closed) = stream.take() {
        // It is forgotten when it is closed, too.
        let _ = poller.forget(&closed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((told, port)) = &self.0 {
            told.say(|said| said.answered.push(*port));
        }
    }
}

impl ServerStopper {
    /// Has [`Server::accept`] give `None`, now or when it is called next, and from then on.
    pub fn stop(&self) {
        self.0.say(|said| said.stop = true);
    }
}

impl Told {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, say: impl FnOnce(&mut Said)) {
        say(&mut self.said());
        self.flag.raise();
    }

    /// Tells the ports whose turns are over; whether to stop.
    fn take(&self, ports: &mut [Port]) -> bool {
        // Before it is looked what was said: what is said later wakes again.
        self.flag.lower();
        let mut said = self.said();
        for number in said.answered.drain(..) {
            if let Some(Port::Calling { machine, .. }) = ports.get_mut(number) {
                machine.advance(PortEvent::Answered);
            }
        }
        said.stop
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}
