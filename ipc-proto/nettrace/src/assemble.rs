//! Whole events: the records of a stream, joined, in the order of the stream or of time, in memory that grows.
mod context;
mod event_assembler;
mod event_queue;
mod parser_buf;
#[cfg(feature = "std")]
mod read;
mod segment;
mod segment_buf;
mod stream_assembler;
mod stream_event;
mod trace_event;
#[cfg(feature = "std")]
mod trace_reader;
mod whole_bytes;
mod whole_trace;

pub use self::event_assembler::{AssemblerStep, BytesOrder, EventAssembler, EventOrder};
pub use self::parser_buf::ParserBuf;
pub use self::segment::{Segment, SegmentEvents};
pub use self::trace_event::TraceEvent;
#[cfg(feature = "std")]
pub use self::trace_reader::TraceReader;
pub use self::whole_trace::WholeTrace;
