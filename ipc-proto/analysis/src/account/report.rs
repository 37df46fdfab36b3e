//! The account of the time of a recording.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::blame::Blame;
use super::cells::{CellKey, Cells, Measure};
use super::method_table::{MethodNumber, OwnMethods};
use super::place::{Place, ThreadRole};
use super::windows::Windows;
use crate::StackId;
use crate::locks::LockReport;
use crate::names::at;
use crate::requests::RequestSummary;
use crate::samples::{Samples, ThreadNumber};
use crate::stacks::ThreadState;
use crate::trace::RecordingSpan;

/// A thread of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountThread {
    /// The process; 0 is the process of a trace of a runtime.
    pub process: u64,
    /// The operating system's id.
    pub id: u64,
    /// What the thread is for.
    pub role: ThreadRole,
}

/// What a measure adds up for a thread, a window of time and a stack.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The thread.
    pub thread: ThreadNumber,
    /// The window of time: see [`Account::windows`].
    pub window: u16,
    /// The label of the events.
    pub label: &'a str,
    /// The stack.
    pub stack: StackId,
    /// What the stack shows.
    pub place: &'a Place,
    /// The weight while the thread ran; the whole weight of other measures than samples and waits.
    pub running: u64,
    /// The weight while the thread waited or ran native code.
    pub waiting: u64,
    /// The number of events.
    pub count: u64,
    /// The time of the first event in nanoseconds.
    pub first: i64,
    /// The time of the last event.
    pub last: i64,
}

impl Row<'_> {
    /// Returns the states in which the samples of the row show the thread, with their weights.
    #[must_use]
    pub fn states(&self) -> [(ThreadState, u64); 2] {
        [(ThreadState::Runs, self.running), (self.place.state, self.waiting)]
    }

    /// Returns the weight of the samples in a state.
    #[must_use]
    pub fn weight_in(&self, state: ThreadState) -> u64 {
        let in_state = self.states().into_iter().filter(|(of, _)| *of == state);
        in_state.fold(0, |sum, (_, weight)| sum.saturating_add(weight))
    }
}

/// The state of a thread at the end of the recording, up to its last sample.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastState {
    /// The thread.
    pub thread: ThreadNumber,
    /// The state.
    pub state: ThreadState,
    /// The time since when no sample and no event shows the thread in another state.
    pub since: i64,
    /// The time of the last sample.
    pub last: i64,
    /// The stacks in this state with their samples.
    pub stacks: Vec<(StackId, u64)>,
    /// Whether the thread had another state before.
    pub has_changed: bool,
}

/// The account of a recording, by [`TimeAccount`](super::TimeAccount).
#[derive(Debug)]
pub struct Account {
    samples: Samples,
    cells: Cells,
    span: RecordingSpan,
    locks: LockReport,
    requests: RequestSummary,
    labels: Vec<String>,
    places: BTreeMap<StackId, Place>,
    methods: OwnMethods,
    threads: Vec<AccountThread>,
    entry_points: Vec<MethodNumber>,
    waits: LockWaits,
}

/// The times of threads that waited for locks, by their events.
#[derive(Debug, Default)]
pub(super) struct LockWaits {
    /// The time at which each thread last got a lock for which it had waited.
    pub(super) acquired: BTreeMap<ThreadNumber, i64>,
    /// The start of each wait that has not ended.
    pub(super) open: BTreeMap<ThreadNumber, i64>,
}

impl Account {
    /// The label of allocated large objects.
    pub const LARGE: &'static str = "large";

    pub(super) fn new(
        mut samples: Samples,
        mut cells: Cells,
        span: RecordingSpan,
        labels: Vec<String>,
        waits: LockWaits,
        locks: LockReport,
        requests: RequestSummary,
    ) -> Self {
        if let Some(mut waiting) = samples.waiting() {
            let of_samples = cells.sums.iter_mut().filter(|(key, _)| key.measure == Measure::Samples);
            for (_, cell) in of_samples.filter(|(key, _)| waiting.has(key.stack)) {
                cell.waiting = cell.waiting.saturating_add(core::mem::take(&mut cell.running));
            }
        }
        let mut threads: Vec<_> = samples
            .threads()
            .iter()
            .map(|thread| AccountThread { process: thread.process, id: thread.id, role: ThreadRole::Other })
            .collect();
        let mut methods = OwnMethods::default();
        let mut places: BTreeMap<StackId, Place> = BTreeMap::new();
        let mut entry_points = BTreeSet::new();
        let (names, stacks) = samples.names_and_stacks();
        for CellKey { measure, thread, stack, .. } in cells.sums.keys() {
            let place =
                places.entry(*stack).or_insert_with(|| Place::new(*stack, stacks, names, &mut methods));
            if !matches!(measure, Measure::Samples | Measure::Waits) {
                continue;
            }
            if let Some(thread) = threads.get_mut(thread.number()) {
                thread.role = thread.role.max(place.role);
            }
            if place.role == ThreadRole::Main {
                entry_points.extend(place.own.last());
            }
        }
        let entry_points = entry_points.into_iter().collect();
        Self { samples, cells, span, locks, requests, labels, places, methods, threads, entry_points, waits }
    }

    /// Returns the locks for which threads waited.
    #[must_use]
    pub const fn locks(&self) -> &LockReport {
        &self.locks
    }

    /// Returns the requests.
    #[must_use]
    pub const fn requests(&self) -> &RequestSummary {
        &self.requests
    }

