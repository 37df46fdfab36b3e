//! Files with the suffix `.gcdump`: heap snapshots of dotnet-gcdump and PerfView.
//!
//! Such a file is an object of the library FastSerialization. Numbers are little-endian.
//!
//! ```text
//! i32 20, "!FastSerialization.1", object GCHeapDump, byte 6, forward table, i32 offset of the table's offset
//!
//! object:  byte 1 (null), or byte 4, type, fields, byte 6
//! type:    byte 4, byte 1, i32 version, i32 oldest reader, string name, byte 6; again: byte 2, i32 offset
//! string:  i32 number of UTF-16 units (-1: null), each as UTF-8
//!
//! GCHeapDump:  object MemoryGraph, u8 is 64 bit, f32 multiplier of counts, f32 multiplier of sizes,
//!              object JSHeapInfo, object DotNetHeapInfo, string log, i64 ticks since the year 1, string machine,
//!              string process, i32 process id, i64 committed bytes, i64 working set, i32 n, n × f32 multiplier of
//!              a type, byte 12, i32 0, object InteropInfo, byte 13, string creation tool
//! MemoryGraph: i64 bytes of all objects, i32 root node, i32 n, n × type of nodes (string name, i32 size, string module),
//!              i32 n, n × i32 offset of a node in the blob, i32 length, the blob, with the oldest reader 1 the types of
//!              native programs, i32 n, n × i64 address, byte 8, u8 is 64 bit
//! node:        compressed type << 1 | has a size of its own, [compressed size], compressed number of references, each
//!              compressed difference of the numbers of the nodes
//! compressed:  1 to 5 bytes with 7 bits each, the highest first; bit 7: another byte follows; the first byte has a sign
//! ```
//!
//! The roots are nodes too, with names in brackets: a tree that begins with `[.NET Roots]`. Weak roots are not in it.
//! Objects of more than 1,000 bytes have types of their own, with a suffix as ` (Bytes > 1K)`.
mod encoding;
mod file;
mod reading;
mod root_tree;
mod writing;

pub use file::{Gcdump, GcdumpError, GcdumpInfo, GcdumpWriteError};
