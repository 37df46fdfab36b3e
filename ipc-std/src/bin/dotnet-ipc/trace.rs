//! `trace`: records what a program does, into a file.
use core::mem;
use core::time::Duration;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use ipc_proto::types::Provider;
use ipc_std::{Client, Error, ErrorKind as Reason, Phase, Stopper, Timeouts, TraceConfig, TraceSession};
use serde_json::json;

use crate::failure::{self, Failure, Kind};
use crate::output::{json_to_stdout, to_stderr};
use crate::providers::{self, Buffering, EventIds, Profile, Selected};
use crate::{Globals, durations, runtime, signals, wire_log};

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
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    duration: Option<Duration>,
    /// Size of the runtime's buffer in MB
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    buffer: u32,
    /// What to record, by a name; may be repeated [default: dotnet-common and dotnet-sampled-thread-time, unless there
    /// is a --provider]
    #[arg(long = "profile", value_name = "P", value_enum)]
    profiles: Vec<Profile>,
    /// What to record, by provider; may be repeated, and overrides a profile's provider of that name. KEYWORDS are
    /// hexadecimal, all of them by default; LEVEL is 0 to 5 or logalways, critical, error, warning, informational (the
    /// default), verbose
    #[arg(long = "provider", value_name = "NAME[:KEYWORDS[:LEVEL[:ARGS]]]")]
    providers: Vec<Selected>,
    /// Leave out the descriptions of methods that end a trace: smaller, but stacks stay without names
    #[arg(long)]
    no_rundown: bool,
    /// What ends a trace, as keywords of the rundown provider, hexadecimal [default: as the profiles have it] (.NET 9)
    #[arg(long, value_name = "KEYWORDS", value_parser = providers::parse_keywords, conflicts_with = "no_rundown")]
    rundown_keyword: Option<u64>,
    /// Leave out the stacks of events (.NET 9)
    #[arg(long)]
    no_stacks: bool,
    /// Only these events of a provider that is recorded, or with - all others; may be repeated (.NET 10)
    #[arg(long, value_name = "NAME=+ID,ID|NAME=-ID,ID")]
    event_ids: Vec<EventIds>,
    /// What happens when the runtime's buffer is full
    #[arg(long, value_enum, value_name = "MODE", default_value = "drop")]
    buffering: Buffering,
    /// Let a runtime that is suspended at its start wait on
    #[arg(long)]
    no_resume: bool,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

/// How often a silent trace is looked after.
const TICK: Duration = Duration::from_millis(250);

/// How long the end of a trace may take to show that could not be asked to stop: a program that ends takes its socket
/// away first.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (selected, rundown) = providers::select(&args.profiles, &args.providers)?;
    let providers: Vec<Provider<'_>> = selected.iter().map(Selected::to_provider).collect();
    let filters = providers::filters(&selected, &args.event_ids)?;
    let config = TraceConfig {
        buffer_mb: args.buffer,
        rundown_keyword: if args.no_rundown { 0 } else { args.rundown_keyword.unwrap_or(rundown) },
        stackwalk: !args.no_stacks,
        buffer_mode: args.buffering.into(),
        providers: &providers,
        filters: &filters,
    };
    let wire_log = args.wire_log.open()?;
    let timeouts = Timeouts { silence: TICK, ..globals.limits.timeouts() };
    let client = args.target.client(timeouts, &wire_log)?;
    let mut file = Destination::open(&args.output)?;

    let stage = Arc::new(Mutex::new(Stage::Starting { created: file.created.clone() }));
    signals::handle({
        let stage = Arc::clone(&stage);
        move |signal| on_signal(&stage, signal)
    })?;
    let stop = Arc::new(Mutex::new(Stop::Unasked));
    let began = Instant::now();
    let started = client.start_tracing(&config).map_err(Failure::from).and_then(|session| {
        file.truncate()?;
        let ask = stop_later(args.duration, session.stopper(), Arc::clone(&stop))?;
        Ok((session, ask, Instant::now()))
    });
    let (mut session, ask, started) = started.inspect_err(|_| file.abandon())?;
    *lock(&stage) = Stage::Recording(ask.clone());
    let resumed = if args.no_resume { Ok(()) } else { resume(client, began) };
    if resumed.is_err() {
        // What has begun is ended properly all the same; its receiver is gone if the duration is over.
        let _ = ask.send(());
    }
    for loss in session.lost().iter() {
        globals.output.note(&loss.to_string());
    }

    let progress = progress();
    let recorded = record(&mut session, &mut file, &stop, &progress);
    progress.finish_and_clear();
    let elapsed = started.elapsed();
    let complete = session.is_complete() && recorded.is_ok();
    summarize(&session, &file, elapsed, complete, globals)?;
    resumed.and(recorded)?;
    if !complete {
        let message = format!(
            "the trace is cut off: the runtime went away in the middle of it ({file} keeps what came)"
        );
        return Err(Failure::new(Kind::Gone, message));
    }
    if matches!(*lock(&stop), Stop::Unasked) {
        globals.output.note("the program ended, and the trace with it");
    }
    if let Some(e) = session.stop_error() {
        globals.output.note(&format!("the trace is complete, but its end was not confirmed: {e}"));
    }
    wire_log.check()
}

/// What a signal finds.
#[derive(Debug)]
enum Stage {
    /// Nothing to save: the tool may end, and take the file with it that it made.
    Starting { created: Option<PathBuf> },
    /// A session, which can be asked to stop.
    Recording(Sender<()>),
    /// A session that was asked already: whoever asks again does not want to wait.
    Stopping,
}

