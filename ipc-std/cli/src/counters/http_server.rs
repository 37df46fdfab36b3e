//! The HTTP server of `counters --serve`: the sockets and the time of each [`HttpExchange`].
//!
//! None of the usual servers has the limits that are promised here. `tiny_http` reads bodies, starts threads, and ends
//! when it cannot accept. `hyper` and the servers that use it need an executor, and leave the limits on connections, the
//! errors of accepting and the deadlines of answers to their caller. So `httparse` parses, `mio` polls, and one thread
//! serves all connections.
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use dotnet_ipc_syntax::http_exchange::{HttpExchange, Step};
use dotnet_ipc_syntax::http_hosts::{AllowedHosts, ServerAddress};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::prometheus::Exposition;
use crate::output::failure::Failure;
use crate::output::threads::{lock, spawn};

/// The maximum number of connections. A further one replaces another one.
const CONNECTIONS: usize = 256;
/// The number of connections that are accepted before the others have their turn.
const ACCEPTS: usize = 32;
/// The number of bytes that a connection sends and receives before others have their turn.
const TURN: usize = 64 << 10;
/// The number of bytes that one read or write counts for at least.
const CALL: usize = 1 << 10;
/// The pause after an error of accepting, at first and after several in a row.
const PAUSE: Duration = Duration::from_millis(10);
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// The buffer of the system for an answer, which would otherwise grow to megabytes for a client that does not read.
#[cfg(unix)]
const SEND_BUFFER: usize = 256 << 10;

const LISTENER: Token = Token(0);

/// Serves the text format at `http://ADDRESS/metrics`, on a thread of its own. Returns the address.
pub(crate) fn serve(
    address: &ServerAddress,
    hosts: AllowedHosts,
    exposition: Arc<Mutex<Exposition>>,
) -> Result<SocketAddr, Failure> {
    let failed = |e| Failure::io(format_args!("cannot serve at {address}"), &e);
    let server = HttpServer::bind(address, hosts, exposition).map_err(failed)?;
    let served = server.listener.local_addr().map_err(failed)?;
    spawn("http", move || server.run())?;
    Ok(served)
}

struct HttpServer {
    poll: Poll,
    listener: TcpListener,
    accepting: Accepting,
    connections: BTreeMap<Token, Connection>,
    hosts: Arc<AllowedHosts>,
    texts: Texts,
    start: Instant,
}

/// Whether connections can be accepted.
struct Accepting {
    is_ready: bool,
    /// After an error, the time of the next attempt.
    retry: Duration,
    pause: Duration,
}

struct Connection {
    stream: TcpStream,
    exchange: HttpExchange,
    is_readable: bool,
    is_writable: bool,
    /// Whether the turn ended although there is more to do.
    is_busy: bool,
}

impl HttpServer {
    fn bind(address: &ServerAddress, hosts: AllowedHosts, exposition: Arc<Mutex<Exposition>>) -> io::Result<Self> {
        let mut result = Err(ErrorKind::AddrNotAvailable.into());
        for address in (&*address.host, address.port).to_socket_addrs()? {
            result = TcpListener::bind(address);
            if result.is_ok() {
                break;
            }
        }
        let mut listener = result?;
        // The system has a buffer of its own choice if it refuses this one.
        #[cfg(unix)]
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            accepting: Accepting { is_ready: true, retry: Duration::ZERO, pause: PAUSE },
            connections: BTreeMap::new(),
            hosts: Arc::new(hosts),
            texts: Texts::new(exposition),
            start: Instant::now(),
        })
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(CONNECTIONS);
        loop {
            match self.poll.poll(&mut events, self.timeout()) {
                Err(e) if e.kind() != ErrorKind::Interrupted => thread::sleep(PAUSE),
                _ => {}
            }
            for event in &events {
                self.mark(event);
            }
            let now = self.start.elapsed();
            for connection in self.connections.values_mut() {
                if connection.exchange.deadline() <= now {
                    connection.exchange.expire(now);
                }
            }
            let texts = &mut self.texts;
            self.connections.retain(|_, connection| connection.take_turn(texts, now));
            while let Some(text) = self.texts.take_excess() {
                self.connections.retain(|_, connection| !connection.exchange.sends(&text));
            }
            // Each connection has a turn before further ones can take its place.
            self.accept(now);
        }
    }

    /// Returns the time until something is to do without an event.
    fn timeout(&self) -> Option<Duration> {
        if self.connections.values().any(|connection| connection.is_busy) {
            return Some(Duration::ZERO);
        }
        let deadlines = self.connections.values().map(|connection| connection.exchange.deadline());
        let next = deadlines.chain(self.accepting.is_ready.then_some(self.accepting.retry)).min()?;
        Some(next.saturating_sub(self.start.elapsed()))
    }

    fn mark(&mut self, event: &Event) {
        if event.token() == LISTENER {
            self.accepting.is_ready = true;
        }
        // An event can be older than its connection, which is then not ready as it turns out.
        if let Some(connection) = self.connections.get_mut(&event.token()) {
            connection.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
            connection.is_writable |= event.is_writable() || event.is_write_closed() || event.is_error();
        }
    }

    fn accept(&mut self, now: Duration) {
        let mut is_evicted = false;
        for _ in 0..ACCEPTS {
            if !self.accepting.is_ready || now < self.accepting.retry {
                return;
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    self.add(stream, now);
                    (is_evicted, self.accepting.pause) = (false, PAUSE);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.accepting.is_ready = false,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Mostly a lack of descriptors or memory: a connection that ends frees some.
                Err(_) if !is_evicted && self.evict() => is_evicted = true,
                Err(_) => {
                    self.accepting.retry = now.saturating_add(self.accepting.pause);
                    self.accepting.pause = self.accepting.pause.saturating_mul(2).min(LONG_PAUSE);
                }
            }
        }
    }

    /// Adds a connection. It ends immediately if the system has no memory for it.
    fn add(&mut self, mut stream: TcpStream, now: Duration) {
        if self.connections.len() >= CONNECTIONS {
            self.evict();
        }
        let mut tokens = (LISTENER.0..=CONNECTIONS).skip(1).map(Token);
        let Some(token) = tokens.find(|token| !self.connections.contains_key(token)) else { return };
        // Without it, the last part of an answer waits for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        if self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_ok() {
            self.connections.insert(token, Connection {
                stream,
                exchange: HttpExchange::new(Arc::clone(&self.hosts), now),
                is_readable: true,
                is_writable: true,
                is_busy: true,
            });
        }
    }

    /// Closes the connection whose client is the least likely to miss it. Returns `false` if there is none.
    ///
    /// It is the oldest one without a request, or if they are fewer than the others, the one that has not moved for the
    /// longest time. So neither silent clients nor those that request, and then read nothing, take all places.
    fn evict(&mut self) -> bool {
        let expendable = self.connections.values().filter(|connection| connection.exchange.is_expendable());
        let is_expendable = expendable.count() > self.connections.len() / 2;
        let candidates = self.connections.iter().filter(|(_, connection)| {
            connection.exchange.is_expendable() == is_expendable
        });
        let oldest = candidates.min_by_key(|(_, connection)| connection.exchange.last_progress());
        let Some(token) = oldest.map(|(token, _)| *token) else { return false };
        self.connections.remove(&token).is_some()
    }
}

