//! Signals that end the tool.
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::mpsc;
use std::sync::{Mutex, TryLockError};
use std::{process, thread};

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;
use humantime::format_duration;
use ipc_std::Timeouts;

use super::changed_terminal;
use super::failure::Failure;
use super::stderr::note;
use super::temporary_file;
use super::threads::{lock, spawn};

type Handler = Box<dyn FnMut(i32) -> bool + Send>;

/// The current handler.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);
static HAS_ARRIVED: AtomicBool = AtomicBool::new(false);

/// How often a wait checks whether a signal has arrived.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Makes `stop` the handler of signals, instead of the handler before it. A thread calls it for SIGINT, SIGTERM, SIGQUIT
/// and SIGHUP, and on Windows for Ctrl-C, Ctrl-Break and the end of the console. If `stop` returns `false`, it stops
/// nothing, and the signal ends the tool. Usually the first signal stops the command, and the second one finds the
/// command stopping.
pub(crate) fn handle(stop: impl FnMut(i32) -> bool + Send + 'static) -> Result<(), Failure> {
    if lock(&HANDLER).replace(Box::new(stop)).is_some() {
        // The thread that receives signals exists already.
        return Ok(());
    }
    system::listen(on_signal).map_err(|e| Failure::io("cannot handle signals", &e))
}

/// Makes the signal that stops the tool (Ctrl-Z) end it as Ctrl-C does.
pub(crate) fn end_on_stop() -> Result<(), Failure> {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    system::listen_for_stop(on_signal).map_err(|e| Failure::io("cannot handle signals", &e))
}

/// Makes a write beyond the limit of the length of files (`ulimit -f`) fail, instead of ending the tool by a signal.
pub(crate) fn refuse_long_files() {
    // Without this, only the sentence is missing.
    let _ = system::refuse_long_files();
}

/// Makes signals end the tool as [`handle`] does, unless a handler exists.
pub(crate) fn handle_ends() -> Result<(), Failure> {
    // If the lock is taken, another thread holds the handler, so a handler exists.
    let is_missing = HANDLER.try_lock().is_ok_and(|handler| handler.is_none());
    if is_missing { handle(|_| false) } else { Ok(()) }
}

/// Returns a note for a command that runs until Ctrl-C, if the tool ignores it.
pub(crate) fn ignored_note() -> Option<String> {
    let id = process::id();
    let note = format!(
        "this process ignores Ctrl-C (SIGINT), as background commands of scripts do: `kill {id}` ends it properly"
    );
    system::ignores_interrupt().then_some(note)
}

/// Returns whether a signal has arrived.
pub(crate) fn has_arrived() -> bool {
    HAS_ARRIVED.load(Ordering::Relaxed)
}

/// Says what the tool waits for after a signal, and for how long, if it still runs after two seconds.
pub(crate) fn explain_wait(is_json: bool, limits: &Timeouts) {
    const USUAL: Duration = Duration::from_secs(2);
    let (whole, silence) = (limits.stop, limits.stop_silence.min(limits.stop));
    let (whole, silence) = (format_duration(whole), format_duration(silence));
    let wait = format!(
        "waiting for the process to end its session: {whole} at most, and {silence} without data; a second signal gives \
         up"
    );
    // Without this thread, only the remark is missing.
    let _ = spawn("wait", move || {
        thread::sleep(USUAL);
        note(is_json, &wait);
    });
}

/// Calls the handler on a thread of its own, so that a handler that waits does not delay the next signal. A signal
/// during the handler of an earlier one ends the tool.
fn on_signal(signal: i32) {
    HAS_ARRIVED.store(true, Ordering::Relaxed);
    let handler = match HANDLER.try_lock() {
        Ok(handler) => handler.is_some(),
        Err(TryLockError::Poisoned(_)) => true,
        Err(TryLockError::WouldBlock) => return end(signal),
    };
    let handle = move || {
        if lock(&HANDLER).as_mut().is_some_and(|stop| !stop(signal)) {
            end(signal);
        }
    };
    if handler && spawn("signal", handle).is_err() {
        end(signal);
    }
}

/// Restores the terminal, removes the temporary file and ends the tool. A terminal that is stopped does not delay the end.
fn end(signal: i32) {
    const PATIENCE: Duration = Duration::from_millis(500);
    let (restored, is_restored) = mpsc::channel::<()>();
    let restore = move || {
        changed_terminal::restore();
        drop(restored);
    };
    if spawn("restore", restore).is_ok() {
        let _ = is_restored.recv_timeout(PATIENCE);
    }
    temporary_file::remove();
    system::end(signal);
}
