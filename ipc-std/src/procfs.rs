//! What `/proc` tells of a process; nothing where there is none, or where we may not look.
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "other systems tell less in it, or have none")
)]
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use ipc_proto::plan::Flavour;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::sys;
use crate::sys::ProcessEntry;

/// A process's folder in `/proc`. It stays this process's: once that has ended nothing can be read any more, even if
/// another process has its id by then.
#[derive(Debug)]
pub(crate) struct Process(OwnedFd);

impl Process {
    pub(crate) fn open(process_id: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(format!("/proc/{process_id}"), flags, Mode::empty())?))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        /// What most files here have room in.
        const ROOM: usize = 4096;
        let file = rustix::fs::openat(&self.0, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::with_capacity(ROOM);
        loop {
            // Doubles what there is, and no less than a page, which is what the kernel gives at a time.
            bytes.reserve(ROOM);
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => return Ok(bytes),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// When it started, and whether it has ended.
    pub(crate) fn entry(&self) -> io::Result<ProcessEntry> {
        ProcessEntry::from_stat(&self.read("stat")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn status(&self) -> io::Result<Status> {
        Status::read(&self.read("status")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn environment(&self) -> io::Result<Environ> {
        self.read("environ").map(Environ)
    }

    /// Files and names that are mapped into its memory, as `maps` has them.
    pub(crate) fn maps(&self) -> io::Result<Vec<u8>> {
        self.read("maps")
    }

    /// Where file systems are mounted, as the process sees it.
    pub(crate) fn mounts(&self) -> io::Result<Mounts> {
        self.read("mountinfo").map(Mounts)
    }

    /// Opens a directory by the path that the process has for it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn open_directory(&self, path: &Path, links: sys::Links) -> io::Result<OwnedFd> {
        let (anchor, below) = match path.strip_prefix("/") {
            Ok(below) => ("root", below),
            Err(_) => ("cwd", path),
        };
        sys::open_directory_in(sys::open_place(&self.0, anchor)?, below, links)
    }
}

/// Where file systems are mounted, as `mountinfo` has it: two processes with the same have the same mounts and the same
/// root, as every mount has a number of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mounts(Vec<u8>);

impl Mounts {
    /// Our own. Without a `/proc` there is nothing in it.
    pub(crate) fn own() -> Self {
        Self(std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Whether nobody but the kernel answers for a path, unless a link leads elsewhere: all that is mounted on the way is of
    /// a kind that is known to be local. Systems without a table are taken to be local.
    pub(crate) fn is_local(&self, path: &Path) -> bool {
        /// Of all others, and of those not known yet, somebody else answers: a server, or a program.
        const LOCAL: [&[u8]; 17] = [
            b"bcachefs",
            b"btrfs",
            b"devtmpfs",
            b"erofs",
            b"ext2",
            b"ext3",
            b"ext4",
            b"f2fs",
            b"overlay",
            b"ramfs",
            b"rootfs",
            b"squashfs",
            b"tmpfs",
            b"ubifs",
            b"vfat",
            b"xfs",
            b"zfs",
        ];
        let plain = |component| matches!(component, Component::RootDir | Component::Normal(_));
        if !path.components().all(plain) {
            return false;
        }
        let mut is_local = true;
        for line in self.0.split(|byte| *byte == b'\n') {
            let fields: Vec<_> = line.split(|byte| *byte == b' ').collect();
            let Some(point) = fields.get(4) else { continue };
            let kind = fields.iter().skip_while(|field| ***field != *b"-").nth(1);
            let is_on_the_way = path.starts_with(OsStr::from_bytes(&unescaped(point)));
            is_local &= !is_on_the_way || kind.is_some_and(|kind| LOCAL.contains(kind));
        }
        is_local
    }
}

/// The kernel writes space, tab, line feed and backslash as `\040` and so on.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut rest = field;
    let mut plain = Vec::with_capacity(field.len());
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| *first == b'\\');
        let value = octal.and_then(|octal| u8::from_str_radix(core::str::from_utf8(octal).ok()?, 8).ok());
        plain.push(value.unwrap_or(*first));
        rest = if value.is_some() { behind.get(3..).unwrap_or_default() } else { behind };
    }
    plain
}

/// Of `/proc/PID/status`, what matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// Whose it is, as it counts for permissions.
    pub(crate) user_id: u32,
    /// The process that it is a thread of: itself, if it is one.
    pub(crate) leader: Option<u32>,
    /// Its id in its own PID namespace; `None` before Linux 4.1, which does not tell.
    pub(crate) local_process_id: Option<u32>,
}

impl Status {
    fn read(status: &[u8]) -> Option<Self> {
        let line = |name: &str| {
            let line =
                status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()));
            core::str::from_utf8(line?).ok()
        };
        let user_id = line("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
        let ids = line("NSpid:").and_then(|ids| ids.split_ascii_whitespace().next_back());
        let leader = line("Tgid:").and_then(|id| id.trim().parse().ok());
        Some(Self { user_id, leader, local_process_id: ids.and_then(|id| id.parse().ok()) })
    }
}

/// The environment that a process was started with.
#[derive(Debug)]
pub(crate) struct Environ(Vec<u8>);

impl Environ {
    /// The value of a variable, the first if there are several.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self
            .0
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(OsStr::from_bytes)
    }
}

/// What kind of runtime is loaded. A program in a single file, of whatever kind, does not show.
pub(crate) fn flavour(process_id: u32) -> Option<Flavour> {
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

/// Whether the runtime may wait at its start: `Some(false)` if nothing in its environment asks it to.
pub(crate) fn suspended(process_id: u32) -> Option<bool> {
    let environment = Process::open(process_id).ok()?.environment().ok()?;
    for prefix in ["DOTNET_", "COMPlus_"] {
        for name in ["DiagnosticPorts", "DefaultDiagnosticPortSuspend"] {
            if environment.variable(&format!("{prefix}{name}")).is_some() {
                return None;
            }
        }
    }
    Some(false)
}

/// Whether the process finds a file at this path; `None` for a path that is not absolute, or that a link on the way could
/// lead somewhere else: it would be followed from our root, not from the target's.
pub(crate) fn has_file(process_id: u32, path: &str) -> Option<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_process_in_a_container() {
        let status =
            b"Name:\tWorkload\nTgid:\t4242\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4242\t17\t1\nThreads:\t9\n";
        assert_eq!(
            Status::read(status),
            Some(Status { user_id: 1001, leader: Some(4242), local_process_id: Some(1) })
        );
        assert_eq!(
            Status::read(b"Uid:\t5\t6\n"),
            Some(Status { user_id: 6, leader: None, local_process_id: None })
        );
        assert_eq!(Status::read(b"Name:\tUid:\n"), None);
    }

    #[test]
    fn the_first_of_two_variables_counts() {
        let environment = Environ(b"TMPDIRS=/no\0TMPDIR=/a=b\0TMPDIR=/c\0EMPTY=\0odd".to_vec());
        assert_eq!(environment.variable("TMPDIR"), Some(OsStr::new("/a=b")));
        assert_eq!(environment.variable("EMPTY"), Some(OsStr::new("")));
        assert_eq!(environment.variable("odd"), None);
    }
}
