//! NetTrace: what follows the answer to CollectTracing, and what a `.nettrace` file holds.
//!
//! Versions 3 (NetPerf), 4 and 6 are read. What is called version 5 is 4 with tags in its metadata records; no stream
//! ever says 5. See "NetTrace format, V4/V5" and "V6" in the documentation of TraceEvent.
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
//! | block | its records | pointed to by |
//! |---|---|---|
//! | `Trace` | [`Trace`] | |
//! | `MetadataBlock`, `Metadata` | [`Metadata`]: names and fields of an event | [`Event::metadata_id`] |
//! | `StackBlock`, `Stack` | [`Stack`] | [`Event::stack_id`] |
//! | `EventBlock`, `Event` | [`Event`]; V3: metadata too | |
//! | `SPBlock`, `SequencePoint` | [`SequencePoint`], then [`ThreadSequence`]s | |
//! | `Thread`, `RemoveThread` | [`Thread`], [`ThreadSequence`] | [`Event::thread`], [`Event::capture_thread`] |
//! | `LabelList` | [`LabelList`] | [`Event::label_list`] |
//!
//! A [`Parser`] cuts the stream into these. Everything else is optional, and its memory is the caller's: a [`Table`] or
//! a [`Store`] finds what an event points to, [`Loss`] counts the events that the runtime dropped, [`Order`] puts them
//! into the order of time. At a [`SequencePoint`] stacks and label lists become invalid, and what the point says of
//! threads and metadata. A [`Writer`] makes streams.
//!
//! The [`End`] says how the stream ended. Whatever was good is delivered, before a bad block and behind it.
//!
//! ```
//! use ipc_proto::nettrace::{
//!     End, Held, Limits, Loss, Metadata, Order, Parser, Slot, Step, Table,
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
//! let (mut loss, mut order) = (Loss::new(&mut threads), Order::new(&mut held));
//!
//! let (mut named, mut frames, mut last) = (0, 0, 0);
//! let mut parser = Parser::new(Limits::default());
//! let end = loop {
//!     let step = parser.next(stream);
//!     loss.step(&step);
//!     match step {
//!         Step::Metadata(record) => {
//!             let record = Metadata::decode(parser.version(), record.payload)?;
//!             metadata.insert(record.id.into(), record)?;
//!         }
//!         Step::Stack(stack) => drop(stacks.insert(stack.id.into(), stack.bytes)?),
//!         Step::Event(event) => {
//!             let stack = stacks.get(event.stack_id.into()).copied().unwrap_or_default();
//!             if order.push(event.timestamp, (event, stack)).is_err() {
//!                 return Err("no room".into());
//!             }
//!             if event.sorted {
//!                 order.release(event.timestamp);
//!             }
//!         }
//!         Step::SequencePoint(_) | Step::More { .. } | Step::End(_) => order.release_all(),
//!         _ => continue,
//!     }
//!     while let Some((event, stack)) = order.pop() {
//!         assert!(event.timestamp >= last);
//!         last = event.timestamp;
//!         let record = metadata.get(event.metadata_id.into()).ok_or("an unknown event")?;
//!         named += i32::from(record.provider == "My" && record.name == "Ints");
//!         frames += stack.len() / 8;
//!     }
//!     match step {
//!         Step::SequencePoint(_) => stacks.clear(),
//!         Step::More { .. } => break parser.finish(stream),
//!         Step::End(end) => break end,
//!         _ => {}
//!     }
//! };
//! assert_eq!((end, named, frames, loss.lost()), (End::Complete, 4, 4, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod block;
#[cfg(feature = "clr")]
pub mod clr;
mod end;
mod event;
mod field;
mod label;
mod loss;
mod metadata;
mod order;
mod parser;
mod rewrite;
mod sequence_point;
mod stack;
mod store;
mod table;
mod text;
mod thread;
mod trace;
mod value;
mod varint;
mod writer;

pub use block::{Block, BlockKind};
pub use end::{BadBlock, Corruption, End, Truncation};
pub use event::Event;
pub use field::{ArrayKind, Element, Field, FieldIter, FieldType, Fields, Scalar};
pub use label::{Label, LabelList, Labels};
#[cfg(feature = "alloc")]
pub use loss::LossBuf;
pub use loss::{Counter, Loss};
#[cfg(feature = "alloc")]
pub use metadata::MetadataBuf;
pub use metadata::{Attributes, Metadata};
#[cfg(feature = "alloc")]
pub use order::OrderBuf;
pub use order::{Held, Order};
pub use parser::{Limits, Parser, Step};
pub use rewrite::{
    Activities, Counted, Described, Only, Rewrite, RewriteError, RewriteOptions, RewriteSpace, Rewritten,
    Stepped,
};
pub use sequence_point::{SequencePoint, ThreadSequence};
pub use stack::{Stack, frames};
pub use store::{Place, Store};
pub use table::{Full, Slot, Table};
pub use text::Str;
pub use thread::{Thread, ThreadEntries, ThreadEntry};
pub use trace::{Pairs, SystemTime, Trace, Version};
pub use value::{FileTime, Item, Value, Values};
pub use varint::{Varint32, Varint64, Zigzag64};
pub use writer::{WriteError, Writer, Written};
