//! Finds runtimes, and reports why a runtime is not found.
//!
//! A runtime listens at a socket in its `$TMPDIR`, or in `/tmp`. The socket's name contains the process id and the
//! start time of the process. A client may have another `TMPDIR`, another user or another root than the runtime; the
//! process may run in a container; a socket may be left over from a process that has ended, or belong to another user.
//! [`find`] and [`list`] handle all of this, and every obstacle is a [`Reason`].
//!
//! | searched location | system |
//! |---|---|
//! | `$TMPDIR` of the client, or `/tmp` | Unix |
//! | `$TMPDIR` of the client, or `/tmp`, for an invisible process in another PID namespace, by its id there | Linux |
//! | the `TMPDIR` of the process, through `/proc/PID/root` and with the id in its own PID namespace | Linux |
//! | `~/Library/Group Containers/*` | macOS |
//! | `\\.\pipe\`, where a name disappears with its process | Windows |
//!
//! ```no_run
//! use ipc_std::discover;
//!
//! match discover::find(4242) {
//!     Ok(found) => println!("{} listens at {}", found.process_id, found.path.display()),
//!     Err(error) => println!("{error}"), // process 4242 cannot be used: ...
//! }
//! ```
mod found;
#[cfg(unix)]
pub(crate) mod procfs;
mod scan;
mod search;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use core::time::Duration;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use crate::client::Client;
use crate::error::Error;
use crate::timeouts::{Deadline, Timeouts};

pub use crate::error::{Denied, Reason, SearchError, Signs};
pub use found::Found;
pub use scan::{Scan, ScanConfig};
pub use search::{Search, SearchStep, SearchSubject};
pub use system::directory;
#[cfg(unix)]
pub use system::{Stale, stale};

/// Finds the runtime of a process and requests its process information, within 10 seconds.
///
/// [`Client::for_process`] finds the runtime without a request. [`search`] reports the steps.
///
/// # Errors
/// All reasons why the runtime was not found.
pub fn find(process_id: u32) -> Result<Found, SearchError> {
    search(process_id, Timeouts::default().call).identify(None)
}

/// Searches for the runtime of a process. No connection is made yet.
///
/// `timeout` is the limit for this search and for [`Search::identify`] together. Half of it is for file systems that do
/// not respond: their directories are [`Reason::Unresponsive`].
#[must_use]
pub fn search(process_id: u32, timeout: Duration) -> Search {
    system::search_process(process_id, Deadline::after(timeout))
}

/// Finds all runtimes and requests their process information; the results are sorted by process id.
///
/// The results have every socket, and every process that has a runtime in its memory. A process that ends during the
/// search does not affect others. Runtimes may be missing if a directory cannot be read: [`scan`] reports such a
/// directory.
///
/// ```no_run
/// use ipc_std::discover::{self, ScanConfig};
///
/// for result in discover::list(&ScanConfig::default()) {
///     match result {
///         Ok(found) => println!("{}: {}", found.process_id, found.path.display()),
///         Err(error) => println!("{error}"),
///     }
/// }
/// ```
#[must_use]
pub fn list(config: &ScanConfig<'_>) -> Vec<Result<Found, SearchError>> {
    let mut results = Vec::new();
    scan(config).identify_all(None, |search, result| results.push((search.process_id(), result)));
    results.sort_by_key(|(process_id, _)| *process_id);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Searches for all runtimes. No runtime is connected to yet.
#[must_use]
pub fn scan(config: &ScanConfig<'_>) -> Scan {
    let deadline = Deadline::after(config.timeout);
    let (mut searches, obstacles) = match config.directory {
        Some(directory) => system::scan_directory(directory, deadline),
        None => system::scan_all(deadline),
    };
    searches.sort_by_key(Search::process_id);
    Scan { searches, obstacles, deadline }
}

impl Client {
    /// Creates a client of the runtime of this process, found as by [`find`]. Nothing is sent yet if the name of one
    /// socket proves that the socket belongs to the process.
    ///
    /// At every connection, before it sends anything, the client checks through the operating system that this process
    /// listens at the socket. On Linux the listener can also be a process in another PID namespace that has the same id
    /// there. Such a process must share the directory of the socket and have a trusted user: the user of the process or
    /// of the client, or root.
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn for_process(process_id: u32) -> Result<Self, Error> {
        let timeouts = Timeouts::default();
        search(process_id, timeouts.call).client(&timeouts)
    }
}
