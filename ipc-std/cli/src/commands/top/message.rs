//! What the main thread waits for: keys, signals, and the periods of the session.
use core::time::Duration;

use crossterm::event::KeyEvent;
use nettrace_analysis::live::Activity;

use crate::run::Failure;

/// A message to the main thread.
#[derive(Debug)]
pub(super) enum Message {
    /// The names of methods have been read, and the first period begins.
    Named,
    /// The numbers of one second of the session.
    Period(Box<Period>),
    /// No event has arrived for this long, and whether that is because the runtime is suspended.
    Silent(Duration, bool),
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// A signal requests the end.
    Stop,
    /// The session has ended.
    Ended(Result<(), Failure>),
}

/// What a process did in a period, and since the start.
#[derive(Debug, Default)]
pub(super) struct Period {
    pub(super) last: Activity,
    pub(super) total: Activity,
    /// The events that the runtime dropped because its buffer was full, in this period and since the start.
    pub(super) lost: [u64; 2],
    /// The cores by the system, in this period and since the start.
    pub(super) cores: [Option<f64>; 2],
    /// The process of the session, in its own PID namespace.
    pub(super) process_id: Option<u32>,
    /// Whether no sample has arrived since the start because the runtime is suspended.
    pub(super) is_suspended: bool,
}

impl Period {
    /// Returns whether no sample has arrived since the start, although no event was dropped.
    pub(super) const fn has_no_samples(&self) -> bool {
        let [_, lost] = self.lost;
        self.total.samples.total() == 0 && lost == 0
    }
}
