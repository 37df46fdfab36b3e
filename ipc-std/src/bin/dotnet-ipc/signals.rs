//! Signals that ask the tool to end.
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::failure::Failure;

/// From now on hands SIGINT, SIGTERM and SIGHUP to `on`, on a thread of its own, in place of what they do.
pub(crate) fn handle(on: impl FnMut(i32) + Send + 'static) -> Result<(), Failure> {
    let handled = Signals::new([SIGHUP, SIGINT, SIGTERM]).and_then(|mut signals| {
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || signals.forever().for_each(on))
    });
    handled.map(|_| ()).map_err(|e| Failure::io("cannot handle signals", &e))
}

/// Does what the signal would have done: ends the tool at once.
pub(crate) fn obey(signal: i32) {
    // It fails for other signals than those above.
    let _ = emulate_default_handler(signal);
}
