//! `Observer`: a callback that sees every message; and `Tap`: the stream that records messages for an observer.
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Sent by this process.
    Sent,
    /// Received by this process.
    Received,
}

/// A message, as an [`Observer`] sees it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The number of the connection, unique in this process.
    pub connection: u64,
    /// The direction.
    pub direction: Direction,
    /// Header and payload, or the part of them that was received before an error. A request is shown before its
    /// response is received.
    pub bytes: &'a [u8],
}

/// A function that sees every message of some connections, including incomplete and malformed ones.
///
/// Data that follows a response (a trace, the environment) is not part of a message, so it is not shown.
///
/// ```
/// use ipc_std::{Client, Observer};
///
/// let observer = Observer::new(|seen| eprintln!("{} {:?} {:x?}", seen.connection, seen.direction, seen.bytes));
/// let client = Client::at("/tmp/dotnet-diagnostic-1-2-socket").with_observer(observer);
/// # let _ = client;
/// ```
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Observed<'_>) + Send + Sync>);

impl Observer {
    /// Creates an observer that calls `see` with every message.
    pub fn new(see: impl Fn(Observed<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }
}
impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// A stream that counts bytes and records messages for an observer.
#[derive(Debug)]
pub(crate) struct Tap<S> {
    pub(crate) stream: S,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    observation: Option<Observation>,
    /// Whether the next bytes belong to a message.
    in_message: bool,
}

#[derive(Debug)]
struct Observation {
    observer: Observer,
    connection: u64,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl<S> Tap<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, sent: 0, received: 0, observation: None, in_message: false }
    }

    pub(crate) fn observe(&mut self, observer: Option<Observer>) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.observation = observer.map(|observer| Observation {
            observer,
            connection: NEXT.fetch_add(1, Ordering::Relaxed),
            sent: Vec::new(),
            received: Vec::new(),
        });
    }

    /// Starts recording: the next bytes are a request and its response.
    pub(crate) const fn begin(&mut self) {
        self.in_message = true;
    }

    /// Shows the recorded bytes and stops recording.
    pub(crate) fn end(&mut self) {
        self.in_message = false;
        if let Some(observation) = &mut self.observation {
            observation.show(Direction::Sent);
            observation.show(Direction::Received);
        }
    }
}

impl Observation {
    fn show(&mut self, direction: Direction) {
        let bytes = core::mem::take(match direction {
            Direction::Sent => &mut self.sent,
            Direction::Received => &mut self.received,
        });
        if !bytes.is_empty() {
            (self.observer.0)(Observed { connection: self.connection, direction, bytes: &bytes });
        }
    }
}
/// Shows the recorded bytes that were not shown yet, however the connection ends.
impl Drop for Observation {
    fn drop(&mut self) {
        self.show(Direction::Sent);
        self.show(Direction::Received);
    }
}

impl<S: Read> Read for Tap<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(observation) = &mut self.observation {
            // A read receives the response, so the request is complete.
            observation.show(Direction::Sent);
        }
        let n = self.stream.read(buf)?;
        self.received = self.received.saturating_add(n as u64);
        if let Some(observation) = self.observation.as_mut().filter(|_| self.in_message) {
            observation.received.extend_from_slice(buf.get(..n).unwrap_or_default());
        }
        Ok(n)
    }
}
impl<S: Write> Write for Tap<S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.stream.write(buf)?;
        self.sent = self.sent.saturating_add(n as u64);
        if let Some(observation) = self.observation.as_mut().filter(|_| self.in_message) {
            observation.sent.extend_from_slice(buf.get(..n).unwrap_or_default());
        }
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
