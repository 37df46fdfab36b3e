use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From here.
    Sent,
    /// To here.
    Received,
}

/// What an observer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// A number of the connection's own, unique in this process.
    pub connection: u64,
    /// Which way it went.
    pub direction: Direction,
    /// The message: header and payload, or as much as had come when it was given up. One sent is shown before its
    /// answer is waited for.
    pub bytes: &'a [u8],
}

/// Sees every message sent and received on the connections that it was given to, whole, cut off or malformed.
///
/// What follows an answer (a trace, the environment) is not part of a message, and not shown.
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
    /// Calls `see` with every message.
    pub fn new(see: impl Fn(Observed<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }
}
impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// A stream that counts what passes, and keeps it for an observer.
#[derive(Debug)]
pub(crate) struct Tap<S> {
    pub(crate) stream: S,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    observation: Option<Observation>,
    /// Whether what passes belongs to a message.
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

    /// What passes from now on is a request and its answer.
    pub(crate) const fn begin(&mut self) {
        self.in_message = true;
    }

    /// Shows what passed and was not shown yet; what comes now is no message.
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
/// However a connection ends, what passed on it is shown.
impl Drop for Observation {
    fn drop(&mut self) {
        self.show(Direction::Sent);
        self.show(Direction::Received);
    }
}

impl<S: Read> Read for Tap<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(observation) = &mut self.observation {
            // Whoever reads has sent all that there is to send.
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
