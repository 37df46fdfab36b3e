//! Whether a terminal is that of the tool, or that of another job.
use core::time::Duration;
#[cfg(unix)]
use std::os::fd::AsFd as Handle;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Handle;

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::process::getpgrp;
#[cfg(unix)]
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

/// Returns whether the tool is in the process group that owns the terminal. The system stops a process of another group
/// that reads from the terminal or changes it, such as one that `timeout` or `&` starts. A terminal that is not that of
/// the session stops no process.
#[cfg(unix)]
pub(crate) fn is_foreground(terminal: &impl Handle) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

#[cfg(windows)]
pub(crate) fn is_foreground(_: &impl Handle) -> bool {
    true
}

/// Waits until the terminal accepts output, for a short time. Returns `false` if the terminal is stopped, or would stop
/// the tool for writing to it from the background.
#[cfg(unix)]
pub(crate) fn takes_output(terminal: &impl Handle) -> bool {
    const TIME: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
    let stops = || tcgetattr(terminal).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP));
    let mut fds = [PollFd::new(terminal, PollFlags::OUT)];
    (is_foreground(terminal) || !stops()) && poll(&mut fds, Some(&TIME)) == Ok(1)
}

#[cfg(windows)]
pub(crate) fn takes_output(_: &impl Handle) -> bool {
    true
}

/// Waits for input, for a short time. Returns `false` at the end of the terminal.
#[cfg(unix)]
pub(crate) fn waits_for_input(terminal: &impl Handle, time: Duration) -> bool {
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    let time = Timespec::try_from(time).unwrap_or_default();
    // A signal interrupts the wait, which the caller repeats.
    let _ = poll(&mut fds, Some(&time));
    let ends = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    fds.iter().all(|fd| !fd.revents().intersects(ends))
}

#[cfg(windows)]
pub(crate) fn waits_for_input(_: &impl Handle, time: Duration) -> bool {
    crossterm::event::poll(time).is_ok()
}
