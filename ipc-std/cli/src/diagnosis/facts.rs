//! What the recording of one process amounts to: the input of the rules.
use std::collections::{BTreeMap, BTreeSet};

use nettrace_analysis::account::{
    Account, Blame, Gauge, LastState, Measure, MethodNumber, Row, ThreadRole, ThreadState,
};
use nettrace_analysis::locks::ContendedLock;
use nettrace_analysis::requests::{Direction, RequestGroup};
use nettrace_analysis::samples::ThreadNumber;

use super::evidence::{CollectedEvidence, ProcessEvidence};
use super::fact::{Fact, Wish};
use super::stretch::{Bins, Stretch};
use super::system_figures::SystemFigures;

/// What the recording of one process amounts to.
pub(crate) struct Facts<'a> {
    pub(super) account: &'a Account,
    pub(super) of: &'a ProcessEvidence,
    /// The process in the account.
    pub(super) process: u64,
    pub(super) process_id: Option<u64>,
    /// The figures of the system at the start and at the end of the recording of a process.
    pub(super) system: Option<[SystemFigures; 2]>,
    pub(super) seconds: f64,
    /// How many samples each thread has in each window.
    pub(super) thread_samples: BTreeMap<(ThreadNumber, u16), u64>,
    pub(super) last_states: Vec<LastState>,
    /// The threads that have been in their last state for a while, up to the end.
    pub(super) stuck: BTreeSet<ThreadNumber>,
}

impl<'a> Facts<'a> {
    /// The seconds after which a thread is stuck in a state.
    pub(super) const STUCK: f64 = 1.0;

    pub(crate) fn new(
        evidence: &'a CollectedEvidence,
        process_id: Option<u64>,
        of: &'a ProcessEvidence,
        system: Option<[SystemFigures; 2]>,
    ) -> Self {
        let account = &evidence.account;
        // In a trace of a runtime, threads state no process.
        let process = process_id.filter(|id| account.processes().contains(id)).unwrap_or_default();
        let last_states = account.last_states(process);
        let last = last_states.iter().map(|state| state.last).max().unwrap_or_default();
        let stuck = last_states.iter().filter(|of| Self::is_stuck(of, last)).map(|of| of.thread).collect();
        Self {
            account,
            of,
            process,
            process_id,
            system,
            seconds: account.seconds(),
            thread_samples: account.thread_samples(process),
            last_states,
            stuck,
        }
    }

    /// Returns whether a thread has been in its last state up to the last sample of all threads.
    fn is_stuck(of: &LastState, last: i64) -> bool {
        let samples: u64 = of.stacks.iter().map(|(_, samples)| samples).sum();
        // A thread is sampled again and again, so that its last sample is a few intervals before the end at most.
        let waits = of.last.saturating_sub(of.since) as f64 / 1e9;
        let interval = waits / samples.max(1) as f64;
        waits >= Self::STUCK
            && samples >= 3
            && last.saturating_sub(of.last) as f64 / 1e9 <= interval * 3.0 + 0.2
    }

    /// Returns whether the recording can show this.
    pub(super) fn is_recorded(&self, wish: Wish) -> bool {
        self.of.is_live || self.of.recorded.contains(&wish)
    }

