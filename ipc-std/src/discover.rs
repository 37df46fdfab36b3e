//! Finds runtimes, and reports why a runtime is not found.
//!
//! The package [`ipc_discover`] finds the processes and their sockets without a connection, and explains where it
//! searches. The functions here also ask the runtimes that listen. [`find`] and [`list`] do both.
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
mod identify;
mod identify_all;

use crate::client::Client;
use crate::error::Error;
use crate::timeouts::Timeouts;
use crate::transport::SocketConnector;

pub use found::Found;
pub use identify::identify;
pub use identify_all::identify_all;
pub use ipc_discover::{
    Candidate, Deadline, Denied, Obstacle, Reason, Scan, ScanConfig, Search, SearchError, SearchStep,
    SearchSubject, Signs, Target, directory, scan, search,
};
#[cfg(unix)]
pub use ipc_discover::{Stale, stale};

/// Finds the runtime of a process and requests its process information, within 10 seconds.
///
/// [`Client::for_process`] finds the runtime without a request. [`search`] reports the steps.
///
/// # Errors
/// All reasons why the runtime was not found.
pub fn find(process_id: u32) -> Result<Found, SearchError> {
    identify(&mut search(process_id, Timeouts::default().call), None)
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
    identify_all(scan(config), None, |search, result| results.push((search.process_id(), result)));
    results.sort_by_key(|(process_id, _)| *process_id);
    results.into_iter().map(|(_, result)| result).collect()
}

impl Client {
    /// Creates a client of the runtime of this process, found as by [`find`]. Nothing is sent yet if the name of one
    /// socket proves that the socket belongs to the process.
    ///
    /// At every connection, before it sends anything, the client checks through the operating system that this process
    /// listens at the socket, and that no other process has inherited the listener of an earlier one. On Linux the listener can also be a process in another PID namespace that has the same id
    /// there. Such a process must share the directory of the socket and have a trusted user: the user of the process or
    /// of the client, or root.
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn for_process(process_id: u32) -> Result<Self, Error> {
        let timeouts = Timeouts::default();
        Self::for_search(search(process_id, timeouts.call), &timeouts)
    }

    /// Creates a client with these deadlines of the runtime that was searched for. Nothing is sent if the name of one
    /// socket [proves](Search::proven) that the socket belongs to the process. Otherwise the sockets are
    /// [identified](identify).
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn for_search(mut search: Search, timeouts: &Timeouts) -> Result<Self, Error> {
        let client = match search.proven() {
            Some(own) => Self::new(SocketConnector::found(search.process_id(), own, search.target())),
            None => identify(&mut search, None)?.client,
        };
        Ok(client.with_timeouts(*timeouts))
    }
}
