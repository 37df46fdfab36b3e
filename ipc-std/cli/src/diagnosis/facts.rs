//! The facts of a recording, which are the input of the rules.
use nettrace_analysis::locks::LockReport;
use nettrace_analysis::requests::RequestSummary;
use nettrace_analysis::samples::Clock;
use nettrace_analysis::{Analysis as _, RuntimeEvent};

use super::blocked_threads::BlockedThreads;
use super::evidence::{Evidence, outgoing_requests, runtime_events};
use super::main_thread::MainThread;
use super::own_shares::OwnShares;
use super::system_figures::SystemFigures;

/// The whole evidence of a recording, summed up.
pub(crate) struct Facts {
    pub(super) evidence: Evidence,
    /// The figures of the system at the start and at the end of the recording of a process.
    pub(super) system: Option<[SystemFigures; 2]>,
    pub(super) seconds: f64,
    /// Processor cores that the process used on average.
    pub(super) cores: Option<f64>,
    pub(super) cpu: OwnShares,
    pub(super) allocations: OwnShares,
    pub(super) exceptions: OwnShares,
    pub(super) contention: OwnShares,
    pub(super) thread_starts: OwnShares,
    pub(super) triggers: OwnShares,
    pub(super) compilations: OwnShares,
    pub(super) outgoing: OwnShares,
    pub(super) requests: RequestSummary,
    pub(super) locks: LockReport,
    pub(super) blocked: BlockedThreads,
    /// What the main thread did, if the recording has the start of the process.
    pub(super) main_thread: MainThread,
}

impl Facts {
    pub(crate) fn new(mut evidence: Evidence, system: Option<[SystemFigures; 2]>) -> Self {
        let samples = &mut evidence.samples;
        let mut shares = |clock: &Clock| OwnShares::new(samples, clock, |weight| weight.total());
        let allocations = shares(&Clock::Allocations);
        let exceptions = shares(&Clock::Exceptions);
        let contention = shares(&Clock::Contention);
        let thread_starts = shares(&runtime_events(RuntimeEvent::ThreadCreating));
        let triggers = shares(&runtime_events(RuntimeEvent::GCTriggered));
        let compilations = shares(&runtime_events(RuntimeEvent::MethodJittingStarted));
        let outgoing = shares(&outgoing_requests());
        let cpu = OwnShares::new(samples, &Clock::Cpu, |weight| weight.running);
        let requests = core::mem::take(&mut evidence.requests).finish();
        let locks = core::mem::take(&mut evidence.locks).finish();
        let blocked = BlockedThreads::new(samples);
        let seconds = evidence.seconds();
        let is_start = evidence.is_start;
        let samples = &mut evidence.samples;
        let main_thread = if is_start { MainThread::new(samples, seconds) } else { MainThread::default() };
        let by_system = system.as_ref().and_then(|[start, end]| end.cores_since(start));
        // The first sample of the counter covers the time before the session.
        let by_counter = || {
            let usage = mean(evidence.series.get("cpu")?.get(1..)?)?;
            Some(usage / 100.0 * f64::from(evidence.processors?))
        };
        let cores = by_system.or_else(by_counter);
        Self {
            evidence,
            system,
            seconds,
            cores,
            cpu,
            allocations,
            exceptions,
            contention,
            thread_starts,
            triggers,
            compilations,
            outgoing,
            requests,
            locks,
            blocked,
            main_thread,
        }
    }

    /// Returns the samples of a counter; empty if it was not recorded.
    pub(super) fn series(&self, name: &str) -> &[f64] {
        self.evidence.series.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of events or bytes a second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds.max(1e-3)
    }

    /// Returns how many threads waited for a lock on average.
    pub(super) fn waiting_threads(&self) -> f64 {
        self.per_second(self.contention.total) / 1e9
    }

    /// Returns the time of the longest wait for a lock.
    pub(super) fn longest_wait(&self) -> u64 {
        self.locks.locks.iter().map(|lock| lock.waits.longest).max().unwrap_or_default()
    }
}

/// Returns the mean of some values; `None` if there are none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the median of some values; `None` if there are none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
