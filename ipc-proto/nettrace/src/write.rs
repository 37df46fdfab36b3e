//! Writing: records to a stream, values to a payload.
mod error;
mod payload_writer;
mod trace_writer;

pub use self::error::WriteError;
pub use self::payload_writer::PayloadWriter;
pub use self::trace_writer::{TraceBytes, TraceWriter};
