use core::time::Duration;

/// Every deadline there is; no wait of this crate's own streams is without one.
///
/// ```
/// use core::time::Duration;
/// use ipc_std::Timeouts;
///
/// let impatient = Timeouts { call: Duration::from_secs(1), ..Timeouts::default() };
/// assert_eq!(impatient.stop, Timeouts::default().stop);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a whole call: connecting, sending, and receiving all of the answer, with every older command that is tried
    /// when a runtime does not know the newest. 10 seconds by default.
    ///
    /// A runtime answers one command at a time. One that is writing a dump lets everybody else wait.
    pub call: Duration,
    /// For writing a dump, in place of `call`. 10 minutes by default: it is as large as the process.
    pub dump: Duration,
    /// From [`stop`](crate::TraceSession::stop) to the end of the stream, and so the longest that dropping a session may
    /// take. 2 minutes by default: the rundown describes every method that was compiled.
    ///
    /// [`Client::stop_tracing`](crate::Client::stop_tracing) has it too.
    pub stop: Duration,
    /// How long a trace may stay without a byte before [`stop`](crate::TraceSession::stop) was asked. One day by
    /// default, as a runtime sends nothing while nothing happens; reading may go on after it.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            dump: Duration::from_secs(10 * 60),
            stop: Duration::from_secs(120),
            silence: Duration::from_secs(24 * 60 * 60),
        }
    }
}
