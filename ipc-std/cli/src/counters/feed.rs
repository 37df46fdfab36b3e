//! `Feed`: the samples of processes, each read by a thread of its own. `read_file`: the samples of a trace.
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use ipc_std::discover::{self, ScanConfig};
use ipc_std::{Client, CounterStream, Observer, Stopper, Timeouts, TraceReader, TraceSession};
use nettrace::{End, Version};
use nettrace_analysis::Part;
use nettrace_analysis::counters::{
    CounterConfig, CounterEvent, CounterPlan, CounterReader, Instrument, OwnedSample, Selection,
};

use crate::args::process_arg::ProcessArg;
use crate::input::source::{self, Source};
use crate::input::trace_file;
use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::output::signals;
use crate::output::threads::lock;
use crate::process::connection_args::TICK;
use crate::process::process_name;
use crate::recording::session_failure::{exited, is_suspended, read_failure, suspended};

/// The process that a sample comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    /// `None` if it is unknown, as for a socket before its session, and in a trace that states none.
    pub(crate) id: Option<u64>,
    /// The name of the process; empty if it is unknown.
    pub(crate) name: String,
}

/// A report about a process.
#[derive(Debug)]
pub(crate) enum Report {
    /// The first report of a trace that can have several processes.
    SeveralProcesses,
    Sample(Box<OwnedSample>),
    /// A sample of a counter that is not selected, of a trace that has none of the selected ones so far.
    Unselected(Box<OwnedSample>),
    Begin(Box<OwnedInstrument>),
    /// An instrument has ended. The keys of its series begin with this text.
    End(String),
    Published(Box<OwnedInstrument>),
    /// All instruments that exist were published.
    EnumerationComplete,
    /// Samples are missing, for this reason.
    Problem(String),
    /// The last report of the process.
    Ended(Result<(), Failure>),
}

/// An instrument that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedInstrument {
    pub(crate) meter: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) unit: String,
    pub(crate) description: String,
}

impl From<&Instrument<'_>> for OwnedInstrument {
    fn from(instrument: &Instrument<'_>) -> Self {
        Self {
            meter: instrument.meter.to_string(),
            name: instrument.name.to_string(),
            kind: instrument.kind.to_string(),
            unit: instrument.unit.to_string(),
            description: instrument.description.to_string(),
        }
    }
}

impl Report {
    fn of(event: &CounterEvent<'_>) -> Option<Self> {
        Some(match event {
            CounterEvent::Sample(sample) => Self::Sample(Box::new(sample.into())),
            CounterEvent::Begin(instrument) => Self::Begin(Box::new(instrument.into())),
            CounterEvent::End(instrument) => {
                let mut prefix = String::new();
                instrument.push_series_prefix(&mut prefix);
                Self::End(prefix)
            }
            CounterEvent::Published(instrument) => Self::Published(Box::new(instrument.into())),
            CounterEvent::EnumerationComplete => Self::EnumerationComplete,
            CounterEvent::Problem(problem) => Self::Problem(problem.to_string()),
            _ => return None,
        })
    }
}

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
    /// The stoppers of the sessions that have not ended, by number of the session. A stopper has file descriptors of
    /// its own, so it is removed with its session.
    stoppers: BTreeMap<u64, Stopper>,
    /// The number of sessions so far.
    sessions: u64,
    /// The number of sessions that have not ended.
    open: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds a session, or stops it if all are stopped. Returns its number.
    fn begin(&self, session: &TraceSession) -> u64 {
        let mut state = self.lock();
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

    /// Stops all sessions. Returns whether that ends the feed: they were not stopped before, and the feed does not only
    /// wait for its process to answer.
    fn stop(&self) -> bool {
        let mut state = self.lock();
        core::mem::take(&mut state.stoppers).into_values().for_each(|stopper| stopper.stop());
        !core::mem::replace(&mut state.is_stopping, true) && (state.open > 0 || state.follows_all)
    }

    /// Returns whether all sessions are stopped and have ended. A process whose session has not begun is not waited for.
    fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_stopping && state.open == 0
    }
}

