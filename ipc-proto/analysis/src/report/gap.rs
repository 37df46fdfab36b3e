use super::uncounted::Uncounted;
use crate::samples::{Clock, Samples, Unit};

/// Why samples show nothing by a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The part of the trace has nothing that counts.
    Part,
    /// No wait began or ended, but so many threads wait for locks since before the recording.
    OldWaits(usize),
    /// Only threads that have nothing to do waited.
    IdleWaits,
    /// No event that counts has a stack.
    Stacks,
    /// No sample is in managed code.
    Running,
    /// No time is known: each ends with a later event.
    Times,
    /// The sizes of the allocations are not known.
    Sizes,
    /// There is no event that counts.
    Events,
}

impl Gap {
    /// Returns why samples, whose trace has ended, show nothing by a clock.
    #[must_use]
    pub fn new(samples: &Samples, clock: &Clock, uncounted: &Uncounted) -> Self {
        let count = samples.count(clock);
        if !samples.part().is_whole() && count == 0 {
            Self::Part
        } else if uncounted.waiting_before > 0 {
            Self::OldWaits(uncounted.waiting_before)
        } else if count == 0 && uncounted.idle.total() > 0 {
            Self::IdleWaits
        } else if samples.weights(clock).any(|(_, _, weight)| weight.total() > 0) {
            Self::Stacks
        } else if *clock == Clock::Cpu && samples.samples() > 0 {
            Self::Running
        } else if count > 0 && clock.unit() == Unit::Nanoseconds {
            Self::Times
        } else if uncounted.unknown > 0 {
            Self::Sizes
        } else {
            Self::Events
        }
    }
}
