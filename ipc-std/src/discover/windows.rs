//! Finds runtimes by the pipes that they listen at.
//!
//! A runtime makes its pipe as `\\.\pipe\dotnet-diagnostic-PID`: there is one place for all of them.
use std::path::{Path, PathBuf};

use ipc_proto::PipeName;

use crate::{Error, sys};

/// A pipe that a runtime made; it may be gone by now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The process.
    pub process_id: u32,
    /// Its pipe.
    pub path: PathBuf,
}

/// Every pipe with a runtime's name, by process id.
///
/// Wine has no list of pipes: there, none is found, and [`find`] finds them all the same.
#[must_use]
pub fn list() -> Vec<Found> {
    let pipes = std::fs::read_dir(directory()).into_iter().flatten().flatten();
    let named = pipes.filter_map(|pipe| pipe.file_name().to_str()?.parse().ok());
    let mut found: Vec<_> = named.map(|PipeName { process_id }| found(process_id)).collect();
    found.sort_by_key(|found| found.process_id);
    found.dedup();
    found
}

/// The pipe of a process. Nothing is listed: it is there under its name, or not.
///
/// # Errors
/// [`Error::NoProcess`] or [`Error::NoSocket`].
pub fn find(process_id: u32) -> Result<Found, Error> {
    let found = found(process_id);
    if sys::is_socket(&found.path) {
        return Ok(found);
    }
    if !sys::process_exists(process_id) {
        return Err(Error::NoProcess { process_id });
    }
    Err(Error::NoSocket { process_id, looked_in: vec![directory()] })
}

fn found(process_id: u32) -> Found {
    Found { process_id, path: sys::endpoint(&directory(), process_id) }
}

/// Where runtimes make their pipes: `\\.\pipe\`.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(sys::PREFIX).to_owned()
}
