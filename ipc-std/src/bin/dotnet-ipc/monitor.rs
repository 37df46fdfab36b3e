//! `monitor`: owns a diagnostic port, and looks after the runtimes that connect to it.
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
#[cfg(unix)]
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::ffi::{OsStrExt, OsStringExt};
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, Scope};
use std::time::Instant;

use ipc_std::{
    AdvertisedRuntime, Client, Error, Monitor, MonitorEvent, MonitorWaker, Timeouts, TraceSession,
};
#[cfg(unix)]
use rustix::process::{Pid, Resource, Signal, getpgrp, getrlimit, kill_process, setrlimit};
#[cfg(unix)]
use rustix::termios::tcgetpgrp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::failure::{Failure, Kind};
use crate::live::lock;
use crate::output::{json_to_stdout, printable, to_stderr, to_stdout};
use crate::recording::{self, Destination, Options, TICK, Wishes};
use crate::{Globals, signals, wire_log};

/// Own a diagnostic port: show runtimes as they come and go, and have each do something first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A runtime connects if DOTNET_DiagnosticPorts=PATH is in its environment when it
starts, and waits there to be resumed, which happens once everything that was
asked for is in place. What happens is told in lines, with --json in objects:
\"event\" is arrived, set, tracing, resumed, left or error, and each has the
\"process_id\" and the \"runtime_cookie\".

With a COMMAND, that is started so, its children arrive too, and its exit status
is the tool's. The lines are on standard error then, as standard output is the
command's; with --json the objects stand between what that writes. What a command
leaves behind is not waited for: its traces end with the command, and a runtime
that starts later waits for a port that is gone. With --no-resume nothing is
suspended, so that the first events may be missed.

Ctrl-C, SIGTERM and SIGHUP end traces properly; then a command is sent the signal
too. A second signal ends the tool at once. A FILE that is there is replaced.

Examples:
  dotnet-ipc monitor --trace app.nettrace -- app --fast
  dotnet-ipc monitor --listen /tmp/port --set LEVEL=debug
  dotnet-ipc monitor --listen /tmp/port --trace '/tmp/{pid}.nettrace' --profile gc-verbose")]
pub(crate) struct Args {
    /// Where runtimes connect to [default with a COMMAND: a socket for it alone]
    #[arg(long, value_name = "PATH", required_unless_present = "command")]
    listen: Option<PathBuf>,
    /// Set a variable in the environment of each runtime; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    set: Vec<(String, String)>,
    /// Record each runtime from its first event on; {pid} in FILE is its process id, else those behind the first get a
    /// number
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
    /// Start this, under the port and suspended
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not NAME=VALUE")),
    }
}

/// How many events are told of before anything else has its turn.
const EVENTS: usize = 64;

/// How long recordings may take to end before the command is told of a signal too.
const GRACE: Duration = Duration::from_secs(2);
/// For how long runtimes may still be seen to leave when all is over.
const FAREWELL: Duration = Duration::from_millis(500);

