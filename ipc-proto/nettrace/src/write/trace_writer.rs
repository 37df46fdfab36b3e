//! The writer. `trace_writer.rs` has its buffer and a method for each record; the other files write the parts.
mod blob;
mod block;
pub(crate) mod layout;
pub(crate) mod record;
pub(crate) mod trace_bytes;
mod trace_writer;

pub use trace_writer::TraceWriter;
