//! `Scan`: the search for all runtimes of a system; and `ScanConfig`: its scope.
use core::time::Duration;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use super::found::Found;
use super::search::Search;
use crate::error::{Reason, SearchError};
use crate::observer::Observer;
use crate::timeouts::{Deadline, Timeouts};

/// The scope of a search for all runtimes.
///
/// ```
/// use core::time::Duration;
/// use ipc_std::discover::{self, ScanConfig};
///
/// let directory = tempfile::tempdir()?;
/// let config = ScanConfig { directory: Some(directory.path()), timeout: Duration::from_secs(1) };
/// assert!(discover::list(&config).is_empty());
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
        Self { directory: None, timeout: Timeouts::default().call }
    }
}

/// The result of a search for all runtimes. No runtime was connected to yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scan {
    /// A search for each socket, and for each process with a runtime in its memory; sorted by process id.
    pub searches: Vec<Search>,
    /// Why runtimes may be missing: [`directory`](super::directory), or a group container of macOS, could not be read.
    /// A runtime with its socket in such a directory may still be found through its process.
    pub obstacles: Vec<Reason>,
    pub(super) deadline: Deadline,
}

impl Scan {
    /// Identifies all runtimes in parallel before the deadline of the scan, and calls `each` with every result as soon
    /// as it is known. Sockets of visible processes come first, so that sockets without a process do not use up their
    /// time.
    ///
    /// ```no_run
    /// use ipc_std::discover::{self, ScanConfig};
    ///
    /// let scan = discover::scan(&ScanConfig::default());
    /// for obstacle in &scan.obstacles {
    ///     println!("{obstacle}"); // /tmp/mine cannot be read: No such file or directory (os error 2)
    /// }
    /// scan.identify_all(None, |search, result| match result {
    ///     Ok(found) => println!("{}: {}", search.process_id(), found.path.display()),
    ///     Err(error) => println!("{error}"),
    /// });
    /// ```
    pub fn identify_all(
        self,
        observer: Option<&Observer>,
        mut each: impl FnMut(Search, Result<Found, SearchError>),
    ) {
        let Self { mut searches, deadline, .. } = self;
        searches.sort_by_key(|search| !search.has_process());
        let invisible = searches.iter().filter(|search| !search.has_process()).count();
        let threads = searches.len().min(THREADS);
        let queue = Mutex::new(searches.into_iter());
        let next = || {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let all = queue.len();
            queue.next().map(|search| {
                let same = if search.has_process() { all.saturating_sub(invisible) } else { all };
                (search, share(deadline, same))
            })
        };
        let work = |results: mpsc::Sender<_>| {
            while let Some((mut search, end)) = next() {
                let result = search.identify_by(end, observer);
                // The receiver exists as long as a thread does, so sending cannot fail.
                let _ = results.send((search, result));
            }
        };
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let (work, mut has_thread) = (&work, false);
            for _ in 0..threads {
                let sender = sender.clone();
                has_thread |= thread::Builder::new().spawn_scoped(scope, move || work(sender)).is_ok();
            }
            if !has_thread {
                // The system refuses new threads, so this thread does the work.
                work(sender.clone());
            }
            drop(sender);
            receiver.into_iter().for_each(|(search, result)| each(search, result));
        });
    }
}

/// The number of runtimes that are identified at the same time: each needs a descriptor.
const THREADS: usize = 64;

/// Returns when the next of `searches` remaining searches must end, so that each of them gets an equal share of the
/// time.
fn share(deadline: Deadline, searches: usize) -> Instant {
    let now = Instant::now();
    let rounds = u32::try_from(searches.div_ceil(THREADS)).unwrap_or(u32::MAX);
    let left = deadline.end.saturating_duration_since(now);
    now.checked_add(left.checked_div(rounds).unwrap_or(left)).unwrap_or(now)
}