/// Runs the port until it is over; gives the status of the command, if there was one.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Option<ExitCode>, Failure> {
    if args.trace.is_none() && args.options.are_about_traces() {
        return Err(Failure::new(Kind::Usage, "there is nothing to record to").with_hint("give --trace FILE"));
    }
    if args.trace.as_deref().is_some_and(|file| file.as_os_str() == "-") {
        let failure = Failure::new(Kind::Usage, "--trace needs a file: standard output is for other things");
        return Err(failure);
    }
    let wishes = args.trace.as_ref().map(|_| args.options.wishes()).transpose()?;
    let wire_log = args.wire_log.open()?;
    let (path, directory) = where_to_listen(args)?;
    let timeouts = Timeouts { silence: TICK, ..globals.limits.timeouts() };
    let monitor = Monitor::bind(path)?.with_timeouts(timeouts).with_observer(wire_log.observer());
    // Whoever is not resumed here would wait for ever.
    let suspend = !args.options.no_resume;
    let (name, value) = monitor.variable(suspend)?;

    let (tell, told) = mpsc::channel();
    let wake = Wake { tell, waker: monitor.waker() };
    signals::handle({
        let (wake, path) = (wake.clone(), monitor.path().to_owned());
        let directory = directory.as_ref().map(|directory| directory.path().to_owned());
        let mut before = false;
        move |signal| {
            if core::mem::replace(&mut before, true) {
                // As far as that is possible.
                let _ = std::fs::remove_file(&path);
                let _ = directory.as_ref().map(std::fs::remove_dir);
                signals::obey(signal);
            }
            wake.tell(News::Signal(signal));
        }
    })?;
    let child = match args.command.split_first() {
        Some((program, arguments)) => {
            if std::env::var("DOTNET_EnableDiagnostics").is_ok_and(|value| value == "0") {
                globals
                    .output
                    .note("DOTNET_EnableDiagnostics=0 switches off what a runtime needs to connect");
            }
            let mut command = Command::new(program);
            Some(Child::start(command.args(arguments), suspend, &monitor, wake.clone())?)
        }
        None => {
            #[cfg(unix)]
            allow_many_connections();
            globals.output.note(&format!("runtimes connect with {name}={}", quoted(&value)));
            None
        }
    };
    let port = Port {
        args,
        globals,
        monitor: &monitor,
        wishes,
        wake,
        ending: AtomicBool::new(false),
        busy: AtomicUsize::new(0),
        files: Mutex::new(HashMap::new()),
        failure: Mutex::new(None),
    };
    let status = thread::scope(|scope| {
        let ended = port.run(scope, child, &told);
        // However it ended: traces that go on would be waited for.
        port.ending.store(true, Ordering::Relaxed);
        ended
    })?;
    let failure = lock(&port.failure).take().or_else(|| wire_log.check().err());
    match (status, failure) {
        (Some(status), failure) if !status.success() || failure.is_none() => Ok(Some(exit_code(status))),
        (_, Some(failure)) => Err(failure),
        (_, None) => Ok(None),
    }
}

/// As a shell reads it.
fn quoted(value: &OsStr) -> String {
    let value = value.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._,-+:@%=".contains(c);
    if value.chars().all(plain) { value.into_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

/// The path of the port, and the directory that was made for it.
fn where_to_listen(args: &Args) -> Result<(PathBuf, Option<TempDir>), Failure> {
    if let Some(path) = &args.listen {
        return Ok((path.clone(), None));
    }
    let directory = tempfile::Builder::new().prefix("dotnet-ipc-").tempdir();
    let directory = directory.map_err(|e| Failure::io("cannot make a temporary directory", &e))?;
    #[cfg(unix)]
    let path = directory.path().join("port");
    // Pipes lie in no directory, but this one's name is nobody else's.
    #[cfg(windows)]
    let path = directory.path().file_name().unwrap_or_default().into();
    Ok((path, Some(directory)))
}

/// Each runtime holds a connection. What it may not have it goes without. A command would inherit it.
#[cfg(unix)]
fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// What the main thread has to hear of.
#[derive(Debug)]
enum News {
    Signal(i32),
    /// The command has ended.
    Ended(io::Result<ExitStatus>),
    /// A runtime needs no thread any more.
    Idle,
}

/// Tells the main thread.
#[derive(Debug, Clone)]
struct Wake {
    tell: mpsc::Sender<News>,
    waker: MonitorWaker,
}

impl Wake {
    fn tell(&self, news: News) {
        // Nobody listens any more at the very end.
        let _ = self.tell.send(news);
        self.waker.wake();
    }
}

/// The command.
struct Child {
    #[cfg(unix)]
    pid: Option<Pid>,
    name: String,
}

impl Child {
    fn start(command: &mut Command, suspend: bool, monitor: &Monitor, wake: Wake) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = monitor.spawn(command, suspend)?;
        #[cfg(unix)]
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let thread = thread::Builder::new().name("command".to_owned());
        let waiting = thread.spawn(move || wake.tell(News::Ended(child.wait())));
        waiting.map_err(|e| Failure::io("cannot start a thread", &e))?;
        Ok(Self {
            #[cfg(unix)]
            pid,
            name,
        })
    }

    /// Passes a signal on. Where we are what runs in the foreground of a terminal, it is the terminal that has sent Ctrl-C
    /// to both of us.
    #[cfg(unix)]
    fn signal(&self, signal: i32) {
        let signal = Signal::from_named_raw(signal);
        let by_terminal = signal == Some(Signal::INT)
            && File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()));
        if let (Some(pid), Some(signal), false) = (self.pid, signal, by_terminal) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    }
    /// It has the same console, which has told it too.
    #[cfg(windows)]
    const fn signal(&self, _: i32) {}
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code();
    #[cfg(unix)]
    let code = code.or_else(|| status.signal().map(|signal| signal.saturating_add(128)));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Something that happens to a runtime.
