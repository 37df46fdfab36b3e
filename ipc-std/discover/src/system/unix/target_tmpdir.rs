//! `TargetTmpdir`: the temporary directory of another process.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::context::{SearchContext, SearchLocation};
use super::scanned_directory::ScannedDirectory;
use crate::directory::{Directory, identity, unreadable};
use crate::error::Reason;
use crate::procfs::Process;
use crate::socket_file::ProcessKey;
use crate::sys::Links;

/// The temporary directory of another process, as that process sees it.
pub(super) struct TargetTmpdir {
    process: Arc<Process>,
    directory: PathBuf,
    /// A path to the directory for this process, valid while the other process exists.
    through: PathBuf,
    /// Whether both processes have the same mounts.
    has_same_mounts: bool,
    key: ProcessKey,
}

impl TargetTmpdir {
    pub(super) fn new(
        process_id: u32,
        process: &Arc<Process>,
        directory: PathBuf,
        key: ProcessKey,
        context: &SearchContext,
    ) -> Self {
        let anchor = if directory.is_absolute() { "root" } else { "cwd" };
        let below = directory.strip_prefix("/").unwrap_or(&directory);
        let through = Path::new("/proc").join(process_id.to_string()).join(anchor).join(below);
        let has_same_mounts = process.mounts().is_ok_and(|mounts| mounts == *context.mounts);
        Self { process: Arc::clone(process), directory, through, has_same_mounts, key }
    }

    /// Starts to scan the directory.
    pub(super) fn location(self, context: &SearchContext) -> SearchLocation {
        if self.has_same_mounts && context.mounts.is_local(&self.directory) {
            match self.open(Links::None) {
                Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {}
                opened => return SearchLocation::done(self.path(), self.scan(opened, context)),
            }
        }
        let context = context.clone();
        SearchLocation::on_worker(self.path(), move || self.scan(self.open(Links::Followed), &context))
    }

    /// Returns the path to the directory that is valid for both processes, if there is one; otherwise `through`.
    fn path(&self) -> PathBuf {
        let is_shared = self.has_same_mounts && self.directory.is_absolute();
        if is_shared { self.directory.clone() } else { self.through.clone() }
    }

    fn open(&self, links: Links) -> io::Result<Directory> {
        let descriptor = self.process.open_directory(&self.directory, links)?;
        let opened = Directory::new(descriptor, &self.path(), self.path() == self.through)?;
        if !opened.foreign || !self.directory.is_absolute() {
            return Ok(opened);
        }
        // If the path that the process uses leads to the same directory for this process, it is the path to report: the
        // user recognises it.
        match rustix::fs::stat(&self.directory) {
            Ok(own) if identity(&own) == opened.opened.identity => {
                Ok(Directory { path: self.directory.clone(), foreign: false, ..opened })
            }
            _ => Ok(opened),
        }
    }

    fn scan(
        &self,
        opened: io::Result<Directory>,
        context: &SearchContext,
    ) -> Result<ScannedDirectory, Reason> {
        match opened {
            Ok(opened) => Ok(ScannedDirectory::new(context.share(opened), self.key)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Reason::NoTmpdir { tmpdir: self.directory.clone() })
            }
            Err(e) => Err(unreadable(&self.through, &e)),
        }
    }
}
