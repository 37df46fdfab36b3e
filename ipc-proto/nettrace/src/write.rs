//! Writing: records to a stream, values to a payload.
pub(crate) mod error;
pub(crate) mod payload_writer;
pub(crate) mod trace_writer;
