//! The weight that an event adds to a clock, with its time.
use alloc::collections::BTreeMap;

use super::threads::ThreadNumber;
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

/// The weight of a stack of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// The weight while the thread ran; the whole weight for clocks that do not distinguish running and waiting.
    pub running: u64,
    /// The weight while the thread waited or ran native code.
    pub waiting: u64,
    /// The number of events or intervals that were added up; 0 if it is not known.
    pub count: u64,
}

impl Weight {
    /// Returns the sum.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.running.saturating_add(self.waiting)
    }

    pub(crate) const fn new(amount: u64, is_running: bool) -> Self {
        let (running, waiting) = if is_running { (amount, 0) } else { (0, amount) };
        Self { running, waiting, count: 1 }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.running = self.running.saturating_add(other.running);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.count = self.count.saturating_add(other.count);
    }
}

/// The weights of threads and stacks.
pub(super) type Weights = BTreeMap<(ThreadNumber, StackId), Weight>;
