//! The directories in which runtimes make their sockets.
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{AtFlags, Dir, FileType, Stat, StatVfsMountFlags, fstat, fstatvfs, statat};
use rustix::io::Errno;

use crate::endpoint_name::EndpointName;
use crate::error::{Denied, Obstacle, Reason};
use crate::sys;

/// Returns the directory in which runtimes with the environment of this process make their sockets: `$TMPDIR`, or
/// `/tmp`.
#[must_use]
pub fn directory() -> PathBuf {
    or_tmp(std::env::var_os("TMPDIR").as_deref())
}

pub(crate) fn or_tmp(tmpdir: Option<&OsStr>) -> PathBuf {
    PathBuf::from(tmpdir.filter(|directory| !directory.is_empty()).unwrap_or_else(|| OsStr::new("/tmp")))
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Reason {
    Reason::Unreadable { path: path.to_owned(), denied: Denied::new(path, error) }
}

/// An open directory, with the path by which it was found. The directory stays the same even if the path leads to
/// another directory later.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Whether the path is valid only while the process exists through which it was found.
    pub(crate) foreign: bool,
    pub(crate) opened: Arc<OpenDirectory>,
}

/// A directory without its path: several paths may lead to the same directory.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    descriptor: Arc<OwnedFd>,
    pub(crate) identity: FileIdentity,
    entries: OnceLock<Result<Vec<DirectoryEntry>, Errno>>,
}

/// A file with the name of a diagnostic socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: EndpointName,
    pub(crate) modified: FileTime,
    pub(crate) is_socket: bool,
    pub(crate) owner: u32,
}

/// Device and inode of a file.
pub(crate) type FileIdentity = (u64, u64);
/// Seconds and nanoseconds since 1970.
pub(crate) type FileTime = (i64, i64);

impl Directory {
    /// Opens a directory by its path as this process sees it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::new(sys::open_directory(path)?, path, false)
    }

    /// Returns why a process of a user cannot make files here, as far as the system shows it: the groups of the user
    /// are not considered.
    #[allow(clippy::useless_conversion, reason = "a mode has 16 bits on macOS")]
    pub(crate) fn obstacle(&self, user_id: Option<u32>) -> Option<Obstacle> {
        let descriptor = &self.opened.descriptor;
        let (system, directory) = (fstatvfs(descriptor).ok()?, fstat(descriptor).ok()?);
        let (owner, mode) = (directory.st_uid, u32::from(directory.st_mode) & 0o7777);
        let excluded = |user: &u32| *user != 0 && mode & if *user == owner { 0o200 } else { 0o022 } == 0;
        if system.f_flag.contains(StatVfsMountFlags::RDONLY) {
            Some(Obstacle::ReadOnly)
        } else if let Some(user_id) = user_id.filter(excluded) {
            Some(Obstacle::Mode { user_id, owner, mode })
        } else if system.f_files > 0 && system.f_ffree == 0 {
            Some(Obstacle::NoInodes)
        } else {
            (system.f_blocks > 0 && system.f_bavail == 0).then_some(Obstacle::Full)
        }
    }

    pub(crate) fn new(descriptor: OwnedFd, path: &Path, foreign: bool) -> io::Result<Self> {
        let identity = identity(&fstat(&descriptor)?);
        let opened = OpenDirectory { descriptor: Arc::new(descriptor), identity, entries: OnceLock::new() };
        Ok(Self { path: path.to_owned(), foreign, opened: Arc::new(opened) })
    }

    /// Returns the files with names of diagnostic sockets; lists the directory at the first call. Fails if the
    /// directory cannot be listed.
    pub(crate) fn entries(&self) -> Result<&[DirectoryEntry], Errno> {
        let entries = self.opened.entries.get_or_init(|| {
            let mut entries = Vec::new();
            for entry in Dir::read_from(self.descriptor())? {
                let name = EndpointName::parse(OsStr::from_bytes(entry?.file_name().to_bytes()));
                entries.extend(name.and_then(|name| self.entry(name)));
            }
            Ok(entries)
        });
        entries.as_deref().map_err(|e| *e)
    }

    /// Returns the entries, if the directory was listed before.
    pub(crate) fn known_entries(&self) -> &[DirectoryEntry] {
        self.opened.entries.get().and_then(|entries| entries.as_deref().ok()).unwrap_or_default()
    }

    /// Returns the file of this name, if it exists.
    pub(crate) fn entry(&self, name: EndpointName) -> Option<DirectoryEntry> {
        let stat = self.stat(&name.to_os()).ok()?;
        let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        Some(DirectoryEntry { name, modified: modified(&stat), is_socket, owner: stat.st_uid })
    }

    pub(crate) fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        statat(self.descriptor(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.opened.descriptor
    }

    pub(crate) fn pinned(&self, name: EndpointName) -> sys::Pinned {
        sys::Pinned { directory: Arc::clone(&self.opened.descriptor), name: name.to_os() }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.opened.identity == other.opened.identity
    }
}

/// Returns the identity of a file, which no other file has while this file exists.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(crate) fn identity(stat: &Stat) -> FileIdentity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Returns when a file was changed; for a socket, when it was made. This time distinguishes a new file from a removed
/// file with the same identity.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(crate) fn modified(stat: &Stat) -> FileTime {
    (stat.st_mtime as i64, stat.st_mtime_nsec as i64)
}
