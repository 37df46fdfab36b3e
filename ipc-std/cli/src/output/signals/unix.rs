//! Signals of Unix.
use std::sync::Arc;
use std::{io, thread};

use rustix::process::Signal;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Calls `on` for the signals, on a thread of its own, instead of their default actions.
pub(super) fn listen(on: fn(i32)) -> io::Result<()> {
    let heard: Vec<i32> =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let mut signals = Signals::new(heard)?;
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || signals.forever().for_each(on)).map(drop)
}

/// Calls `suspend` for SIGTSTP, and `resume` for SIGCONT, on a thread of its own.
pub(super) fn listen_for_stops(suspend: fn(stop: &dyn Fn()), resume: fn()) -> io::Result<()> {
    let mut signals = Signals::new([SIGTSTP, SIGCONT].into_iter().filter(|signal| !is_ignored(*signal)))?;
    let thread = thread::Builder::new().name("stops".to_owned());
    let listen = move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => suspend(&|| end(SIGTSTP)),
                _ => resume(),
            }
        }
    };
    thread.spawn(listen).map(drop)
}

/// Handles SIGXFSZ by a handler without an effect: the write then fails. Programs that the tool starts inherit no handler.
pub(super) fn refuse_long_files() -> io::Result<()> {
    flag::register(Signal::XFSZ.as_raw(), Arc::default()).map(drop)
}

/// Whether the parent process made the tool ignore this signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = u32::try_from(signal).ok().and_then(|signal| 1_u64.checked_shl(signal.checked_sub(1)?));
    matches!((mask, bit), (Some(mask), Some(bit)) if mask & bit != 0)
}

/// Performs the default action of the signal: ends or stops the tool immediately.
pub(super) fn end(signal: i32) {
    // This fails only for signals other than those above.
    let _ = emulate_default_handler(signal);
}
