//! Traces and other files to read.
pub(crate) mod reading_progress;
pub(crate) mod source;
pub(crate) mod trace_file;
