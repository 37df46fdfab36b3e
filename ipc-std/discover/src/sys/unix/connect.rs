//! `connect`: connecting to a Unix socket, with a deadline.
use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use ipc_proto::BusyBackoff;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::address::address;
use super::wait::{remaining, wait};

/// Creates a socket that does not block and that child processes do not inherit.
///
/// # Errors
/// If the system has no free descriptor.
#[cfg(not(target_vendor = "apple"))]
pub fn unix_socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
/// Creates a socket that does not block and that child processes do not inherit.
///
/// # Errors
/// If the system has no free descriptor.
#[cfg(target_vendor = "apple")]
pub fn unix_socket() -> io::Result<OwnedFd> {
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

/// Connects to the socket at `path`. The connection does not block.
///
/// While the backlog is full, connecting is tried again after the pauses of [`BusyBackoff`]: a backlog cannot be
/// polled.
///
/// # Errors
/// `TimedOut` after `deadline`. If no process listens, or access is denied.
pub fn connect(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let (address, _directory) = address(path)?;
    let fd = unix_socket()?;
    let mut backoff = BusyBackoff::new();
    loop {
        match rustix::net::connect(&fd, &address) {
            Ok(()) | Err(Errno::ISCONN) => return Ok(fd),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let pause = Duration::from_millis(backoff.next().into());
                std::thread::sleep(pause.min(remaining(deadline)?));
            }
            Err(Errno::INPROGRESS | Errno::ALREADY) => {
                wait(&mut [PollFd::new(&fd, PollFlags::OUT)], deadline)?
            }
            Err(e) => return Err(e.into()),
        }
    }
}
