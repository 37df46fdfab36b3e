//! Signals that end the tool.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use core::time::Duration;
use std::sync::Mutex;
use std::thread;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;
use super::failure::Failure;
use super::full_screen;
use super::stderr::note;
use super::temporary_file;
use super::threads::{lock, spawn};

type Handler = Box<dyn FnMut(i32) -> bool + Send>;

/// The current handler.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Makes `stop` the handler of signals, instead of the handler before it. A thread calls it for SIGINT, SIGTERM and
/// SIGHUP, and on Windows for Ctrl-C, Ctrl-Break and the end of the console. If `stop` returns `false`, it stops
/// nothing, and the signal ends the tool. Usually the first signal stops the command, and the second one finds the
/// command stopping.
pub(crate) fn handle(stop: impl FnMut(i32) -> bool + Send + 'static) -> Result<(), Failure> {
    if lock(&HANDLER).replace(Box::new(stop)).is_some() {
        // The thread that receives signals exists already.
        return Ok(());
    }
    system::listen(on_signal).map_err(|e| Failure::io("cannot handle signals", &e))
}

/// Makes a write beyond the limit of the length of files (`ulimit -f`) fail, instead of ending the tool by a signal.
pub(crate) fn refuse_long_files() {
    // Without this, only the sentence is missing.
    let _ = system::refuse_long_files();
}

/// Makes signals end the tool as [`handle`] does, unless a handler exists.
pub(crate) fn handle_ends() -> Result<(), Failure> {
    // A handler that is locked exists.
    let is_missing = HANDLER.try_lock().is_ok_and(|handler| handler.is_none());
    if is_missing { handle(|_| false) } else { Ok(()) }
}

/// Says what the tool waits for after a signal, if it still runs after two seconds.
pub(crate) fn explain_wait(is_json: bool) {
    const USUAL: Duration = Duration::from_secs(2);
    // Without this thread, only the remark is missing.
    let _ = spawn("wait", move || {
        thread::sleep(USUAL);
        note(is_json, "waiting for the process to end its session; a second signal gives up");
    });
}

fn on_signal(signal: i32) {
    if lock(&HANDLER).as_mut().is_some_and(|stop| !stop(signal)) {
        full_screen::restore();
        temporary_file::remove();
        system::end(signal);
    }
}
