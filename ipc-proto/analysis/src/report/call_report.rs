use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::call_line::{CallLine, call_lines};
use super::cpu_time::CpuTime;
use super::gap::Gap;
use super::thread_row::{ThreadRow, idle_threads, thread_rows};
use super::type_rows::TypeRows;
use super::uncounted::Uncounted;
use crate::call_tree::{CallTree, Change, Entry, Order};
use crate::names::Names;
use crate::samples::{Clock, Samples, ThreadNumber, Weight};

/// What a report shows.
#[derive(Debug, Clone, Default)]
pub struct ReportQuery {
    /// What counts. The samples have the clocks of [`Clock::recorded`].
    pub clock: Clock,
    /// Whether the clock is no choice of the reader.
    pub is_default_clock: bool,
    /// The order of the functions.
    pub order: Order,
    /// How many threads, types and functions that allocate are shown; a tree of calls has five times as many lines.
    pub top: usize,
    /// Whether all frames are shown.
    pub is_raw: bool,
    /// Whether the threads are shown.
    pub threads: bool,
    /// Whether the calls are shown from the root.
    pub calls: bool,
}

impl ReportQuery {
    /// Returns whether all frames are shown, with their exact names. Thread time has the rule of another tool.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.is_raw || self.clock == Clock::ThreadTime
    }

    /// Returns the tree of the frames that are shown.
    pub(super) fn tree(
        &self,
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> CallTree {
        let tree = if self.is_exact() { CallTree::new } else { CallTree::of_origins };
        tree(samples, clock, weigh)
    }
}

/// What the samples of one clock show. Weights are in the unit of the clock; [`CallTree::share`] of the tree has their
/// shares.
#[derive(Debug)]
pub struct CallReport<'s> {
    /// The clock of the report: all samples in place of CPU time, if `hides_running`.
    pub clock: Clock,
    /// Whether samples, or those of the older recording, do not tell which threads ran.
    pub hides_running: bool,
    /// The names of the frames.
    pub names: &'s Names,
    /// The calls.
    pub tree: CallTree,
    /// The number of events that the clock has counted.
    pub count: u64,
    /// The number of all samples of threads.
    pub samples: u64,
    /// The number of events that have more different stacks than samples have room for.
    pub dropped: u64,
    /// Whether an event of the trace, of any kind, has a stack.
    pub has_stacks: bool,
    /// Whether allocations are sampled.
    pub has_sampled_allocations: bool,
    /// Why there is no result, if there is none. No thread that runs is a result.
    pub gap: Option<Gap>,
    /// What is not counted.
    pub uncounted: Uncounted,
    /// The CPU time, if the reader asks for it.
    pub cpu: Option<CpuTime>,
    /// The functions in the order of the report. By own weight, only those of the program have a place.
    pub top: Vec<Entry>,
    /// Whether stacks have functions, of the program or others.
    pub has_functions: bool,
    /// Whether the functions are an answer. The shares of few samples are none, unless the reader asks for them.
    pub has_top: bool,
    /// The first functions of the program, which the reader can change; empty if `top` begins with them.
    pub own_first: Vec<Entry>,
    /// The frame of addresses without a name.
    pub unnamed: Option<Entry>,
    /// The types of objects, for [`Clock::AllocatedTypes`].
    pub types: Option<TypeRows<'s>>,
    /// The number of threads that were never seen in managed code, and of their samples; for [`Clock::Cpu`].
    pub idle_threads: (usize, u64),
    /// The threads, the heaviest first.
    pub threads: Vec<ThreadRow<'s>>,
    /// The calls from the root.
    pub calls: Vec<CallLine>,
    /// Whether there are more calls.
    pub has_more_calls: bool,
    /// The comparison with an older recording.
    pub older: Option<OlderReport<'s>>,
}

/// An older recording, and how the shares differ.
#[derive(Debug)]
pub struct OlderReport<'s> {
    /// The weight of all its stacks.
    pub total: u64,
    /// The number of its events.
    pub count: u64,
    /// The functions whose shares differ, the largest change first, by the order of the report.
    pub changes: Vec<Change<'s>>,
}

