//! Signals of Unix.
use std::io;
use std::sync::Arc;

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

use crate::run::signal_listener;

/// Calls `on` for the signals, on a thread of its own, instead of their default actions.
pub(super) fn listen(on: fn(i32)) -> io::Result<()> {
    signal_listener::listen("signals", &[SIGHUP, SIGINT, SIGQUIT, SIGTERM], on)
}

/// Calls `on` with SIGINT for SIGTSTP, on a thread of its own, instead of its default action.
pub(super) fn listen_for_stop(on: fn(i32)) -> io::Result<()> {
    signal_listener::listen("stops", &[SIGTSTP], move |_| on(SIGINT))
}

/// Returns whether the tool ignores SIGINT: shells start background commands so that do not control jobs.
pub(super) fn ignores_interrupt() -> bool {
    signal_listener::is_ignored(SIGINT)
}

/// Handles SIGXFSZ by a handler without an effect: the write then fails. Programs that the tool starts inherit no handler.
pub(super) fn refuse_long_files() -> io::Result<()> {
    flag::register(Signal::XFSZ.as_raw(), Arc::default()).map(drop)
}

/// Performs the default action of the signal: ends the tool immediately.
pub(super) fn end(signal: i32) {
    // This fails only for signals other than those above.
    let _ = emulate_default_handler(signal);
}
