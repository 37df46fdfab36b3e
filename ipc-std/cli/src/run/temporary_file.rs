//! The temporary file of an output that is not complete, which does not outlive the tool.
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use tempfile::NamedTempFile;

use super::threads::lock;

/// The path of the last temporary file. It may be gone.
static PATH: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Creates a temporary file, which [`remove`] removes. The lock makes `remove` wait until the path is stored.
pub(crate) fn create(create: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    let mut path = lock(&PATH);
    let file = create()?;
    *path = Some(file.path().to_owned());
    Ok(file)
}

/// Removes the temporary file before a signal ends the tool.
pub(crate) fn remove() {
    // An error is ignored: the file may already have its final name.
    let _ = lock(&PATH).take().map(fs::remove_file);
}

/// As [`remove`], without waiting for the lock, which the thread that ends the tool can hold itself.
pub(crate) fn try_remove() {
    if let Ok(mut path) = PATH.try_lock() {
        let _ = path.take().map(fs::remove_file);
    }
}
