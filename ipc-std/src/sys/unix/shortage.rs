//! Errors for want of descriptors or memory.
use std::io;

use rustix::io::Errno;

/// Returns whether the system has no more descriptors or memory at present.
pub(crate) fn is_shortage(e: &io::Error) -> bool {
    const SHORTAGES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    SHORTAGES.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}
