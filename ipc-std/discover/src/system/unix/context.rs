//! `SearchContext`: what the searches of one scan share, so that no directory is read twice; and `SearchLocation`: a
//! directory that is scanned until a deadline.
use core::time::Duration;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use super::scanned_directory::ScannedDirectory;
use crate::deadline::Deadline;
use crate::directory::{Directory, directory, unreadable};
use crate::error::Reason;
use crate::procfs::Mounts;
use crate::socket_file::ProcessKey;

/// The state that the searches of one scan share.
#[derive(Debug, Clone)]
pub(super) struct SearchContext {
    opened: Arc<Mutex<Vec<Directory>>>,
    /// The mounts of this process.
    pub(super) mounts: Arc<Mounts>,
    /// The deadline for reading directories.
    pub(super) deadline: Instant,
}

/// A directory that is being scanned.
///
/// A file system whose server has ended blocks every call, and no call has a deadline. Only directories that this
/// kernel alone serves are scanned directly: without a link in the path, on a file system of a type that is known to be
/// local. All other directories are scanned by a worker thread, which is abandoned after the deadline. While an
/// abandoned worker is blocked, no second worker starts for its location. So a program that searches again and again
/// does not collect blocked threads.
enum PendingScan {
    Done(Result<ScannedDirectory, Reason>),
    OnWorker(mpsc::Receiver<Result<ScannedDirectory, Reason>>),
}

/// The locations of abandoned workers.
static ABANDONED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn abandoned() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A location where the socket of a process may be.
pub(super) struct SearchLocation {
    path: PathBuf,
    pending: PendingScan,
}

impl SearchLocation {
    pub(super) const fn done(path: PathBuf, scanned: Result<ScannedDirectory, Reason>) -> Self {
        Self { path, pending: PendingScan::Done(scanned) }
    }

    /// Starts a worker that scans the location.
    pub(super) fn on_worker(
        path: PathBuf,
        scan: impl FnOnce() -> Result<ScannedDirectory, Reason> + Send + 'static,
    ) -> Self {
        if abandoned().contains(&path) {
            return Self::done(path.clone(), Err(Reason::Unresponsive { path }));
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let location = path.clone();
        let worker = thread::Builder::new().spawn(move || {
            // Sending fails after the deadline, when no caller waits for the result.
            let _ = sender.send(scan());
            abandoned().remove(&location);
        });
        let pending = match worker {
            Ok(_) => PendingScan::OnWorker(receiver),
            Err(e) => PendingScan::Done(Err(unreadable(&path, &e))),
        };
        Self { path, pending }
    }

    /// Waits for the result until `deadline`.
    pub(super) fn wait(self, deadline: Instant) -> (PathBuf, Result<ScannedDirectory, Reason>) {
        let scanned = match self.pending {
            PendingScan::Done(scanned) => scanned,
            PendingScan::OnWorker(receiver) => {
                let timeout = deadline.saturating_duration_since(Instant::now());
                receiver.recv_timeout(timeout).unwrap_or_else(|_| {
                    let mut abandoned = abandoned();
                    // The lock makes the check final: a worker sends its result before it takes the lock to remove its
                    // location. So a location that is inserted here will still be removed.
                    receiver.try_recv().unwrap_or_else(|e| {
                        if e == mpsc::TryRecvError::Empty {
                            abandoned.insert(self.path.clone());
                        }
                        Err(Reason::Unresponsive { path: self.path.clone() })
                    })
                })
            }
        };
        (self.path, scanned)
    }
}

impl SearchContext {
    pub(super) fn new(deadline: Deadline) -> Self {
        let left = deadline.end.saturating_duration_since(deadline.begin);
        // Half of the time is for reading directories, the other half for the identification of runtimes.
        let half = left.checked_div(2).unwrap_or(Duration::ZERO);
        let deadline = deadline.begin.checked_add(half).unwrap_or(deadline.end);
        Self { opened: Arc::default(), mounts: Arc::new(Mounts::own()), deadline }
    }

    /// Returns the directories that were opened.
    pub(super) fn opened(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shares the entries of a directory that was opened before by another path, so that it is listed once.
    pub(super) fn share(&self, directory: Directory) -> Directory {
        let mut opened = self.opened();
        if let Some(same) = opened.iter().find(|opened| opened.is(&directory)) {
            return Directory { opened: Arc::clone(&same.opened), ..directory };
        }
        opened.push(directory.clone());
        directory
    }

    /// Returns the locations where runtimes with the environment of this process make their sockets.
    pub(super) fn own_locations(&self, process: ProcessKey) -> Vec<SearchLocation> {
        let paths = [directory()].into_iter().chain(group_containers());
        paths.map(|path| self.location(path, process)).collect()
    }

    /// Returns the location at a path as this process sees it.
    pub(super) fn location(&self, path: PathBuf, process: ProcessKey) -> SearchLocation {
        let scan = {
            let (context, path) = (self.clone(), path.clone());
            move || match Directory::open(&path) {
                Ok(opened) => Ok(ScannedDirectory::new(context.share(opened), process)),
                Err(e) => Err(unreadable(&path, &e)),
            }
        };
        // `is_local` does not see links. The user of this process has made the links in its TMPDIR, so they can be
        // trusted.
        match self.mounts.is_local(&path) {
            true => SearchLocation::done(path, scan()),
            false => SearchLocation::on_worker(path, scan),
        }
    }
}

/// Returns the directories in which sandboxed programs make their sockets.
#[cfg(target_os = "macos")]
fn group_containers() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let containers = home.and_then(|home| std::fs::read_dir(home.join("Library/Group Containers")).ok());
    containers.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
#[cfg(not(target_os = "macos"))]
const fn group_containers() -> [PathBuf; 0] {
    []
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_location_has_one_worker() {
        let path = PathBuf::from("/a/blocked/location");
        let (release, blocked) = mpsc::channel::<()>();
        let location = SearchLocation::on_worker(path.clone(), move || {
            let _ = blocked.recv();
            Err(Reason::Hidden)
        });
        let name = |location: SearchLocation, deadline| location.wait(deadline).1.err().map(|e| e.name());
        assert_eq!(name(location, Instant::now()), Some("unresponsive"));
        let (sender, scans) = mpsc::channel();
        let begin = || {
            let sender = sender.clone();
            SearchLocation::on_worker(path.clone(), move || {
                let _ = sender.send(());
                Err(Reason::Hidden)
            })
        };
        let hour = Instant::now() + Duration::from_secs(3600);
        assert_eq!(name(begin(), hour), Some("unresponsive"));
        assert!(scans.try_recv().is_err(), "the second worker");
        drop(release);
        while name(begin(), hour) != Some("hidden") {
            thread::yield_now();
        }
        assert!(scans.try_recv().is_ok());
    }
}
