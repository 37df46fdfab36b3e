//! The session of one process, which a signal ends.
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ipc_std::{Client, ErrorKind, Stopper, TraceSession};
use nettrace::End;

use super::args::SessionPlan;
use super::output::{self, TraceOutput};
use super::session_failure::{check_resumed, read_failure};
use crate::input::source;
use crate::run::signals;
use crate::run::stderr;
use crate::run::threads::{lock, spawn};
use crate::run::{Failure, Globals, Kind};

/// A session that has started.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) session: TraceSession,
    pub(crate) started: Instant,
    pub(crate) resumption: Resumption,
    /// Whether a signal or the end of the duration has stopped the session.
    pub(crate) stopping: Arc<AtomicBool>,
    /// Dropped at the end of the command.
    pub(crate) notes: Notes,
}

/// The resumption of the runtime, which can last as long as the session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resumption(Arc<Mutex<Option<Failure>>>);

impl Resumption {
    /// Returns the failure of the resumption so far, which has stopped the session.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        lock(&self.0).take().map_or(Ok(()), Err)
    }
}

/// Notes at the start of a session. A thread writes them, so that a terminal that is stopped does not delay the session.
#[derive(Debug)]
pub(crate) struct Notes(Option<JoinHandle<()>>);

impl Notes {
    fn start(notes: Vec<String>, globals: &Globals) -> Result<Self, Failure> {
        if notes.is_empty() {
            return Ok(Self(None));
        }
        let is_json = globals.json;
        spawn("notes", move || notes.iter().for_each(|note| stderr::note(is_json, note))).map(Some).map(Self)
    }
}

/// Waits for the notes.
impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// Starts a session, and then resumes the runtime if it is suspended.
pub(crate) fn start(
    client: Client,
    plan: &SessionPlan<'_>,
    output: Option<&TraceOutput>,
    globals: &Globals,
) -> Result<LiveSession, Failure> {
    let stopping = Arc::new(AtomicBool::new(false));
    let created = output.and_then(TraceOutput::created).map(ToOwned::to_owned);
    let stage = Arc::new(Mutex::new(Stage { created, session: None }));
    signals::handle({
        let (stage, stopping, is_json) = (Arc::clone(&stage), Arc::clone(&stopping), globals.json);
        let limits = *client.timeouts();
        move |_| {
            stopping.store(true, Ordering::Relaxed);
            let Stage { created, session } = mem::take(&mut *lock(&stage));
            output::remove(created.as_deref());
            let Some(session) = session else { return false };
            session.stop();
            signals::explain_wait(is_json, &limits);
            true
        }
    })?;
    let session = plan.start(&client)?;
    // Before the start of the thread that stops the session, so that a session never seems shorter than its duration.
    let started = Instant::now();
    output.map_or(Ok(()), TraceOutput::truncate)?;
    stop_later(started, plan.duration, session.stopper(), Arc::clone(&stopping))?;
    *lock(&stage) = Stage { created: None, session: Some(session.stopper()) };
    let resumption = Resumption::default();
    let (blocks, stopper, failure) =
        (plan.blocks_requests(&session), session.stopper(), Arc::clone(&resumption.0));
    let resume = move || {
        if let Err(e) = resume(&client, blocks) {
            *lock(&failure) = Some(e);
            // The session is stopped, so that the trace still gets its end.
            stopper.stop();
        }
    };
    match (plan.no_resume, blocks) {
        (true, _) => {}
        (false, true) => drop(spawn("resume", resume)?),
        (false, false) => resume(),
    }
    let notes = Notes::start(
        plan.limitations(&session).into_iter().chain(signals::ignored_note()).collect(),
        globals,
    )?;
    Ok(LiveSession { session, started, resumption, stopping, notes })
}

/// Reports an unexpected end of a complete trace.
pub(crate) fn report_end(session: &TraceSession, globals: &Globals) {
    if !session.is_complete() {
        globals.note("bytes follow the end of the trace, which readers ignore");
    } else if !session.is_stopping() {
        globals.note("the process exited, which ended the trace");
    }
    if let Some(e) = session.stop_error() {
        globals.note(&format!("the trace is complete, but the runtime did not confirm its end: {e}"));
    }
}

/// Events of a session that are used as they come.
pub(crate) trait LiveEvents {
    /// Uses the next event. Returns the end of the trace instead of an event.
    fn advance(&mut self) -> io::Result<Option<End>>;
    /// Returns whether no more events are wanted.
    fn is_done(&self) -> bool;
    fn session(&mut self) -> &mut TraceSession;
}

/// Reads the events up to the end of the session. Returns the end of the trace, if it was read.
///
/// The client must have [`TICK`](crate::process::connection_args::TICK) as its [`silence`](ipc_std::Timeouts::silence).
pub(crate) fn read_events(events: &mut impl LiveEvents) -> (Option<End>, Result<(), Failure>) {
    let mut end = None;
    loop {
        let advanced = match end {
            None => events.advance(),
            // After the end of the trace, even a corrupt one, the remaining bytes are read until the session ends.
            Some(_) => match events.session().read(&mut [0; 4096]) {
                Ok(0) => return (end, Ok(())),
                other => other.map(|_| None),
            },
        };
        match advanced {
            Ok(None) => {}
            Ok(found) => end = found,
            Err(e) => {
                if let Err(e) = read_failure(events.session(), e) {
                    return (end, Err(e));
                }
            }
        }
        // If no more events are wanted or can be parsed, the session is stopped, so that it ends properly.
        if events.is_done() || matches!(end, Some(End::Corrupt { .. })) {
            events.session().stop();
        }
    }
}

/// Fails if the events of a process have no end.
pub(crate) fn check_end(
    end: Option<End>,
    session: &TraceSession,
    no_resume: bool,
    process_id: Option<u32>,
) -> Result<(), Failure> {
    check_resumed(session, no_resume, process_id)?;
    match end {
        Some(End::Truncated { .. }) => {
            Err(Failure::new(Kind::Gone, "events incomplete: the process exited while recording"))
        }
        end => source::check(end.unwrap_or(End::Complete), "the runtime"),
    }
}

/// What a signal stops or removes: the file before the session has started, and then the session.
#[derive(Debug, Default)]
struct Stage {
    created: Option<PathBuf>,
    session: Option<Stopper>,
}

/// Stops the session that started at `started` after `duration`, if there is one.
fn stop_later(
    started: Instant,
    duration: Option<Duration>,
    stopper: Stopper,
    stopping: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let Some(duration) = duration else { return Ok(()) };
    let spawned = spawn("stop", move || {
        // On Windows and Wine, `sleep` can use another clock than `Instant`, and wake early.
        while let Some(left) = duration.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left);
        }
        stopping.store(true, Ordering::Relaxed);
        stopper.stop();
    });
    spawned.map(drop)
}

/// Resumes a suspended runtime. A runtime that does not answer because the session `blocks` requests is not suspended.
fn resume(client: &Client, blocks: bool) -> Result<(), Failure> {
    match client.resume() {
        Err(e) if blocks && e.kind() == ErrorKind::Timeout => Ok(()),
        // .NET Core 3 does not know the command, and cannot be suspended.
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(()),
        result => Ok(result?),
    }
}
