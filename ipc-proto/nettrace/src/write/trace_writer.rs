//! The writer. `trace_writer/trace_writer.rs` has its buffer and a method for each record. The other files of the
//! folder write blocks and the parts of records.
mod blob;
mod block;
pub(crate) mod layout;
pub(crate) mod record;
mod trace_writer;

pub use trace_writer::{TraceBytes, TraceWriter};
