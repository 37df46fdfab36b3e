//! The report as rows: its JSON, and what its text shows of them.
use nettrace_analysis::call_tree::{Entry, Order};
use nettrace_analysis::report::{CpuTime, Gap, Uncounted};
use nettrace_analysis::samples::{Clock, Samples, Weight};
use serde::Serialize;

use super::calls::{Call, calls};
use super::frame::Frame;
use super::integer::Integer;
use super::options::Args;
use super::threads::{Thread, threads};
use super::types::Types;
use crate::process::cpu_lines::{cpu_lines, unnamed_line};
use crate::process::cpu_usage::CpuUsage;

/// The report. Shares are in percent.
#[derive(Serialize)]
pub(super) struct Rows<'s> {
    /// The option that chooses the clock.
    pub(super) clock: &'static str,
    unit: &'static str,
    pub(super) total: Integer,
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) unnamed_frames: f64,
    pub(super) not_own: f64,
    #[serde(flatten)]
    pub(super) before: Option<Before>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<&'s str>,
    #[serde(flatten)]
    waits: Option<Waits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tells_running: Option<bool>,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    pub(super) frames: Vec<Frame<'s>>,
    #[serde(flatten)]
    pub(super) types: Option<Types<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<Vec<Thread>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tree: Option<Vec<Call<'s>>>,
    #[serde(skip)]
    pub(super) facts: Facts<'s>,
}

/// What only the text shows.
pub(super) struct Facts<'s> {
    pub(super) clock: Clock,
    /// Why there is no result, if there is none.
    pub(super) gap: Option<Gap>,
    pub(super) uncounted: Uncounted,
    /// The number of samples by any clock.
    pub(super) all_samples: u64,
    /// The number of events that have more different stacks than samples have room for.
    pub(super) dropped: u64,
    /// Whether an event of the trace has a stack.
    pub(super) has_stacks: bool,
    pub(super) has_sampled_allocations: bool,
    /// Whether stacks have functions.
    pub(super) has_functions: bool,
    /// Whether the functions are an answer: the shares of few samples are none, unless they are asked for.
    pub(super) shows_functions: bool,
    /// The number of all functions.
    pub(super) functions: usize,
    /// The functions of the program, unless the others begin with them.
    pub(super) own_first: Vec<Frame<'s>>,
    /// What the samples of threads that run leave out.
    pub(super) lines: Vec<String>,
    pub(super) idle_threads: (usize, u64),
    pub(super) has_more_calls: bool,
}

#[derive(Serialize)]
pub(super) struct Before {
    total_before: Integer,
    pub(super) samples_before: u64,
}

