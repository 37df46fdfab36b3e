/// A point in the stream that every thread's events before it lie before: what was held back for order can go, and
/// stack ids begin anew.
///
/// What each thread had counted to follows, as [`ThreadSequence`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequencePoint {
    /// When, in ticks.
    pub timestamp: u64,
    /// V6: [`FLUSH_THREADS`](Self::FLUSH_THREADS), [`FLUSH_METADATA`](Self::FLUSH_METADATA); before: 0.
    pub flags: u32,
    /// How many threads follow, if the stream is right.
    pub threads: u32,
}

impl SequencePoint {
    /// Behind the point, thread indexes begin anew.
    pub const FLUSH_THREADS: u32 = 1;
    /// Behind the point, metadata ids begin anew.
    pub const FLUSH_METADATA: u32 = 2;

    /// Whether thread indexes begin anew behind the point.
    #[must_use]
    pub const fn flushes_threads(&self) -> bool {
        self.flags & Self::FLUSH_THREADS != 0
    }

    /// Whether metadata ids begin anew behind the point.
    #[must_use]
    pub const fn flushes_metadata(&self) -> bool {
        self.flags & Self::FLUSH_METADATA != 0
    }
}

/// How far a thread had counted, delivered or not: at a sequence point, or, in V6, when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSequence {
    /// The capture thread, in V6 its index. One may be listed twice where the system used its id again.
    pub thread: u64,
    /// The number of its last event.
    pub sequence: u32,
}