impl<'s> CallReport<'s> {
    /// Makes a report of samples, whose trace has ended, and compares them with those of an older recording.
    /// `thread_names` has the names that the operating system has for threads, by their ids.
    #[must_use]
    pub fn new(
        query: &ReportQuery,
        samples: &'s mut Samples,
        mut older: Option<&'s mut Samples>,
        thread_names: &'s BTreeMap<u64, String>,
    ) -> Self {
        let total = |_, weight: Weight| weight.total();
        let mut clock = samples.shown_clock(query.clock.clone());
        if let Some(older) = &mut older {
            clock = older.shown_clock(clock);
        }
        let cpu = (query.clock == Clock::Cpu).then(|| CpuTime::new(samples));
        let older = older.map(|older| (query.tree(older, &clock, total), &*older));
        let tree = query.tree(samples, &clock, total);
        let counts =
            (clock == Clock::AllocatedTypes).then(|| query.tree(samples, &clock, |_, weight| weight.count));
        let uncounted = Uncounted::new(samples, &clock);
        let has_result = tree.total() > 0 || (clock == Clock::Cpu && samples.samples() > 0);
        let gap = (!has_result).then(|| Gap::new(samples, &clock, &uncounted));
        let threads = if query.threads { thread_rows(query, &clock, samples) } else { Vec::new() };
        let idle_threads = if clock == Clock::Cpu { idle_threads(samples) } else { (0, 0) };

        // From here on, names do not change.
        let samples = &*samples;
        let mut top = tree.top(query.order);
        let has_functions = !top.is_empty();
        if query.order == Order::Own {
            top.retain(|entry| entry.own > 0);
        }
        let is_idle = query.is_default_clock && cpu.as_ref().is_some_and(CpuTime::is_nearly_idle);
        let has_top = tree.total() > 0 && !is_idle;
        let is_plain = has_top && older.is_none() && counts.is_none();
        let own_first = if is_plain && query.order != Order::Own { own_first(&tree) } else { Vec::new() };
        let names = samples.names();
        let mut inclusive = is_plain.then(|| tree.top(Order::Inclusive)).into_iter().flatten();
        let (calls, has_more_calls) =
            if query.calls { call_lines(&tree, query.top.saturating_mul(5)) } else { (Vec::new(), false) };
        Self {
            hides_running: clock != query.clock,
            cpu,
            gap,
            uncounted,
            has_functions,
            has_top,
            own_first: if top.starts_with(&own_first) { Vec::new() } else { own_first },
            top,
            unnamed: inclusive.find(|entry| names.text(entry.frame) == "?!?"),
            types: counts.map(|counts| TypeRows::new(&tree, &counts, names, query.top)),
            idle_threads,
            threads: threads.iter().filter_map(|thread| thread.row(samples, thread_names)).collect(),
            calls,
            has_more_calls,
            older: older.map(|(old, older)| OlderReport {
                total: old.total(),
                count: older.count(&clock),
                changes: changes(tree.difference(names, &old, older.names()), query.order),
            }),
            count: samples.count(&clock),
            samples: samples.samples(),
            dropped: samples.dropped().saturating_add(samples.stacks().cut()),
            has_stacks: samples.has_stacks(),
            has_sampled_allocations: samples.has_sampled_allocations(),
            names,
            tree,
            clock,
        }
    }
}

/// Returns the first functions of the program, and before them the one that most stacks have in common.
fn own_first(tree: &CallTree) -> Vec<Entry> {
    const OWN: usize = 3;
    let mut own = tree.top(Order::Own);
    own.retain(|entry| entry.own > 0);
    own.truncate(OWN);
    if let Some(common) = tree.common_own().filter(|common| !own.contains(common)) {
        own.insert(0, common);
    }
    own
}

fn changes(mut changes: Vec<Change<'_>>, order: Order) -> Vec<Change<'_>> {
    let size = |change: &Change<'_>| {
        let [before, after] = change.shares(order);
        (after - before).abs()
    };
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    changes
}
