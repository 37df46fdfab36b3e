//! NetTrace: the stream of events that follows the response to CollectTracing, and the content of a `.nettrace` file.
//!
//! To read a stream, give bytes to a [`Parser`] and match on the [`Record`]s that it returns. To write one, give
//! records to a [`TraceWriter`]. [`Rewrite`] filters and converts a stream. None of them allocates or does I/O.
//!
//! # The format
//!
//! The parser reads versions 3 (NetPerf), 4 and 6. The name V5 stands for version 4 with tags in its metadata records;
//! no stream states version 5. See "NetTrace format, V4/V5" and "V6" in the documentation of TraceEvent.
//!
//! ```text
//! V3  0x14 0 0 0 "!FastSerialization.1"              Trace  block  block  …  1
//! V4  "Nettrace" 0x14 0 0 0 "!FastSerialization.1"   Trace  block  block  …  1
//! V6  "Nettrace" 0 0 0 0 major:u32 minor:u32         Trace  block  block  …  EndOfStream
//!
//! block, V3 and V4: an object
//! | 5 5 1 | version | minimum | length | name | 6 | size | padding | body | 6 |
//!           i32       i32       i32                  u32    to 4, from the stream's first byte
//!                                                          (V3: 4 4 1; Trace has no size and no padding, and 48 bytes)
//! block, V6
//! | size | kind | body |
//!   u24    u8
//! ```
//!
//! | block | its records | referenced by |
//! |---|---|---|
//! | `Trace` | [`Trace`] | |
//! | `MetadataBlock`, `Metadata` | [`Metadata`]: names and fields of an event | [`Event::metadata_id`] |
//! | `StackBlock`, `Stack` | [`Stack`] | [`Event::stack_id`] |
//! | `EventBlock`, `Event` | [`Event`]; V3: metadata too | |
//! | `SPBlock`, `SequencePoint` | [`SequencePoint`], then [`ThreadSequence`]s | |
//! | `Thread`, `RemoveThread` | [`Thread`], [`ThreadSequence`] | [`Event::thread`], [`Event::capture_thread`] |
//! | `LabelList` | [`LabelList`] | [`Event::label_list`] |
//!
//! # Reading
//!
//! A [`Parser`] returns the records of a window of the stream in the order of the stream. An event refers to other
//! records by their ids. These types are optional, and the caller provides their memory:
//!
//! * [`Table`] and [`Store`] store records by id.
//! * [`LossCounter`] counts the events that the runtime dropped.
//! * [`Order`] sorts events by time.
//!
//! With the feature `alloc`, `EventAssembler` combines all of these.
//!
//! After a [`SequencePoint`] the ids of stacks and label lists start again: the reader must discard those before it. The flags of the sequence point state whether threads and metadata must be discarded too.
//!
//! [`Record::End`] reports how the stream ended. The parser skips the rest of a bad block and returns the records
//! before and after it.
//!
//! ```
//! use ipc_proto::nettrace::{
//!     End, Held, Limits, LossCounter, Metadata, Order, Parser, Record, Slot, Table,
//! };
//!
//! # let stream = b"Nettrace\x14\0\0\0!FastSerialization.1\x05\x05\x01\x04\0\0\0\x04\0\0\0\x05\0\0\0Trace\x06\xea\
//! #    \x07\x0b\0\x06\0\x15\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xca\x9a;\0\0\0\0\x08\0\0\0*\0\0\0\x02\
//! #    \0\0\0@B\x0f\0\x06\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0d\0\0\0MetadataBlock\x06C\0\0\0\0\x14\0\
//! #    \x01\0\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x80\0,\x01\0\0\0M\0y\0\0\0\x07\0\0\0I\0n\0t\0s\0\0\0\
//! #    \0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x06\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0a\0\0\0StackBl\
//! #    ock\x06\x14\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x08\0\0\04\x12\0\0\0\0\0\0\x06\x05\x05\x01\x02\0\0\0\
//! #    \x02\0\0\0\x0a\0\0\0EventBlock\x068\0\0\0\0\x14\0\x01\0\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x8f\
//! #    \x01\0\x05\x09\x05\x01\x02\x01b\0\x02d\x06\xfe\xff\xff\xff\x0f\x06\x09\x06\xfd\xff\xff\xff\xff\
//! #    \xff\xff\xff\xff\x01a\0\x02c\x06\x05\x05\x01\x02\0\0\0\x02\0\0\0\x07\0\0\0SPBlock\x06$\0\0\0\
//! #    \x05\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\0\x02\0\0\0\x06\0\0\0\0\0\0\0\x02\0\0\0\x06\x01";
//! let (mut metadata, mut stacks) = ([Slot::default(); 64], [Slot::default(); 64]);
//! let (mut metadata, mut stacks) = (Table::new(&mut metadata), Table::new(&mut stacks));
//! let (mut threads, mut held) = ([Slot::default(); 16], [Held::default(); 256]);
//! let (mut loss, mut order) = (LossCounter::new(&mut threads), Order::new(&mut held));
//!
//! let (mut named, mut frames, mut last) = (0, 0, 0);
//! let mut parser = Parser::new(Limits::default());
//! let end = loop {
//!     let record = parser.next(stream);
//!     loss.record(&record);
//!     match record {
//!         Record::Metadata(record) => {
//!             let record = Metadata::decode(parser.version(), record.payload)?;
//!             metadata.insert(record.id.into(), record)?;
//!         }
//!         Record::Stack(stack) => drop(stacks.insert(stack.id.into(), stack.bytes)?),
//!         Record::Event(event) => {
//!             let stack = stacks.get(event.stack_id.into()).copied().unwrap_or_default();
//!             if order.push(event.timestamp, (event, stack)).is_err() {
//!                 return Err("no room".into());
//!             }
//!             if event.sorted {
//!                 order.release(event.timestamp);
//!             }
//!         }
//!         Record::SequencePoint(_) | Record::More { .. } | Record::End(_) => order.release_all(),
//!         _ => continue,
//!     }
//!     while let Some((event, stack)) = order.pop() {
//!         assert!(event.timestamp >= last);
//!         last = event.timestamp;
//!         let record = metadata.get(event.metadata_id.into()).ok_or("an unknown event")?;
//!         named += i32::from(record.provider == "My" && record.name == "Ints");
//!         frames += stack.len() / 8;
//!     }
//!     match record {
//!         Record::SequencePoint(_) => stacks.clear(),
//!         Record::More { .. } => break parser.finish(stream),
//!         Record::End(end) => break end,
//!         _ => {}
//!     }
//! };
//! assert_eq!((end, named, frames, loss.lost()), (End::Complete, 4, 4, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An event block states the range of its timestamps: [`Record::TimeRange`] follows its [`Record::Block`]. A
//! [`TimeFilter`] skips the blocks that have no events of the times that a reader wants.
//!
//! # Objects of later versions
//!
//! A later version of the format may add tagged values after the body of an object, and objects with other names. The
//! parser skips both. Nothing states the length of an object. One of an unknown name is read in two ways at once:
//!
//! * as tagged values up to the end tag, in V3 and V4: tags 1 to 14 of FastSerialization, nested objects included;
//! * as a size, padding, that many bytes, then tagged values up to the end tag.
//!
//! A reading is valid if the end mark or the header of an object follows the end tag. Of two valid readings, the one
//! that ends first and that an object follows is taken. The stream ends after an unknown object only if no reading is
//! left that finds another object. A body, and all tagged values of an object together, have up to [`Limits::block`]
//! bytes, and a name has up to 64. If no reading is valid, the stream is corrupt where the object starts.
//!
//! The two readings advance together and look at most 80 bytes ahead. The work per byte is bounded, the result does not
//! depend on the pieces in which bytes arrive, and no memory is needed. The minimum reader version of such an
//! object is ignored; that of a known object ends the stream if it is too high. In V6 the header of a block states its
//! length.
//!
//! # Errata
//!
//! The README of this crate lists where the specification of NetTrace and real runtimes disagree.
//!
//! # Writing
//!
//! A [`TraceWriter`] stores records in a buffer of the caller, and each of its methods returns the bytes that the caller
//! must output then. [`Trace::new`] creates a valid first record, and [`CalendarTime`] converts its start time.
//! [`Metadata::new`] and [`Fields::build`] describe a kind of event, and a [`PayloadWriter`] writes the values of one.
#[cfg(feature = "alloc")]
mod assemble;
mod block;
mod calendar_time;
mod clock;
#[cfg(feature = "clr")]
pub mod clr;
#[cfg(feature = "alloc")]
mod context;
mod end;
mod event;
#[cfg(feature = "alloc")]
mod event_queue;
mod field;
mod label;
mod loss;
mod metadata;
#[cfg(feature = "alloc")]
mod metadata_buf;
#[cfg(feature = "alloc")]
mod number_map;
mod order;
mod parser;
#[cfg(feature = "alloc")]
mod parser_buf;
mod payload_writer;
mod rewrite;
mod scalar;
mod sequence_point;
mod stack;
mod store;
mod table;
mod text;
mod thread;
mod time_filter;
mod trace;
#[cfg(feature = "alloc")]
mod trace_event;
mod value;
mod values;
mod varint;
mod writer;

