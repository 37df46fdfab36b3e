//! What `trace` and `events` have in common: one session of one process, which a signal ends.
use core::mem;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ipc_std::{Client, ErrorKind, Stopper, TraceSession};

use crate::failure::Failure;
use crate::recording::{self, Destination, Wishes};
use crate::{Globals, runtime, signals};

/// A session under way.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) session: TraceSession,
    pub(crate) started: Instant,
    /// What came of resuming the runtime; if that failed the session is asked to stop.
    pub(crate) resumed: Result<(), Failure>,
}

/// Starts to record, for as long as the options say, and has a suspended runtime go on.
pub(crate) fn start(
    client: Client,
    wishes: &Wishes<'_>,
    file: Option<&Destination>,
    globals: &Globals,
) -> Result<Live, Failure> {
    let created = file.and_then(|file| file.created.clone());
    let stage = Arc::new(Mutex::new(Stage::Starting { created }));
    signals::handle({
        let stage = Arc::clone(&stage);
        move |signal| on_signal(&stage, signal)
    })?;
    let began = Instant::now();
    let session = wishes.start(&client)?;
    file.map_or(Ok(()), Destination::truncate)?;
    stop_later(wishes.options.duration, session.stopper())?;
    let started = Instant::now();
    *lock(&stage) = Stage::Recording(session.stopper());
    let resumed = if wishes.options.no_resume { Ok(()) } else { resume(client, began) };
    if resumed.is_err() {
        // What has begun is ended properly all the same.
        session.stop();
    }
    for loss in session.lost().iter() {
        globals.output.note(&loss.to_string());
    }
    Ok(Live { session, started, resumed })
}

/// Tells what about the end of a complete trace may be unexpected.
pub(crate) fn remark_end(session: &TraceSession, globals: &Globals) {
    if !session.is_stopping() {
        globals.output.note("the program ended, and the trace with it");
    }
    if let Some(e) = session.stop_error() {
        globals.output.note(&format!("the trace is complete, but its end was not confirmed: {e}"));
    }
}

/// What a signal finds.
#[derive(Debug)]
enum Stage {
    /// Nothing to save: the tool may end, and take the file with it that it made.
    Starting { created: Option<PathBuf> },
    /// A session, which can be asked to stop.
    Recording(Stopper),
    /// A session that was asked already: whoever asks again does not want to wait.
    Stopping,
}

fn on_signal(stage: &Mutex<Stage>, signal: i32) {
    match mem::replace(&mut *lock(stage), Stage::Stopping) {
        Stage::Recording(stopper) => stopper.stop(),
        Stage::Starting { created } => {
            recording::remove(created.as_deref());
            signals::obey(signal);
        }
        Stage::Stopping => signals::obey(signal),
    }
}

/// Stops the session after `duration`, if there is one.
fn stop_later(duration: Option<Duration>, stopper: Stopper) -> Result<(), Failure> {
    let Some(duration) = duration else { return Ok(()) };
    let spawned = thread::Builder::new().name("stop".to_owned()).spawn(move || {
        thread::sleep(duration);
        stopper.stop();
    });
    spawned.map(|_| ()).map_err(|e| Failure::io("cannot start a thread", &e))
}

/// Has a suspended runtime go on, by the deadline of what `began` then.
fn resume(client: Client, began: Instant) -> Result<(), Failure> {
    match runtime::since(client, began).resume() {
        // .NET Core 3 cannot be suspended either.
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(()),
        result => Ok(result?),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
