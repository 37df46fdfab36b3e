use alloc::vec::Vec;
use core::cmp::Reverse;

use super::cpu_time::CpuTime;
use super::gap::Gap;
use super::uncounted::Uncounted;
use crate::call_tree::{CallTree, Change, Entry, NodeId, Order};
use crate::names::FrameId;
use crate::samples::{Clock, Samples, ThreadNumber, ThreadRoles, Weight};

/// What a report is about.
#[derive(Debug, Clone)]
pub struct ReportQuery {
    /// What counts. The samples have the clocks of [`Clock::recorded`].
    pub clock: Clock,
    /// Whether the reader has chosen the clock.
    pub is_chosen: bool,
    /// The order of the functions.
    pub order: Order,
    /// Whether all frames are shown, with their exact names.
    pub is_exact: bool,
    /// Whether the report has threads, and how many of them with the function in which they were sampled most often.
    pub threads: Option<usize>,
}

/// What the samples of one clock show. Weights are in the unit of the clock.
///
/// ```
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::call_tree::Order;
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::report::{CallReport, ReportQuery};
/// use nettrace_analysis::samples::{Clock, Samples};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let query = ReportQuery {
///     clock: Clock::Wall,
///     is_chosen: true,
///     order: Order::Inclusive,
///     is_exact: false,
///     threads: Some(1),
/// };
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut samples = Samples::new(query.clock.recorded());
/// while let AssemblerStep::Event(event) = assembler.step() {
///     samples.event(&event);
/// }
/// let mut samples = samples.finish();
/// let report = CallReport::new(&query, &mut samples, None);
/// for entry in report.top.iter().take(2) {
///     println!("{:.2} % {}", report.tree.share(entry.inclusive), report.samples.names().text(entry.frame));
/// }
/// # assert_eq!((report.gap, report.samples.count(&report.clock)), (None, 5_478));
/// # assert!(report.threads[0].top.is_some() && report.threads[1].top.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct CallReport<'s> {
    /// The clock of the report: all samples in place of CPU time, if samples do not tell which threads run.
    pub clock: Clock,
    /// The samples.
    pub samples: &'s Samples,
    /// The calls.
    pub tree: CallTree,
    /// The calls by the number of events, for [`Clock::AllocatedTypes`].
    pub counts: Option<CallTree>,
    /// Why there is no result, if there is none. That no thread runs is a result.
    pub gap: Option<Gap>,
    /// What is not counted.
    pub uncounted: Uncounted,
    /// The CPU time, if the query is about it.
    pub cpu: Option<CpuTime>,
    /// The functions in their order. By own weight, only those of the program have a place.
    pub top: Vec<Entry>,
    /// Whether the functions are an answer: the shares of few samples are none, unless the reader has chosen them.
    pub shows_top: bool,
    /// The functions of the program that come first, because the reader can change them; empty if `top` begins with
    /// them.
    pub own_first: Vec<Entry>,
    /// The frame of addresses without a name.
    pub unnamed: Option<Entry>,
    /// How many threads were never seen in managed code, and the number of their samples; for [`Clock::Cpu`].
    pub idle_threads: (usize, u64),
    /// The threads, the heaviest first.
    pub threads: Vec<ThreadReport>,
    /// The comparison with an older recording.
    pub older: Option<OlderReport<'s>>,
}

/// A thread of a report.
#[derive(Debug, Clone, Copy)]
pub struct ThreadReport {
    /// The index of the thread in [`Samples::threads`].
    pub number: usize,
    /// The weight of its stacks.
    pub total: u64,
    /// The function in which the thread was sampled most often.
    pub top: Option<FrameId>,
    /// Its purposes.
    pub roles: ThreadRoles,
}

/// An older recording, and how the shares differ.
#[derive(Debug)]
pub struct OlderReport<'s> {
    /// The weight of all its stacks.
    pub total: u64,
    /// The number of its events.
    pub count: u64,
    /// The functions whose shares differ, the largest change first.
    pub changes: Vec<Change<'s>>,
}