fn on_signal(stage: &Mutex<Stage>, signal: i32) {
    match mem::replace(&mut *lock(stage), Stage::Stopping) {
        Stage::Recording(stop) => {
            // Its receiver is gone if the duration is over.
            let _ = stop.send(());
        }
        Stage::Starting { created } => {
            remove(created.as_deref());
            signals::obey(signal);
        }
        Stage::Stopping => signals::obey(signal),
    }
}

/// Whether the session was asked to stop.
#[derive(Debug)]
enum Stop {
    Unasked,
    Asked,
    /// It could not be asked, at that time.
    Failed(Error, Instant),
}

/// Stops the session after `duration` or when it is told to, on a thread of its own: asking may take as long as any
/// command, and the stream has to be read all the while.
fn stop_later(
    duration: Option<Duration>,
    stopper: Stopper,
    stop: Arc<Mutex<Stop>>,
) -> Result<Sender<()>, Failure> {
    let (ask, asked) = mpsc::channel();
    let spawned = thread::Builder::new().name("stop".to_owned()).spawn(move || {
        // Whichever comes first; a duration that no clock holds is for ever.
        let _ = asked.recv_timeout(duration.unwrap_or(Duration::MAX));
        *lock(&stop) = Stop::Asked;
        if let Err(e) = stopper.stop() {
            *lock(&stop) = Stop::Failed(e, Instant::now());
        }
    });
    spawned.map(|_| ask).map_err(|e| Failure::io("cannot start a thread", &e))
}

/// Why the session could not be asked to stop, once it is clear that it does not end by itself either.
fn given_up(stop: &Mutex<Stop>) -> Option<Error> {
    let mut stop = lock(stop);
    match mem::replace(&mut *stop, Stop::Asked) {
        Stop::Failed(e, at) if at.elapsed() > GRACE => Some(e),
        other => {
            *stop = other;
            None
        }
    }
}

/// Has a suspended runtime go on, by the deadline of what `began` then.
fn resume(client: Client, began: Instant) -> Result<(), Failure> {
    match runtime::since(client, began).resume() {
        // .NET Core 3 cannot be suspended either.
        Err(e) if e.kind() == Reason::Unsupported => Ok(()),
        result => Ok(result?),
    }
}

/// Reads the session to its end, into the file.
fn record(
    session: &mut TraceSession,
    file: &mut Destination,
    stop: &Mutex<Stop>,
    progress: &ProgressBar,
) -> Result<(), Failure> {
    let mut buf = vec![0; 64 << 10];
    let mut written = Ok(());
    loop {
        match session.read(&mut buf).map_err(|e| e.downcast()) {
            Ok(0) => return written,
            Ok(n) if written.is_ok() => {
                written = file.write(buf.get(..n).unwrap_or_default());
                progress.set_position(session.received());
                if written.is_err() && session.stop().is_err() {
                    return written;
                }
            }
            // The runtime must not be held up because our disk is full.
            Ok(_) => {}
            Err(Ok(Error::Timeout { phase: Phase::ReadingTrace, .. })) => {}
            Err(Ok(e)) => return written.and_then(|()| Err(e.into())),
            Err(Err(e)) => return written.and_then(|()| Err(Failure::io("cannot read the trace", &e))),
        }
        if let Some(e) = given_up(stop) {
            return written.and_then(|()| Err(e.into()));
        }
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

/// Where the trace goes.
#[derive(Debug)]
struct Destination {
    path: PathBuf,
    file: File,
    /// The path, if nothing was there before.
    created: Option<PathBuf>,
}

impl Destination {
    /// Opens the file, and leaves what is in it as long as there is no trace to take its place.
    fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Self::stdout();
        }
        let failed = |e| Failure::io(format_args!("cannot write {}", path.display()), &e);
        let mut options = OpenOptions::new();
        options.write(true);
        let (file, created) = match options.clone().create_new(true).open(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => (options.create(true).open(path), None),
            file => (file, Some(path.to_owned())),
        };
        Ok(Self { path: path.to_owned(), file: file.map_err(failed)?, created })
    }

    fn stdout() -> Result<Self, Failure> {
        if io::stdout().is_terminal() {
            return Err(Failure::new(Kind::Usage, "a trace is not for a terminal")
                .with_hint("give a file, or a pipe"));
        }
        // Without the buffer that Rust's has, which is made for lines.
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let file = stdout.map_err(|e| Failure::io("cannot write to standard output", &e))?;
        Ok(Self { path: "-".into(), file: file.into(), created: None })
    }

    fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Drops what was in the file before. Devices and pipes, and whatever standard output is, cannot and need not.
    fn truncate(&self) -> Result<(), Failure> {
        let of_file = || match self.file.metadata()?.is_file() {
            true => self.file.set_len(0),
            false => Ok(()),
        };
        if self.is_stdout() { Ok(()) } else { of_file().map_err(|e| self.failed(&e)) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|e| self.failed(&e))
    }

    fn failed(&self, e: &io::Error) -> Failure {
        Failure::io(format_args!("cannot write {self}"), e)
    }

    /// Removes the file, if it was made for a trace that will not come.
    fn abandon(&self) {
        remove(self.created.as_deref());
    }
}

impl core::fmt::Display for Destination {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_stdout() { f.write_str("standard output") } else { self.path.display().fmt(f) }
    }
}

fn remove(created: Option<&Path>) {
    // One that somebody else has removed already is what was wanted.
    let _ = created.map(fs::remove_file);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
