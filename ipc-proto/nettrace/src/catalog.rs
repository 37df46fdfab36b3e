//! Records that are valid beyond a segment: descriptions, threads, and the trace's first block.
mod catalog;
mod metadata_buf;
mod thread_buf;
mod trace_log;

pub(crate) use self::catalog::{Catalog, NOWHERE, UNDESCRIBED, key};
pub use self::metadata_buf::MetadataBuf;
pub(crate) use self::thread_buf::ThreadBuf;
pub(crate) use self::trace_log::TraceLog;
pub use self::trace_log::TraceSummary;