#[cfg(feature = "alloc")]
pub use assemble::{EventAssembler, Progress};
pub use block::{Block, BlockKind, TimeRange};
pub use calendar_time::CalendarTime;
pub use clock::TraceClock;
pub use end::{BadBlock, Corruption, End, Truncation};
pub use event::Event;
pub use field::{ArrayKind, Element, Field, FieldIter, FieldType, Fields};
pub use label::{Label, LabelList, Labels};
#[cfg(feature = "alloc")]
pub use loss::LossBuf;
pub use loss::{Counter, LossCounter};
pub use metadata::{Attributes, Metadata};
#[cfg(feature = "alloc")]
pub use metadata_buf::MetadataBuf;
#[cfg(feature = "alloc")]
pub use order::OrderBuf;
pub use order::{Held, Order};
pub use parser::{Limits, Parser, Record};
#[cfg(feature = "alloc")]
pub use parser_buf::ParserBuf;
pub use payload_writer::PayloadWriter;
pub use rewrite::{
    Activities, EventSelector, MetadataState, Rewrite, RewriteCounts, RewriteEnd, RewriteError,
    RewriteOptions, RewriteSpace, ThreadState,
};
pub use scalar::Scalar;
pub use sequence_point::{SequencePoint, ThreadSequence};
pub use stack::{Stack, frames};
pub use store::{Place, Store};
pub use table::{Slot, StoreFull, Table};
pub use text::Str;
pub use thread::{Thread, ThreadEntries, ThreadEntry};
pub use time_filter::TimeFilter;
pub use trace::{InvalidTrace, Pairs, Trace, Version};
#[cfg(feature = "alloc")]
pub use trace_event::TraceEvent;
pub use value::{FileTime, Value};
pub use values::{Item, Values};
pub use varint::{Varint32, Varint64, Zigzag64};
pub use writer::{TraceBytes, TraceWriter, WriteError};
