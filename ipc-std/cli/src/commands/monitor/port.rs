//! The port of `monitor`: one thread for events, and one for each runtime.
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Instant;

use ipc_std::{AdvertisedRuntime, Client, Error, Monitor, MonitorEvent, TraceSession};

use super::args::Args;
use super::child::Child;
use super::event::Event;
use super::notice::{Notice, Notifier};
use super::trace_files::TraceFiles;
use crate::output::live_stderr::LiveStderr;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::connection_args::TICK;
use crate::recording::args::SessionPlan;
use crate::recording::output::TraceOutput;
use crate::recording::record::record;
use crate::recording::session_failure;
use crate::recording::summary::RecordingSummary;
use crate::run::threads::lock;
use crate::run::{Failure, Globals, Kind};

/// At most this many events are handled before notices, so that many events do not delay a signal.
const EVENTS: usize = 64;
/// How long recordings can take to end before the command gets a signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long the port waits for runtimes to disconnect after the command has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// The state that the main thread and the threads of the runtimes share.
pub(super) struct Port<'p> {
    args: &'p Args,
    globals: &'p Globals,
    monitor: &'p Monitor,
    /// Notes, and the events beside a command.
    stderr: &'p LiveStderr,
    plan: Option<SessionPlan<'p>>,
    notifier: Notifier,
    /// Whether all traces must end.
    ending: AtomicBool,
    /// The number of runtimes that have a thread.
    busy: AtomicUsize,
    files: TraceFiles,
    /// The first failure of a runtime, which the tool returns.
    failure: Mutex<Option<Failure>>,
}

impl<'p> Port<'p> {
    pub(super) fn new(
        args: &'p Args,
        globals: &'p Globals,
        monitor: &'p Monitor,
        stderr: &'p LiveStderr,
        plan: Option<SessionPlan<'p>>,
        notifier: Notifier,
    ) -> Self {
        Self {
            args,
            globals,
            monitor,
            stderr,
            plan,
            notifier,
            ending: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            files: TraceFiles::new(args.trace.as_deref()),
            failure: Mutex::new(None),
        }
    }