    /// Returns the processes that have a thread with an event that counts: 0 is the process of a trace of a runtime.
    #[must_use]
    pub fn processes(&self) -> Vec<u64> {
        let threads = self.cells.sums.keys().map(|key| key.thread).collect::<BTreeSet<_>>();
        let processes = threads.into_iter().filter_map(|thread| self.thread(thread)).map(|of| of.process);
        processes.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns a thread.
    #[must_use]
    pub fn thread(&self, thread: ThreadNumber) -> Option<&AccountThread> {
        self.threads.get(thread.number())
    }

    /// Returns the role of a thread.
    #[must_use]
    pub fn role(&self, thread: ThreadNumber) -> ThreadRole {
        self.thread(thread).map_or(ThreadRole::Other, |thread| thread.role)
    }

    /// Returns what a measure adds up for the threads of a process.
    pub fn rows(&self, process: u64, measure: Measure) -> impl Iterator<Item = Row<'_>> + '_ {
        let rows = self.cells.of(measure);
        rows.filter_map(move |(key, cell)| {
            let CellKey { thread, window, label, stack, .. } = *key;
            let is_of = self.thread(thread).is_some_and(|thread| thread.process == process);
            let counts =
                measure != Measure::Allocations || !cell.is_tick || self.samples.counts_ticks(thread);
            let place = self.places.get(&stack).filter(|_| is_of && counts)?;
            Some(Row {
                thread,
                window,
                label: at(&self.labels, label).map_or("", String::as_str),
                stack,
                place,
                running: cell.running,
                waiting: cell.waiting,
                count: cell.count,
                first: cell.first,
                last: cell.last,
            })
        })
    }

    /// Returns the methods of the program that cause some events, by their stacks and weights.
    #[must_use]
    pub fn blame(&self, rows: impl IntoIterator<Item = (StackId, u64)>) -> Blame<'_> {
        let rows = rows.into_iter().filter(|(_, weight)| *weight > 0);
        let rows: Vec<_> =
            rows.filter_map(|(stack, weight)| Some((self.places.get(&stack)?, weight))).collect();
        Blame::new(&rows, &self.entry_points, |method| self.methods.name(method))
    }

    /// Returns what a stack shows.
    #[must_use]
    pub fn place(&self, stack: StackId) -> Option<&Place> {
        self.places.get(&stack)
    }

    /// Returns the name of a method of the program.
    #[must_use]
    pub fn method_name(&self, method: MethodNumber) -> &str {
        self.methods.name(method)
    }

    /// Returns whether a method is the outermost one of a thread that no code of the runtime has started.
    #[must_use]
    pub fn is_entry_point(&self, method: MethodNumber) -> bool {
        self.entry_points.contains(&method)
    }

    /// Returns the windows of time.
    #[must_use]
    pub const fn windows(&self) -> &Windows {
        &self.cells.windows
    }

    /// Returns the start and the end of the recording, in nanoseconds from the start of the trace.
    #[must_use]
    pub fn times(&self) -> (i64, i64) {
        self.span.times()
    }

    /// Returns the length of the recording in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.span.length() as f64 / 1e9
    }

    /// Returns the number of events for which there was no room.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.cells.dropped.saturating_add(self.samples.dropped())
    }

    /// Returns the time since when a thread waits for a lock at the end of the recording, by its events.
    #[must_use]
    pub fn open_wait(&self, thread: ThreadNumber) -> Option<i64> {
        self.waits.open.get(&thread).copied()
    }

    /// Returns the number of samples of each thread of a process in each window. Samples of the processor, which show only
    /// threads that run, do not count.
    #[must_use]
    pub fn thread_samples(&self, process: u64) -> BTreeMap<(ThreadNumber, u16), u64> {
        let mut sums: BTreeMap<(ThreadNumber, u16), u64> = BTreeMap::new();
        let is_counted = self.samples.shows_waiting();
        for row in self.rows(process, Measure::Samples).filter(|_| is_counted) {
            let sum = sums.entry((row.thread, row.window)).or_default();
            *sum = sum.saturating_add(row.running).saturating_add(row.waiting);
        }
        sums
    }

    /// Returns the state of each thread of a process in its last samples.
    #[must_use]
    pub fn last_states(&self, process: u64) -> Vec<LastState> {
        let mut threads: BTreeMap<ThreadNumber, Vec<Row<'_>>> = BTreeMap::new();
        for row in self.rows(process, Measure::Samples) {
            threads.entry(row.thread).or_default().push(row);
        }
        threads.into_iter().filter_map(|(thread, rows)| self.last_state(thread, &rows)).collect()
    }

    fn last_state(&self, thread: ThreadNumber, rows: &[Row<'_>]) -> Option<LastState> {
        let states = |row: &Row<'_>| row.states().into_iter().filter(|(_, weight)| *weight > 0);
        let latest = rows.iter().max_by_key(|row| row.last)?;
        // A stack in which the thread both ran and waited has no known order.
        let (state, _) = states(latest).next_back()?;
        let is_other = |row: &&Row<'_>| states(row).any(|(of, _)| of != state);
        let other = rows.iter().filter(is_other).map(|row| row.last).max();
        let acquired = self.waits.acquired.get(&thread).copied().filter(|_| state == ThreadState::Lock);
        let before = other.max(acquired);
        let in_state = rows.iter().filter(|row| !is_other(row));
        let after = in_state.clone().filter(|row| before.is_none_or(|before| row.last > before));
        let first = after.clone().map(|row| row.first).min()?;
        let since = before.map_or(first, |before| first.max(before));
        let stacks = after.map(|row| (row.stack, row.waiting.saturating_add(row.running))).collect();
        Some(LastState { thread, state, since, last: latest.last, stacks, has_changed: before.is_some() })
    }
}
