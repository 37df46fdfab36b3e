//! Sequence points, and the sequence numbers of threads that follow them.
/// A point that no event of the stream crosses: events before the point are older than events after the point, and ids
/// of stacks and label lists start again.
///
/// The numbers of the last events of all threads follow, as [`ThreadSequence`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequencePoint {
    /// The time in ticks.
    pub timestamp: u64,
    /// V6: [`FLUSH_THREADS`](Self::FLUSH_THREADS), [`FLUSH_METADATA`](Self::FLUSH_METADATA); V4: 0.
    pub flags: u32,
    /// The number of [`ThreadSequence`]s that follow in a valid stream.
    pub threads: u32,
}

impl SequencePoint {
    /// The flag of a point after which thread indexes start again.
    pub const FLUSH_THREADS: u32 = 1;
    /// The flag of a point after which metadata ids start again.
    pub const FLUSH_METADATA: u32 = 2;

    /// Returns whether thread indexes start again after the point.
    #[must_use]
    pub const fn flushes_threads(&self) -> bool {
        self.flags & Self::FLUSH_THREADS != 0
    }

    /// Returns whether metadata ids start again after the point.
    #[must_use]
    pub const fn flushes_metadata(&self) -> bool {
        self.flags & Self::FLUSH_METADATA != 0
    }
}

/// The number of the last event of a thread, recorded or lost: at a sequence point, or, in V6, at the thread's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSequence {
    /// The capture thread, in V6 its index. An id is listed twice if the operating system used it again.
    pub thread: u64,
    /// The number of the last event of the thread.
    pub sequence: u32,
}
