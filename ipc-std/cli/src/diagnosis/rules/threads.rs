//! The finalizer thread, and threads and other resources that are too many.
use nettrace_analysis::account::{LastState, Measure, ThreadRole, ThreadState};

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::trend::Trend;

/// A finalizer that waits, so that no other finalizer runs.
pub(super) fn finalizer(facts: &Facts<'_>) -> Vec<Finding> {
    let is_blocked = |of: &&LastState| {
        facts.account.role(of.thread) == ThreadRole::Finalizer
            && !matches!(of.state, ThreadState::Runs | ThreadState::Idle)
            && facts.stuck.contains(&of.thread)
    };
    let Some(thread) = facts.last_states.iter().find(is_blocked) else { return Vec::new() };
    let place = thread.stacks.first().and_then(|(stack, _)| facts.account.place(*stack));
    let Some([innermost, outermost]) =
        place.and_then(|place| Some([*place.own.first()?, *place.own.last()?]))
    else {
        return Vec::new();
    };
    let [innermost, outermost] = [innermost, outermost].map(|method| facts.account.method_name(method));
    let called = if innermost == outermost { String::new() } else { format!(", called by {outermost}") };
    let is_other = |of: &&LastState| {
        let role = facts.account.role(of.thread);
        role == ThreadRole::Started && of.state != ThreadState::Idle && facts.stuck.contains(&of.thread)
    };
    let others = facts.last_states.iter().filter(is_other).filter_map(|of| {
        let place = facts.account.place(of.stacks.first()?.0)?;
        Some(format!("{} ({})", facts.account.method_name(*place.own.first()?), of.state.text()))
    });
    let others: Vec<_> = others.take(3).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!("; other threads are blocked in {}", others.join(", ")),
    };
    let evidence = format!(
        "the finalizer thread waits {} in {innermost}{called}, for {:.1} s to the end: no other finalizer runs, and \
         their objects stay in memory{others}",
        thread.state.text(),
        thread.last.saturating_sub(thread.since) as f64 / 1e9
    );
    let finding = Finding::new("finalizer", Severity::High, evidence);
    vec![finding.in_method(outermost.to_owned()).see_stacks("dotnet-ipc stack TARGET", facts)]
}

/// Threads that the program starts without end, or that are too many.
pub(super) fn many(facts: &Facts<'_>) -> Vec<Finding> {
    const STARTED: f64 = 3.0;
    const COUNT: u64 = 20;
    const WAITING: usize = 100;
    let rows: Vec<_> = facts.rows(Measure::ThreadStarts).filter(|row| !row.place.own.is_empty()).collect();
    let count: u64 = rows.iter().map(|row| row.count).sum();
    let started = facts.stretch(&rows, STARTED).filter(|_| count >= COUNT);
    let waits = |of: &&LastState| {
        let is_busy = matches!(of.state, ThreadState::Runs | ThreadState::Idle);
        facts.account.role(of.thread) == ThreadRole::Started && !is_busy
    };
    let waiting: Vec<_> = facts.last_states.iter().filter(waits).collect();
    if started.is_none() && waiting.len() < WAITING {
        return Vec::new();
    }
    let threads = facts.system.as_ref().and_then(|[_, end]| end.threads).unwrap_or(facts.last_states.len());
    let mut evidence = format!("the process has {threads} threads");
    let mut method = None;
    if let Some(started) = started {
        let blame = facts.blame(&rows);
        evidence.push_str(&format!(
            "; the program starts {:.0} a second{}{}",
            started.rate,
            started.when(),
            places(&blame, ", ", "of them in")
        ));
        method = blame.method.map(|method| method.name.to_owned());
    }
    if waiting.len() >= WAITING {
        let blame = facts.account.blame(waiting.iter().flat_map(|of| of.stacks.iter().copied()));
        let kind =
            waiting.first().map(|of| of.state).filter(|state| waiting.iter().all(|of| of.state == *state));
        let kind = kind.map_or("", |kind| kind.text());
        evidence.push_str(&format!("; {} that the program started wait {kind}", waiting.len()));
        evidence.push_str(&places(&blame, "; ", "in"));
        method = method.or_else(|| blame.method.map(|method| method.name.to_owned()));
    }
    let is_high = started.is_some_and(|started| started.rate >= STARTED * 3.0) || threads >= 500;
    let finding = Finding::new("threads", Severity::high_if(is_high), evidence).in_method(method);
    vec![finding.see("dotnet-ipc report TARGET --event Microsoft-Windows-DotNETRuntime/70")]
}

/// Timers and descriptors that are used up.
pub(super) fn resources(facts: &Facts<'_>) -> Option<Finding> {
    const TIMERS: f64 = 500.0;
    let finding = |kind, severity, evidence, next| Some(Finding::new(kind, severity, evidence).see(next));
    if let Some([before, end]) = &facts.system {
        if let (Some(descriptors), Some(limit)) = (end.descriptors, end.descriptor_limit) {
            if descriptors as f64 >= limit as f64 * 0.8 {
                let evidence = format!("{descriptors} descriptors are open, and the limit is {limit}");
                return finding("descriptors", Severity::High, evidence, "ls -l /proc/PID/fd");
            }
            let grown = descriptors.saturating_sub(before.descriptors.unwrap_or(descriptors));
            if grown >= 100 && descriptors >= 500 {
                let evidence = format!(
                    "{descriptors} descriptors are open, {grown} more than at the start of the recording"
                );
                return finding("descriptors", Severity::Medium, evidence, "ls -l /proc/PID/fd");
            }
        }
    }
    let timers: Vec<_> =
        facts.counter("active-timer-count")?.points().iter().map(|point| point.mean()).collect();
    let Trend { from, to, .. } =
        Trend::of(&timers).filter(|trend| trend.to >= TIMERS && trend.to >= trend.from * 1.25)?;
    let evidence = format!("{to:.0} timers are active and grow in number, from {from:.0} in the recording");
    finding("timers", Severity::Medium, evidence, "dotnet-ipc heap PID")
}