enum Event<'e> {
    Arrived,
    Set { name: &'e str, value: &'e str },
    Tracing { file: &'e Path },
    Resumed,
    Left,
    Error(&'e Failure),
}

/// What the threads have in common.
struct Port<'p> {
    args: &'p Args,
    globals: &'p Globals,
    monitor: &'p Monitor,
    wishes: Option<Wishes<'p>>,
    wake: Wake,
    /// Whether all traces are to end.
    ending: AtomicBool,
    /// Runtimes that have a thread just now.
    busy: AtomicUsize,
    /// Files that were written to, and how many there are of each name.
    files: Mutex<HashMap<PathBuf, u64>>,
    /// The first one.
    failure: Mutex<Option<Failure>>,
}

impl<'p> Port<'p> {
    /// Looks after the port until the command has ended, or a signal comes; and then until every trace has ended.
    fn run<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        child: Option<Child>,
        told: &Receiver<News>,
    ) -> Result<Option<ExitStatus>, Failure> {
        let (mut child, mut status, mut seen) = (child, None, false);
        // For the command, once the traces have ended, or do not want to.
        let mut signal: Option<(i32, Instant)> = None;
        let mut waiting = VecDeque::new();
        let mut over: Option<Instant> = None;
        let mut first = None;
        loop {
            for _ in 0..EVENTS {
                let event = first.take().map_or_else(|| self.monitor.poll_event(), |event| Ok(Some(event)));
                let Some(event) = event? else { break };
                seen |= matches!(event, MonitorEvent::Arrived(_));
                waiting.extend(self.on_event(event));
            }
            while let Some(runtime) = waiting.pop_front() {
                if !self.look_after(scope, runtime) {
                    waiting.push_front(runtime);
                    break;
                }
            }
            while let Ok(news) = told.try_recv() {
                match news {
                    News::Idle => {}
                    News::Signal(number) => {
                        self.ending.store(true, Ordering::Relaxed);
                        signal = Some((number, Instant::now()));
                    }
                    News::Ended(ended) => {
                        self.ending.store(true, Ordering::Relaxed);
                        status = Some(ended.map_err(|e| Failure::io("cannot wait for the command", &e))?);
                        if let Some(child) = child.take().filter(|_| !seen) {
                            self.nobody_came(&child);
                        }
                    }
                }
            }
            let busy = self.busy.load(Ordering::Relaxed) > 0;
            if let Some((number, _)) = signal.take_if(|(_, at)| !busy || at.elapsed() > GRACE) {
                child.as_ref().into_iter().for_each(|child| child.signal(number));
            }
            let ending = self.ending.load(Ordering::Relaxed) && child.is_none();
            if ending && !busy {
                let since = *over.get_or_insert_with(Instant::now);
                let nobody = status.is_none() || self.monitor.runtimes().is_empty();
                if nobody || since.elapsed() >= FAREWELL {
                    return Ok(status);
                }
            }
            first = self.monitor.next_event(TICK)?;
        }
    }

    /// The command has ended without a runtime.
    fn nobody_came(&self, child: &Child) {
        let name = &child.name;
        let why =
            format!("no runtime connected: is {name} a .NET program, and are its diagnostics switched on?");
        if self.wishes.is_none() {
            return self.globals.output.note(&why);
        }
        let failure = Failure::new(Kind::NotFound, format!("there is no trace: {why}"));
        lock(&self.failure).get_or_insert(failure.without_hint());
    }

    /// Tells of it; gives a runtime that has arrived.
    fn on_event(&self, event: MonitorEvent) -> Option<AdvertisedRuntime> {
        match event {
            MonitorEvent::Arrived(runtime) => {
                self.tell(&runtime, &Event::Arrived);
                return Some(runtime);
            }
            MonitorEvent::Left(runtime) => self.tell(&runtime, &Event::Left),
            MonitorEvent::Rejected { rejection, credentials } => {
                let process = credentials.map(|credentials| credentials.process_id);
                let who = process.filter(|id| *id != 0);
                let named = who.map_or_else(|| "somebody".to_owned(), |id| format!("process {id}"));
                let failure = Failure::new(Kind::Protocol, format!("{named} {rejection}"));
                self.write(who.map(u64::from), None, &Event::Error(&failure.without_hint()));
            }
            _ => {}
        }
        None
    }

    /// Has the runtime do what it is to do, on a thread of its own; `false` if there can be none just now.
    fn look_after<'s>(&'s self, scope: &'s Scope<'s, '_>, runtime: AdvertisedRuntime) -> bool {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let thread = thread::Builder::new().name(format!("runtime {}", runtime.process_id));
        let spawned = thread.spawn_scoped(scope, move || {
            if let Err(failure) = self.set_up(&runtime) {
                self.fail(&runtime, failure);
            }
            self.busy.fetch_sub(1, Ordering::Relaxed);
            self.wake.tell(News::Idle);
        });
        if spawned.is_err() {
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
        spawned.is_ok()
    }

    /// Does what was asked for. Whatever of it fails, the runtime is resumed: it would wait for ever.
    fn set_up(&self, runtime: &AdvertisedRuntime) -> Result<(), Failure> {
        let client = self.monitor.client(runtime.runtime_cookie);
        let recording = self.prepare(&client, runtime);
        if !self.args.options.no_resume {
            self.resume(&client, runtime);
        }
        recording.map_or(Ok(()), |(mut session, mut file)| self.record(&mut session, &mut file))
    }

    /// What is to be in place before it is resumed. Of a runtime that does not answer, no more is asked.
    fn prepare(&self, client: &Client, runtime: &AdvertisedRuntime) -> Option<(TraceSession, Destination)> {
        let answers = |kind| !matches!(kind, Kind::Timeout | Kind::Gone);
        for (name, value) in &self.args.set {
            match client.set_environment_variable(name, Some(value)) {
                Ok(()) => self.tell(runtime, &Event::Set { name, value }),
                Err(Error::Left { .. }) => return None,
                Err(e) => {
                    let failure = Failure::from(e);
                    let kind = failure.kind();
                    self.fail(runtime, failure);
                    if !answers(kind) {
                        return None;
                    }
                }
            }
        }
        let wishes = self.wishes.as_ref().filter(|_| !self.ending.load(Ordering::Relaxed))?;
        self.start(client, wishes, runtime).map_err(|failure| self.fail(runtime, failure)).ok()
    }

    /// Resumes it, and tries for as long as it is there and not everything ends: one that is stopped, in a debugger say,
    /// does not hear who has given up.
    fn resume(&self, client: &Client, runtime: &AdvertisedRuntime) {
        let mut failed = false;
        loop {
            match client.resume() {
                Ok(()) => {
                    self.tell(runtime, &Event::Resumed);
                    return;
                }
                Err(Error::Left { .. }) => return,
                Err(e) => {
                    let refused = e.hresult().is_some();
                    if !core::mem::replace(&mut failed, true) {
                        self.fail(runtime, e.into());
                    }
                    if refused || self.ending.load(Ordering::Relaxed) {
                        return;
                    }
                    // It was told of at once when it could not even be tried.
                    thread::sleep(TICK);
                }
            }
        }
    }

    /// Starts a trace of the runtime.
    fn start(
        &self,
        client: &Client,
        wishes: &Wishes<'_>,
        runtime: &AdvertisedRuntime,
    ) -> Result<(TraceSession, Destination), Failure> {
        let path = self.file_for(runtime);
        let file = Destination::open(&path)?;
        let session = wishes.start(client).and_then(|session| file.truncate().map(|()| session));
        let session = session.inspect_err(|_| file.abandon())?;
        for loss in session.lost().iter() {
            self.globals.output.note(&format!("process {}: {loss}", runtime.local_process_id()));
        }
        self.tell(runtime, &Event::Tracing { file: &path });
        Ok((session, file))
    }

    /// Writes a trace to its end, which comes when the runtime ends, or everything does.
    fn record(&self, session: &mut TraceSession, file: &mut Destination) -> Result<(), Failure> {
        let end = self.args.options.duration.and_then(|duration| Instant::now().checked_add(duration));
        recording::record(session, file, |session| {
            let over = end.is_some_and(|end| end <= Instant::now());
            if over || self.ending.load(Ordering::Relaxed) {
                session.stop();
            }
        })?;
        recording::check_end(session, self.args.options.no_resume, file)
    }

    /// The file for a runtime's trace, which no other of this run has.
    fn file_for(&self, runtime: &AdvertisedRuntime) -> PathBuf {
        let pattern = self.args.trace.as_deref().map_or_else(|| OsStr::new(""), Path::as_os_str);
        let path = PathBuf::from(with_process_id(pattern, &runtime.local_process_id().to_string()));
        let mut files = lock(&self.files);
        loop {
            let number = files.entry(path.clone()).or_insert(0);
            *number = number.saturating_add(1);
            let number = *number;
            let numbered = if number == 1 { return path } else { numbered(&path, number) };
            if !files.contains_key(&numbered) {
                files.insert(numbered.clone(), 1);
                return numbered;
            }
        }
    }

    /// Tells of a failure, and remembers the first.
    fn fail(&self, runtime: &AdvertisedRuntime, failure: Failure) {
        self.tell(runtime, &Event::Error(&failure));
        lock(&self.failure).get_or_insert(failure);
    }

    fn tell(&self, runtime: &AdvertisedRuntime, event: &Event<'_>) {
        self.write(Some(runtime.local_process_id()), Some(runtime), event);
    }

    /// Writes it. That it cannot be written is no reason to leave runtimes alone.
    fn write(&self, process_id: Option<u64>, runtime: Option<&AdvertisedRuntime>, event: &Event<'_>) {
        let written = if self.globals.output.json {
            json_to_stdout(&event.to_json(process_id, runtime))
        } else {
            let process = process_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let line = format!("{:<8} {process:>7}  {}", event.name(), event.detail(runtime));
            if self.args.command.is_empty() {
                to_stdout(|out| writeln!(out, "{}", line.trim_end()))
            } else {
                to_stderr(line.trim_end());
                Ok(())
            }
        };
        if let Err(failure) = written {
            lock(&self.failure).get_or_insert(failure);
        }
    }
}

