//! Names, call trees, collections, counters and heaps of a trace: `nettrace_analysis` for C, with the allocator of std. It is
//! a module of the library in `ipc-proto/c/src`, which the package here builds with it.
//!
//! `include/dotnet_ipc_analysis.h` is generated from `rows` and `functions`, comments included. The linker cannot prove that
//! nothing here panics, so each function catches panics.
pub mod functions;
mod reading;
pub mod rows;
mod tables;
