//! The threads of a report.
use core::cmp::Reverse;
use std::collections::BTreeMap;

use nettrace_analysis::call_tree::{CallTree, Order};
use nettrace_analysis::samples::{Clock, Samples, Weight};
use serde::Serialize;

use super::integer::Integer;
use super::options::Args;

#[derive(Serialize)]
pub(super) struct Thread {
    pub(super) process_id: Option<Integer>,
    pub(super) thread_id: Integer,
    pub(super) name: Option<String>,
    pub(super) share: f64,
    /// The function in which the thread was sampled most often.
    pub(super) top: String,
    #[serde(skip)]
    pub(super) total: u64,
}

/// Returns the threads, the heaviest first. Only the threads that are shown get a top function. The system has
/// `system_names` for threads.
pub(super) fn threads(
    args: &Args,
    samples: &mut Samples,
    clock: &Clock,
    tree: &CallTree,
    system_names: Option<&BTreeMap<u64, String>>,
) -> Vec<Thread> {
    let totals = samples.thread_weights(clock).into_iter().map(Weight::total);
    let mut totals: Vec<_> = totals.enumerate().filter(|(_, total)| *total > 0).collect();
    totals.sort_by_key(|(number, total)| (Reverse(*total), *number));
    let roles = samples.thread_roles();
    let thread = |(place, (number, total)): (usize, (usize, u64))| {
        let of_thread = (place < args.top).then(|| {
            args.call_tree(
                samples,
                clock,
                |thread, weight| {
                    if thread.number() == number { weight.total() } else { 0 }
                },
            )
        });
        let top = of_thread.and_then(|tree| tree.top(Order::Exclusive).first().copied());
        let top = top.map_or("", |entry| samples.names().text(entry.frame)).to_owned();
        let thread = samples.threads().get(number)?;
        let roles = roles.get(number).copied().unwrap_or_default();
        let of_system = system_names.and_then(|names| names.get(&thread.id));
        let of_trace = Some(&thread.name).filter(|name| !name.is_empty());
        let name = of_system.filter(|name| roles.has_name(name)).or(of_trace).map(String::as_str);
        Some(Thread {
            process_id: (thread.process != 0).then_some(Integer(thread.process)),
            thread_id: Integer(thread.id),
            name: name.or_else(|| roles.name()).map(str::to_owned),
            share: tree.share(total),
            top,
            total,
        })
    };
    totals.into_iter().enumerate().filter_map(thread).collect()
}
