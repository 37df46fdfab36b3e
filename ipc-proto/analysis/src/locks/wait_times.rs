//! How many waits there were, and how long they took.

/// The number of waits, and their time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitTimes {
    /// The number of waits.
    pub count: u64,
    /// The time of all waits together.
    pub total: u64,
    /// The time of the longest wait.
    pub longest: u64,
}

impl WaitTimes {
    pub(super) fn add(&mut self, nanoseconds: u64) {
        self.merge(Self { count: 1, total: nanoseconds, longest: nanoseconds });
    }

    /// Adds other waits.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }
}