#[derive(Serialize)]
struct Waits {
    waits: WaitCounts,
    waiting_before: usize,
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

impl<'s> Rows<'s> {
    /// Makes the rows of samples, and compares them with older ones. `lost` is the number of lost events, `system` the
    /// CPU time by the system.
    pub(super) fn new(
        args: &Args,
        chosen: &Clock,
        samples: &'s mut Samples,
        mut older: Option<&'s mut Samples>,
        lost: u64,
        system: Option<&CpuUsage>,
    ) -> Self {
        let total = |_, weight: Weight| weight.total();
        let mut clock = samples.shown_clock(chosen.clone());
        if let Some(older) = &mut older {
            clock = older.shown_clock(clock);
        }
        let cpu = (*chosen == Clock::Cpu).then(|| CpuTime::new(samples));
        let older = older.map(|older| (args.call_tree(older, &clock, total), &*older));
        let tree = args.call_tree(samples, &clock, total);
        let counts = (clock == Clock::AllocatedTypes)
            .then(|| args.call_tree(samples, &clock, |_, weight| weight.count));
        let uncounted = Uncounted::new(samples, &clock);
        let has_weight = tree.total() > 0;
        // No thread that runs is a result.
        let has_result = has_weight || (clock == Clock::Cpu && samples.samples() > 0);
        let gap = (!has_result).then(|| Gap::new(samples, &clock, &uncounted));
        let thread_names = system.map(|system| &system.thread_names);
        let threads = args.threads.then(|| threads(args, samples, &clock, &tree, thread_names));

        // From here on, names do not change.
        let (samples, names) = (&*samples, samples.names());
        let frame = |entry: &Entry, first| Frame::new(&tree, names, entry, [first, entry.inclusive]);
        let order = args.order();
        let mut top = tree.top(order);
        let has_functions = !top.is_empty();
        if order == Order::Own {
            top.retain(|entry| entry.own > 0);
        }
        let is_idle = args.clock.is_default() && cpu.as_ref().is_some_and(CpuTime::is_nearly_idle);
        let shows_functions = has_weight && !is_idle;
        let is_plain = shows_functions && older.is_none() && counts.is_none();
        let mut own_first = if is_plain && order != Order::Own { tree.first_own() } else { Vec::new() };
        if top.starts_with(&own_first) {
            own_first.clear();
        }
        // The figure of the system is that of the whole process and of the whole recording.
        let system = system.filter(|_| samples.part().is_whole());
        let mut lines = cpu.as_ref().map(|cpu| cpu_lines(cpu, system)).unwrap_or_default();
        lines.extend(is_plain.then(|| unnamed_line(&tree, names)).flatten());
        let changes = older.as_ref().map(|(old, older)| tree.difference(names, old, older.names(), order));
        let (calls, has_more_calls) =
            args.tree.then(|| calls(&tree, names, args.top.saturating_mul(5))).unzip();
        let of_top = top.iter().take(args.top).map(|entry| match order {
            Order::Own => frame(entry, entry.own),
            _ => frame(entry, entry.exclusive),
        });
        Self {
            clock: match clock {
                Clock::Cpu => "cpu",
                Clock::Wall => "wall",
                Clock::ThreadTime => "thread-time",
                Clock::Allocations | Clock::AllocatedTypes => "allocations",
                Clock::Exceptions => "exceptions",
                Clock::Contention => "contention",
                _ => "event",
            },
            unit: clock.unit().name(),
            total: Integer(tree.total()),
            samples: samples.count(&clock),
            lost,
            unnamed_frames: tree.unnamed_share(names),
            not_own: tree.share(tree.not_own()),
            before: older.as_ref().map(|(old, older)| Before {
                total_before: Integer(old.total()),
                samples_before: older.count(&clock),
            }),
            left_out: tree.left_out().map(|frame| names.text(frame)).collect(),
            waits: (clock == Clock::Contention).then_some(Waits {
                waits: WaitCounts {
                    open: uncounted.waits.open,
                    without_end: uncounted.waits.without_end,
                    without_start: uncounted.waits.without_start,
                },
                waiting_before: uncounted.waiting_before,
            }),
            uncounted: Some(uncounted.unknown).filter(|unknown| *unknown > 0),
            tells_running: (clock != *chosen).then_some(false),
            cpu: cpu.as_ref().map(|cpu| Cpu {
                system_cores: system.map(|system| system.cores),
                sampled_cores: cpu.cores,
                sampler_cores: system.map(|system| system.sampler),
                compilation_cores: system.map(|system| system.compilation),
                collection_cores: system.map(|system| system.collection),
                pool_spin: tree.share(cpu.causes.pool_spin),
                session: tree.share(cpu.causes.session),
            }),
            frames: match &changes {
                Some(changes) => changes.iter().take(args.top).map(|of| Frame::changed(of, order)).collect(),
                None => of_top.collect(),
            },
            types: counts.map(|counts| Types::new(&tree, &counts, names, args.top)),
            threads,
            tree: calls,
            facts: Facts {
                gap,
                uncounted,
                all_samples: samples.samples(),
                dropped: samples.dropped().saturating_add(samples.stacks().cut()),
                has_stacks: samples.has_stacks(),
                has_sampled_allocations: samples.has_sampled_allocations(),
                has_functions,
                shows_functions,
                functions: changes.map_or(top.len(), |changes| changes.len()),
                own_first: own_first.iter().map(|entry| frame(entry, entry.own)).collect(),
                lines,
                idle_threads: if clock == Clock::Cpu { samples.idle_threads() } else { (0, 0) },
                has_more_calls: has_more_calls.unwrap_or_default(),
                clock,
            },
        }
    }
}