impl Event<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Set { .. } => "set",
            Self::Tracing { .. } => "tracing",
            Self::Resumed => "resumed",
            Self::Left => "left",
            Self::Error(_) => "error",
        }
    }

    fn detail(&self, runtime: Option<&AdvertisedRuntime>) -> String {
        match self {
            Self::Arrived => runtime.map_or_else(String::new, |runtime| runtime.runtime_cookie.to_string()),
            Self::Set { name, value } => printable(&format!("{name}={value}")).into_owned(),
            Self::Tracing { file } => printable(&file.to_string_lossy()).into_owned(),
            Self::Resumed | Self::Left => String::new(),
            Self::Error(failure) => failure.to_string(),
        }
    }

    fn to_json(&self, process_id: Option<u64>, runtime: Option<&AdvertisedRuntime>) -> Value {
        let cookie = runtime.map(|runtime| runtime.runtime_cookie.to_string());
        let mut json = json!({ "event": self.name(), "process_id": process_id, "runtime_cookie": cookie });
        let more = match self {
            Self::Arrived | Self::Resumed | Self::Left => json!({}),
            Self::Set { name, value } => json!({ "name": name, "value": value }),
            Self::Tracing { file } => json!({ "file": file.to_string_lossy() }),
            Self::Error(failure) => failure.to_json(),
        };
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }
}

/// The pattern, with the process id in the place of each `{pid}`.
#[cfg(unix)]
fn with_process_id(pattern: &OsStr, process_id: &str) -> OsString {
    let (mut path, mut rest) = (Vec::new(), pattern.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"{pid}") {
            path.extend_from_slice(process_id.as_bytes());
            rest = behind;
        } else {
            path.push(*first);
            rest = behind;
        }
    }
    OsString::from_vec(path)
}
/// The same. A name that is no text is taken as it is.
#[cfg(windows)]
fn with_process_id(pattern: &OsStr, process_id: &str) -> OsString {
    pattern.to_str().map_or_else(|| pattern.to_owned(), |pattern| pattern.replace("{pid}", process_id).into())
}

/// `app.nettrace` as `app.2.nettrace`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(OsStr::new("."));
        name.push(extension);
    }
    path.with_file_name(name)
}

impl fmt::Debug for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}
