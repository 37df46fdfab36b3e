//! Records that are valid beyond a segment: descriptions, threads, and the trace's first block.
pub(crate) mod catalog;
pub(crate) mod metadata_buf;
pub(crate) mod thread_buf;
pub(crate) mod trace_log;
pub(crate) mod trace_summary;
