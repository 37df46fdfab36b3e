//! Errors for want of descriptors, memory or threads.
use std::io::{self, ErrorKind};

use rustix::io::Errno;

/// Returns whether the system had no free descriptor, memory or thread. A later attempt can succeed.
///
/// `EAGAIN` is the error of a thread that cannot start. Other operations of this package wait or time out instead.
#[must_use]
pub fn is_shortage(e: &io::Error) -> bool {
    const SHORTAGES: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN];
    e.kind() == ErrorKind::OutOfMemory
        || SHORTAGES.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_become_free_is_a_shortage() {
        let error = |errno: Errno| io::Error::from(errno);
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN] {
            assert!(is_shortage(&error(errno)), "{errno:?}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::NOSPC, Errno::PIPE] {
            assert!(!is_shortage(&error(errno)), "{errno:?}");
        }
        assert!(is_shortage(&ErrorKind::OutOfMemory.into()) && !is_shortage(&ErrorKind::WouldBlock.into()));
    }
}
