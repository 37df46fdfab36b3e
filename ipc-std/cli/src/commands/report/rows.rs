//! The report as rows: its JSON, and what its text shows of them.
use nettrace_analysis::call_tree::{Entry, Order};
use nettrace_analysis::report::CallReport;
use nettrace_analysis::samples::Clock;
use serde::Serialize;

use super::frame::{CallRow, FunctionRow, calls};
use super::options::Args;
use super::threads::ThreadRow;
use super::types::TypeRows;
use crate::output::dates::SpanRow;
use crate::output::integer::Integer;
use crate::output::rows::milliseconds;
use crate::process::cpu_usage::CpuUsage;

/// The report. Shares are in percent.
#[derive(Serialize)]
pub(super) struct ReportRows<'s> {
    /// The option that chooses the clock.
    pub(super) clock: &'static str,
    unit: &'static str,
    pub(super) total: Integer,
    pub(super) samples: u64,
    pub(super) lost: u64,
    /// When a trace was recorded.
    #[serde(flatten)]
    pub(super) span: SpanRow,
    pub(super) unnamed_frames: f64,
    pub(super) not_own: f64,
    #[serde(flatten)]
    pub(super) before: Option<OlderTotals>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<&'s str>,
    #[serde(flatten)]
    waits: Option<Waits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tells_running: Option<bool>,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    pub(super) frames: Vec<FunctionRow<'s>>,
    #[serde(flatten)]
    pub(super) types: Option<TypeRows<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<Vec<ThreadRow<'s>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tree: Option<Vec<CallRow<'s>>>,
    /// The functions of the program that come first.
    #[serde(skip)]
    pub(super) own_first: Vec<FunctionRow<'s>>,
    #[serde(skip)]
    pub(super) has_more_calls: bool,
    /// The CPU time by the system.
    #[serde(skip)]
    pub(super) system: Option<&'s CpuUsage>,
    #[serde(skip)]
    pub(super) report: &'s CallReport<'s>,
}

#[derive(Serialize)]
pub(super) struct OlderTotals {
    total_before: Integer,
    pub(super) samples_before: u64,
}

#[derive(Serialize)]
struct Waits {
    waits: WaitCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_waits: Option<IdleWaitsRow>,
    waiting_before: usize,
}

#[derive(Serialize)]
struct IdleWaitsRow {
    timers: u64,
    timers_ms: f64,
    pool: u64,
    pool_ms: f64,
}

#[derive(Serialize)]
struct WaitCounts {
    open: u64,
    without_end: u64,
    without_start: u64,
}

#[derive(Serialize)]
struct Cpu {
    system_cores: Option<f64>,
    sampled_cores: Option<f64>,
    sampler_cores: Option<f64>,
    compilation_cores: Option<f64>,
    collection_cores: Option<f64>,
    pool_spin: f64,
    session: f64,
}

impl<'s> ReportRows<'s> {
    /// Makes the rows. `lost` is the number of lost events, `system` the CPU time by the system.
    pub(super) fn new(
        report: &'s CallReport<'s>,
        args: &Args,
        lost: u64,
        span: SpanRow,
        system: Option<&'s CpuUsage>,
    ) -> Self {
        let CallReport { clock, tree, samples, uncounted, .. } = report;
        let (names, order) = (samples.names(), args.by);
        let frame = |entry: &Entry, first| FunctionRow::new(tree, names, entry, [first, entry.inclusive]);
        let of_program = |entry: &Entry| frame(entry, entry.own);
        let of_top = report.top.iter().take(args.top).map(|entry| match order {
            Order::Own => of_program(entry),
            _ => frame(entry, entry.exclusive),
        });
        let thread_names = system.map(|system| &system.thread_names);
        let threads = report.threads.iter().filter_map(|of| ThreadRow::new(of, report, thread_names));
        let (calls, has_more_calls) =
            args.tree.then(|| calls(tree, names, args.top.saturating_mul(5))).unzip();
        // The figure of the system is that of the whole process and of the whole recording.
        let system = system.filter(|_| samples.part().is_whole());
        Self {
            clock: match clock {
                Clock::Cpu => "cpu",
                Clock::Wall => "wall",
                Clock::ThreadTime => "thread-time",
                Clock::Allocations | Clock::AllocatedTypes => "allocations",
                Clock::Exceptions => "exceptions",
                Clock::Contention => "contention",
                Clock::Waits => "waits",
                _ => "event",
            },
            unit: clock.unit().name(),
            total: Integer(tree.total()),
            samples: samples.count(clock),
            lost,
            span,
            unnamed_frames: tree.unnamed_share(names),
            not_own: tree.share(tree.not_own()),
            before: report
                .older
                .as_ref()
                .map(|older| OlderTotals { total_before: Integer(older.total), samples_before: older.count }),
            left_out: tree.left_out().map(|frame| names.text(frame)).collect(),
            waits: matches!(clock, Clock::Contention | Clock::Waits).then_some(Waits {
                waits: WaitCounts {
                    open: uncounted.waits.open,
                    without_end: uncounted.waits.without_end,
                    without_start: uncounted.waits.without_start,
                },
                idle_waits: (*clock == Clock::Waits).then(|| IdleWaitsRow {
                    timers: uncounted.idle.timers.count,
                    timers_ms: milliseconds(uncounted.idle.timers.total()),
                    pool: uncounted.idle.pool.count,
                    pool_ms: milliseconds(uncounted.idle.pool.total()),
                }),
                waiting_before: uncounted.waiting_before,
            }),
            uncounted: Some(uncounted.unknown).filter(|unknown| *unknown > 0),
            tells_running: report.hides_running().then_some(false),
            cpu: report.cpu.as_ref().map(|cpu| Cpu {
                system_cores: system.map(|system| system.cores),
                sampled_cores: cpu.cores,
                sampler_cores: system.map(|system| system.sampler),
                compilation_cores: system.map(|system| system.compilation),
                collection_cores: system.map(|system| system.collection),
                pool_spin: tree.share(cpu.causes.pool_spin),
                session: tree.share(cpu.causes.session),
            }),
            frames: match &report.older {
                Some(older) => {
                    older.changes.iter().take(args.top).map(|of| FunctionRow::changed(of, order)).collect()
                }
                None => of_top.collect(),
            },
            types: report.counts.as_ref().map(|counts| TypeRows::new(tree, counts, names, args.top)),
            threads: args.threads.then(|| threads.collect()),
            tree: calls,
            own_first: report.own_first.iter().map(of_program).collect(),
            has_more_calls: has_more_calls.unwrap_or_default(),
            system,
            report,
        }
    }
}
