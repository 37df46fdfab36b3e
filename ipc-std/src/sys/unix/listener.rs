//! `Listener`: a listening socket with the permissions of a runtime's socket.
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_discover::Deadline;
use ipc_discover::sys::{HANG_UP_TIMEOUT, is_dead, is_socket, remaining, unix_socket};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketAddrUnix};

use super::socket::Socket;

/// A listening socket, to which only its owner can connect from the first moment. Dropping the listener removes the
/// file of the socket.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket's file, by which a later file at the path is recognised as another file.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at `path`, if there is no file at this path yet.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self { listener: listen_unix(path)?, path: path.to_owned(), file: file_at(path) })
    }

    /// Listens at `path`, and replaces a dead socket at this path.
    pub(crate) fn bind_over_dead(path: &Path) -> io::Result<Self> {
        /// The time to wait for the lock. The owner of the lock needs much less.
        const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
        // Two processes that replace the same socket take turns, so that the second finds the socket of the first. The
        // lock can be missing: any process that can read the directory can hold it, and a process without that
        // permission cannot get it. Then the comparison of the file before and after must be enough.
        let directory = path.parent().unwrap_or(path);
        let _lock = lock_directory(directory, Deadline::after(LOCK_TIMEOUT).end);
        match Self::bind(path) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            bound => return bound,
        }
        let found = instance_at(path);
        if found.is_some() && !is_socket(path) {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file that is not a socket"));
        }
        match is_dead(path, Deadline::after(HANG_UP_TIMEOUT).end) {
            Ok(true) if instance_at(path) == found => std::fs::remove_file(path)?,
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e),
            _ => return Err(ErrorKind::AddrInUse.into()),
        }
        Self::bind(path)
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts the next connection; fails with `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let (stream, _) = self.listener.accept()?;
        Socket::accepted(stream)
    }

    /// Returns whether a connection that was just accepted has one of the last descriptors. The system gives out the
    /// lowest free number, so a high number means that nearly all are in use.
    pub(crate) fn is_nearly_exhausted_by(socket: &Socket) -> bool {
        /// The number of descriptors that the commands of one or two runtimes need.
        const RESERVE: u64 = 16;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let number = u64::try_from(socket.as_fd().as_raw_fd()).unwrap_or(0);
        limit.is_some_and(|limit| number >= limit.saturating_sub(RESERVE.min(limit / 4)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == file_at(&self.path) {
            // A destructor has no caller to report the error to.
            let _ = std::fs::remove_file(&self.path);
        }
        // A child of this process may have a copy of the descriptor until its `exec`. Without the shutdown, a client
        // could wait at this copy.
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Listens at `path` without blocking in `accept`.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    /// How many connections can wait to be accepted: the number that .NET uses.
    const BACKLOG: i32 = 255;
    let address = SocketAddrUnix::new(path)?;
    let fd = unix_socket()?;
    // On Linux the file gets the mode of the unbound socket. Elsewhere the mode is changed after binding.
    let mode = Mode::RUSR | Mode::WUSR;
    #[cfg(target_os = "linux")]
    rustix::fs::fchmod(&fd, mode)?;
    rustix::net::bind(&fd, &address)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::chmod(path, mode)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(fd.into())
}

/// Locks a directory until the descriptor is dropped; fails with `TimedOut` if another process has the lock until
/// `deadline`.
fn lock_directory(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    loop {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            // A lock cannot be polled, so the thread sleeps and tries again.
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(2).min(remaining(deadline)?)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Returns the identity of the file at `path`.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Returns the identity of the file at `path`, and when it was made. A new file can have the inode of a removed one.
fn instance_at(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let file = path.symlink_metadata().ok()?;
    Some((file.dev(), file.ino(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child process has a copy of the descriptor from its `fork` to its `exec`.
    #[test]
    fn the_copy_of_a_descriptor_does_not_listen() {
        let path = |name| std::env::temp_dir().join(format!("ipc-std-{}-{name}", std::process::id()));
        let (port, link) = (path("port"), path("link"));
        let listener = Listener::bind(&port).unwrap();
        std::fs::hard_link(&port, &link).unwrap();
        let copy = listener.as_fd().try_clone_to_owned().unwrap();
        drop(listener);
        let error = Socket::connect(&link, Deadline::after(Duration::from_secs(10)).end).unwrap_err();
        std::fs::remove_file(&link).unwrap();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        drop(copy);
    }
}
