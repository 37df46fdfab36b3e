//! `user_events`: what a runtime writes into tracepoints of the Linux kernel, in place of a stream.
//!
//! A tool asks for it with [`CollectTracing5`](crate::CollectTracing5) or
//! [`CollectTracing6`](crate::CollectTracing6), names the tracepoints, and hands the runtime a descriptor of
//! `/sys/kernel/tracing/user_events_data`: see [`Continuation::UserEvents`](crate::Continuation::UserEvents). The
//! runtime registers the tracepoints, each by its [`TracepointFormat`], and writes each event as a [`Record`]. The tool
//! reads them as it reads any tracepoint, through `perf_event_open` or ftrace.
//!
//! ```text
//! what a runtime writes, by one writev
//!  0           4         5          7           11        15            15 + n
//! | write index | version | event id | extension | payload | extension … | payload … |
//!   u32           u8 = 1    u16        u32         u32       n bytes       m bytes
//!
//! what a consumer is shown: no write index, but the kernel's common fields in front; a few bytes may follow
//!                | version | event id | extension | payload | extension … | payload … |
//!
//! extension, payload: __rel_loc, a length in the high half, in the low half how far behind this field it begins
//!                     extension = n << 16 | 4    payload = m << 16 | n
//!
//! extension blob: items one after the other up to its end, in any order
//! | 1 | length | metadata … |     | 2 | activity id |     | 3 | related activity id |
//!  u8   u32      length bytes      u8   16 bytes           u8   16 bytes
//! ```
//!
//! Sections "User_events Registration" and "User_events Writing" of the specification, and the kernel's document on
//! `user_events`. Errata: the list of `iovec`s has index 3 twice and counts 7, where runtimes write a piece for every
//! field, 8 and the pieces of the payload; a `guid` is no `uint16`, but 16 bytes; the example layout leaves out the
//! length of the metadata. A runtime sends metadata with an event only until it has written that event once in a session
//! (threads may race and repeat it), the first ones of .NET 10 with each. Activity ids are sent if they are not zero. An
//! event whose extension or payload has more than 65,535 bytes is not written.
//!
//! Whoever makes a runtime registers by the ioctl `DIAG_IOCSREG`: `name_args` is [`TracepointFormat::as_c_str`], there
//! are no flags, and the kernel sets the bit of `enable_addr` as long as somebody listens (.NET takes bit 31 of a `u32`).
//! The index that it gives goes in front of every record.
//!
//! ```
//! use ipc_proto::Guid;
//! use ipc_proto::nettrace::{Fields, Metadata, Scalar};
//! use ipc_proto::user_events::{Extension, InlineMetadata, Item, Record, TracepointFormat};
//!
//! let format = TracepointFormat::new("MyTracepoint")?;
//! assert!(format.as_str().starts_with("MyTracepoint u8 version; u16 event_id; "));
//!
//! // Of an event, once:
//! let (mut fields, mut space) = ([0; 32], [0; 128]);
//! let mut tick = Metadata::default();
//! (tick.provider, tick.event_id, tick.name) = ("Demo".into(), 7, "Tick".into());
//! tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut fields)?;
//! let metadata = InlineMetadata::build(&tick, &mut space)?;
//!
//! // Each time that it happens:
//! let (mut items, mut buf) = ([0; 256], [0; 512]);
//! let extension = Extension::build(&[Item::Metadata(metadata), Item::ActivityId(Guid([9; 16]))], &mut items)?;
//! let record = Record { event_id: 7, extension, payload: &1u32.to_le_bytes() };
//! let written = record.encode(42, &mut buf)?;
//!
//! // At the other end:
//! let record = Record::decode(&written[4..])?;
//! for item in record.extension {
//!     match item? {
//!         Item::Metadata(metadata) => assert_eq!(metadata.decode(record.event_id)?.name, "Tick"),
//!         Item::ActivityId(id) => assert_eq!(id, Guid([9; 16])),
//!         _ => unreachable!("nothing else was said"),
//!     }
//! }
//! assert_eq!(record.payload, [1, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod extension;
mod record;
mod tracepoint_format;

pub use extension::{Extension, InlineMetadata, Item, Items};
pub use record::Record;
pub use tracepoint_format::{TracepointFormat, TracepointFormatError};
