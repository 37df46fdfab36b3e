//! The searches, for one process and for all.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use core::time::Duration;

#[cfg(unix)]
use unix as of_system;
#[cfg(windows)]
use windows as of_system;

use crate::deadline::Deadline;
use crate::scan::{Scan, ScanConfig};
use crate::search::Search;

#[cfg(unix)]
pub use unix::{Stale, stale};

/// Searches for the runtime of a process. No connection is made.
///
/// `timeout` is the limit for this search and for the connections that follow it, together. Half of it is for file
/// systems that do not respond: their directories are [`Reason::Unresponsive`](crate::Reason::Unresponsive).
#[must_use]
pub fn search(process_id: u32, timeout: Duration) -> Search {
    of_system::search_process(process_id, Deadline::after(timeout))
}

/// Searches for all runtimes. No connection is made.
///
/// ```
/// use ipc_discover::ScanConfig;
///
/// for search in ipc_discover::scan(&ScanConfig::default()).searches {
///     println!("{} {:?}", search.process_id(), search.path());
/// }
/// ```
#[must_use]
pub fn scan(config: &ScanConfig<'_>) -> Scan {
    let deadline = Deadline::after(config.timeout);
    let (mut searches, obstacles) = match config.directory {
        Some(directory) => of_system::scan_directory(directory, deadline),
        None => of_system::scan_all(deadline),
    };
    searches.sort_by_key(Search::process_id);
    Scan { searches, obstacles, deadline }
}
