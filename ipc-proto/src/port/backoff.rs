//! [`Backoff`]: the delays between attempts of a runtime to connect to a monitor.
/// The time that a runtime waits after a failed connection attempt.
///
/// ```text
/// 10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500 … milliseconds
/// ```
///
/// Each wait is a quarter longer than the previous wait, rounded down, until a wait has reached 500 ms. The 571 is
/// correct: the runtime compares the *previous* wait with the limit. So a runtime finds a new or restarted monitor
/// within 571 ms plus the time of a connection.
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backoff {
    /// The last wait in milliseconds; `None` is the infinite wait of a runtime whose ports are all connected.
    last: Option<u32>,
}

impl Backoff {
    const MIN: u32 = 10;
    const MAX: u32 = 500;

    /// Creates the back-off of a runtime without a failed attempt.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// Returns the wait after a failed attempt, in milliseconds.
    pub const fn next(&mut self) -> u32 {
        let wait = match self.last {
            None => Self::MIN,
            Some(Self::MAX..) => Self::MAX,
            // Runtimes multiply a float by 1.25 and truncate it.
            Some(last) => last.saturating_mul(5) / 4,
        };
        self.last = Some(wait);
        wait
    }

    /// Records that the monitor closed a connection. The next attempt is immediate, but if it fails, the wait is 12 ms.
    pub const fn hung_up(&mut self) {
        self.last = Some(Self::MIN);
    }

    /// Records a successful connection. After the next failure, the wait is 10 ms.
    pub const fn reset(&mut self) {
        self.last = None;
    }
}
