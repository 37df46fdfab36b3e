//! The counts of a rewrite: events, removed command lines, and the parts that the version of the result cannot express.
/// Counts of the records that [`Rewrite`](crate::Rewrite) has processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewriteCounts {
    /// Events of the source.
    pub events: u64,
    /// Events in the result.
    pub kept: u64,
    /// Events in the result from outside of the times to keep, because they name code.
    pub names: u64,
    /// Command lines that were removed: from events in the result, and from pairs, labels and attributes.
    pub command_lines: u64,
    /// Events in the result without their payload, and removed descriptions, because it is unknown whether they have a
    /// command line.
    pub unjudged: u64,
    /// Metadata records whose fields the result's version cannot fully describe. Their events are in the result.
    pub descriptions: u64,
    /// V6 to V4: metadata records with fields of a type that V4 does not have: a text in UTF-8 and its code units, and a
    /// boolean of one byte. V4 has bytes instead.
    pub types: u64,
    /// V6 to V4: lost message templates, descriptions, provider GUIDs and lists of attributes of metadata records.
    pub description_parts: u64,
    /// V6 to V4: lost labels, that is, labels other than activity ids.
    pub labels: u64,
    /// V6 to V4: label lists without a slot. Their events have no activity ids.
    pub label_lists: u64,
    /// V6 to V4: lost entries of threads, that is, all but the thread id.
    pub thread_entries: u64,
    /// V6 to V4: lost pairs of the `Trace` record.
    pub pairs: u64,
}
