use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::SocketAddrUnix;

use super::socket::unix_socket;
use super::{Socket, lock_directory};
use crate::client::Deadline;

/// A listening socket, which only its owner may open from its first moment on. Its file is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the socket's file: another that lies there later is not ours.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at `path`, if nothing is there.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self { listener: listen_unix(path)?, path: path.to_owned(), file: file_at(path) })
    }

    /// Listens at `path`, and replaces a socket there that nobody listens at.
    pub(crate) fn bind_over_dead(path: &Path) -> io::Result<Self> {
        /// Who has the lock has done in no time.
        const LOCK: Duration = Duration::from_secs(1);
        // Two that replace the same one do it one after the other, so that the second finds the first. It goes without in
        // a directory that may not be read.
        let directory = path.parent().unwrap_or(path);
        let _lock = match lock_directory(directory, Deadline::after(LOCK).end) {
            Err(e) if e.kind() == ErrorKind::TimedOut => return Err(ErrorKind::AddrInUse.into()),
            lock => lock.ok(),
        };
        match Self::bind(path) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            bound => return bound,
        }
        let found = file_at(path);
        if found.is_some() && !is_socket(path) {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file that is no socket"));
        }
        // Who does not answer at once is there all the same, and very busy.
        match Socket::connect(path, Deadline::after(Duration::from_millis(100)).end) {
            Err(e) if e.kind() == ErrorKind::ConnectionRefused && file_at(path) == found => {
                std::fs::remove_file(path)?;
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e),
            _ => return Err(ErrorKind::AddrInUse.into()),
        }
        Self::bind(path)
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection that waits; an error of kind `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let (stream, _) = self.listener.accept()?;
        Socket::new(stream)
    }

    /// The same, but not one of the last descriptors that there are: an error of kind `QuotaExceeded`.
    pub(crate) fn accept_within_limits(&self) -> io::Result<Socket> {
        let (stream, _) = self.listener.accept()?;
        if is_among_the_last(&stream) { Err(ErrorKind::QuotaExceeded.into()) } else { Socket::new(stream) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == file_at(&self.path) {
            // There is nobody left to tell.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A listening socket at `path`; accepting does not block.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    /// How many connections may wait to be accepted: what .NET asks for.
    const BACKLOG: i32 = 255;
    let address = SocketAddrUnix::new(path)?;
    let fd = unix_socket()?;
    // On Linux the mode of the unbound socket is what the file gets. Elsewhere the file is changed once it is there.
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    #[cfg(target_os = "linux")]
    rustix::fs::fchmod(&fd, mode)?;
    rustix::net::bind(&fd, &address)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::chmod(path, mode)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(fd.into())
}

/// Whether a socket lies there; whether anybody listens is another matter.
pub(crate) fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// What tells the file at `path` from any other.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Whether there are hardly any descriptors left, if this is the newest.
fn is_among_the_last(socket: &UnixStream) -> bool {
    /// What the commands of a runtime or two take.
    const RESERVE: u64 = 16;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::try_from(socket.as_raw_fd()).unwrap_or(0);
    limit.is_some_and(|limit| number >= limit.saturating_sub(RESERVE.min(limit / 4)))
}
