//! Whole events: the records of a stream, joined, in the order of the stream or of time, in memory that grows.
pub(crate) mod assembler_step;
pub(crate) mod context;
pub(crate) mod event_assembler;
pub(crate) mod event_order;
pub(crate) mod event_queue;
pub(crate) mod parser_buf;
#[cfg(feature = "std")]
pub(crate) mod read;
pub(crate) mod segment;
pub(crate) mod segment_buf;
pub(crate) mod stream_assembler;
pub(crate) mod stream_event;
pub(crate) mod trace_event;
#[cfg(feature = "std")]
pub(crate) mod trace_reader;
pub(crate) mod whole_bytes;
pub(crate) mod whole_trace;
