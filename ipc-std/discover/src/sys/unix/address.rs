//! Paths of sockets, which have a limited length; and open directories, which stay the same when a path changes.
use std::ffi::OsString;
use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsFd;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::net::SocketAddrUnix;

/// The longest path of a socket, in bytes: the size of `sun_path` without the terminating zero.
pub const LONGEST_PATH: usize = if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// The directory in which Linux has a path for each descriptor.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The flags for opening a directory to list it.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The flags for opening a directory in which the caller can open names without permission to list them.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PLACE: OFlags = DIRECTORY;

/// Returns the address of a socket. If the path is too long, the address names the socket below an open directory:
/// Linux has a short path for each descriptor. The directory must stay open until the socket is connected.
pub(super) fn address(path: &Path) -> io::Result<(SocketAddrUnix, Option<Pinned>)> {
    let too_long = match SocketAddrUnix::new(path) {
        Ok(address) => return Ok((address, None)),
        Err(e) => e,
    };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(too_long.into());
    };
    if !cfg!(any(target_os = "linux", target_os = "android")) || !Path::new(DESCRIPTORS).exists() {
        return Err(too_long.into());
    }
    let directory = Arc::new(rustix::fs::open(directory, PLACE, Mode::empty())?);
    let pinned = Pinned { directory, name: name.into() };
    Ok((SocketAddrUnix::new(pinned.path())?, Some(pinned)))
}

/// Returns whether the error means that a path, or a name in it, is too long.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error())
}

/// A file below an open directory. The directory stays the same if it is renamed or another is mounted over it.
#[derive(Debug, Clone)]
pub struct Pinned {
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) name: OsString,
}

impl Pinned {
    /// Returns a path to the file that is valid in this process while `self` exists. Linux only.
    pub fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.directory.as_raw_fd().to_string()).join(&self.name)
    }
}

/// Opens a directory for listing. Without the permission to list it, opens it only for opening names in it.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    open_one_of(|flags| Ok(rustix::fs::open(path, flags, Mode::empty())?))
}

/// The treatment of symbolic links in a path.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    /// Links are refused with the error `LOOP`. A system that cannot check for links refuses all paths in this way.
    None,
}

/// Opens a directory as seen by a process whose root, or working directory, is `anchor`: no link and no `..` leads out
/// of `anchor`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_directory_in(anchor: impl AsFd, path: &Path, links: Links) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let no_links = if links == Links::None { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    open_one_of(|flags| {
        match rustix::fs::openat2(&anchor, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | no_links) {
            // Linux before 5.6 and filters of system calls do not know `openat2`. Then links cannot be checked.
            Err(Errno::NOSYS | Errno::PERM) if links == Links::None => Err(Errno::LOOP.into()),
            Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(&anchor, path, flags, Mode::empty())?),
            opened => Ok(opened?),
        }
    })
}

/// Returns whether only this kernel uses the files in a directory, by the type number of its file system.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_local(directory: impl AsFd) -> io::Result<bool> {
    /// The type numbers of NFS, SMB, SMB2, CIFS, 9P, FUSE (also virtiofs), AFS, Ceph, Coda and the shared folders of
    /// VirtualBox.
    const SHARED: [u32; 10] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x5346_414f,
        0x00c3_6400,
        0x7375_7245,
        0x786f_4256,
    ];
    let kind = rustix::fs::fstatfs(directory)?.f_type;
    // The number has 32 bits; its type differs between systems.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "its type differs between systems"
    )]
    let kind = kind as u32;
    Ok(!SHARED.contains(&kind))
}

/// Opens the root (`root`) or the working directory (`cwd`) of a process; `process` is its directory in `/proc`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_place(process: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(process, name, PLACE, Mode::empty())?)
}

fn open_one_of(open: impl Fn(OFlags) -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    match open(DIRECTORY) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(PLACE),
        opened => opened,
    }
}
