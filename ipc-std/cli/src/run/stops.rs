//! Signals with which a terminal stops the tool. On Windows, nothing stops it.
#[cfg(unix)]
use std::os::fd::AsFd as Handle;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Handle;

#[cfg(unix)]
use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
#[cfg(unix)]
use rustix::termios::tcgetpgrp;

use super::failure::Failure;

/// Calls `suspend` for SIGTSTP, and `resume` for SIGCONT, on a thread of its own. `suspend` gets the function that stops
/// the tool.
#[cfg(unix)]
pub(crate) fn handle_stops(suspend: fn(stop: &dyn Fn()), resume: fn()) -> Result<(), Failure> {
    use signal_hook::consts::{SIGCONT, SIGTSTP};
    use signal_hook::low_level::emulate_default_handler;

    let on = move |signal| match signal {
        // Like the system, which stops no job that no shell can continue.
        SIGTSTP if is_alone() => {}
        // The default action of this signal cannot fail.
        SIGTSTP => suspend(&|| drop(emulate_default_handler(SIGTSTP))),
        _ => resume(),
    };
    let listens = super::signal_listener::listen("stops", &[SIGTSTP, SIGCONT], on);
    listens.map_err(|e| Failure::io("cannot handle signals", &e))
}

/// Does nothing.
#[cfg(windows)]
pub(crate) fn handle_stops(_: fn(stop: &dyn Fn()), _: fn()) -> Result<(), Failure> {
    Ok(())
}

/// Returns whether the tool is in the first process group of its session, as in a container. A shell gives each job a
/// group of its own.
#[cfg(unix)]
fn is_alone() -> bool {
    getsid(None) == Ok(getpgrp())
}

/// Stops the job of the tool, as a terminal in its usual mode does for Ctrl-Z.
#[cfg(unix)]
pub(crate) fn stop_job(terminal: &impl Handle) {
    if tcgetpgrp(terminal) == Ok(getpgrp()) {
        // A failure leaves the job running.
        let _ = kill_current_process_group(Signal::TSTP);
    }
}

/// Does nothing.
#[cfg(windows)]
pub(crate) fn stop_job(_: &impl Handle) {}
