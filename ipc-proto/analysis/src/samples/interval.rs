//! The weight that an event adds to a clock, with its time.
use super::threads::ThreadNumber;
use super::weight::Weight;
use crate::StackId;
use crate::trace::elapsed;

/// The weight that an event adds to a clock, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The thread.
    pub thread: ThreadNumber,
    /// The stack of the event.
    pub stack: StackId,
    /// The start in nanoseconds from the start of the trace; negative before that start.
    pub start: i64,
    /// The weight to add. For a clock in nanoseconds, the weight is the duration. For other clocks, the interval is a
    /// point in time.
    pub weight: Weight,
    /// Whether it is an AllocationTick, which does not count if the process also has sampled allocations.
    pub is_tick: bool,
}

impl Interval {
    /// Returns the interval of a thread in a stack from a start to an end.
    pub(super) fn between(
        thread: ThreadNumber,
        stack: StackId,
        start: i64,
        end: i64,
        is_running: bool,
    ) -> Self {
        Self { thread, stack, start, weight: Weight::new(elapsed(start, end), is_running), is_tick: false }
    }

    /// Returns the point in time at which a stack weighs something.
    pub(super) const fn at(thread: ThreadNumber, stack: StackId, time: i64, weight: Weight) -> Self {
        Self { thread, stack, start: time, weight, is_tick: false }
    }
}

/// The result of an event for a clock.
pub(super) struct Taken {
    /// How many events count.
    pub(super) count: u64,
    pub(super) interval: Option<Interval>,
}
