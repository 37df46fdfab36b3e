//! Rules about threads: threads that wait, and too many threads.
use nettrace_analysis::names::{short_name, source_name};

use crate::diagnosis::blocked_threads::{BlockedGroup, Blocker};
use crate::diagnosis::facts::{Facts, median};
use crate::diagnosis::finding::{Finding, Severity};

/// Threads that wait for each other, or that wait for locks during the whole recording, none of which got one.
pub(super) fn deadlock(facts: &Facts) -> Option<Finding> {
    cycle(facts).or_else(|| stuck(facts))
}

/// Threads of which each has the lock that the one before it waits for.
fn cycle(facts: &Facts) -> Option<Finding> {
    /// A lock that was just released at the end of the recording can look like a part of a circle.
    const NANOSECONDS: u64 = 1_000_000_000;
    const SHOWN: usize = 4;
    let cycle = facts.locks.cycles.iter().find(|cycle| cycle.time >= NANOSECONDS)?;
    let method = cycle.threads.first().and_then(|thread| thread.method.as_ref());
    // A method without a name is `module!?`.
    let method = method.filter(|method| !method.ends_with('?')).map(|method| source_name(short_name(method)));
    let ids = cycle.threads.iter().cycle().skip(1).take(cycle.threads.len().min(SHOWN));
    let ids: Vec<_> = ids.map(|thread| format!("waits for {}", thread.thread.id)).collect();
    let first = cycle.threads.first()?.thread.id;
    let place = method.as_ref().map_or_else(String::new, |method| format!("; the first one in {method}"));
    let evidence =
        format!("thread {first} {}, for {:.1} s{place}", ids.join(", which "), cycle.time as f64 / 1e9);
    let finding = Finding::new("deadlock", Severity::High, evidence);
    Some(finding.in_method(method).see("dotnet-ipc locks TARGET"))
}

fn stuck(facts: &Facts) -> Option<Finding> {
    let ended = &facts.evidence.ended_waits;
    let stuck = |group: &&BlockedGroup| {
        group.blocker == Blocker::Lock && group.threads >= 2 && !group.ids.iter().any(|id| ended.contains(id))
    };
    let mut groups = facts.blocked.groups.iter();
    let group = groups.find(stuck)?;
    let others: usize = groups.filter(stuck).map(|group| group.threads).sum();
    let threads = group.threads.saturating_add(others);
    let evidence = format!(
        "{threads} threads waited for locks during the whole recording and none got one, {} of them in \
         {}: perhaps a deadlock",
        group.threads, group.method
    );
    let finding = Finding::new("deadlock", Severity::High, evidence);
    Some(finding.in_method(group.method.clone()).see("dotnet-ipc locks TARGET"))
}

/// Work that queues up because the threads of the pool are blocked.
pub(super) fn starved_pool(facts: &Facts) -> Option<Finding> {
    const QUEUE: f64 = 5.0;
    let queue = facts.series("queue");
    let blocked = facts.blocked.groups.iter().max_by_key(|group| group.pool_threads);
    let blocked = blocked.filter(|group| group.pool_threads >= 2);
    // A queue that is long for a moment is not a sickness.
    let usual = median(queue).filter(|usual| *usual >= QUEUE)?;
    let longest = queue.iter().copied().fold(0.0, f64::max);
    let queue = format!("{usual:.0} work items usually wait for a thread of the pool, up to {longest:.0}");
    let Some(blocked) = blocked else {
        let evidence = format!("{queue}; no method of the program blocks most of its threads");
        let finding = Finding::new("thread_pool", Severity::Medium, evidence);
        return Some(finding.see_stacks("dotnet-ipc stack TARGET --group"));
    };
    let evidence = format!(
        "{queue}; {} of its {} threads wait {} in {}",
        blocked.pool_threads,
        facts.blocked.pool_threads,
        blocked.blocker.text(),
        blocked.method
    );
    let finding = Finding::new("thread_pool", Severity::High, evidence);
    Some(finding.in_method(blocked.method.clone()).see_stacks("dotnet-ipc stack TARGET --group"))
}

