//! Garbage collections: when, why, how long the program was paused, and what remained on the heap.
//!
//! [`Collections`] takes the events of a trace in the order of time, and returns [`Collection`]s. Its rules are those
//! of Microsoft's TraceEvent, so that pauses are equal to the nanosecond:
//!
//! * A pause begins with the suspension for a collection (GCSuspendEEBegin with reason 1 or 6; samplers and debuggers
//!   suspend for other reasons), and ends when the same thread has restarted the program (GCRestartEEEnd).
//! * A blocking collection is complete when the program runs again, a background collection with its heap statistics.
//! * A background collection has several pauses, which are added up to the end of the collection. If a pause ends after
//!   the collection, only the suspension of that pause counts. At the start of a background collection, a collection of
//!   a younger generation can take place in the same suspension. The pause of the younger one begins with its GCStart.
//! * A second GCStart of the same number is skipped.
//!
//! TraceEvent omits collections whose suspension is not in the trace. Here they are returned as not complete, without
//! the times that need it. So are a collection without an end, and one of which the trace has only GCEnd. GCEnd belongs
//! to the collection of its number. Each process has its own collections, suspensions and threads.
//!
//! The events come from the provider `Microsoft-Windows-DotNETRuntime` with keyword GC (0x1) and level informational.
mod collection;
mod collections;
mod process_collections;

pub use collection::{Collection, CollectionType, GcStatistics, GenerationStatistics, HeapSizes, Reason};
pub use collections::{Collections, GcReport, OpenSuspension};
