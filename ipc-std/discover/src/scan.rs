//! `Scan`: the search for all runtimes of a system; and `ScanConfig`: its scope.
use core::time::Duration;
use std::path::Path;

use ipc_proto::plan::CALL_LIMIT_MS;

use crate::deadline::Deadline;
use crate::error::Reason;
use crate::search::Search;

/// The scope of a search for all runtimes.
///
/// ```
/// use core::time::Duration;
/// use ipc_discover::ScanConfig;
///
/// let directory = tempfile::tempdir()?;
/// let config = ScanConfig { directory: Some(directory.path()), timeout: Duration::from_secs(1) };
/// assert!(ipc_discover::scan(&config).searches.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanConfig<'a> {
    /// Searches only the sockets in this directory. `None` searches all processes and the directories of their sockets.
    pub directory: Option<&'a Path>,
    /// The limit for all runtimes together. Half of it is for file systems that do not respond; their directories are
    /// [`Reason::Unresponsive`].
    pub timeout: Duration,
}

impl Default for ScanConfig<'_> {
    /// Returns the options of a search of all processes within 10 seconds.
    fn default() -> Self {
        Self { directory: None, timeout: Duration::from_millis(CALL_LIMIT_MS) }
    }
}

/// The result of a search for all runtimes. No runtime was connected to yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scan {
    /// A search for each socket, and for each process with a runtime in its memory; sorted by process id.
    pub searches: Vec<Search>,
    /// Why runtimes may be missing: [`directory`](crate::directory()), or a group container of macOS, could not be
    /// read. A runtime with its socket in such a directory may still be found through its process.
    pub obstacles: Vec<Reason>,
    /// The deadline of the search and of the connections that follow it.
    pub deadline: Deadline,
}
