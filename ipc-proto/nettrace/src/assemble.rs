//! Whole events: the records of a stream, joined and in the order of time, in memory that grows.
pub(crate) mod context;
pub(crate) mod event_assembler;
pub(crate) mod event_queue;
pub(crate) mod metadata_buf;
pub(crate) mod parser_buf;
pub(crate) mod trace_event;
