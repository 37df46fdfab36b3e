/// How long a runtime waits before it tries again to connect to a monitor that is not there.
///
/// ```text
/// 10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500 … milliseconds
/// ```
///
/// Each wait is a quarter longer than the one before, without the fraction, until one has reached 500. The 571 is no
/// slip: the runtime looks whether the *last* wait was long enough. So a monitor that is started, or started again, is
/// found after 571 ms and the time that a connection takes, at the worst.
///
/// Section "Diagnostic Ports" of the specification (erratum: it says that no wait is longer than 500 ms).
///
/// ```
/// use ipc_proto::port::Backoff;
///
/// let mut backoff = Backoff::new();
/// assert_eq!([backoff.next(), backoff.next(), backoff.next()], [10, 12, 15]);
/// backoff.hung_up();
/// assert_eq!(backoff.next(), 12);
/// backoff.reset();
/// assert_eq!(backoff.next(), 10);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    /// The last wait; `None` is a runtime's "infinite", with which it waits while all of its ports are connected.
    last: Option<u32>,
}

impl Backoff {
    const MIN: u32 = 10;
    const MAX: u32 = 500;

    /// Nothing has failed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// A try to connect has failed: how long to wait before the next, in milliseconds.
    pub const fn next(&mut self) -> u32 {
        let wait = match self.last {
            None => Self::MIN,
            Some(Self::MAX..) => Self::MAX,
            // What runtimes compute as a float, times 1.25, and truncate.
            Some(last) => last.saturating_mul(5) / 4,
        };
        self.last = Some(wait);
        wait
    }

    /// The monitor has closed a connection: the next try is immediate, and counts as if a wait had gone before.
    pub const fn hung_up(&mut self) {
        self.last = Some(Self::MIN);
    }

    /// A connection was made.
    pub const fn reset(&mut self) {
        self.last = None;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
