//! The counts of a rewrite: events, removed command lines, and the parts that the version of the result cannot express.
/// Counts of the records that [`Rewrite`](crate::Rewrite) has processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewriteCounts {
    /// Events of the source.
    pub events: u64,
    /// Events in the result.
    pub kept: u64,
    /// Events in the result whose command line was removed.
    pub command_lines: u64,
    /// Metadata records whose fields the result's version cannot fully describe. Their events are in the result.
    pub descriptions: u64,
    /// V6 to V4: lost labels, that is, labels other than activity ids.
    pub labels: u64,
    /// V6 to V4: label lists without a slot. Their events have no activity ids.
    pub label_lists: u64,
    /// V6 to V4: lost entries of threads, that is, all but the thread id.
    pub thread_entries: u64,
    /// V6 to V4: lost pairs of the `Trace` record.
    pub pairs: u64,
}
