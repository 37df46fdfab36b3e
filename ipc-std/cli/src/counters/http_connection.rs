//! The connections of the HTTP server of `counters --serve`.
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use dotnet_ipc_sans_io::http::http_exchange::{HttpExchange, Step};
use mio::Token;
use mio::event::Event;
use mio::net::TcpStream;

use super::http_text::HttpText;

/// The number of bytes that a connection sends and receives before others have their turn.
const TURN: usize = 16 << 10;
/// The number of bytes that one read or write counts for at least.
const CALL: usize = 1 << 10;

/// The time between two connections that take the places of others.
const LEAST_TIME: Duration = Duration::from_micros(250);

/// The connections, with a limit.
pub(super) struct HttpConnections {
    connections: BTreeMap<Token, HttpConnection>,
    free: Vec<Token>,
    /// The time that each connection has before another one takes its place.
    least_time: Duration,
    /// The connections that are to have a turn.
    ready: VecDeque<Token>,
    /// The connections by their last progress: the expendable connections, and the others.
    expendable: BTreeSet<(Duration, Token)>,
    others: BTreeSet<(Duration, Token)>,
}

struct HttpConnection {
    stream: TcpStream,
    exchange: HttpExchange,
    is_readable: bool,
    is_writable: bool,
    is_ready: bool,
    /// Whether it is in the set of expendable connections, and its last progress there.
    place: (bool, Duration),
}

