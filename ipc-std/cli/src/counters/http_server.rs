//! The HTTP server of `counters --serve`: it accepts connections, and polls them on one thread.
//!
//! None of the usual servers has the limits that are promised here. `tiny_http` reads bodies, starts threads, and ends
//! when it cannot accept. `hyper` and the servers that use it need an executor, and leave the limits on connections, the
//! errors of accepting and the deadlines of answers to their caller. So `httparse` parses, `mio` polls, and
//! [`HttpExchange`] has the rules of a connection, without I/O.
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use dotnet_ipc_sans_io::http::allowed_hosts::{AllowedHosts, ServerAddress};
use dotnet_ipc_sans_io::http::http_exchange::HttpExchange;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
#[cfg(unix)]
use rustix::net::sockopt;

use super::http_connection::HttpConnections;
use super::http_text::HttpText;
use super::prometheus::exposition::Exposition;
#[cfg(unix)]
use crate::process::descriptors;
use crate::run::Failure;
use crate::run::threads::spawn;

/// The maximum number of connections. A further one replaces another one.
const CONNECTIONS: usize = 1_024;
/// The pause after an error of accepting, at first and after several in a row.
const PAUSE: Duration = Duration::from_millis(10);
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// The minimum time between two searches for deadlines that have passed.
const SEARCH_TIME: Duration = Duration::from_secs(1);
/// The number of connections that wait to be accepted. A further client tries again after a second.
#[cfg(unix)]
const BACKLOG: i32 = 4_096;
/// The buffer of the system for an answer, which would otherwise grow to megabytes for a client that does not read.
#[cfg(unix)]
const SEND_BUFFER: usize = 64 << 10;

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
    connections: HttpConnections,
    hosts: Arc<AllowedHosts>,
    text: HttpText,
    start: Instant,
    /// When to search for deadlines that have passed.
    search: Duration,
}

/// Whether connections can be accepted.
struct Accepting {
    is_ready: bool,
    /// The number of connections that are accepted before all have their turn: half of the places, so that a new
    /// connection has a turn before others take its place.
    at_once: usize,
    /// After an error, the time of the next attempt.
    retry: Duration,
    pause: Duration,
}

impl HttpServer {
    fn bind(
        address: &ServerAddress,
        hosts: AllowedHosts,
        exposition: Arc<Mutex<Exposition>>,
    ) -> io::Result<Self> {
        let mut result = Err(ErrorKind::AddrNotAvailable.into());
        for address in (&*address.host, address.port).to_socket_addrs()? {
            result = TcpListener::bind(address);
            if result.is_ok() {
                break;
            }
        }
        let mut listener = result?;
        // If the system refuses one of them, it has values of its own choice.
        #[cfg(unix)]
        {
            let _ = rustix::net::listen(&listener, BACKLOG);
            // Connections inherit these two. Without the second, the last part of a long answer waits for the client's
            // acknowledgement.
            let _ = sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER);
            let _ = sockopt::set_tcp_nodelay(&listener, true);
        }
        let (poll, places) = (Poll::new()?, max_connections());
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            accepting: Accepting {
                is_ready: true,
                at_once: places.div_ceil(2),
                retry: Duration::ZERO,
                pause: PAUSE,
            },
            connections: HttpConnections::new((1..=places).map(Token)),
            hosts: Arc::new(hosts),
            text: HttpText::new(exposition),
            start: Instant::now(),
            search: Duration::ZERO,
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
                self.accepting.is_ready |= event.token() == LISTENER;
                self.connections.mark(event);
            }
            let now = self.start.elapsed();
            let next = now.saturating_add(SEARCH_TIME);
            if self.search <= now {
                self.search = self.connections.expire(now).max(next);
            }
            let deadline = self.connections.take_turns(&mut self.text, now);
            self.search = self.search.min(deadline.max(next));
            while let Some(text) = self.text.take_excess() {
                self.connections.close_senders(&text);
            }
            // Each connection has a turn before further ones can take its place.
            self.accept(now);
        }
    }

    /// Returns the time until something is to do without an event.
    fn timeout(&self) -> Option<Duration> {
        if self.connections.has_ready() {
            return Some(Duration::ZERO);
        }
        let search = Some(self.search).filter(|_| !self.connections.is_empty());
        let next = search.into_iter().chain(self.accepting.is_ready.then(|| self.next_accept())).min()?;
        Some(next.saturating_sub(self.start.elapsed()))
    }

    fn next_accept(&self) -> Duration {
        self.accepting.retry.max(self.connections.next_place())
    }

    fn accept(&mut self, now: Duration) {
        let mut is_evicted = false;
        for _ in 0..self.accepting.at_once {
            if !self.accepting.is_ready || now < self.next_accept() {
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
                Err(_) if !is_evicted && self.connections.evict() => is_evicted = true,
                Err(_) => {
                    self.accepting.retry = now.saturating_add(self.accepting.pause);
                    self.accepting.pause = self.accepting.pause.saturating_mul(2).min(LONG_PAUSE);
                }
            }
        }
    }

    /// Adds a connection. It ends immediately if the system has no memory for it.
    fn add(&mut self, mut stream: TcpStream, now: Duration) {
        let Some(token) = self.connections.next_token() else { return };
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, token, interest).is_ok() {
            self.connections.add(stream, HttpExchange::new(Arc::clone(&self.hosts), now));
            self.search = self.search.min(now.saturating_add(SEARCH_TIME));
        }
    }
}

/// Returns how many connections there can be: with a low limit of descriptors, a part of them, as sessions need some.
fn max_connections() -> usize {
    #[cfg(unix)]
    {
        /// The part of the descriptors is one in this many.
        const SHARE: u64 = 4;
        descriptors::raise_limit();
        usize::try_from(descriptors::limit() / SHARE).unwrap_or(CONNECTIONS).clamp(1, CONNECTIONS)
    }
    #[cfg(windows)]
    CONNECTIONS
}
