//! A cache of rundowns: the names of processes, in files that only the user can read and write.
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use ipc_proto::Guid;

use crate::run::temporary_file;

/// The rundown of one process in the cache.
#[derive(Debug)]
pub(crate) struct CachedRundown {
    folder: PathBuf,
    name: String,
}

/// The maximum length of a trace in the cache, in bytes. The rundown of a program with 30,000 methods has about 10 MB.
pub(crate) const MAX_LEN: usize = 64 << 20;
/// The maximum number of files in the cache. The oldest ones are removed.
const MAX_FILES: usize = 32;
/// Files that were written before this time are removed.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const PREFIX: &str = "rundown-";
const SUFFIX: &str = ".nettrace";
/// A file with this prefix has not been written completely.
const TEMPORARY: &str = ".rundown-";

impl CachedRundown {
    /// Returns the place of a process in the cache folder.
    ///
    /// The cookie is random and new at each start of a runtime, so that no other process has the same place.
    pub(crate) fn new(folder: PathBuf, process_id: u64, runtime_cookie: Guid) -> Self {
        Self { folder, name: format!("{PREFIX}{process_id}-{runtime_cookie}{SUFFIX}") }
    }

    /// Opens the trace, if there is one that no other user can have written.
    pub(crate) fn open(&self) -> Option<File> {
        if !is_private_folder(&self.folder) {
            return None;
        }
        let file = open_private(&self.folder.join(&self.name)).ok()?;
        let metadata = file.metadata().ok()?;
        let fits = usize::try_from(metadata.len()).is_ok_and(|len| len <= MAX_LEN);
        (fits && metadata.is_file() && is_private_file(&metadata)).then_some(file)
    }

    /// Replaces the trace, and removes old files.
    pub(crate) fn replace(&self, trace: &[u8]) -> io::Result<()> {
        create_private_folder(&self.folder)?;
        if !is_private_folder(&self.folder) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let create = || tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder);
        let mut file = temporary_file::create(create)?;
        file.write_all(trace)?;
        file.persist(self.folder.join(&self.name)).map_err(|e| e.error)?;
        self.remove_old()
    }

    /// Removes the files of processes that have ended, those that are too old, and the oldest ones if there are too many.
    fn remove_old(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != self.name) else { continue };
            let is_temporary = name.starts_with(TEMPORARY);
            let process_id = process_id(name);
            if process_id.is_none() && !is_temporary {
                continue;
            }
            let written = entry.metadata()?.modified()?;
            let is_old = SystemTime::now().duration_since(written).is_ok_and(|age| age > MAX_AGE);
            if is_old || process_id.is_some_and(has_ended) {
                let _ = fs::remove_file(entry.path());
            } else {
                files.push((written, entry.path()));
            }
        }
        files.sort_by(|a, b| b.cmp(a));
        for (_, path) in files.iter().skip(MAX_FILES.saturating_sub(1)) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// Returns the process ID in the name of a file of the cache.
fn process_id(name: &str) -> Option<u32> {
    let (process_id, _) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    process_id.parse().ok()
}

/// Returns the cache folder of the tool, which may not exist. A user without a home has none.
pub(crate) fn folder() -> Option<PathBuf> {
    // Paths must be absolute by the XDG specification.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = if cfg!(windows) {
        folder("LOCALAPPDATA")?
    } else {
        folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?
    };
    Some(caches.join("dotnet-ipc"))
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use rustix::fs::OFlags;
    use rustix::process::{Pid, geteuid, test_kill_process};

    /// Opens a file, but does not follow a symbolic link and does not wait for the writer of a pipe.
    pub(super) fn open_private(path: &Path) -> io::Result<File> {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    }

    /// Returns whether only this user can have written the file. A file with two names is refused: it could be another
    /// file of the user under a second name.
    pub(super) fn is_private_file(metadata: &Metadata) -> bool {
        is_own(metadata) && metadata.mode() & 0o077 == 0 && metadata.nlink() == 1
    }

    /// Returns whether only this user can create files in the folder.
    pub(super) fn is_private_folder(folder: &Path) -> bool {
        let metadata = folder.symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata) && metadata.mode() & 0o022 == 0)
    }

    /// Creates the folder if the innermost folder above it that exists belongs to this user. Root does not create
    /// folders in the home of another user, who could not use them.
    pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
        let existing = folder.ancestors().find_map(|ancestor| Some((ancestor, ancestor.metadata().ok()?)));
        match existing {
            Some((existing, _)) if existing == folder => Ok(()),
            Some((_, metadata)) if is_own(&metadata) => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)
            }
            _ => Err(ErrorKind::PermissionDenied.into()),
        }
    }

    fn is_own(metadata: &Metadata) -> bool {
        metadata.uid() == geteuid().as_raw()
    }

    pub(super) fn has_ended(process_id: u32) -> bool {
        let process = i32::try_from(process_id).ok().and_then(Pid::from_raw);
        process.is_some_and(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
    }
}

#[cfg(windows)]
mod system {
    use std::fs::{DirBuilder, File, Metadata};
    use std::io;
    use std::path::Path;

    pub(super) fn open_private(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    /// Always true: files in the folder for the user's data are accessible to the user only.
    pub(super) const fn is_private_file(_metadata: &Metadata) -> bool {
        true
    }

    pub(super) fn is_private_folder(folder: &Path) -> bool {
        folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    }

    pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).create(folder)
    }

    /// Always false, so that files are removed only by age and number.
    pub(super) const fn has_ended(_process_id: u32) -> bool {
        false
    }
}

use system::{create_private_folder, has_ended, is_private_file, is_private_folder, open_private};
