//! `poll` with a deadline.
use core::time::Duration;
use std::io;
use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Returns the time at which a wait of this length ends.
pub(super) fn after(limit: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(limit).unwrap_or(now)
}

/// Returns the time until `deadline`; fails with `TimedOut` after it.
pub(super) fn remaining(deadline: Instant) -> io::Result<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
}

/// Waits until one of the descriptors is ready or hung up; fails with `TimedOut` after `deadline`.
pub(super) fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
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