impl<'s> CallReport<'s> {
    /// Makes a report of samples, and compares them with those of an older recording. Both traces have ended.
    #[must_use]
    pub fn new(query: &ReportQuery, samples: &'s mut Samples, mut older: Option<&'s mut Samples>) -> Self {
        let total = |_, weight: Weight| weight.total();
        let mut clock = samples.shown_clock(query.clock.clone());
        if let Some(older) = &mut older {
            clock = older.shown_clock(clock);
        }
        let cpu = (query.clock == Clock::Cpu).then(|| CpuTime::new(samples));
        let older = older.map(|older| (query.tree(older, &clock, total), &*older));
        let tree = query.tree(samples, &clock, total);
        let is_by_type = clock == Clock::AllocatedTypes;
        let counts = is_by_type.then(|| query.tree(samples, &clock, |_, weight| weight.count));
        let uncounted = Uncounted::new(samples, &clock);
        let has_weight = tree.total() > 0;
        let has_result = has_weight || (clock == Clock::Cpu && samples.samples() > 0);
        let gap = (!has_result).then(|| Gap::new(samples, &clock, &uncounted));
        let threads = query.threads.map(|shown| query.threads(samples, &clock, shown)).unwrap_or_default();
        // From here on, names do not change.
        let samples = &*samples;
        let mut top = tree.top(query.order);
        if query.order == Order::Own {
            top.retain(|entry| entry.own > 0);
        }
        let is_idle = !query.is_chosen && cpu.as_ref().is_some_and(CpuTime::is_nearly_idle);
        let shows_top = has_weight && !is_idle;
        let is_plain = shows_top && older.is_none() && counts.is_none();
        let mut own_first = if is_plain && query.order != Order::Own { tree.first_own() } else { Vec::new() };
        if top.starts_with(&own_first) {
            own_first.clear();
        }
        let mut all = is_plain.then(|| tree.top(Order::Inclusive)).into_iter().flatten();
        Self {
            gap,
            uncounted,
            cpu,
            top,
            shows_top,
            own_first,
            unnamed: all.find(|entry| samples.names().text(entry.frame) == "?!?"),
            idle_threads: if clock == Clock::Cpu { samples.idle_threads() } else { (0, 0) },
            threads,
            older: older.map(|(old, older)| OlderReport {
                total: old.total(),
                count: older.count(&clock),
                changes: tree.difference(samples.names(), &old, older.names(), query.order),
            }),
            samples,
            tree,
            counts,
            clock,
        }
    }

    /// Returns whether the report has all samples because they do not tell which threads ran.
    #[must_use]
    pub fn hides_running(&self) -> bool {
        self.cpu.is_some() && self.clock == Clock::Wall
    }

    /// Returns whether a stack has functions.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        !self.tree.children(NodeId::ROOT).is_empty()
    }
}

impl ReportQuery {
    /// Returns the tree of the frames that are shown.
    fn tree(
        &self,
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> CallTree {
        let tree = if self.is_exact { CallTree::new } else { CallTree::of_origins };
        tree(samples, clock, weigh)
    }

    /// Returns the threads. Only the first ones get a function, because each needs its own tree.
    fn threads(&self, samples: &mut Samples, clock: &Clock, shown: usize) -> Vec<ThreadReport> {
        let totals = samples.thread_weights(clock).into_iter().map(Weight::total);
        let mut totals: Vec<_> = totals.enumerate().filter(|(_, total)| *total > 0).collect();
        totals.sort_by_key(|(number, total)| (Reverse(*total), *number));
        let roles = samples.thread_roles();
        let thread = |(place, (number, total))| {
            let weigh = |of: ThreadNumber, weight: Weight| {
                if of.number() == number { weight.total() } else { 0 }
            };
            let tree = (place < shown).then(|| self.tree(samples, clock, weigh));
            let top = tree.and_then(|tree| tree.top(Order::Exclusive).first().map(|entry| entry.frame));
            ThreadReport { number, total, top, roles: roles.get(number).copied().unwrap_or_default() }
        };
        totals.into_iter().enumerate().map(thread).collect()
    }
}
