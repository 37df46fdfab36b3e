//! The searches on Unix: sockets in the temporary directories of processes.
mod context;
mod process_search;
mod process_view;
mod scan;
mod scanned_directory;
mod stale;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod target_tmpdir;

pub(super) use process_search::search_process;
pub(super) use scan::{scan_all, scan_directory};
pub use stale::{Stale, stale};