/// Threads of the pool that wait in one method.
pub(super) fn blocked_pool(facts: &Facts) -> Option<Finding> {
    const THREADS: usize = 3;
    let group = facts.blocked.groups.iter().max_by_key(|group| group.pool_threads)?;
    if group.pool_threads < THREADS || group.blocker == Blocker::Other {
        return None;
    }
    let ended = &facts.evidence.ended_waits;
    if group.blocker == Blocker::Lock && group.ids.iter().any(|id| ended.contains(id)) {
        return None;
    }
    let evidence = format!(
        "{} of {} threads of the pool wait {} in {} for most of the recording",
        group.pool_threads,
        facts.blocked.pool_threads,
        group.blocker.text(),
        group.method
    );
    let finding = Finding::new("blocked_threads", Severity::Medium, evidence);
    Some(finding.in_method(group.method.clone()).see_stacks("dotnet-ipc stack TARGET --group"))
}

/// A finalizer that waits, so that no other finalizer runs.
pub(super) fn finalizer(facts: &Facts) -> Option<Finding> {
    let groups = &facts.blocked.groups;
    let (group, finalizer) = groups.iter().find_map(|group| Some((group, group.finalizer.as_ref()?)))?;
    let others = groups.iter().filter(|other| other.pool_threads == 0 && other.finalizer.is_none()).take(3);
    let others: Vec<_> = others.map(|other| format!("{} ({})", other.method, other.blocker.text())).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!("; other threads are blocked in {}", others.join(", ")),
    };
    let evidence = format!(
        "the finalizer thread waits {} in {}, called by {finalizer}, during the whole recording: no other \
         finalizer runs, and their objects stay in memory{others}",
        group.blocker.text(),
        group.method
    );
    let finding = Finding::new("finalizer", Severity::High, evidence);
    Some(finding.in_method(finalizer.clone()).see_stacks("dotnet-ipc stack TARGET"))
}

/// Threads that the program starts without end.
pub(super) fn many_threads(facts: &Facts) -> Option<Finding> {
    const STARTED: f64 = 3.0;
    const ALIKE: usize = 50;
    let own: u64 = facts.thread_starts.methods.iter().map(|method| method.weight).sum();
    let started = facts.per_second(own);
    let alike = facts.blocked.groups.iter().find(|group| group.threads >= ALIKE && group.pool_threads == 0);
    if started < STARTED && alike.is_none() {
        return None;
    }
    let threads = facts.system.as_ref().and_then(|[_, end]| end.threads).unwrap_or(facts.blocked.threads);
    let mut evidence = format!("the process has {threads} threads");
    let mut method = None;
    if let (true, Some(starter)) = (started >= STARTED, facts.thread_starts.heaviest()) {
        evidence.push_str(&format!(
            "; the program starts {started:.0} a second, {} of them in {}",
            starter.percent, starter.place
        ));
        method = Some(starter.method);
    }
    if let Some(group) = alike {
        let (count, kind) = (group.threads, group.blocker.text());
        evidence.push_str(&format!("; {count} wait {kind} in {}", group.method));
        method.get_or_insert_with(|| group.method.clone());
    }
    let finding =
        Finding::new("threads", Severity::high_if(started >= STARTED * 3.0 || threads >= 500), evidence);
    Some(finding.in_method(method).see("dotnet-ipc report TARGET --event Microsoft-Windows-DotNETRuntime/70"))
}

/// Timers and descriptors that are used up.
pub(super) fn resources(facts: &Facts) -> Option<Finding> {
    const TIMERS: f64 = 500.0;
    let finding = |kind, severity, evidence, next| Some(Finding::new(kind, severity, evidence).see(next));
    if let Some([before, end]) = &facts.system {
        let (descriptors, limit) = (end.descriptors?, end.descriptor_limit?);
        if descriptors as f64 >= limit as f64 * 0.8 {
            let evidence = format!("{descriptors} descriptors are open, and the limit is {limit}");
            return finding("descriptors", Severity::High, evidence, "ls -l /proc/PID/fd");
        }
        let grown = descriptors.saturating_sub(before.descriptors?);
        if grown >= 100 && descriptors >= 500 {
            let evidence = format!(
                "{descriptors} descriptors are open, {grown} more than at the start of the recording"
            );
            return finding("descriptors", Severity::Medium, evidence, "ls -l /proc/PID/fd");
        }
    }
    let timers = facts.series("timers");
    let (first, last) = (timers.first()?, timers.last()?);
    if *last >= TIMERS {
        let evidence = format!("{last:.0} timers are active, {first:.0} at the start of the recording");
        return finding("timers", Severity::Medium, evidence, "dotnet-gcdump collect -p PID");
    }
    None
}
