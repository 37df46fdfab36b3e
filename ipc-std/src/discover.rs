//! Finds runtimes by the sockets that they listen at.
//!
//! A runtime makes its socket in its own `$TMPDIR`, or in `/tmp`. Looked into are ours and, on Linux, for a process
//! that is asked for by id, that process's.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ipc_proto::SocketName;

use crate::{Error, procfs, sys};

/// A socket that a runtime made; it may be gone by now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The process, in its own PID namespace.
    pub process_id: u32,
    /// Its socket.
    pub path: PathBuf,
    modified: SystemTime,
}

/// Every socket in our temporary directory whose process exists, one a process, by process id.
///
/// Where a process has several, the newest counts. A directory that cannot be read has none.
#[must_use]
pub fn list() -> Vec<Found> {
    let mut found = sockets(&directory());
    found.retain(|found| sys::process_exists(found.process_id));
    found.sort_by_key(|found| (found.process_id, core::cmp::Reverse(found.modified)));
    found.dedup_by_key(|found| found.process_id);
    found
}

/// The newest socket of a process, in our temporary directory or, on Linux, its own.
///
/// # Errors
/// [`Error::NoProcess`] or [`Error::NoSocket`].
pub fn find(process_id: u32) -> Result<Found, Error> {
    if !sys::process_exists(process_id) {
        return Err(Error::NoProcess { process_id });
    }
    let mut looked_in = vec![directory()];
    looked_in.extend(directory_of(process_id).filter(|directory| !looked_in.contains(directory)));
    let candidates = looked_in.iter().flat_map(|directory| sockets(directory));
    let newest = candidates.filter(|found| found.process_id == process_id).max_by_key(|found| found.modified);
    newest.ok_or(Error::NoSocket { process_id, looked_in })
}

/// Where runtimes with our environment make their sockets: `$TMPDIR`, or `/tmp`.
#[must_use]
pub fn directory() -> PathBuf {
    or_tmp(std::env::var_os("TMPDIR").as_deref())
}

fn or_tmp(tmpdir: Option<&OsStr>) -> PathBuf {
    PathBuf::from(tmpdir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| OsStr::new("/tmp")))
}

/// Where a runtime with the environment of that process makes its socket, if that can be read.
fn directory_of(process_id: u32) -> Option<PathBuf> {
    let tmpdir = procfs::variable(process_id, "TMPDIR")?;
    Some(or_tmp(tmpdir.as_deref().map(Path::as_os_str)))
}

/// The sockets in a directory, of processes alive or not. What vanishes while we look is not there.
fn sockets(directory: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name: SocketName = entry.file_name().to_str()?.parse().ok()?;
            let modified = entry.metadata().ok()?.modified().ok()?;
            Some(Found { process_id: name.process_id, path: entry.path(), modified })
        })
        .collect()
}
