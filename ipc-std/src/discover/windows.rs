//! Discovery on Windows: named pipes.
mod candidate;
mod scan;

pub(super) use candidate::Candidate;
pub use candidate::directory;
pub(super) use scan::{scan_all, scan_directory, search_process};