    /// Ends all traces.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Returns the first failure.
    pub(super) fn into_failure(self) -> Option<Failure> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles events until the command has ended or a signal arrives.
    pub(super) fn run<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        mut child: Option<Child>,
        notices: &Receiver<Notice>,
    ) -> Result<Option<ExitStatus>, Failure> {
        let (mut status, mut seen) = (None, false);
        let command = child.as_ref().map(|child| child.name.clone());
        let duration = self.args.options.session.live.duration;
        let end = duration.and_then(|duration| Instant::now().checked_add(duration));
        // When the command ended, until its descendants have ended or a note has reported them.
        let mut command_ended: Option<Instant> = None;
        // A signal for the command. It is sent after the traces have ended, or after the grace time.
        let mut signal: Option<(i32, Instant)> = None;
        let mut waiting = VecDeque::new();
        let mut over: Option<Instant> = None;
        let mut first = None;
        loop {
            for _ in 0..EVENTS {
                let event = first.take().map_or_else(|| self.monitor.poll_event(), |event| Ok(Some(event)));
                let Some(event) = event? else { break };
                let is_wanted = !seen || !self.args.first_only;
                seen |= matches!(event, MonitorEvent::Arrived(_));
                waiting.extend(self.on_event(event).map(|runtime| (runtime, is_wanted)));
            }
            while let Some((runtime, is_wanted)) = waiting.pop_front() {
                if !self.spawn_setup(scope, runtime, is_wanted) {
                    waiting.push_front((runtime, is_wanted));
                    break;
                }
            }
            while let Ok(notice) = notices.try_recv() {
                match notice {
                    Notice::Idle => {}
                    Notice::Signal(number) => {
                        self.end();
                        signal = Some((number, Instant::now()));
                    }
                    Notice::Ended(ended) => {
                        status = Some(ended.map_err(|e| Failure::io("cannot wait for the command", &e))?);
                        child = None;
                        command_ended = Some(Instant::now());
                        if self.args.first_only {
                            self.end();
                        }
                    }
                    Notice::AllEnded => {
                        self.end();
                        command_ended = None;
                    }
                }
            }
            let is_over = end.is_some_and(|end| end <= Instant::now());
            if is_over {
                self.end();
            }
            if command_ended.take_if(|ended| ended.elapsed() >= TICK).is_some() && !self.is_ending() {
                self.note(
                    "the command has ended, but its descendants still run: Ctrl-C ends the monitor, and --first-only \
                     does not wait for them",
                );
            }
            let busy = self.busy.load(Ordering::Relaxed) > 0;
            if let Some((number, _)) = signal.take_if(|(_, at)| !busy || at.elapsed() > GRACE) {
                child.as_ref().into_iter().for_each(|child| child.signal(number));
            }
            // A command that is stopped may not end.
            let is_stopped = is_over && child.as_ref().is_some_and(Child::is_stopped);
            if self.is_ending() && !busy && (child.is_none() || is_stopped) {
                let since = *over.get_or_insert_with(Instant::now);
                // A command that was stopped together with the tool continues a moment later.
                let is_empty = !is_stopped && (status.is_none() || self.monitor.runtimes().is_empty());
                if is_empty || since.elapsed() >= FAREWELL {
                    if is_stopped {
                        self.note("the command is stopped, and the tool does not wait for its end");
                    }
                    if let Some(command) = command.filter(|_| !seen) {
                        self.report_no_runtime(&command);
                    }
                    return Ok(status);
                }
            }
            first = self.monitor.next_event(TICK)?;
        }
    }

    /// Reports that the command has ended and no runtime has connected.
    fn report_no_runtime(&self, command: &str) {
        let why = format!(
            "no runtime connected: is {command} a .NET program, and are its diagnostics switched on?"
        );
        if self.plan.is_none() {
            return self.note(&why);
        }
        let failure = Failure::new(Kind::NotFound, format!("there is no trace: {why}"));
        lock(&self.failure).get_or_insert(failure.without_hint());
    }

    /// Writes the event, and returns a runtime that has arrived.
    fn on_event(&self, event: MonitorEvent) -> Option<AdvertisedRuntime> {
        match event {
            MonitorEvent::Arrived(runtime) => {
                self.report(&runtime, &Event::Arrived);
                return Some(runtime);
            }
            MonitorEvent::Left(runtime) => self.report(&runtime, &Event::Left),
            MonitorEvent::Rejected { rejection, credentials } => {
                let process = credentials.map(|credentials| credentials.process_id);
                let who = process.filter(|id| *id != 0);
                let named = who.map_or_else(|| "a process".to_owned(), |id| format!("process {id}"));
                let failure = Failure::new(Kind::Protocol, format!("{named} {rejection}"));
                self.write(who.map(u64::from), None, &Event::Error(&failure.without_hint()));
            }
            _ => {}
        }
        None
    }

    /// Sets up the runtime on a thread of its own, or only resumes it unless it `is_wanted`. Returns `false` if the system
    /// refuses another thread.
    fn spawn_setup<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        runtime: AdvertisedRuntime,
        is_wanted: bool,
    ) -> bool {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let thread = thread::Builder::new().name(format!("runtime {}", runtime.process_id));
        let spawned = thread.spawn_scoped(scope, move || {
            if let Err(failure) = self.set_up(&runtime, is_wanted) {
                self.fail(&runtime, failure);
            }
            self.busy.fetch_sub(1, Ordering::Relaxed);
            self.notifier.send(Notice::Idle);
        });
        if spawned.is_err() {
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
        spawned.is_ok()
    }

    /// Sets up the runtime. After a failure the runtime is resumed as well, because it would stay suspended otherwise.
    fn set_up(&self, runtime: &AdvertisedRuntime, is_wanted: bool) -> Result<(), Failure> {
        let client = self.monitor.client(runtime.runtime_cookie);
        let recording = if is_wanted { self.prepare(&client, runtime) } else { None };
        let resume = || {
            if !self.args.options.session.live.no_resume {
                self.resume(&client, runtime);
            }
        };
        let plan = self.plan.as_ref();
        let is_blocked =
            |(session, _): &(TraceSession, _)| plan.is_some_and(|plan| plan.blocks_requests(session));
        let blocks = recording.as_ref().is_some_and(is_blocked);
        thread::scope(|scope| {
            // A runtime that waits for the tool answers only after its events are read.
            if !blocks || thread::Builder::new().spawn_scoped(scope, resume).is_err() {
                resume();
            }
            recording.map_or(Ok(()), |(session, file)| self.record(runtime, session, file))
        })
    }

    /// Sets variables and starts the trace, before the runtime is resumed. A runtime that does not respond gets no more
    /// requests.
    fn prepare(&self, client: &Client, runtime: &AdvertisedRuntime) -> Option<(TraceSession, TraceOutput)> {
        let answers = |kind| !matches!(kind, Kind::Timeout | Kind::Gone);
        for (name, value) in &self.args.set {
            match client.set_environment_variable(name, Some(value)) {
                Ok(()) => self.report(runtime, &Event::Set { name, value }),
                Err(Error::Left { .. }) => return None,
                Err(e) => {
                    let failure = Failure::from(e);
                    let kind = failure.kind();
                    self.fail(runtime, failure);
                    if !answers(kind) {
                        self.drop_if_gone(runtime, kind);
                        return None;
                    }
                }
            }
        }
        let plan = self.plan.as_ref().filter(|_| !self.is_ending())?;
        let started = self.start_when_possible(client, plan, runtime);
        let failed = |failure: Failure| {
            let kind = failure.kind();
            self.fail(runtime, failure);
            self.drop_if_gone(runtime, kind);
        };
        started.map_err(failed).ok()
    }

    /// Removes a runtime that closed the connection of a command, unless it has connected again after a pause. If it
    /// connects later, it arrives again. Otherwise one process could make the monitor store any number of runtimes
    /// until it exits.
    fn drop_if_gone(&self, runtime: &AdvertisedRuntime, kind: Kind) {
        if kind == Kind::Gone {
            thread::sleep(TICK);
            let cookie = runtime.runtime_cookie;
            if !self.monitor.is_waiting(cookie) && self.monitor.remove(cookie) {
                self.report(runtime, &Event::Left);
            }
        }
    }

    /// Resumes the runtime. Retries while the runtime is connected and the tool runs: a runtime that is stopped in a
    /// debugger does not respond, and would stay suspended.
    fn resume(&self, client: &Client, runtime: &AdvertisedRuntime) {
        let mut failed = false;
        loop {
            match client.resume() {
                Ok(()) => {
                    self.report(runtime, &Event::Resumed);
                    return;
                }
                Err(Error::Left { .. }) => return,
                Err(e) => {
                    let refused = e.hresult().is_some();
                    let failure = Failure::from(e);
                    let kind = failure.kind();
                    if !core::mem::replace(&mut failed, true) {
                        self.fail(runtime, failure);
                    }
                    if refused || self.is_ending() {
                        return;
                    }
                    match kind {
                        Kind::Gone => self.drop_if_gone(runtime, kind),
                        // An error can come immediately. Without this pause, the loop would keep a core busy.
                        _ => thread::sleep(TICK),
                    }
                }
            }
        }
    }

    /// Starts a trace of the runtime. If the system lacks descriptors, memory or threads, retries for the time of a call.
    fn start_when_possible(
        &self,
        client: &Client,
        plan: &SessionPlan<'_>,
        runtime: &AdvertisedRuntime,
    ) -> Result<(TraceSession, TraceOutput), Failure> {
        let (path, began) = (self.files.next(runtime.local_process_id()), Instant::now());
        loop {
            match self.start(client, plan, runtime, &path) {
                Err(failure)
                    if failure.is_temporary()
                        && !self.is_ending()
                        && began.elapsed() < client.timeouts().call =>
                {
                    thread::sleep(TICK);
                }
                started => return started,
            }
        }
    }

    /// Starts a trace of the runtime.
    fn start(
        &self,
        client: &Client,
        plan: &SessionPlan<'_>,
        runtime: &AdvertisedRuntime,
        path: &Path,
    ) -> Result<(TraceSession, TraceOutput), Failure> {
        let file = TraceOutput::open(path, &self.args.connection.wire_log.overwrite)?;
        let session = plan.start(client).and_then(|session| file.truncate().map(|()| session));
        let session = session.inspect_err(|_| file.abandon())?;
        for limitation in plan.limitations(&session) {
            self.note(&format!("process {}: {limitation}", runtime.local_process_id()));
        }
        self.report(runtime, &Event::Tracing { file: path });
        Ok((session, file))
    }

    /// Writes the trace until the runtime or the tool ends.
    fn record(
        &self,
        runtime: &AdvertisedRuntime,
        mut session: TraceSession,
        output: TraceOutput,
    ) -> Result<(), Failure> {
        let options = &self.args.options.session.live;
        let started = Instant::now();
        let recorded = record(&mut session, &output, None, |session| {
            if self.is_ending() {
                session.stop();
            }
        });
        let summary = RecordingSummary::new(&output, started.elapsed());
        let is_complete = session_failure::is_complete(&session, &output) && recorded.is_ok();
        self.report(runtime, &Event::Recorded { summary: &summary, is_complete });
        let blocks = self.plan.as_ref().is_some_and(|plan| plan.blocks(&session));
        if let Some(warning) = summary.warning(options.buffer, blocks) {
            self.note(&format!("process {}: {warning}", runtime.local_process_id()));
        }
        recorded?;
        let process_id = u32::try_from(runtime.local_process_id()).ok();
        session_failure::check_end(&session, options.no_resume, process_id, &output)
    }

    /// Writes a failure, and stores the first one.
    fn fail(&self, runtime: &AdvertisedRuntime, failure: Failure) {
        self.report(runtime, &Event::Error(&failure));
        lock(&self.failure).get_or_insert(failure);
    }

    fn report(&self, runtime: &AdvertisedRuntime, event: &Event<'_>) {
        self.write(Some(runtime.local_process_id()), Some(runtime), event);
    }

    fn note(&self, note: &str) {
        self.check(self.stderr.note(note));
    }

    /// Stores the first failure of a write, which does not stop the setup of runtimes.
    fn check(&self, written: Result<(), Failure>) {
        if let Err(failure) = written {
            lock(&self.failure).get_or_insert(failure);
        }
    }

    /// Writes the event.
    fn write(&self, process_id: Option<u64>, runtime: Option<&AdvertisedRuntime>, event: &Event<'_>) {
        if self.globals.json {
            return self.check(json_to_stdout(&event.to_json(process_id, runtime)));
        }
        let process = process_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let line = format!("{:<8} {process:>7}  {}", event.name(), event.detail(runtime));
        let line = line.trim_end();
        self.check(if self.args.command.is_empty() {
            to_stdout(|out| writeln!(out, "{line}"))
        } else {
            self.stderr.write(line)
        });
    }
}

impl fmt::Debug for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}
