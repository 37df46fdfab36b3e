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

#[cfg(feature = "std")]
pub use assemble::TraceReader;
#[cfg(feature = "alloc")]
pub use assemble::{
    AssemblerStep, BytesOrder, EventAssembler, EventOrder, ParserBuf, Segment, SegmentEvents, TraceEvent,
    WholeTrace,
};
#[cfg(feature = "alloc")]
pub use catalog::{MetadataBuf, TraceSummary};
pub use describe::{
    ArrayKind, Attributes, Element, Field, FieldIter, FieldShape, FieldType, Fields, Metadata, Scalar,
    ShapeKind,
};
pub use encoding::{Str, Varint32, Varint64, Zigzag64};
pub use error::{DecodeError, DecodeErrorKind};
// The types of `ipc-proto` in the signatures of this package.
pub use ipc_proto::Guid;
pub use ipc_proto::wire::{WireError, WireErrorKind};
pub use join::{
    Backing, Counter, Held, IdMap, LossCounter, Losses, Order, Slot, Store, StoreFull, StoredRange,
};

#[cfg(feature = "std")]
pub use parse::system_time;
pub use parse::{
    BadBlock, Block, BlockKind, CalendarTime, Corruption, End, Event, InvalidTrace, Label, LabelList, Labels,
    Limits, Pairs, Parser, Record, SequencePoint, Stack, Thread, ThreadEntries, ThreadEntry, ThreadSequence,
    TimeFilter, TimeRange, Trace, TraceClock, Truncation, Version, frames,
};
pub use rewrite::{
    Activities, EventSelector, MetadataState, Rewrite, RewriteCounts, RewriteEnd, RewriteError,
    RewriteOptions, RewriteSpace, ThreadState,
};
#[cfg(feature = "alloc")]
pub use segments::ReadOptions;
pub use values::{FileTime, IndexedPart, IndexedValues, Value};
pub use values::{Item, Values};
pub use write::{PayloadWriter, TraceBytes, TraceWriter, WriteError};
