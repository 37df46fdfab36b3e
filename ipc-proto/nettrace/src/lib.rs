#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod assemble;
#[cfg(feature = "alloc")]
mod catalog;
#[cfg(feature = "clr")]
pub mod clr;
mod describe;
mod encoding;
#[doc = include_str!("../ERRATA.md")]
pub mod errata {}
mod error;
mod join;
mod parse;
mod rewrite;
#[cfg(feature = "alloc")]
mod segments;
pub mod user_events;
mod values;
mod write;

#[cfg(feature = "alloc")]
pub use assemble::assembler_step::AssemblerStep;
#[cfg(feature = "alloc")]
pub use assemble::event_assembler::EventAssembler;
#[cfg(feature = "alloc")]
pub use assemble::event_order::{BytesOrder, EventOrder};
#[cfg(feature = "alloc")]
pub use assemble::parser_buf::ParserBuf;
#[cfg(feature = "alloc")]
pub use assemble::segment::{Segment, SegmentEvents};
#[cfg(feature = "alloc")]
pub use assemble::trace_event::TraceEvent;
#[cfg(feature = "std")]
pub use assemble::trace_reader::TraceReader;
#[cfg(feature = "alloc")]
pub use assemble::whole_trace::WholeTrace;
#[cfg(feature = "alloc")]
pub use catalog::metadata_buf::MetadataBuf;
#[cfg(feature = "alloc")]
pub use catalog::trace_summary::TraceSummary;
pub use describe::field::{ArrayKind, Element, Field, FieldIter, FieldType, Fields};
pub use describe::metadata::{Attributes, Metadata};
pub use describe::scalar::Scalar;
pub use describe::shape::{FieldShape, ShapeKind};
pub use encoding::text::Str;
pub use encoding::varint::{Varint32, Varint64, Zigzag64};
pub use error::{DecodeError, DecodeErrorKind};
// The types of `ipc-proto` in the signatures of this package.
pub use ipc_proto::Guid;
pub use ipc_proto::wire::{WireError, WireErrorKind};
pub use join::backing::Backing;
pub use join::id_map::{IdMap, Slot, StoreFull};
pub use join::loss::{Counter, LossCounter, Losses};
pub use join::order::{Held, Order};
pub use join::store::{Store, StoredRange};

pub use parse::block::{Block, BlockKind, TimeRange};
pub use parse::calendar_time::CalendarTime;
pub use parse::end::{BadBlock, Corruption, End, Truncation};
pub use parse::event::Event;
pub use parse::label::{Label, LabelList, Labels};
pub use parse::parser::{Limits, Parser, Record};
pub use parse::sequence_point::{SequencePoint, ThreadSequence};
pub use parse::stack::{Stack, frames};
#[cfg(feature = "std")]
pub use parse::system_time::system_time;
pub use parse::thread::{Thread, ThreadEntries, ThreadEntry};
pub use parse::time_filter::TimeFilter;
pub use parse::trace::{InvalidTrace, Pairs, Trace, Version};
pub use parse::trace_clock::TraceClock;
pub use rewrite::{
    Activities, EventSelector, MetadataState, Rewrite, RewriteCounts, RewriteEnd, RewriteError,
    RewriteOptions, RewriteSpace, ThreadState,
};
#[cfg(feature = "alloc")]
pub use segments::read_options::ReadOptions;
pub use values::indexed::{IndexedPart, IndexedValues};
pub use values::value::{FileTime, Value};
pub use values::{Item, Values};
pub use write::error::WriteError;
pub use write::payload_writer::PayloadWriter;
pub use write::trace_writer::TraceWriter;
pub use write::trace_writer::trace_bytes::TraceBytes;