    /// Returns the kinds of events that the recording lacks, in words. A counter can stand for them.
    pub(crate) fn not_recorded(&self) -> Vec<&'static str> {
        let has_counter = |wish: &Wish| wish.counters().iter().any(|name| self.counter(name).is_some());
        let is_missing = |wish: &Wish| !self.is_recorded(*wish) && !has_counter(wish);
        Wish::ALL.into_iter().filter(is_missing).map(Wish::text).collect()
    }

    /// Returns how many events are not counted, because there was no room.
    pub(crate) fn left_out(&self) -> u64 {
        let (requests, locks) = (self.account.requests().dropped, self.account.locks().dropped);
        self.account.dropped().saturating_add(requests).saturating_add(locks)
    }

    /// Returns a fact that the events show, or else a counter, if they were recorded.
    pub(super) fn fact(&self, wish: Wish, of_events: impl FnOnce() -> f64, counters: &[&str]) -> Fact<f64> {
        if self.of.recorded.contains(&wish) {
            return Fact::Known(of_events());
        }
        let by_counters = counters.iter().filter_map(|counter| self.counter_rate(counter));
        let by_counters = by_counters.reduce(|a, b| a + b);
        Fact::new(by_counters.or_else(|| self.of.is_live.then(of_events)), wish)
    }

    /// Returns the mean of a counter. Its first sample covers the time before the session.
    pub(super) fn counter_rate(&self, name: &str) -> Option<f64> {
        let gauge = self.of.counters.get(name)?;
        let (sum, count) =
            gauge.points().iter().skip(1).fold((0.0, 0_u64), |(sum, count), point| {
                (sum + point.sum, count.saturating_add(point.count))
            });
        (count > 0).then(|| sum / count as f64)
    }

    pub(super) fn counter(&self, name: &str) -> Option<&Gauge> {
        self.of.counters.get(name)
    }

    /// Returns the processor cores that the process used on average: by the system, or else by a counter.
    pub(super) fn cores(&self) -> Option<f64> {
        let by_system = self.system.as_ref().and_then(|[start, end]| end.cores_since(start));
        let by_counter = || Some(self.counter_rate("cpu-usage")? / 100.0 * f64::from(self.of.processors?));
        by_system.or_else(by_counter)
    }

    pub(super) fn per_second(&self, count: f64) -> f64 {
        count / self.seconds.max(1e-3)
    }

    pub(super) fn rows(&self, measure: Measure) -> impl Iterator<Item = Row<'a>> + use<'a> {
        self.account.rows(self.process, measure)
    }

    /// Returns the sum of a measure.
    pub(super) fn total(&self, measure: Measure) -> f64 {
        self.rows(measure).fold(0.0, |sum, row| sum + row.running.saturating_add(row.waiting) as f64)
    }

    /// Returns the time in which a measure was at least so much a second.
    pub(super) fn stretch(&self, rows: &[Row<'a>], per_second: f64) -> Option<Stretch> {
        let weight = |row: &Row<'_>| row.running.saturating_add(row.waiting) as f64;
        let weights = rows.iter().map(|row| (row.window, weight(row), [row.first, row.last]));
        Bins::new(self.account, weights).of_events().stretch(per_second)
    }

    /// Returns the time in which at least so many threads were on average in the samples of some rows.
    pub(super) fn threads_stretch(&self, rows: &[Selected<'a>], threads: f64) -> Option<Stretch> {
        let length = self.account.windows().length() as f64 / 1e9;
        // The time of a thread is divided by its own samples, whose number differs from thread to thread.
        let time = |of: &Selected<'a>| {
            let seconds = match self.thread_measure() {
                Measure::Waits => of.weight as f64 / 1e9,
                _ => {
                    let samples = self.thread_samples.get(&(of.row.thread, of.row.window)).copied()?;
                    of.weight as f64 / samples.max(1) as f64 * length
                }
            };
            Some((of.row.window, seconds, [of.row.first, of.row.last]))
        };
        let stretch = Bins::new(self.account, rows.iter().filter_map(time)).stretch(threads)?;
        // A thread that is there for a part of a window counts for all of it.
        Some(Stretch { rate: stretch.rate.min(thread_count(rows) as f64), ..stretch })
    }

    pub(super) fn blame(&self, rows: &[Row<'a>]) -> Blame<'a> {
        self.account.blame(rows.iter().map(|row| (row.stack, row.running.saturating_add(row.waiting))))
    }

    pub(super) fn blame_selected(&self, rows: &[Selected<'a>]) -> Blame<'a> {
        self.account.blame(rows.iter().map(|of| (of.row.stack, of.weight)))
    }

    /// Returns the measure that shows what threads wait for: samples, or else the waits on handles.
    fn thread_measure(&self) -> Measure {
        let has = |wish| self.of.recorded.contains(&wish);
        if has(Wish::Handles) && !has(Wish::Samples) { Measure::Waits } else { Measure::Samples }
    }

    /// Returns how the times of threads are known.
    pub(super) fn thread_source(&self) -> &'static str {
        match self.thread_measure() {
            Measure::Waits => "by the events of waits",
            _ => "estimated from samples",
        }
    }

    /// Returns the command that shows where threads wait in a file.
    pub(super) fn stacks_of_file(&self) -> &'static str {
        match self.thread_measure() {
            Measure::Waits => "dotnet-ipc report TARGET --waits --by own",
            _ => "dotnet-ipc report TARGET --wall --by own",
        }
    }

    /// Returns the samples, or else the waits, of threads of a role in a state, with their weights.
    pub(super) fn samples(&self, state: ThreadState, role: impl Fn(ThreadRole) -> bool) -> Vec<Selected<'a>> {
        let measure = self.thread_measure();
        // A wait for a lock has events of its own.
        let counts = measure == Measure::Samples || state != ThreadState::Lock;
        let rows = self.rows(measure).filter(|row| counts && role(self.account.role(row.thread)));
        let rows = rows.map(|row| Selected { row, weight: row.weight_in(state) });
        rows.filter(|of| of.weight > 0).collect()
    }

    /// Returns the threads of a role.
    pub(super) fn threads(&self, role: ThreadRole) -> usize {
        let threads = self.rows(self.thread_measure()).map(|row| row.thread).collect::<BTreeSet<_>>();
        threads.into_iter().filter(|thread| self.account.role(*thread) == role).count()
    }

    pub(super) fn groups(&self, direction: Direction) -> impl Iterator<Item = &'a RequestGroup> + use<'a> {
        let id = self.process_id;
        let groups = self.account.requests().groups.iter();
        groups.filter(move |group| group.direction == direction && group.process_id == id)
    }

    pub(super) fn locks(&self) -> impl Iterator<Item = &'a ContendedLock> + use<'a> {
        let id = self.process_id;
        self.account.locks().locks.iter().filter(move |lock| lock.process_id == id)
    }
}

/// A row of samples, and how many of them are selected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selected<'a> {
    pub(super) row: Row<'a>,
    pub(super) weight: u64,
}

/// Returns the number of threads of some rows.
pub(super) fn thread_count(rows: &[Selected<'_>]) -> usize {
    rows.iter().map(|of| of.row.thread).collect::<BTreeSet<ThreadNumber>>().len()
}

/// Divides rows by the innermost method of the program. The groups for which `is_large` holds stay, and all others
/// become one, the last.
pub(super) fn by_method<'a>(
    rows: Vec<Selected<'a>>,
    is_large: impl Fn(&[Selected<'a>]) -> bool,
) -> Vec<Vec<Selected<'a>>> {
    let mut groups: BTreeMap<Option<MethodNumber>, Vec<Selected<'a>>> = BTreeMap::new();
    for of in rows {
        groups.entry(of.row.place.own.first().copied()).or_default().push(of);
    }
    let (mut large, small): (Vec<_>, Vec<_>) = groups.into_values().partition(|group| is_large(group));
    let weight = |group: &Vec<Selected<'a>>| group.iter().map(|of| of.weight).sum::<u64>();
    large.sort_by_key(|group| core::cmp::Reverse(weight(group)));
    let others: Vec<_> = small.into_iter().flatten().collect();
    large.extend(Some(others).filter(|others| is_large(others)));
    large
}
