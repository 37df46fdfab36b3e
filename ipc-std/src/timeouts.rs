//! `Timeouts`: the limits of the waits of a client.
use core::time::Duration;
use std::sync::LazyLock;
use std::time::Instant;

use ipc_proto::Session;
use ipc_proto::plan::{CALL_LIMIT_MS, DUMP_LIMIT_MS};

/// The limits of a client's waits. Every wait on this crate's own streams has a deadline.
///
/// ```
/// use core::time::Duration;
/// use ipc_std::Timeouts;
///
/// let timeouts = Timeouts { call: Duration::from_secs(1), ..Timeouts::default() };
/// assert_eq!(timeouts.stop, Timeouts::default().stop);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The limit of a whole call: connecting, sending and receiving the complete response. If the runtime does not know
    /// the newest command, the limit includes the older commands that are tried. 10 seconds by default.
    ///
    /// A runtime executes one command at a time. While it writes a dump, all other clients wait.
    pub call: Duration,
    /// The limit of writing a dump, in place of `call`. 10 minutes by default: a dump is as large as the process.
    pub dump: Duration,
    /// The limit from [`stop`](crate::TraceSession::stop) to the end of the stream, and so the longest time that
    /// dropping a session takes. 2 minutes by default: the rundown describes every compiled method.
    ///
    /// The same limit holds for [`Client::stop_tracing`](crate::Client::stop_tracing).
    pub stop: Duration,
    /// The longest time without a byte of the stream or of the answer after the Stop. 10 seconds by default. A runtime that
    /// sends none for so long hangs.
    pub stop_silence: Duration,
    /// The longest silence of a trace before the trace is [stopped](crate::TraceSession::stop). One day by default: a
    /// runtime sends nothing while no event occurs. Reading can continue after this timeout.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            call: Duration::from_millis(CALL_LIMIT_MS),
            dump: Duration::from_millis(DUMP_LIMIT_MS),
            stop: Duration::from_millis(Session::STOP_LIMIT_MS),
            stop_silence: Duration::from_millis(Session::STOP_SILENCE_MS),
            silence: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Returns a time in milliseconds, the unit of the clocks of `ipc_proto`.
#[must_use]
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The moment at which [`clock`] was called first.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the time since the first call.
pub fn clock() -> Duration {
    EPOCH.elapsed()
}

/// Returns the moment of a time of [`clock`].
pub(crate) fn instant(time: Duration) -> Option<Instant> {
    EPOCH.checked_add(time)
}
