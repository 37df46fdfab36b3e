//! `user_events`: events that a runtime writes to tracepoints of the Linux kernel, instead of a stream.
//!
//! A client starts a session of `user_events` with [`CollectTracing5`](ipc_proto::CollectTracing5) or
//! [`CollectTracing6`](ipc_proto::CollectTracing6). The command names the tracepoints, and passes the runtime a
//! descriptor of `/sys/kernel/tracing/user_events_data`: see
//! [`Continuation::UserEvents`](ipc_proto::Continuation::UserEvents). The runtime registers each tracepoint by its
//! [`TracepointFormat`](ipc_proto::types::TracepointFormat), and writes each event as a [`TracepointRecord`]. The
//! client reads these records like those of any tracepoint, through `perf_event_open` or ftrace.
//!
//! ```text
//! as written by a runtime, with one writev
//!  0           4         5          7           11        15            15 + n
//! | write index | version | event id | extension | payload | extension … | payload … |
//!   u32           u8 = 1    u16        u32         u32       n bytes       m bytes
//!
//! as read by a consumer: without the write index, after the kernel's common fields; a few bytes can follow
//!                | version | event id | extension | payload | extension … | payload … |
//!
//! extension, payload: __rel_loc: the high half is a length, the low half the distance from the end of this field
//!                     extension = n << 16 | 4    payload = m << 16 | n
//!
//! extension blob: items in any order, up to its end
//! | 1 | length | metadata … |     | 2 | activity id |     | 3 | related activity id |
//!  u8   u32      length bytes      u8   16 bytes           u8   16 bytes
//! ```
//!
//! See the sections "User_events Registration" and "User_events Writing" of the specification, and the kernel's
//! document on `user_events`. A runtime sends metadata with an event only until it has written that event once in a
//! session (threads can race and repeat it). Activity ids are sent if they are not zero. An event whose extension or
//! payload has more than 65,535 bytes is not written.
//!
//! # Errata
//! * The list of `iovec`s in the specification has index 3 twice, lacks index 5 and states 7 pieces. Runtimes write one
//!   piece for every field, which are 8, and the pieces of the payload.
//! * A `guid` is not a `uint16` but 16 bytes.
//! * The example layout omits the length of the metadata: a `u32` after the label.
//! * Texts of the specification contradict each other about the metadata: one describes the whole payload of a metadata
//!   record, which begins with the metadata id; another excludes the id. Runtimes omit the id, and the first previews
//!   of .NET 10 omit the provider, too. [`InlineMetadata::decode`] accepts each [`InlineLayout`], and refuses bytes
//!   that fit several layouts.
//! * "The first time each event is sent": the first versions of .NET 10 send the metadata with each event.
//!
//! | duty of a runtime | type |
//! |---|---|
//! | convert CollectTracing5 and CollectTracing6 into one form | [`UserEventsSession`](ipc_proto::types::UserEventsSession), with `TryFrom` |
//! | register each tracepoint of a provider with the kernel: the default one, then those of the sets | [`TracepointConfig::tracepoint_names`](ipc_proto::types::TracepointConfig::tracepoint_names), [`UserReg`], [`TracepointFormat`](ipc_proto::types::TracepointFormat) |
//! | select the events of a provider | [`UserEventsProvider::includes`](ipc_proto::types::UserEventsProvider::includes) |
//! | find the tracepoint of an event | [`TracepointConfig::tracepoint_name`](ipc_proto::types::TracepointConfig::tracepoint_name) |
//! | send metadata once in a session | [`WrittenKinds`], [`InlineMetadata`] |
//! | write the event while a consumer listens | [`TracepointRecord`], [`Extension`] |
//! | end the registrations at the end of the session | [`UserUnreg`] |
//!
//! A consumer joins the records with earlier metadata: `MetadataCache`, with the feature `alloc`.
//!
//! ```
//! use ipc_proto::{Guid, types::TracepointFormat};
//! use nettrace::user_events::{Extension, ExtensionItem, InlineMetadata, TracepointRecord};
//! use nettrace::{Fields, Metadata, PayloadWriter, Scalar};
//!
//! let format = TracepointFormat::new("MyTracepoint")?;
//! assert!(format.as_str().starts_with("MyTracepoint u8 version; u16 event_id; "));
//!
//! // Once for each event type:
//! let (mut fields, mut space) = ([0; 32], [0; 128]);
//! let mut tick = Metadata::new(0, "Demo", 7, "Tick");
//! tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut fields)?;
//! let metadata = InlineMetadata::build(&tick, &mut space)?;
//!
//! // For each event:
//! let (mut items, mut values, mut buf) = ([0; 256], [0; 64], [0; 512]);
//! let extension = Extension::build(&[ExtensionItem::Metadata(metadata), ExtensionItem::ActivityId(Guid([9; 16]))], &mut items)?;
//! let payload = PayloadWriter::new(&mut values).uint32(1).finish()?;
//! let record = TracepointRecord { event_id: 7, extension, payload };
//! let written = record.encode(42, &mut buf)?;
//!
//! // The consumer:
//! let record = TracepointRecord::decode(&written[4..])?;
//! for item in record.extension {
//!     match item? {
//!         ExtensionItem::Metadata(metadata) => assert_eq!(metadata.decode(record.event_id)?.name, "Tick"),
//!         ExtensionItem::ActivityId(id) => assert_eq!(id, Guid([9; 16])),
//!         _ => unreachable!("no other item was written"),
//!     }
//! }
//! assert_eq!(record.payload, [1, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod extension;
mod inline_metadata;
#[cfg(feature = "alloc")]
mod metadata_cache;
mod tracepoint_record;
mod user_reg;
mod written_kinds;

pub use extension::{Extension, ExtensionItem, ExtensionItems};
pub use inline_metadata::{InlineLayout, InlineMetadata};
#[cfg(feature = "alloc")]
pub use metadata_cache::{MetadataCache, TracepointEvent};
pub use tracepoint_record::TracepointRecord;
pub use user_reg::{UserReg, UserUnreg};
pub use written_kinds::WrittenKinds;
