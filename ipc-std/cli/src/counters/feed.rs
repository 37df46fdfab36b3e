//! `Feed`: the reports of processes, each of which is read by a thread of its own.
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use ipc_proto::wire::to_u64;
use ipc_std::discover::{self, ScanConfig};
use ipc_std::{Client, Observer, Stopper, Timeouts, TraceSession};
use nettrace_analysis::counters::{CounterConfig, CounterPlan};

use super::report::{Process, Report};
use super::session_reports::read_session;
use crate::args::timeout_args::since;
use crate::process::connection_args::TICK;
use crate::process::descriptors;
use crate::process::process_name;
use crate::run::signals;
use crate::run::threads::lock;
use crate::run::{Failure, Globals, Kind};

/// The sessions of processes.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    receiver: Receiver<(Arc<Process>, Report)>,
    sender: SyncSender<(Arc<Process>, Report)>,
    /// The processes that have not ended.
    running: usize,
    /// The sockets of all processes so far, if the feed follows all processes.
    known: Option<BTreeSet<PathBuf>>,
    next_scan: Instant,
    /// Sees the messages of the processes that are followed.
    observer: Option<Observer>,
    timeouts: Timeouts,
    config: CounterConfig,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_stopping: bool,
    /// Whether sessions of other processes can begin.
    follows_all: bool,
    /// The stoppers of the sessions that have not ended, by number of the session.
    stoppers: BTreeMap<u64, Stopper>,
    /// The number of sessions so far.
    sessions: u64,
    /// The number of sessions that have not ended.
    open: u64,
    /// The processes without a session so far, by their sockets: the system lacked something, or the process accepted no
    /// connection.
    left_out: BTreeMap<PathBuf, (Arc<Process>, String)>,
    /// The sockets of the processes that the next search tries again: their last attempt is over.
    retry: BTreeSet<PathBuf>,
    /// Whether nothing read the reports for too long, so that samples are missing.
    is_stalled: bool,
}

impl State {
    fn stop(&mut self) {
        core::mem::take(&mut self.stoppers).into_values().for_each(|stopper| stopper.stop());
        self.is_stopping = true;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds a session of a process with this socket, or stops it if all are stopped. Returns its number.
    fn begin(&self, session: &TraceSession, path: Option<&Path>) -> u64 {
        let mut state = self.lock();
        path.map(|path| state.left_out.remove(path));
        state.sessions = state.sessions.saturating_add(1);
        state.open = state.open.saturating_add(1);
        let number = state.sessions;
        if state.is_stopping {
            session.stop();
        } else {
            state.stoppers.insert(number, session.stopper());
        }
        number
    }

    /// Removes a session that has ended.
    fn end(&self, number: u64) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        state.stoppers.remove(&number);
    }

    /// Sends a report. If there is no room for too long, stops all sessions. Returns whether reports are still wanted.
    fn send(&self, sender: &SyncSender<(Arc<Process>, Report)>, report: (Arc<Process>, Report)) -> bool {
        /// The first pause before the next attempt.
        const PAUSE: Duration = Duration::from_millis(1);
        let (mut report, began, mut pause) = (report, Instant::now(), PAUSE);
        loop {
            match sender.try_send(report) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(refused)) => report = refused,
            }
            if self.lock().is_stalled {
                return false;
            }
            if began.elapsed() >= STALL {
                self.lock().is_stalled = true;
                self.stop();
                return false;
            }
            thread::sleep(pause);
            pause = TICK.min(pause.saturating_mul(2));
        }
    }

    /// Stores that a process has no session yet, and why.
    fn leave_out(&self, path: PathBuf, process: &Arc<Process>, why: &str) {
        let mut state = self.lock();
        if state.left_out.len() < MAX_LEFT_OUT {
            state.retry.insert(path.clone());
            state.left_out.insert(path, (Arc::clone(process), why.to_owned()));
        }
    }

    /// Stops all sessions.
    fn stop(&self) {
        self.lock().stop();
    }

    /// Stops all sessions at a signal, if that ends the feed. Otherwise returns `false` and changes nothing: the feed
    /// only waits for its process to answer, and the signal ends the tool before the main thread sees an end.
    fn stop_at_signal(&self) -> bool {
        let mut state = self.lock();
        let ends = state.open > 0 || state.follows_all;
        if ends {
            state.stop();
        }
        ends
    }

    /// Returns whether all sessions are stopped and have ended. A process whose session has not begun is not waited for.
    fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_stopping && state.open == 0
    }
}