impl Connection {
    /// Sends and receives as much as the socket and the turn allow. Returns `false` at the end of the connection.
    fn take_turn(&mut self, texts: &mut Texts, now: Duration) -> bool {
        let mut left = TURN;
        self.is_busy = false;
        while left > 0 {
            let moved = match self.exchange.step(now) {
                Step::Receive(_) if !self.is_readable => return true,
                Step::Receive(space) => {
                    let read = self.stream.read(space);
                    has_moved(read, &mut self.is_readable).map(|n| n.inspect(|n| self.exchange.received(*n, now)))
                }
                Step::Send(_) if !self.is_writable => return true,
                Step::Send(parts) => {
                    let written = self.stream.write_vectored(&parts.map(IoSlice::new));
                    has_moved(written, &mut self.is_writable).map(|n| n.inspect(|n| self.exchange.sent(*n, now)))
                }
                Step::Provide => {
                    self.exchange.provide(texts.newest());
                    Ok(None)
                }
                Step::EndSending => self.stream.shutdown(Shutdown::Write).map(|()| None),
                Step::Close => return false,
            };
            match moved {
                Ok(n) => left = left.saturating_sub(n.unwrap_or_default().max(CALL)),
                // The peer has reset the connection.
                Err(_) => return false,
            }
        }
        self.is_busy = true;
        true
    }
}

/// Returns the number of bytes that a call has moved, or `None` if it has to be repeated, for which the socket may not
/// be ready.
fn has_moved(result: io::Result<usize>, is_ready: &mut bool) -> io::Result<Option<usize>> {
    match result {
        Err(e) if e.kind() == ErrorKind::WouldBlock => {
            *is_ready = false;
            Ok(None)
        }
        Err(e) if e.kind() == ErrorKind::Interrupted => Ok(None),
        result => result.map(Some),
    }
}

/// The texts that clients receive. All clients that ask between two changes receive the same one.
struct Texts {
    exposition: Arc<Mutex<Exposition>>,
    newest: Arc<str>,
    /// The changes of the exposition that the newest text contains.
    changes: u64,
    /// When another text can be built.
    next: Instant,
    /// Texts that clients still receive.
    older: VecDeque<Arc<str>>,
}

/// The minimum time between two texts, so that clients cannot have a text built for each sample of an interval.
const TEXT_TIME: Duration = Duration::from_millis(100);
/// The time between two texts is at least this many times that of building one.
const TEXT_SHARE: u32 = 4;
/// The maximum length of all texts but the newest in bytes.
const OLDER_LIMIT: usize = 64 << 20;

impl Texts {
    fn new(exposition: Arc<Mutex<Exposition>>) -> Self {
        Self { exposition, newest: "".into(), changes: 0, next: Instant::now(), older: VecDeque::new() }
    }

    fn newest(&mut self) -> Arc<str> {
        let begin = Instant::now();
        if begin >= self.next {
            let exposition = lock(&self.exposition);
            if exposition.changes() != self.changes {
                self.changes = exposition.changes();
                let text = exposition.text().into();
                self.older.push_back(core::mem::replace(&mut self.newest, text));
                let (now, built) = (Instant::now(), begin.elapsed());
                self.next = now.checked_add(TEXT_TIME.max(built.saturating_mul(TEXT_SHARE))).unwrap_or(now);
            }
        }
        Arc::clone(&self.newest)
    }

    /// Removes the oldest text if older ones are too long in all. Its clients are too slow.
    fn take_excess(&mut self) -> Option<Arc<str>> {
        self.older.retain(|text| Arc::strong_count(text) > 1);
        let length = self.older.iter().fold(0_usize, |length, text| length.saturating_add(text.len()));
        if length > OLDER_LIMIT { self.older.pop_front() } else { None }
    }
}
