//! A connection of the HTTP server of `counters --serve`, without I/O.
//!
//! ```text
//! receive the head -> send the answer -> receive the next head
//!                                     -> end the sending half -> discard the rest of the input -> close
//! ```
//! The body of a request is never read: its client gets the answer, and the connection ends. The input is discarded for
//! a moment before, because closing a connection with unread input makes the client lose the answer.
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use super::allowed_hosts::AllowedHosts;
use super::answer::Answer;
use super::page::Page;
use super::request::{DISCARD_LIMIT, Request, parse, refused};

/// The maximum length of the head of a request in bytes.
pub const HEAD_LIMIT: usize = 8 << 10;
/// The room for a head at first. It doubles as the head becomes longer.
const HEAD_ROOM: usize = 1 << 10;
/// The time for the head of a request, from the start of the connection or from its first byte.
pub const HEAD_TIME: Duration = Duration::from_secs(5);
/// The time for the answer to a request.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);
/// The time between an answer and the next request: twice the usual interval of a slow scraper.
pub const IDLE_TIME: Duration = Duration::from_secs(120);
/// The time for discarding the input of a connection that ends.
pub const DISCARD_TIME: Duration = Duration::from_secs(2);

/// What the caller of [`HttpExchange::step`] does next.
#[derive(Debug)]
pub enum Step<'a> {
    /// Receive bytes into this space, and pass their number to [`received`](HttpExchange::received).
    Receive(&'a mut [u8]),
    /// Pass the metrics to [`provide`](HttpExchange::provide).
    Provide,
    /// Send a part of these bytes, one part after the other, and pass their number to [`sent`](HttpExchange::sent).
    Send([&'a [u8]; 2]),
    /// End the sending half of the connection.
    EndSending,
    /// Close the connection.
    Close,
}

/// A connection of the server. Times are those since a moment that the caller chooses, and never decrease.
#[derive(Debug)]
pub struct HttpExchange {
    hosts: Arc<AllowedHosts>,
    buffer: Vec<u8>,
    /// The received bytes that belong to no request yet. The bytes before them are empty lines.
    unread: Range<usize>,
    /// The number of unread bytes that were parsed, and are not a complete head.
    parsed: usize,
    state: State,
    deadline: Duration,
    has_request: bool,
    last_progress: Duration,
}

#[derive(Debug)]
enum State {
    Head,
    /// The answer is the metrics, which the caller provides.
    Metrics(Request),
    Answer(Answer),
    EndSending,
    /// The input is discarded, and this many further bytes at most.
    Discard(usize),
    Closed,
}

impl HttpExchange {
    /// Returns the exchange of a connection that begins.
    pub fn new(hosts: Arc<AllowedHosts>, now: Duration) -> Self {
        Self {
            hosts,
            buffer: vec![0; HEAD_ROOM],
            unread: 0..0,
            parsed: 0,
            state: State::Head,
            deadline: now.saturating_add(HEAD_TIME),
            has_request: false,
            last_progress: now,
        }
    }

    /// Returns what to do next.
    pub fn step(&mut self, now: Duration) -> Step<'_> {
        let request = if matches!(self.state, State::Head) { self.next_request() } else { None };
        if let Some(request) = request {
            self.begin(request, now);
        }
        let Self { state, buffer, unread, .. } = self;
        match state {
            State::Head => {
                if unread.end >= buffer.len() {
                    buffer.resize(buffer.len().saturating_mul(2).min(HEAD_LIMIT), 0);
                }
                Step::Receive(buffer.get_mut(unread.end..).unwrap_or_default())
            }
            State::Metrics(_) => Step::Provide,
            State::Answer(answer) => {
                let Answer { head, body, sent, .. } = answer;
                let rest = head.as_bytes().get(*sent..).unwrap_or_default();
                let body = body.as_bytes().get(sent.saturating_sub(head.len())..).unwrap_or_default();
                Step::Send([rest, body])
            }
            State::EndSending => {
                *state = State::Discard(DISCARD_LIMIT);
                Step::EndSending
            }
            State::Discard(_) => Step::Receive(buffer),
            State::Closed => Step::Close,
        }
    }

    /// Handles bytes that were received; 0 is the end of the input.
    pub fn received(&mut self, n: usize, now: Duration) {
        match &mut self.state {
            State::Head if n == 0 => self.end_head(Page::BadRequest, now),
            State::Head => {
                if self.unread.end == 0 && self.has_request {
                    self.deadline = now.saturating_add(HEAD_TIME);
                }
                self.unread.end = self.unread.end.saturating_add(n).min(self.buffer.len());
            }
            State::Discard(left) => match left.checked_sub(n) {
                Some(rest) if n > 0 => {
                    *left = rest;
                    if n >= self.buffer.len() {
                        self.buffer.resize(HEAD_LIMIT, 0);
                    }
                }
                _ => self.state = State::Closed,
            },
            _ => {}
        }
    }

    /// Answers with the metrics.
    pub fn provide(&mut self, metrics: Arc<str>) {
        if let State::Metrics(request) = self.state {
            self.state = State::Answer(Answer::new(request, metrics));
        }
    }

    /// Handles bytes that were sent.
    pub fn sent(&mut self, n: usize, now: Duration) {
        let State::Answer(answer) = &mut self.state else { return };
        self.last_progress = now;
        answer.sent = answer.sent.saturating_add(n);
        let length = answer.head.len().saturating_add(answer.body.len());
        if answer.sent < length {
            return;
        }
        let (state, time) = match (answer.closes, self.unread.end) {
            (true, _) => (State::EndSending, DISCARD_TIME),
            (false, 0) => (State::Head, IDLE_TIME),
            (false, _) => (State::Head, HEAD_TIME),
        };
        self.state = state;
        self.deadline = now.saturating_add(time);
    }

    /// Returns when to call [`expire`](Self::expire).
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Handles the deadline: answers a part of a request with an error, and otherwise closes the connection.
    pub fn expire(&mut self, now: Duration) {
        match self.state {
            State::Head => self.end_head(Page::TimedOut, now),
            _ => self.state = State::Closed,
        }
    }

    /// Answers a part of a request with its error, or with `page` if it has none. Without a part, the connection ends.
    fn end_head(&mut self, page: Page, now: Duration) {
        match self.buffer.get(self.unread.clone()) {
            None | Some([]) => self.state = State::Closed,
            Some(head) => {
                let request = parse(head, &self.hosts).map_or_else(|| refused(page), |(_, request)| request);
                self.begin(request, now);
            }
        }
    }

    /// Returns whether the client has sent no complete request, or has its last answer. The client of such a connection
    /// loses little if it is closed.
    pub const fn is_expendable(&self) -> bool {
        !self.has_request || matches!(self.state, State::EndSending | State::Discard(_) | State::Closed)
    }

    /// Returns when the connection began, its last request was complete, or bytes of an answer were sent.
    pub const fn last_progress(&self) -> Duration {
        self.last_progress
    }

    /// Returns whether the client is receiving these metrics.
    pub fn sends(&self, metrics: &Arc<str>) -> bool {
        matches!(&self.state, State::Answer(answer) if Arc::ptr_eq(&answer.body, metrics))
    }

    /// Takes the next complete request from the unread bytes.
    ///
    /// A head that is not complete is parsed again only after its length has doubled, so that the work is proportional
    /// to the bytes, also if they arrive one by one.
    fn next_request(&mut self) -> Option<Request> {
        let is_blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let unread = self.buffer.get(self.unread.clone())?;
        // Empty lines before a request are ignored. They count as bytes of its head.
        let blank = if self.parsed == 0 { unread.iter().take_while(is_blank).count() } else { 0 };
        let head = unread.get(blank..)?;
        self.unread.start = self.unread.start.saturating_add(blank);
        let is_full = self.unread.end >= HEAD_LIMIT;
        let new = head.get(self.parsed.saturating_sub(3)..).unwrap_or_default();
        let is_due =
            head.len() > self.parsed && (head.len() / 2 >= self.parsed || is_full || has_empty_line(new));
        let parsed = if is_due { parse(head, &self.hosts) } else { None };
        match parsed {
            Some((used, request)) => {
                let rest = self.unread.start.saturating_add(used).min(self.unread.end)..self.unread.end;
                self.unread = 0..rest.len();
                self.buffer.copy_within(rest, 0);
                self.parsed = 0;
                Some(request)
            }
            None if is_full => Some(refused(Page::LongHead)),
            None => {
                if is_due {
                    self.parsed = head.len();
                }
                None
            }
        }
    }

    fn begin(&mut self, request: Request, now: Duration) {
        self.has_request = true;
        self.last_progress = now;
        self.deadline = now.saturating_add(ANSWER_TIME);
        self.state = match request.page {
            Page::Metrics => State::Metrics(request),
            page => State::Answer(Answer::new(request, page.row().1.into())),
        };
    }
}

/// Returns whether there is an empty line, which ends a head.
fn has_empty_line(bytes: &[u8]) -> bool {
    let mut last = 0;
    let mut bytes = bytes.iter().filter(|byte| **byte != b'\r');
    bytes.any(|byte| core::mem::replace(&mut last, *byte) == b'\n' && *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::FIELD_LIMIT;

    const METRICS: &str = "a 1\n";
    const START: Duration = Duration::from_secs(100);

    fn exchange() -> HttpExchange {
        HttpExchange::new(Arc::default(), START)
    }

    /// Returns what is sent until more input is needed or the connection ends, and whether it ends.
    fn run(exchange: &mut HttpExchange, pieces: &[&[u8]], ends: bool) -> (String, bool) {
        let (mut pieces, mut rest) = (pieces.iter().copied(), &[][..]);
        let mut sent = String::new();
        loop {
            let n = match exchange.step(START) {
                Step::Receive(space) => {
                    if rest.is_empty() {
                        match pieces.next() {
                            Some(piece) => rest = piece,
                            None if ends => {}
                            None => return (sent, false),
                        }
                    }
                    let n = rest.len().min(space.len());
                    space[..n].copy_from_slice(&rest[..n]);
                    rest = &rest[n..];
                    n
                }
                Step::Provide => {
                    exchange.provide(METRICS.into());
                    continue;
                }
                Step::Send([head, body]) => {
                    let bytes = [head, body].concat();
                    sent.push_str(core::str::from_utf8(&bytes).unwrap());
                    let n = bytes.len();
                    exchange.sent(n, START);
                    continue;
                }
                Step::EndSending => {
                    sent.push_str("END");
                    continue;
                }
                Step::Close => return (sent, true),
            };
            exchange.received(n, START);
        }
    }

    /// Returns the statuses of all answers, and whether the server ends the connection.
    fn statuses(request: impl AsRef<[u8]>) -> (Vec<String>, bool) {
        let (sent, _) = run(&mut exchange(), &[request.as_ref()], false);
        let statuses = sent.lines().filter_map(|line| Some(line.strip_prefix("HTTP/1.1 ")?[..3].to_owned()));
        (statuses.collect(), sent.ends_with("END"))
    }

    #[test]
    fn each_request_has_its_answer() {
        let x = "x".repeat(HEAD_LIMIT);
        let fields = "a: b\r\n".repeat(FIELD_LIMIT);
        let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";
        for (request, status, closes) in [
            (format!("{get}\r\n"), "200", false),
            (format!("\r\n\n{get}\r\n"), "200", false),
            (format!("{get}Connection: keep-alive, Close\r\n\r\n"), "200", true),
            (format!("{get}Content-Length: 0\r\n\r\n"), "200", false),
            (format!("{get}Content-Length: 2000\r\n\r\n"), "200", true),
            (format!("{get}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"), "200", true),
            (format!("{get}Upgrade: h2c\r\nConnection: upgrade\r\n\r\n"), "200", false),
            (format!("{get}Transfer-Encoding: chunked\r\n\r\n"), "200", true),
            ("GET /metrics HTTP/1.0\r\n\r\n".to_owned(), "200", true),
            ("GET /metrics?x=/y HTTP/1.0\n\n".to_owned(), "200", true),
            ("GET HTTP://127.0.0.1:1/metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n".to_owned(), "200", false),
            ("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "200", false),
            ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "200", false),
            ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "404", false),
            ("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "405", false),
            ("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "405", false),
            ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello".to_owned(), "405", true),
            ("CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "405", false),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "403", false),
            ("GET /metrics HTTP/1.0\r\nHost: evil.example\r\n\r\n".to_owned(), "403", true),
            ("GET /metrics HTTP/1.1\r\nHost:\r\n\r\n".to_owned(), "403", false),
            ("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "403", false),
            ("GET /metrics HTTP/1.1\r\n\r\n".to_owned(), "400", true),
            (format!("{get}Host: localhost\r\n\r\n"), "400", true),
            ("GET /metrics HTTP/1.1\r\nHost: a@b\r\n\r\n".to_owned(), "400", true),
            ("GET http://a@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "400", true),
            ("GET metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "400", true),
            (format!("{get}Content-Length: 1000000000000000\r\n\r\n"), "400", true),
            (format!("{get}Content-Length: 18446744073709551616\r\n\r\n"), "400", true),
            (format!("{get}Content-Length: +5\r\n\r\n"), "400", true),
            (format!("{get}Content-Length:\r\n\r\n"), "400", true),
            (format!("{get}Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), "400", true),
            (format!("{get}Content-Length: 5, 5\r\n\r\n"), "400", true),
            (format!("{get}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), "400", true),
            (format!("{get} folded: x\r\n\r\n"), "400", true),
            ("\x16\x03\x01\x02\0\x01".to_owned(), "400", true),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "505", true),
            (format!("GET /{x}"), "431", true),
            (format!("{get}a: {x}"), "431", true),
            ("\r\n".repeat(HEAD_LIMIT), "431", true),
            (format!("{get}{fields}\r\n"), "431", true),
        ] {
            assert_eq!(statuses(&request), (vec![status.to_owned()], closes), "{request:.100?}");
        }
        assert_eq!(statuses("GET /metrics HTTP/1.1\r\nHost: localhost\r\n"), (vec![], false));
        assert_eq!(statuses(format!("{get}\r\n{get}\r\nGET / HTTP/1.0\r\n\r\n{get}\r\n")).0, ["200"; 3]);
    }

    #[test]
    fn the_head_describes_the_body() {
        let answer = |method: &str| {
            let request = format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
            run(&mut exchange(), &[request.as_bytes()], false).0
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 4\r\n\r\n";
        assert_eq!(answer("GET"), format!("{head}{METRICS}"));
        assert_eq!(answer("HEAD"), head);
        assert!(answer("POST").contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"));
    }

    #[test]
    fn the_end_of_the_input_loses_no_answer() {
        let get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for (input, status) in
            [(get.to_owned(), "200"), (get[..20].to_owned(), "400"), (get.repeat(3), "200")]
        {
            let (sent, is_closed) = run(&mut exchange(), &[input.as_bytes()], true);
            assert!(sent.starts_with(&format!("HTTP/1.1 {status} ")) && is_closed, "{sent}");
            assert_eq!(sent.matches("HTTP/1.1 200 ").count(), input.matches(get).count());
        }
        assert_eq!(run(&mut exchange(), &[], true), (String::new(), true));
    }

    #[test]
    fn deadlines() {
        let mut silent = exchange();
        assert_eq!(silent.deadline(), START + HEAD_TIME);
        silent.expire(START + HEAD_TIME);
        assert!(matches!(silent.step(START), Step::Close));

        let mut slow = exchange();
        for byte in b"GET / HT" {
            run(&mut slow, &[&[*byte]], false);
        }
        assert_eq!(slow.deadline(), START + HEAD_TIME);
        slow.expire(START + HEAD_TIME);
        assert!(run(&mut slow, &[], false).0.starts_with("HTTP/1.1 408 "));
        assert_eq!(slow.deadline(), START + DISCARD_TIME);
        slow.expire(START + HEAD_TIME + DISCARD_TIME);
        assert!(matches!(slow.step(START), Step::Close));

        // A client that reads nothing, then one that sends nothing more, and one that begins a second request.
        let mut exchange = exchange();
        assert!(matches!(exchange.step(START), Step::Receive(_)) && exchange.is_expendable());
        let get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        if let Step::Receive(space) = exchange.step(START) {
            space[..get.len()].copy_from_slice(get);
        }
        exchange.received(get.len(), START);
        assert!(matches!(exchange.step(START), Step::Send(_)) && !exchange.is_expendable());
        assert_eq!(exchange.deadline(), START + ANSWER_TIME);
        run(&mut exchange, &[], false);
        assert_eq!(exchange.deadline(), START + IDLE_TIME);
        for _ in 0..3 {
            run(&mut exchange, &[b"\n"], false);
            assert_eq!(exchange.deadline(), START + HEAD_TIME);
        }
    }

    #[test]
    fn a_limited_part_of_the_input_is_discarded() {
        let mut exchange = exchange();
        let (_, is_closed) = run(&mut exchange, &[b"\0"], false);
        let mut discarded = 0;
        while let (Step::Receive(space), false) = (exchange.step(START), is_closed) {
            let n = space.len();
            discarded += n;
            exchange.received(n, START);
        }
        assert!((DISCARD_LIMIT..=DISCARD_LIMIT + HEAD_LIMIT).contains(&discarded), "{discarded}");
    }
}
