//! Discovery on Unix: sockets in the temporary directories of processes.
mod candidate;
mod context;
mod directory;
mod name;
mod process_search;
mod process_view;
mod scan;
mod stale;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod target_tmpdir;

pub(super) use candidate::Candidate;
pub use directory::directory;
pub(super) use process_search::search_process;
pub(super) use scan::{scan_all, scan_directory};
pub use stale::{Stale, stale};