/// The maximum number of reports that wait, over all processes.
const WAITING: usize = 4_096;
/// How long a report waits for room before all sessions are stopped: the output takes nothing.
const STALL: Duration = Duration::from_secs(10);
/// The maximum number of processes without a session that are stored, and of those that a message names.
const MAX_LEFT_OUT: usize = 10_000;
const LISTED: usize = 10;
/// The time between two searches for new processes.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// The stack of a thread in bytes: it needs little, because the state of a session is on the heap.
const STACK_SIZE: usize = 256 << 10;

impl Feed {
    /// Creates a feed without processes. Fails if no runtime supports such a session. The first signal stops all
    /// sessions of the feed. A second one ends the tool, as does one before the only process has answered.
    pub(crate) fn new(config: CounterConfig, timeouts: Timeouts, globals: &Globals) -> Result<Self, Failure> {
        // The plan depends on the version of the runtime. Whether the plan is an error does not.
        CounterPlan::new(&config, None).map_err(|e| Failure::usage(e.to_string()))?;
        let shared = Arc::new(Shared::default());
        signals::handle({
            let (shared, is_json, mut is_second) = (Arc::clone(&shared), globals.json, false);
            move |_| {
                let stops = !core::mem::replace(&mut is_second, true) && shared.stop_at_signal();
                if stops {
                    signals::explain_wait(is_json, &timeouts);
                }
                stops
            }
        })?;
        signals::ignored_note().iter().for_each(|note| globals.note(note));
        let (sender, receiver) = sync_channel(WAITING);
        let next_scan = Instant::now();
        let (running, known, observer) = (0, None, None);
        Ok(Self { shared, receiver, sender, running, known, next_scan, observer, timeouts, config })
    }

    /// Starts a session of a process, on a thread of its own.
    pub(crate) fn add(&mut self, process: Process, client: Client) -> Result<(), Failure> {
        self.add_found(Arc::new(process), None, || Some(client))
    }

    /// Starts a session of a process, on a thread of its own. `client` can wait for the process. `path` is the socket,
    /// if there can be another attempt.
    fn add_found(
        &mut self,
        process: Arc<Process>,
        path: Option<PathBuf>,
        client: impl FnOnce() -> Option<Client> + Send + 'static,
    ) -> Result<(), Failure> {
        let (config, sender) = (self.config.clone(), self.sender.clone());
        let shared = Arc::clone(&self.shared);
        let spawned =
            thread::Builder::new().name("counters".to_owned()).stack_size(STACK_SIZE).spawn(move || {
                let mut process = process;
                let mut number = None;
                let started = client().map(|client| client.start_counters(&config).map_err(Failure::from));
                // A process whose socket cannot be used is left out. `ps --why` reports such a process.
                let ended = started.map_or(Ok(()), |started| {
                    let mut stream = started?;
                    number = Some(shared.begin(stream.session(), path.as_deref()));
                    read_session(&mut stream, |id, report| {
                        if process.id.is_none() && id.is_some() {
                            process = Arc::new(Process { id, ..(*process).clone() });
                        }
                        shared.send(&sender, (Arc::clone(&process), report))
                    })
                });
                let ended = match (ended, path) {
                    (Err(failure), Some(path)) if failure.is_temporary() && number.is_none() => {
                        shared.leave_out(path, &process, failure.message());
                        let (wait, why) = (SCAN_INTERVAL.as_secs(), failure.message());
                        let problem = format!("no session yet, the next attempt is in {wait} s: {why}");
                        let _ = sender.send((Arc::clone(&process), Report::Problem(problem)));
                        Ok(())
                    }
                    (ended, _) => ended,
                };
                // An error means that the tool wants no more reports: the receiver no longer exists.
                let _ = sender.send((process, Report::Ended(ended)));
                // After the last report, which is still read.
                number.into_iter().for_each(|number| shared.end(number));
            });
        spawned.map_err(|e| Failure::io("cannot start a thread", &e))?;
        self.running = self.running.saturating_add(1);
        Ok(())
    }

    /// Starts a session of each process, and of those that start later.
    pub(crate) fn follow_all(&mut self, observer: Option<Observer>) {
        descriptors::raise_limit();
        self.known = Some(BTreeSet::new());
        self.shared.lock().follows_all = true;
        self.observer = observer;
    }

