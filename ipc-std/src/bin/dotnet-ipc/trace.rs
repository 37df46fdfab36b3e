//! `trace`: records what a program does, into a file.
use core::mem;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use ipc_std::{Client, ErrorKind as Reason, Stopper, Timeouts, TraceSession};
use serde_json::json;

use crate::failure::{self, Failure};
use crate::output::{json_to_stdout, to_stderr};
use crate::recording::{self, Destination, Options, TICK};
use crate::{Globals, runtime, signals, wire_log};

/// Record what a program does, as a .nettrace file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A trace ends complete: with --duration, Ctrl-C, SIGTERM or SIGHUP the runtime is
asked to stop, and what it then still writes is waited for. A second signal ends
the tool at once. A runtime that is suspended at its start is resumed. What a
runtime is too old for is left out, with a note.

Examples:
  dotnet-ipc trace 4242 -o app.nettrace
  dotnet-ipc trace 4242 -o gc.nettrace --profile gc-verbose --duration 1m30s
  dotnet-ipc trace 4242 -o http.nettrace --provider System.Net.Http::verbose
  dotnet-ipc trace 4242 -o - --duration 5s --provider \\
      'System.Runtime:0:4:EventCounterIntervalSec=1' | xz > counters.xz
  dotnet-ipc trace 4242 -o starts.nettrace --provider System.Net.Http \\
      --event-ids System.Net.Http=+1,2 --buffering block")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    /// Where to; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wishes = args.options.wishes()?;
    let wire_log = args.wire_log.open()?;
    let timeouts = Timeouts { silence: TICK, ..globals.limits.timeouts() };
    let client = args.target.client(timeouts, &wire_log)?;
    let mut file = Destination::open(&args.output)?;

    let stage = Arc::new(Mutex::new(Stage::Starting { created: file.created.clone() }));
    signals::handle({
        let stage = Arc::clone(&stage);
        move |signal| on_signal(&stage, signal)
    })?;
    let began = Instant::now();
    let started = wishes.start(&client).and_then(|session| {
        file.truncate()?;
        stop_later(args.options.duration, session.stopper())?;
        Ok((session, Instant::now()))
    });
    let (mut session, started) = started.inspect_err(|_| file.abandon())?;
    *lock(&stage) = Stage::Recording(session.stopper());
    let resumed = if args.options.no_resume { Ok(()) } else { resume(client, began) };
    if resumed.is_err() {
        // What has begun is ended properly all the same.
        session.stop();
    }
    for loss in session.lost().iter() {
        globals.output.note(&loss.to_string());
    }

    let progress = progress();
    let recorded = recording::record(&mut session, &mut file, |session| {
        progress.set_position(session.received());
    });
    progress.finish_and_clear();
    let elapsed = started.elapsed();
    let complete = session.is_complete() && recorded.is_ok();
    summarize(&session, &file, elapsed, complete, globals)?;
    resumed.and(recorded)?;
    recording::check_end(&session, args.options.no_resume, &file)?;
    if !session.is_stopping() {
        globals.output.note("the program ended, and the trace with it");
    }
    if let Some(e) = session.stop_error() {
        globals.output.note(&format!("the trace is complete, but its end was not confirmed: {e}"));
    }
    wire_log.check()
}

/// What a signal finds.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Nothing to save: the tool may end, and take the file with it that it made.
    Starting { created: Option<PathBuf> },
    /// A session, which can be asked to stop.
    Recording(Stopper),
    /// A session that was asked already: whoever asks again does not want to wait.
    Stopping,
}

pub(crate) fn on_signal(stage: &Mutex<Stage>, signal: i32) {
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
pub(crate) fn stop_later(duration: Option<Duration>, stopper: Stopper) -> Result<(), Failure> {
    let Some(duration) = duration else { return Ok(()) };
    let spawned = thread::Builder::new().name("stop".to_owned()).spawn(move || {
        thread::sleep(duration);
        stopper.stop();
    });
    spawned.map(|_| ()).map_err(|e| Failure::io("cannot start a thread", &e))
}

/// Has a suspended runtime go on, by the deadline of what `began` then.
pub(crate) fn resume(client: Client, began: Instant) -> Result<(), Failure> {
    match runtime::since(client, began).resume() {
        // .NET Core 3 cannot be suspended either.
        Err(e) if e.kind() == Reason::Unsupported => Ok(()),
        result => Ok(result?),
    }
}

/// What came of it, in a line.
fn summarize(
    session: &TraceSession,
    file: &Destination,
    elapsed: Duration,
    complete: bool,
    globals: &Globals,
) -> Result<(), Failure> {
    let bytes = session.received();
    let seconds = elapsed.as_secs_f64();
    if !globals.output.json {
        let command = failure::name_of(session.command());
        to_stderr(&format!("{bytes} bytes in {seconds:.1} s ({command}) to {file}"));
        return Ok(());
    }
    let summary = json!({
        "file": file.path.to_string_lossy(),
        "bytes": bytes,
        "seconds": seconds,
        "complete": complete,
        "session_id": session.session_id(),
        "command": failure::name_of(session.command()),
    });
    if file.is_stdout() {
        to_stderr(&summary.to_string());
        return Ok(());
    }
    json_to_stdout(&summary)
}

/// Shows how it goes, if standard error is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {bytes} in {elapsed}, Ctrl-C ends it") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
