//! `Observer`: a callback that sees every message; and `Tap`: the stream that records messages for an observer.
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, Read, Write};
use std::sync::Arc;

use ipc_proto::{Direction, Message, Observation, Observe};

use crate::drive::within;

/// A message, as an [`Observer`] sees it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The number of the connection, unique in this process.
    pub connection: u64,
    /// The direction.
    pub direction: Direction,
    /// Header and payload. A request is shown before its response is received. The received bytes of a malformed or
    /// incomplete message are shown when the connection is dropped.
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

/// A stream that counts bytes and shows an observer their messages.
#[derive(Debug)]
pub(crate) struct Tap<S> {
    pub(crate) stream: S,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    watch: Option<Watch>,
}

impl<S> Tap<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, sent: 0, received: 0, watch: None }
    }

    pub(crate) fn observe(&mut self, observer: Option<Observer>) {
        self.watch = observer.and_then(Watch::new);
    }
}

/// What an observer sees of one connection.
#[derive(Debug)]
struct Watch {
    observer: Observer,
    connection: u64,
    observe: Observe<Vec<u8>>,
    /// The direction of the bytes that this process sends; `None` before the first byte.
    sent: Option<Direction>,
}

/// Which process transfers bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    This,
    Peer,
}

impl Watch {
    fn new(observer: Observer) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let buf = || vec![0; Message::MAX_LEN];
        let observe = Observe::new(buf(), buf()).ok()?;
        Some(Self { observer, connection: NEXT.fetch_add(1, Ordering::Relaxed), observe, sent: None })
    }

    fn transferred(&mut self, sender: Sender, mut bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        // A runtime sends the first byte only if that is the first one of an advertise frame.
        let from_runtime = *first == b'A';
        let sent = *self.sent.get_or_insert(if from_runtime == (sender == Sender::This) {
            Direction::ToClient
        } else {
            Direction::ToRuntime
        });
        let direction = match (sender, sent) {
            (Sender::This, sent) => sent,
            (Sender::Peer, Direction::ToRuntime) => Direction::ToClient,
            (Sender::Peer, Direction::ToClient) => Direction::ToRuntime,
        };
        while !bytes.is_empty() {
            let (taken, observed) = self.observe.supply(direction, bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
            let Some(observed) = observed else { continue };
            if !matches!(observed.observation, Observation::Continuation(_) | Observation::Lost(_)) {
                (self.observer.0)(Observed { connection: self.connection, direction, bytes: observed.bytes });
            }
        }
    }
}
/// Shows malformed and incomplete messages, however the connection ends.
impl Drop for Watch {
    fn drop(&mut self) {
        for direction in [Direction::ToRuntime, Direction::ToClient] {
            let bytes = self.observe.unfinished(direction);
            if !bytes.is_empty() {
                (self.observer.0)(Observed { connection: self.connection, direction, bytes });
            }
        }
    }
}

impl<S: Read> Read for Tap<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = within(self.stream.read(buf)?, buf.len())?;
        self.received = self.received.saturating_add(n as u64);
        if let Some(watch) = &mut self.watch {
            watch.transferred(Sender::Peer, buf.get(..n).unwrap_or_default());
        }
        Ok(n)
    }
}
impl<S: Write> Write for Tap<S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = within(self.stream.write(buf)?, buf.len())?;
        self.sent = self.sent.saturating_add(n as u64);
        if let Some(watch) = &mut self.watch {
            watch.transferred(Sender::This, buf.get(..n).unwrap_or_default());
        }
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
