//! Paths of sockets, which have to be short, and directories that stay what they are while one looks.
use std::ffi::OsString;
use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsFd;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::net::SocketAddrUnix;

/// The longest path of a socket, in bytes: what a `sockaddr_un` holds, without the zero at its end.
pub(crate) const LONGEST_PATH: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// Where Linux has paths to descriptors.
const DESCRIPTORS: &str = "/proc/self/fd";

/// To open a directory only for what is in it.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The same, where one may look for names but not list them.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PLACE: OFlags = DIRECTORY;

/// The address of a socket. One whose path is too long is reached through its directory, where the system has a short
/// path to a descriptor; it has to stay open until the socket is connected.
pub(crate) fn address(path: &Path) -> io::Result<(SocketAddrUnix, Option<Pinned>)> {
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

/// Whether a path, or a name in it, is too long for the system.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error())
}

/// A name in a directory that cannot be made another one, whatever becomes of the path it was found at.
#[derive(Debug, Clone)]
pub(crate) struct Pinned {
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) name: OsString,
}

impl Pinned {
    /// A path to it, for this process and as long as this is kept. Linux only.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.directory.as_raw_fd().to_string()).join(&self.name)
    }
}

/// Opens a directory, to be listed or, where that is not allowed, only to look for names.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    open_one_of(|flags| Ok(rustix::fs::open(path, flags, Mode::empty())?))
}

/// What is done about links on the way.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    /// It is the error `LOOP` if there is one, or if that cannot be told.
    None,
}

/// Opens a directory as a process sees it whose root, or working directory, is `anchor`: no link and no `..` leads out
/// of it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_directory_in(anchor: impl AsFd, path: &Path, links: Links) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let no_links = if links == Links::None { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    open_one_of(|flags| {
        match rustix::fs::openat2(&anchor, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | no_links) {
            // Before Linux 5.6, and where a filter of system calls does not know it.
            Err(Errno::NOSYS | Errno::PERM) if links == Links::None => Err(Errno::LOOP.into()),
            Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(&anchor, path, flags, Mode::empty())?),
            opened => Ok(opened?),
        }
    })
}

/// Whether nobody but this kernel may use what is in a directory, by the number of its file system's kind.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_local(directory: impl AsFd) -> io::Result<bool> {
    /// NFS, SMB, SMB2, CIFS, 9P, FUSE (which virtiofs has too), AFS, Ceph, Coda, and VirtualBox's shared folders.
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
    // It is a signed number in places, and has 32 bits.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "its type is not the same everywhere"
    )]
    let kind = kind as u32;
    Ok(!SHARED.contains(&kind))
}

/// Opens the root of the process, or its working directory, by their names below its folder in `/proc`.
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
