//! The weight of a stack of a thread.
use alloc::collections::BTreeMap;

use super::threads::ThreadNumber;
use crate::StackId;

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
