//! `poll` with a deadline.
use core::time::Duration;
use std::io;
use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Returns the time until `deadline`.
///
/// # Errors
/// `TimedOut` after `deadline`.
pub fn remaining(deadline: Instant) -> io::Result<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
}

/// Waits until one of the descriptors is ready or hung up.
///
/// # Errors
/// `TimedOut` after `deadline`.
pub fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        // A time that does not fit the type (hundreds of years) is a wait without a timeout.
        let timeout = Timespec::try_from(remaining(deadline)?).ok();
        match poll(fds, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}
