//! Threads of the pool that wait, and the work that waits for them.
use nettrace_analysis::account::{Gauge, LastState, ThreadRole, ThreadState};

use crate::diagnosis::facts::{Facts, by_method, thread_count};
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::{Stretch, seconds};

/// The states in which a thread of the pool does no work. Waits for locks have rules of their own.
const BLOCKED: [ThreadState; 6] = [
    ThreadState::Task,
    ThreadState::Sleep,
    ThreadState::Semaphore,
    ThreadState::Join,
    ThreadState::Signal,
    ThreadState::Socket,
];

/// Threads of the pool that are blocked, with the work that waits for a thread.
pub(super) fn blocked(facts: &Facts<'_>) -> Vec<Finding> {
    const THREADS: f64 = 2.5;
    const SHARE: f64 = 0.2;
    let queue = queue(facts);
    let pool = facts.threads(ThreadRole::Pool);
    let mut findings = Vec::new();
    // A thread that reads a socket does its work, unless other work waits for it.
    for state in BLOCKED.into_iter().filter(|state| *state != ThreadState::Socket || queue.is_some()) {
        let rows = facts.samples(state, |role| role == ThreadRole::Pool);
        // With work in the queue, fewer blocked threads are too many.
        let threads = match queue {
            Some(_) => THREADS.min(pool as f64 / 2.0).max(1.5),
            None => THREADS.max(pool as f64 * SHARE),
        };
        for group in by_method(rows, |rows| facts.threads_stretch(rows, threads).is_some()) {
            let Some(stretch) = facts.threads_stretch(&group, threads) else { continue };
            let blame = facts.blame_selected(&group);
            let evidence = format!(
                "{} of {pool} threads of the pool wait {}, {:.1} at any time{}{}",
                thread_count(&group),
                state.text(),
                stretch.rate,
                stretch.when(),
                places(&blame, "; ", "in")
            );
            findings.push((
                stretch.rate,
                Finding::new("blocked_threads", Severity::Medium, evidence).blame(&blame),
            ));
        }
    }
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut findings: Vec<_> = findings.into_iter().map(|(_, finding)| finding).collect();
    findings.extend(outside_managed_code(facts, pool));
    match (findings.first_mut(), queue) {
        (Some(cause), Some(queue)) => {
            cause.kind = "thread_pool";
            cause.severity = Severity::High;
            cause.evidence = format!("{queue}; {}", cause.evidence);
        }
        (None, Some(queue)) => {
            let evidence = format!("{queue}; no wait of its threads explains it");
            findings.push(Finding::new("thread_pool", Severity::Medium, evidence));
        }
        (_, None) => {}
    }
    findings.into_iter().map(|finding| finding.see_stacks("dotnet-ipc stack TARGET --group", facts)).collect()
}

/// Returns the work that waits for a thread of the pool, unless it waits for a moment only.
fn queue(facts: &Facts<'_>) -> Option<String> {
    const QUEUE: f64 = 5.0;
    const SECONDS: f64 = 1.5;
    let gauge = facts.counter("threadpool-queue-length")?;
    let (start, end) = gauge.longest_run(QUEUE)?;
    let [_, last] = seconds(facts.account);
    let inside = gauge.points().iter().filter(|point| (start..=end).contains(&point.first));
    let run = inside.fold(Gauge::default(), |mut run, point| {
        run.add(point.first, point.mean());
        run
    });
    let longest = run.points().iter().map(|point| point.mean()).fold(0.0, f64::max);
    let is_all = run.count() == gauge.count();
    let stretch = Stretch::new(start as f64 / 1e9, (end as f64 / 1e9 + 1.0).min(last), 0.0, facts.account);
    let when = if is_all { String::new() } else { stretch.when() };
    let usual = run.median()?;
    (is_all || stretch.length() >= SECONDS).then(|| {
        format!("{usual:.0} work items usually wait for a thread of the pool{when}, up to {longest:.0}")
    })
}

/// Threads of the pool that are all outside managed code in one method to the end. .NET 8 and 9 wait for locks there.
fn outside_managed_code(facts: &Facts<'_>, pool: usize) -> Option<Finding> {
    const THREADS: usize = 3;
    const SHARE: f64 = 0.8;
    let is_native = |of: &&LastState| {
        of.state == ThreadState::Native
            && facts.account.role(of.thread) == ThreadRole::Pool
            && facts.stuck.contains(&of.thread)
    };
    let threads: Vec<_> = facts.last_states.iter().filter(is_native).collect();
    let blame = facts.account.blame(threads.iter().flat_map(|of| of.stacks.iter().copied()));
    let method = blame.method.as_ref().filter(|_| threads.len() >= THREADS)?;
    if (threads.len() as f64) < pool as f64 * SHARE || method.share < SHARE {
        return None;
    }
    let since = threads.iter().map(|of| of.since).max()? as f64 / 1e9;
    let end = threads.iter().map(|of| of.last).max()? as f64 / 1e9;
    let when = Stretch::new(since, end, 0.0, facts.account);
    let evidence = format!(
        "{} of {pool} threads of the pool are outside managed code in all samples{}{}: they wait for a lock, or in a \
         blocking call; the stacks of this runtime do not show which",
        threads.len(),
        when.when(),
        places(&blame, "; ", "in")
    );
    Some(Finding::new("blocked_threads", Severity::High, evidence).blame(&blame))
}
