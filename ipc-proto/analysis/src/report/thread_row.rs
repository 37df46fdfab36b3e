use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::call_report::ReportQuery;
use crate::call_tree::Order;
use crate::names::FrameId;
use crate::samples::{Clock, Samples, ThreadNumber, ThreadRoles, Weight};

/// A thread of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRow<'s> {
    /// The process of the thread; 0 is the process of a trace of a runtime.
    pub process: u64,
    /// The operating system's id.
    pub id: u64,
    /// The name of the thread, or its purpose; empty if neither is known.
    pub name: &'s str,
    /// The weight of its stacks.
    pub total: u64,
    /// The function in which the thread was sampled most often; empty for threads that are not shown.
    pub top: &'s str,
}

/// A thread before its names are final.
pub(super) struct CountedThread {
    number: usize,
    total: u64,
    top: Option<FrameId>,
    roles: ThreadRoles,
}

/// Returns the threads, the heaviest first. Only the threads that are shown get a top function.
pub(super) fn thread_rows(query: &ReportQuery, clock: &Clock, samples: &mut Samples) -> Vec<CountedThread> {
    let totals = of_threads(samples, clock).into_iter().map(Weight::total);
    let mut totals: Vec<_> = totals.enumerate().filter(|(_, total)| *total > 0).collect();
    totals.sort_by_key(|(number, total)| (Reverse(*total), *number));
    let roles = samples.thread_roles();
    let thread = |(place, (number, total))| {
        let weigh = |of: ThreadNumber, weight: Weight| {
            if of.number() == number { weight.total() } else { 0 }
        };
        let tree = (place < query.top).then(|| query.tree(samples, clock, weigh));
        let top = tree.and_then(|tree| tree.top(Order::Exclusive).first().map(|entry| entry.frame));
        CountedThread { number, total, top, roles: roles.get(number).copied().unwrap_or_default() }
    };
    totals.into_iter().enumerate().map(thread).collect()
}

impl CountedThread {
    pub(super) fn row<'s>(
        &self,
        samples: &'s Samples,
        names: &'s BTreeMap<u64, String>,
    ) -> Option<ThreadRow<'s>> {
        let Self { total, roles, .. } = *self;
        let top = self.top.map_or("", |frame| samples.names().text(frame));
        let thread = samples.threads().get(self.number)?;
        let of_system = names.get(&thread.id).filter(|name| roles.has_name(name));
        let of_trace = Some(&thread.name).filter(|name| !name.is_empty());
        let name = of_system.or(of_trace).map(String::as_str).or_else(|| roles.name());
        let name = name.unwrap_or_default();
        Some(ThreadRow { process: thread.process, id: thread.id, name, total, top })
    }
}

/// Returns how many threads were never seen in managed code, and the number of their samples.
pub(super) fn idle_threads(samples: &Samples) -> (usize, u64) {
    let threads = of_threads(samples, &Clock::Wall).into_iter();
    let idle = threads.filter(|weight| weight.running == 0 && weight.waiting > 0);
    idle.fold((0, 0), |(threads, sum), weight| {
        (usize::saturating_add(threads, 1), u64::saturating_add(sum, weight.waiting))
    })
}

/// Returns what each thread weighs by a clock, by its number.
fn of_threads(samples: &Samples, clock: &Clock) -> Vec<Weight> {
    let mut sums = alloc::vec![Weight::default(); samples.threads().len()];
    for (thread, _, weight) in samples.weights(clock) {
        if let Some(sum) = sums.get_mut(thread.number()) {
            sum.add(weight);
        }
    }
    sums
}
