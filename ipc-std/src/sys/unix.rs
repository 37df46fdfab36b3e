mod address;
mod descriptor;
mod flag;
mod hub;
mod listener;
mod poller;
mod process;
mod socket;

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_proto::SocketName;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

pub(crate) use address::{LONGEST_PATH, Pinned, is_too_long, open_directory};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use address::{Links, is_local, open_directory_in, open_place};
pub(crate) use descriptor::{receive_descriptor, send_descriptor};
pub(crate) use flag::Flag;
pub(crate) use hub::Hub;
pub(crate) use listener::{Listener, is_socket};
pub(crate) use poller::Poller;
pub(crate) use process::*;
pub(crate) use socket::{Address, Socket};

/// What is left until `deadline`; an error of kind `TimedOut` once it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Waits until one of these is ready for what is asked of it, or gone.
fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        // Without a timeout if it is longer than the type can say: hundreds of years.
        let timeout = Timespec::try_from(left(deadline)?).ok();
        match poll(fds, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Locks a directory until the descriptor is dropped; an error of kind `TimedOut` if somebody else has it for as long.
fn lock_directory(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    loop {
        match rustix::fs::flock(&directory, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            // There is nothing to poll.
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(2).min(left(deadline)?)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Where the runtime in this process listens, in this directory.
pub(crate) fn endpoint(directory: &Path, process_id: u32) -> PathBuf {
    let name = SocketName { process_id, disambiguation_key: disambiguation_key(process_id) };
    directory.join(name.to_text().as_str())
}

/// Whose endpoint it is, if the name tells, and that process made it: the name of one in a container has an id that is
/// somebody else's out here.
pub(crate) fn owner(endpoint: &Path) -> Option<u32> {
    let name: SocketName = endpoint.file_name()?.to_str()?.parse().ok()?;
    let key = disambiguation_key(name.process_id);
    (key != 0 && key == name.disambiguation_key).then_some(name.process_id)
}

/// The whole path of a port: a runtime that is to call it may have another working directory.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// What a runtime has to be told of a port with this absolute path.
pub(crate) fn port_address(path: &Path) -> &OsStr {
    path.as_os_str()
}

/// The pieces of a text between separators, which are ASCII.
pub(crate) fn split(text: &OsStr, separator: u8) -> Vec<OsString> {
    text.as_bytes()
        .split(|byte| *byte == separator)
        .map(|piece| OsStr::from_bytes(piece).to_owned())
        .collect()
}
