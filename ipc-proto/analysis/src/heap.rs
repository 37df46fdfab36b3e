//! Heap snapshots: which objects exist, of which types, and what refers to them.
//!
//! A runtime writes a snapshot while an induced collection stops the program: descriptions of types, roots, then each
//! object with the number of its references, and the references in the same order. [`Snapshots`] takes these events,
//! and makes a [`Graph`] of each snapshot. The events come from the provider `Microsoft-Windows-DotNETRuntime` with the
//! keywords GC, Type, GCHeapDump, GCHeapCollect and GCHeapAndTypeNames (0x1980001) and level verbose.
//!
//! * The events of each kind have an index of their own, so that lost events are found. A graph states what is missing.
//!   After lost references, the objects of the later references are not known: such a graph has none.
//! * A type is described once in a session of the target. If another session was there first, a type has no name.
//! * Types of programs that were compiled ahead of time have no name: [`Graph::native_images`] returns which symbols of
//!   the program have them.
//! * A snapshot ends with its collection. A runtime that sends no collections ends it when the program runs again, a
//!   browser with the rundown.
//! * Contents of objects are never recorded.
//!
//! A graph takes 24 bytes for each object, about 3 for each reference, and the names of the types.
mod addresses;
mod edges;
mod gcdump;
mod graph;
mod heap_types;
mod native_types;
mod node_columns;
mod rows;
mod snapshot;
mod snapshots;
mod type_table;

pub use gcdump::{Gcdump, GcdumpError, GcdumpInfo, GcdumpWriteError};
pub use graph::{Graph, LARGE_OBJECT, Missing, Node, Reachable, Root, RootKind, TypeRow};
pub use heap_types::HeapTypeRow;
pub use snapshots::{HeapSnapshot, Snapshots};
pub use type_table::{HeapType, dotnet_name};
