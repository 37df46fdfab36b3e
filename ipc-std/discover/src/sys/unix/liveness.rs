//! The rule by which a socket is dead: no process listens at it.
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::connect::connect;
use super::wait::wait;

/// How long [`is_dead`] should wait for a connection to hang up.
pub const HANG_UP_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns whether there is a socket at `path`, dead or not.
pub fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns whether an error of connecting to `path` proves that no process listens at the socket there.
pub fn is_refused(path: &Path, error: &io::Error) -> bool {
    // Connecting to a file that is not a socket gives the same error.
    error.kind() == ErrorKind::ConnectionRefused && is_socket(path)
}

/// Returns whether no process listens at the socket at `path`.
///
/// A connection can succeed although the listener was closed: while another thread of its process starts a child, the
/// child has a copy of the descriptor between `fork` and `exec`. Such a connection hangs up soon. So the function waits
/// for the hang-up until `deadline`, and then connects again.
///
/// # Errors
/// If neither a listener nor its absence is proven: access is denied, or there is no file.
pub fn is_dead(path: &Path, deadline: Instant) -> io::Result<bool> {
    loop {
        let waited = match connect(path, deadline) {
            // A hang-up is reported although no event is requested.
            Ok(socket) => wait(&mut [PollFd::new(&socket, PollFlags::empty())], deadline),
            Err(e) if is_refused(path, &e) => return Ok(true),
            Err(e) => Err(e),
        };
        match waited {
            Ok(()) => {}
            // A process listens: the connection does not hang up, or the backlog is full.
            Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(false),
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// A child process has a copy of the descriptor from its `fork` to its `exec`. Here another thread has it, until a
    /// connection shows that [`is_dead`] waits.
    #[test]
    fn the_copy_of_a_descriptor_does_not_keep_a_socket_alive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("port");
        let limit = Duration::from_secs(30);
        for _ in 0..20 {
            let copy = UnixListener::bind(&path).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let limit = Timespec::try_from(limit).unwrap();
                    poll(&mut [PollFd::new(&copy, PollFlags::IN)], Some(&limit)).unwrap();
                    drop(copy);
                });
                let deadline = Instant::now().checked_add(limit).unwrap();
                assert!(is_dead(&path, deadline).unwrap());
            });
            std::fs::remove_file(&path).unwrap();
        }
    }
}