    /// Starts a session of each new process, and of those that were left out.
    fn scan(&mut self) {
        let Some(mut known) = self.known.take() else { return };
        let retry = core::mem::take(&mut self.shared.lock().retry);
        known.retain(|path| !retry.contains(path));
        let (began, limit) = (Instant::now(), descriptors::max_sessions());
        for search in discover::scan(&ScanConfig::default()).searches {
            let Some(path) = search.path().map(Path::to_owned) else { continue };
            if !known.insert(path.clone()) {
                continue;
            }
            let id = search.process_id();
            let process =
                Process { id: Some(id.into()), name: process_name::name(&search, None).unwrap_or_default() };
            let process = Arc::new(process);
            let (timeouts, observer) = (self.timeouts, self.observer.clone());
            let client = move || {
                let client = Client::for_search(search, &timeouts).ok()?;
                Some(since(client, began).with_observer(observer))
            };
            let added = if to_u64(self.running) < limit {
                self.add_found(Arc::clone(&process), Some(path.clone()), client)
            } else {
                let message = format!("the limit of open files allows {limit} sessions");
                Err(Failure::new(Kind::Io, message))
            };
            if let Err(failure) = added {
                self.shared.leave_out(path, &process, failure.message());
            }
        }
        self.known = Some(known);
    }

    /// Returns the failure if samples are missing: a process was left out, or nothing read the reports.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let state = self.shared.lock();
        if state.is_stalled {
            let message = format!(
                "the output took nothing for {} s, so the sessions were stopped, and samples are missing",
                STALL.as_secs()
            );
            return Err(Failure::new(Kind::Io, message).without_hint());
        }
        let count = state.left_out.len();
        if count == 0 {
            return Ok(());
        }
        let named = state.left_out.values().take(LISTED).map(|(process, why)| {
            let id = process.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            format!("{id} {} ({why})", process.name)
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if count > LISTED { ", …" } else { "" };
        let what = if count == 1 { "1 process was" } else { &format!("{count} processes were") };
        Err(Failure::new(Kind::Io, format!("{what} left out: {named}{more}")).without_hint())
    }

    /// Stops all sessions. Their remaining reports can still be read.
    pub(crate) fn stop(&mut self) {
        self.shared.stop();
        self.known = None;
    }

    /// Stops all sessions, and returns the first failure of them.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.stop();
        let mut result = Ok(());
        loop {
            match self.next(None)? {
                Next::Report(_, Report::Ended(ended)) => result = result.and(ended),
                Next::Report(..) => {}
                Next::Deadline | Next::Finished => return result,
            }
        }
    }

    /// Returns the next report, until `deadline` at the latest; `None` at the deadline.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Next, Failure> {
        loop {
            if self.shared.lock().is_stopping {
                self.known = None;
            }
            if self.known.is_none() && self.running == 0 {
                return Ok(Next::Finished);
            }
            let now = Instant::now();
            let is_over = self.shared.is_over();
            if !is_over && deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Next::Deadline);
            }
            if self.known.is_some() && now >= self.next_scan {
                self.scan();
                self.next_scan = Instant::now().checked_add(SCAN_INTERVAL).unwrap_or(now);
            }
            // The wait has a limit, because no report comes if no process runs: a signal would then stay unnoticed.
            let scan = self.known.is_some().then_some(self.next_scan);
            let due = [deadline, scan].into_iter().flatten().min();
            let wait = match due {
                _ if is_over => Duration::ZERO,
                Some(due) => due.saturating_duration_since(now).min(TICK),
                None => TICK,
            };
            match self.receiver.recv_timeout(wait) {
                Ok((process, report)) => {
                    if matches!(report, Report::Ended(_)) {
                        self.running = self.running.saturating_sub(1);
                    }
                    return Ok(Next::Report(process, report));
                }
                Err(_) if is_over => return Ok(Next::Finished),
                // `Disconnected` is impossible: the feed itself has a sender.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

/// Stops the sessions that still run, so that they end properly, and drops their reports.
impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
        while let Ok(Next::Report(..)) = self.next(None) {}
    }
}

/// What [`Feed::next`] returns.
pub(crate) enum Next {
    Report(Arc<Process>, Report),
    Deadline,
    /// All processes have ended.
    Finished,
}

#[cfg(test)]
mod tests {
    use super::Shared;

    /// Otherwise the main thread could end the tool as if the process had answered, before the signal ends it.
    #[test]
    fn a_signal_before_an_answer_ends_no_feed() {
        let shared = Shared::default();
        assert!(!shared.stop_at_signal() && !shared.is_over());
        shared.lock().follows_all = true;
        assert!(shared.stop_at_signal() && shared.is_over());
    }
}
