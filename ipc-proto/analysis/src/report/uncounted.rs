use crate::call_tree::old_waits;
use crate::samples::{Clock, IdleWaits, Samples, Waits};

/// What a clock does not count, because the trace does not have it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uncounted {
    /// The waits without a start or an end; none for other clocks than [`Clock::Contention`] and [`Clock::Waits`].
    pub waits: Waits,
    /// The waits of threads that have nothing to do; none for other clocks than [`Clock::Waits`].
    pub idle: IdleWaits,
    /// The threads that wait for locks since before the recording: see [`old_waits`].
    pub waiting_before: usize,
    /// The events that do not state what they weigh.
    pub unknown: u64,
}

impl Uncounted {
    /// Returns what a clock of samples, whose trace has ended, does not count.
    #[must_use]
    pub fn new(samples: &mut Samples, clock: &Clock) -> Self {
        let unknown = samples.unknown(clock);
        match clock {
            Clock::Contention => {
                let waiting_before = old_waits(samples).len();
                Self { waits: samples.waits(clock), waiting_before, unknown, ..Self::default() }
            }
            Clock::Waits => {
                Self { waits: samples.waits(clock), idle: samples.idle_waits(), unknown, ..Self::default() }
            }
            _ => Self { unknown, ..Self::default() },
        }
    }
}