impl HttpConnections {
    /// Returns no connections, with a place for each token.
    pub(super) fn new(tokens: impl Iterator<Item = Token>) -> Self {
        let free: Vec<Token> = tokens.collect();
        let places = u32::try_from(free.len()).unwrap_or(u32::MAX);
        Self {
            connections: BTreeMap::new(),
            free,
            least_time: LEAST_TIME.saturating_mul(places),
            ready: VecDeque::new(),
            expendable: BTreeSet::new(),
            others: BTreeSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns whether a connection has more to do without an event.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the token for the next connection. Without a free one, a connection is closed.
    pub(super) fn next_token(&mut self) -> Option<Token> {
        if self.free.is_empty() {
            self.evict();
        }
        self.free.last().copied()
    }

    /// Adds a connection with the [`next_token`](Self::next_token).
    pub(super) fn add(&mut self, stream: TcpStream, exchange: HttpExchange) {
        let Some(token) = self.free.pop() else { return };
        let place = place(&exchange);
        self.set(place.0).insert((place.1, token));
        // The first event states whether it is ready.
        let (is_readable, is_writable, is_ready) = (false, false, false);
        let connection = HttpConnection { stream, exchange, is_readable, is_writable, is_ready, place };
        self.connections.insert(token, connection);
    }

    /// Closes the connection whose client is the least likely to miss it. Returns `false` if there is none.
    ///
    /// It is the oldest one that has no request, or if they are fewer than the others, the one without progress for the
    /// longest time. So neither silent clients nor clients that request, and then read nothing, take all places.
    pub(super) fn evict(&mut self) -> bool {
        let Some((_, token)) = self.candidate() else { return false };
        self.close(token);
        true
    }

    /// Returns the connection that [`evict`](Self::evict) closes, and its last progress.
    fn candidate(&self) -> Option<(Duration, Token)> {
        let set = if self.expendable.len() > self.others.len() { &self.expendable } else { &self.others };
        set.first().copied()
    }

    /// Returns when the next connection can be added: without a free place, after the least time of the one that it
    /// replaces. Otherwise many new connections would replace one whose client is about to send its request.
    pub(super) fn next_place(&self) -> Duration {
        let candidate = self.candidate().filter(|_| self.free.is_empty());
        candidate.map_or(Duration::ZERO, |(progress, _)| progress.saturating_add(self.least_time))
    }

    /// Stores what an event states about its connection. An event can be older than the connection, which is then not
    /// ready as it turns out.
    pub(super) fn mark(&mut self, event: &Event) {
        let Some(connection) = self.connections.get_mut(&event.token()) else { return };
        connection.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        connection.is_writable |= event.is_writable() || event.is_write_closed() || event.is_error();
        connection.queue(event.token(), &mut self.ready);
    }

    /// Gives each connection that is ready one turn. Returns the earliest of their deadlines, or the maximum.
    pub(super) fn take_turns(&mut self, text: &mut HttpText, now: Duration) -> Duration {
        let mut earliest = Duration::MAX;
        for _ in 0..self.ready.len() {
            let Some(token) = self.ready.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            if !connection.take_turn(text, now) {
                self.close(token);
                continue;
            }
            earliest = earliest.min(connection.exchange.deadline());
            if connection.is_ready {
                self.ready.push_back(token);
            }
            let (old, new) = (connection.place, place(&connection.exchange));
            if new != old {
                connection.place = new;
                self.set(old.0).remove(&(old.1, token));
                self.set(new.0).insert((new.1, token));
            }
        }
        earliest
    }

    /// Handles the deadlines that have passed. Returns the earliest other one, or the maximum.
    pub(super) fn expire(&mut self, now: Duration) -> Duration {
        let mut earliest = Duration::MAX;
        for (token, connection) in &mut self.connections {
            if connection.exchange.deadline() <= now {
                connection.exchange.expire(now);
                connection.queue(*token, &mut self.ready);
            }
            earliest = earliest.min(connection.exchange.deadline());
        }
        earliest
    }

    /// Closes the connections that send this text.
    pub(super) fn close_senders(&mut self, text: &Arc<str>) {
        let connections = self.connections.iter();
        let senders = connections.filter(|(_, connection)| connection.exchange.sends(text));
        let senders: Vec<Token> = senders.map(|(token, _)| *token).collect();
        senders.into_iter().for_each(|token| self.close(token));
    }

    fn close(&mut self, token: Token) {
        if let Some(HttpConnection { place, .. }) = self.connections.remove(&token) {
            self.set(place.0).remove(&(place.1, token));
            self.free.push(token);
        }
    }

    const fn set(&mut self, is_expendable: bool) -> &mut BTreeSet<(Duration, Token)> {
        if is_expendable { &mut self.expendable } else { &mut self.others }
    }
}

const fn place(exchange: &HttpExchange) -> (bool, Duration) {
    (exchange.is_expendable(), exchange.last_progress())
}

impl HttpConnection {
    /// Queues the connection for a turn.
    fn queue(&mut self, token: Token, ready: &mut VecDeque<Token>) {
        if !core::mem::replace(&mut self.is_ready, true) {
            ready.push_back(token);
        }
    }

    /// Sends and receives as much as the socket and the turn allow. Returns `false` at the end of the connection.
    fn take_turn(&mut self, text: &mut HttpText, now: Duration) -> bool {
        let mut left = TURN;
        self.is_ready = false;
        while left > 0 {
            let moved = match self.exchange.step(now) {
                Step::Receive(_) if !self.is_readable => return true,
                Step::Receive(space) => {
                    let read = moved(self.stream.read(space), &mut self.is_readable);
                    read.map(|n| n.inspect(|n| self.exchange.received(*n, now)))
                }
                Step::Send(_) if !self.is_writable => return true,
                Step::Send(parts) => {
                    let written = self.stream.write_vectored(&parts.map(IoSlice::new));
                    let written = moved(written, &mut self.is_writable);
                    written.map(|n| n.inspect(|n| self.exchange.sent(*n, now)))
                }
                Step::Provide => {
                    self.exchange.provide(text.newest());
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
        self.is_ready = true;
        true
    }
}

/// Returns the number of bytes that a call has moved, or `None` if it has to be repeated, for which the socket may not
/// be ready.
fn moved(result: io::Result<usize>, is_ready: &mut bool) -> io::Result<Option<usize>> {
    match result {
        Err(e) if e.kind() == ErrorKind::WouldBlock => {
            *is_ready = false;
            Ok(None)
        }
        Err(e) if e.kind() == ErrorKind::Interrupted => Ok(None),
        result => result.map(Some),
    }
}
