//! Methods of the program that take much of the processor.
use nettrace_analysis::account::{ThreadRole, ThreadState};

use crate::diagnosis::facts::{Facts, Selected};
use crate::diagnosis::finding::{Finding, Severity, places};

/// Threads that want to run for much of the time, most of it in one method, or with all that the machine has.
pub(super) fn busy(facts: &Facts<'_>) -> Vec<Finding> {
    /// How many threads want to run at any time.
    const THREADS: f64 = 0.7;
    /// The share of the samples of a method that stands out.
    const SHARE: f64 = 0.5;
    /// The share of the processors that is all of them.
    const SATURATED: f64 = 0.85;
    let rows = facts.samples(ThreadState::Runs, |_| true);
    let cores = facts.cores();
    let processors = facts.of.processors.map(f64::from);
    let is_saturated = cores.zip(processors).is_some_and(|(cores, all)| cores >= all * SATURATED);
    let Some(stretch) = facts.threads_stretch(&rows, THREADS) else { return Vec::new() };
    let selected: Vec<_> =
        rows.into_iter().filter(|of| stretch.is_whole || stretch.has(of.row.first)).collect();
    let blame = facts.blame_selected(&selected);
    let stands_out = blame.innermost.first().is_some_and(|first| first.share >= SHARE);
    if !(stands_out || is_saturated) {
        return Vec::new();
    }
    let of = facts.of.processors.map_or_else(String::new, |processors| format!(" of {processors}"));
    let used = match cores {
        Some(cores) => format!("the process uses {cores:.2}{of} cores, and "),
        None => String::new(),
    };
    let evidence = format!(
        "{used}{:.1} of its threads want to run at any time{}, by samples{}",
        stretch.rate,
        stretch.when(),
        places(&blame, "; ", "of the samples of running code are in")
    );
    // A program that works in its main thread does what it is for.
    let role = |of: &&Selected<'_>| facts.account.role(of.row.thread) == ThreadRole::Main;
    let of_main: u64 = selected.iter().filter(role).map(|of| of.weight).sum();
    let severity = match of_main > blame.total / 2 {
        true => Severity::Info,
        false => Severity::high_if(cores.unwrap_or_default().max(stretch.rate) >= 0.96),
    };
    let finding = Finding::new("processor", severity, evidence);
    vec![finding.blame(&blame).see("dotnet-ipc report TARGET --by own")]
}
