//! Properties of a process in `/proc`. On systems other than Linux, `/proc` has fewer files or does not exist.
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "other systems have less in it, or no /proc")
)]
mod text;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ipc_proto::plan::Flavour;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::sys::{self, ProcessEntry};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use text::runtime_signs;
pub use text::{Environ, Mounts, Status};

/// The open directory of a process in `/proc`. After the end of the process nothing can be read from it, even if
/// another process has the same id then.
#[derive(Debug)]
pub(crate) struct Process(OwnedFd);

impl Process {
    pub(crate) fn open(process_id: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(format!("/proc/{process_id}"), flags, Mode::empty())?))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        /// The size of the first read, which is enough for most files.
        const ROOM: usize = 4096;
        let file = rustix::fs::openat(&self.0, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::with_capacity(ROOM);
        loop {
            // The kernel returns at most one page for each read, so a longer file takes several reads. The capacity
            // doubles.
            bytes.reserve(ROOM);
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => return Ok(bytes),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Returns the start time, and whether the process has ended.
    pub(crate) fn entry(&self) -> io::Result<ProcessEntry> {
        ProcessEntry::from_stat(&self.read("stat")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn status(&self) -> io::Result<Status> {
        Status::read(&self.read("status")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn environment(&self) -> io::Result<Environ> {
        self.read("environ").map(Environ::new)
    }

    /// Returns the memory map of the process, with the names of mapped files.
    pub(crate) fn maps(&self) -> io::Result<Vec<u8>> {
        self.read("maps")
    }

    /// Returns the mounts that the process sees.
    pub(crate) fn mounts(&self) -> io::Result<Mounts> {
        self.read("mountinfo").map(Mounts::new)
    }

    /// Opens a directory by its path as the process sees it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn open_directory(&self, path: &Path, links: sys::Links) -> io::Result<OwnedFd> {
        let (anchor, below) = match path.strip_prefix("/") {
            Ok(below) => ("root", below),
            Err(_) => ("cwd", path),
        };
        sys::open_directory_in(sys::open_place(&self.0, anchor)?, below, links)
    }
}

/// Returns the entry of a process that sees its own id and start time as this process does: both have the same PID
/// namespace and the same clock, and `/proc` shows that namespace.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn comparable_entry(process_id: u32) -> Option<ProcessEntry> {
    let (process, own_id) = (Process::open(process_id).ok()?, std::process::id().to_string());
    let link = |path: String| std::fs::read_link(path).ok();
    let clocks = link("/proc/self/ns/time".to_owned()).zip(link(format!("/proc/{process_id}/ns/time")));
    let is_comparable = link("/proc/self".to_owned()) == Some(own_id.into())
        && process.status().ok()?.local_process_id.is_none_or(|local| local == process_id)
        && clocks.is_none_or(|(own, other)| own == other);
    process.entry().ok().filter(|_| is_comparable)
}
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn comparable_entry(process_id: u32) -> Option<ProcessEntry> {
    sys::process_entry(process_id)
}

/// Returns the kind of the loaded runtime. `None` for a single-file program, whose memory map does not show the kind,
/// and without `/proc`.
#[must_use]
pub fn flavour(process_id: u32) -> Option<Flavour> {
    let maps = Process::open(process_id).ok()?.maps().ok()?;
    let has = |name: &[u8]| maps.windows(name.len()).any(|window| window == name);
    if has(b"/libmonosgen") {
        Some(Flavour::Mono)
    } else if has(b"/libcoreclr.so") {
        Some(Flavour::CoreClr)
    } else {
        None
    }
}

/// Returns whether the runtime may be suspended at startup: `Some(false)` if its environment suspends no kind of
/// runtime. `None` if it may, or is not visible.
#[must_use]
pub fn may_be_suspended(process_id: u32) -> Option<bool> {
    let environment = Process::open(process_id).ok()?.environment().ok()?;
    environment.never_suspends().then_some(false)
}

/// Returns whether the process finds a file at this path. `None` for a relative path, and for a path with a link: the
/// link would be resolved with the root of this process.
#[must_use]
pub fn has_file(process_id: u32, path: &str) -> Option<bool> {
    let below = Path::new(path).strip_prefix("/").ok()?;
    let root = PathBuf::from(format!("/proc/{process_id}/root"));
    root.read_link().ok()?;
    let mut path = root;
    for component in below.components() {
        path.push(component);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return None,
            Ok(_) => {}
            Err(_) => return Some(false),
        }
    }
    Some(path.is_file())
}
