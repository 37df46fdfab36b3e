//! Signals that end the tool.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::Mutex;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;
use super::failure::Failure;
use super::full_screen;
use super::threads::lock;

type Handler = Box<dyn FnMut(i32) -> bool + Send>;

/// The last handler.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Calls `stop` for SIGINT, SIGTERM and SIGHUP, and on Windows for Ctrl-C, Ctrl-Break and the end of the console, on a
/// thread of its own, instead of the handler before it. The signal ends the tool if that returns that it stops nothing:
/// usually the first signal stops what the command does, and the second one finds it stopping.
pub(crate) fn handle(stop: impl FnMut(i32) -> bool + Send + 'static) -> Result<(), Failure> {
    if lock(&HANDLER).replace(Box::new(stop)).is_some() {
        // The thread is there.
        return Ok(());
    }
    system::listen(on_signal).map_err(|e| Failure::io("cannot handle signals", &e))
}

fn on_signal(signal: i32) {
    if lock(&HANDLER).as_mut().is_some_and(|stop| !stop(signal)) {
        full_screen::restore();
        system::end(signal);
    }
}