/// The maximum number of reports that wait, over all processes.
const WAITING: usize = 4_096;
/// The time between two searches for new processes.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// The stack of a thread in bytes: it needs little, because the state of a session is on the heap.
const STACK_SIZE: usize = 256 << 10;

impl Feed {
    /// Creates a feed without processes. Fails if no runtime supports such a session. The first signal stops all
    /// sessions of the feed. A second one ends the tool, as does one before the only process has answered.
    pub(crate) fn new(config: CounterConfig, timeouts: Timeouts, globals: &Globals) -> Result<Self, Failure> {
        // The plan depends on the version of the runtime. Whether the plan is an error does not.
        CounterPlan::new(&config, None).map_err(|e| Failure::new(Kind::Usage, e.to_string()))?;
        let shared = Arc::new(Shared::default());
        signals::handle({
            let (shared, is_json) = (Arc::clone(&shared), globals.json);
            move |_| {
                let stops = shared.stop();
                if stops {
                    signals::explain_wait(is_json);
                }
                stops
            }
        })?;
        let (sender, receiver) = sync_channel(WAITING);
        let next_scan = Instant::now();
        let (running, known, observer) = (0, None, None);
        Ok(Self { shared, receiver, sender, running, known, next_scan, observer, timeouts, config })
    }

    /// Starts a session of a process, on a thread of its own.
    pub(crate) fn add(&mut self, process: Process, client: Client) -> Result<(), Failure> {
        let (config, sender) = (self.config.clone(), self.sender.clone());
        let (process, shared) = (Arc::new(process), Arc::clone(&self.shared));
        let spawned =
            thread::Builder::new().name("counters".to_owned()).stack_size(STACK_SIZE).spawn(move || {
                let mut process = process;
                let mut number = None;
                let started = client.start_counters(&config).map_err(Failure::from);
                let ended = started.and_then(|mut stream| {
                    number = Some(shared.begin(stream.session()));
                    read(&mut stream, |id, report| {
                        if process.id.is_none() && id.is_some() {
                            process = Arc::new(Process { id, ..(*process).clone() });
                        }
                        sender.send((Arc::clone(&process), report)).is_ok()
                    })
                });
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
        self.known = Some(BTreeSet::new());
        self.shared.lock().follows_all = true;
        self.observer = observer;
    }

    fn scan(&mut self) -> Result<(), Failure> {
        let Some(mut known) = self.known.take() else { return Ok(()) };
        let mut added = Ok(());
        for search in discover::scan(&ScanConfig::default()).searches {
            let Some(path) = search.path().map(Path::to_owned) else { continue };
            if known.contains(&path) {
                continue;
            }
            known.insert(path);
            let id = search.process_id();
            let process =
                Process { id: Some(id.into()), name: process_name::name(&search, None).unwrap_or_default() };
            // A process whose socket cannot be used is left out. `ps --why` reports such a process.
            if let Ok(client) = search.client(&self.timeouts) {
                let result = self.add(process, client.with_observer(self.observer.clone()));
                added = added.and(result);
            }
        }
        self.known = Some(known);
        added
    }

    /// Stops all sessions. Their remaining reports can still be read.
    pub(crate) fn stop(&mut self) {
        self.shared.stop();
        self.known = None;
    }

    /// Stops all sessions, and returns the first failure of them.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
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
                self.scan()?;
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

/// Reads a session until it ends, or until no reports are wanted. Reports come with the process ID of the trace.
fn read(
    stream: &mut CounterStream,
    mut report: impl FnMut(Option<u64>, Report) -> bool,
) -> Result<(), Failure> {
    let (mut has_lost, mut has_samples) = (false, false);
    loop {
        let id = stream.trace().trace().and_then(|trace| trace.process_id).map(u64::from);
        if !has_lost && trace_file::lost(stream.trace()) > 0 {
            has_lost = true;
            let manner = trace_file::manner(&stream.trace().losses());
            if !report(id, Report::Problem(format!("events are lost, so samples are missing: {manner}"))) {
                return Ok(());
            }
        }
        let wanted = match stream.next_event() {
            Ok(Some(event)) => {
                has_samples |= matches!(event, CounterEvent::Sample(_));
                Report::of(&event).is_none_or(|event| report(id, event))
            }
            Ok(None) => {
                if let Some(problem) = lost_problem(stream.trace()) {
                    report(id, problem);
                }
                return end(stream, has_samples);
            }
            Err(e) => {
                read_failure(stream.session(), e)?;
                true
            }
        };
        if !wanted {
            return Ok(());
        }
    }
}

/// Returns how many events are missing at the end of a trace.
fn lost_problem<R: Read>(trace: &TraceReader<R>) -> Option<Report> {
    let lost = trace_file::lost(trace);
    (lost > 0).then(|| Report::Problem(format!("{lost} events were lost: samples are missing")))
}

fn end(stream: &CounterStream, has_samples: bool) -> Result<(), Failure> {
    let session = stream.session();
    if session.is_stopping() {
        let process_id = stream.trace().trace().and_then(|trace| trace.process_id);
        return match !has_samples && session.stop_error().is_none() && is_suspended(session, process_id) {
            true => Err(suspended("reports no counters")),
            false => Ok(()),
        };
    }
    match stream.trace().end() {
        // A runtime that exits ends its sessions, so the trace is complete. If the runtime is killed, the trace is
        // truncated.
        Some(End::Complete | End::Truncated { .. }) | None => Err(exited()),
        Some(end) => source::check(end, "the runtime"),
    }
}

/// Passes the reports of a trace to `take`, until that breaks: those of the selected counters, or of all if none is
/// selected, of one process if the user named it, and the samples of a part of the trace.
pub(crate) fn read_file(
    file: &Path,
    selections: &[Selection],
    only_process: &ProcessArg,
    mut part: Part,
    mut take: impl FnMut(&Process, Report) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let mut trace = TraceReader::new(Source::open(file)?).without_stacks();
    let mut counters = CounterReader::new().only(selections).preferring_meters();
    // What the trace has instead, if it has nothing that is selected.
    let mut others = (!selections.is_empty()).then(CounterReader::new);
    let mut process = Process { id: None, name: String::new() };
    let mut is_first = true;
    loop {
        let event = match trace.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(e) => return Err(trace.get_ref().failed(&e)),
        };
        if !only_process.includes(&event) {
            continue;
        }
        process.id = event.process_id();
        let has_many =
            event.trace().is_some_and(|trace| trace.version == Version::V6) && !only_process.is_given();
        if core::mem::take(&mut is_first) && has_many && take(&process, Report::SeveralProcesses).is_break() {
            return Ok(());
        }
        let is_inside = part.includes(&event);
        let report = counters.event(&event).and_then(|event| Report::of(&event));
        let report = report.filter(|report| is_inside || !matches!(report, Report::Sample(_)));
        if matches!(report, Some(Report::Sample(_))) {
            others = None;
        }
        let other = || match others.as_mut()?.event(&event)? {
            CounterEvent::Sample(sample) if is_inside => Some(Report::Unselected(Box::new((&sample).into()))),
            _ => None,
        };
        let report = report.or_else(other);
        if report.is_some_and(|report| take(&process, report).is_break()) {
            return Ok(());
        }
    }
    if let Some(problem) = lost_problem(&trace) {
        // No process is known to have lost them.
        process.id = None;
        // This report is the last one, so it does not matter whether more are wanted.
        let _ = take(&process, problem);
    }
    source::check(trace.end().unwrap_or(End::Complete), trace.get_ref().name())?;
    only_process.check(trace.get_ref().name())
}

/// Returns the last sample of a counter in a recording of the test data.
#[cfg(test)]
pub(crate) fn last_recorded(file: &str, counter: &str) -> OwnedSample {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters");
    let mut last = None;
    read_file(
        &folder.join(file),
        &[counter.parse().unwrap()],
        &ProcessArg::default(),
        Part::default(),
        |_, report| {
            if let Report::Sample(sample) = report {
                last = Some(*sample);
            }
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    last.unwrap()
}
