//! Waits for locks: those that never end, and those that take much time.
use std::collections::{BTreeMap, BTreeSet};

use nettrace_analysis::account::{LastState, Measure, Row, ThreadRole, ThreadState};
use nettrace_analysis::locks::{ContendedLock, Cycle};
use nettrace_analysis::names::{short_name, source_name};

use crate::diagnosis::fact::Wish;
use crate::diagnosis::facts::{Facts, by_method, thread_count};
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::Stretch;

/// Returns the threads that wait for a lock to the end, and none of which has got one since. Left out are those that wait
/// for a lock whose owner is known to go on: it runs, or waits for something else than a lock.
fn stuck<'f>(facts: &'f Facts<'_>) -> Vec<&'f LastState> {
    let is_lock = |of: &&LastState| matches!(of.state, ThreadState::Lock | ThreadState::ReaderWriterLock);
    let stuck = facts.last_states.iter().filter(is_lock).filter(|of| facts.stuck.contains(&of.thread));
    let stuck: Vec<_> = stuck.collect();
    let mut going_on: BTreeSet<_> = facts.last_states.iter().map(|of| of.thread).collect();
    stuck.iter().for_each(|of| _ = going_on.remove(&of.thread));
    let is_held = |lock: &&ContendedLock| {
        let owner = lock.owner.as_ref().filter(|owner| owner.waits_for.is_none());
        let thread = owner.and_then(|owner| owner.thread.as_ref());
        thread.is_some_and(|thread| going_on.contains(&thread.number))
    };
    let waiting = facts.locks().filter(is_held).flat_map(|lock| &lock.waiting);
    let held: BTreeSet<_> = waiting.map(|waiting| waiting.thread.number).collect();
    stuck.into_iter().filter(|of| !held.contains(&of.thread)).collect()
}

/// Threads that wait for each other, or that wait for locks of which no owner goes on.
pub(super) fn deadlocks(facts: &Facts<'_>) -> Vec<Finding> {
    let cycles = facts.account.locks().cycles.iter().filter(|cycle| cycle.process_id == facts.process_id);
    let cycles: Vec<_> =
        cycles.filter(|cycle| cycle.time as f64 >= Facts::STUCK * 1e9).filter_map(circle).collect();
    if !cycles.is_empty() {
        return cycles;
    }
    const THREADS: usize = 2;
    let threads = stuck(facts);
    if threads.len() < THREADS {
        return Vec::new();
    }
    let since =
        |of: &&LastState| Stretch::new(of.since as f64 / 1e9, of.last as f64 / 1e9, 0.0, facts.account);
    let whole = threads.iter().filter(|of| since(of).is_whole).count();
    let first = threads.iter().min_by_key(|of| of.since).map_or_else(String::new, |of| since(of).when());
    let blame = facts.account.blame(threads.iter().flat_map(|of| of.stacks.iter().copied()));
    let when = match whole {
        0 => first,
        _ if whole == threads.len() => " during the whole recording".to_owned(),
        whole => format!(" to the end, {whole} of them during the whole recording,"),
    };
    let ids: BTreeSet<_> =
        threads.iter().filter_map(|of| facts.account.thread(of.thread)).map(|of| of.id).collect();
    let owners = facts.locks().filter(|lock| !lock.waiting.is_empty()).filter_map(|lock| lock.owner.as_ref());
    let owners: BTreeSet<_> =
        owners.filter_map(|owner| owner.thread.as_ref()).map(|thread| thread.id).collect();
    let owners: Vec<_> = owners.intersection(&ids).take(3).map(u64::to_string).collect();
    let owners = match owners.as_slice() {
        [] => "which threads have these locks is not known: perhaps a deadlock".to_owned(),
        owners => format!("of the owners, {} are known, and wait themselves: a deadlock", owners.join(", ")),
    };
    let evidence = format!(
        "{} threads waited for locks{when} and none got one{}; {owners}",
        threads.len(),
        places(&blame, ", ", "in")
    );
    let finding = Finding::new("deadlock", Severity::High, evidence);
    vec![finding.blame(&blame).see("dotnet-ipc locks TARGET")]
}

/// Threads of which each has the lock that the one before it waits for.
fn circle(cycle: &Cycle) -> Option<Finding> {
    const SHOWN: usize = 4;
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

/// Returns the method in which owners of a lock have most of their samples, after a verb.
fn holder(lock: Option<&ContendedLock>) -> String {
    const SAMPLES: u64 = 10;
    let Some(lock) = lock.filter(|lock| lock.held_samples >= SAMPLES) else { return String::new() };
    let held_in = lock.held_in.first().filter(|held_in| held_in.samples > lock.held_samples / 2);
    held_in.map_or_else(String::new, |held_in| {
        format!("; the lock is mostly held in {}", source_name(short_name(&held_in.method)))
    })
}

/// Waits for locks that take much time, by their events.
pub(super) fn contention(facts: &Facts<'_>) -> Vec<Finding> {
    /// How many threads wait at any time: a share of those that ever wait, between these numbers.
    const SHARE: f64 = 0.05;
    const THREADS: [f64; 2] = [0.3, 1.0];
    const NANOSECONDS: f64 = 1e9;
    const COUNT: u64 = 5;
    // Waits that never end are no contention.
    let stuck: BTreeSet<_> = stuck(facts).into_iter().map(|of| of.thread).collect();
    let is_deadlocked =
        |row: &Row<'_>| stuck.contains(&row.thread) && facts.account.open_wait(row.thread).is_some();
    let rows: Vec<_> = facts.rows(Measure::Contention).filter(|row| !is_deadlocked(row)).collect();
    // A few waits show no habit, unless they are long.
    let has_weight = |rows: &[Row<'_>]| {
        rows.iter().map(|row| row.count).sum::<u64>() >= COUNT
            || facts.total(Measure::Contention) >= NANOSECONDS
    };
    let limit = |rows: &[Row<'_>]| {
        let threads = rows.iter().map(|row| row.thread).collect::<BTreeSet<_>>().len();
        let [least, most] = THREADS;
        (threads as f64 * SHARE).clamp(least, most) * NANOSECONDS
    };
    let Some(all) = facts.stretch(&rows, limit(&rows)).filter(|_| has_weight(&rows)) else {
        return Vec::new();
    };
    let mut locks: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    rows.into_iter().for_each(|row| locks.entry(row.label).or_default().push(row));
    let is_large = |rows: &[Row<'_>]| facts.stretch(rows, limit(rows)).is_some();
    let (mut large, small): (Vec<_>, Vec<_>) = locks.into_iter().partition(|(_, rows)| is_large(rows));
    let others: Vec<_> = small.into_iter().flat_map(|(_, rows)| rows).collect();
    if is_large(&others) || large.is_empty() {
        large.push(("", others));
    }
    let severity = Severity::high_if(all.rate >= NANOSECONDS);
    let sampled = sampled_threads(facts).filter(|sampled| *sampled >= all.rate / NANOSECONDS * 1.5);
    let mut sampled = sampled.map(|sampled| {
        format!("; samples show {sampled:.1} threads: waits from before the recording have no event")
    });
    let mut findings: Vec<_> = large
        .into_iter()
        .map(|(label, rows)| {
            let blame = facts.blame(&rows);
            let stretch = facts.stretch(&rows, limit(&rows)).unwrap_or(all);
            let id: Option<u64> = label.parse().ok();
            let lock = facts.locks().find(|lock| id.is_some() && lock.id == id);
            let longest = match lock {
                Some(lock) => {
                    let open = lock.waiting.iter().map(|waiting| waiting.time).max().unwrap_or_default();
                    format!(", up to {:.0} ms", lock.waits.longest.max(open) as f64 / 1e6)
                }
                None => String::new(),
            };
            let which = if lock.is_some() { "a lock" } else { "locks" };
            let evidence = format!(
                "{:.1} threads wait for {which} at any time{}{longest}{}{}",
                stretch.rate / NANOSECONDS,
                stretch.when(),
                places(&blame, "; ", "of the time in"),
                holder(lock)
            );
            let finding = Finding::new("contention", severity, evidence);
            (blame.method.is_none(), blame.total, finding.blame(&blame).see("dotnet-ipc locks TARGET"))
        })
        .collect();
    findings.sort_by_key(|(is_divided, total, _)| (*is_divided, core::cmp::Reverse(*total)));
    if let Some((_, _, first)) = findings.first_mut() {
        first.evidence.push_str(&sampled.take().unwrap_or_default());
    }
    findings.into_iter().map(|(.., finding)| finding).collect()
}

/// Returns how many threads wait for locks on average by the samples, without those that wait for ever.
fn sampled_threads(facts: &Facts<'_>) -> Option<f64> {
    let mut rows = facts.samples(ThreadState::Lock, |_| true);
    rows.retain(|of| !facts.stuck.contains(&of.row.thread));
    facts.threads_stretch(&rows, 0.3).map(|stretch| stretch.rate)
}

/// Waits that raise no event: for reader-writer locks and semaphores, and for locks if their events were not recorded.
pub(super) fn sampled_waits(facts: &Facts<'_>) -> Vec<Finding> {
    /// How many threads wait at any time.
    const THREADS: f64 = 0.5;
    let states = [ThreadState::ReaderWriterLock, ThreadState::Semaphore, ThreadState::Lock];
    let has_events = facts.is_recorded(Wish::Locks);
    let states = states.into_iter().filter(|state| *state != ThreadState::Lock || !has_events);
    let stuck: BTreeSet<_> = stuck(facts).into_iter().map(|of| of.thread).collect();
    let mut findings = Vec::new();
    for state in states {
        // A thread of its own can wait for its work with a semaphore.
        let role =
            |role| role == ThreadRole::Pool || (state != ThreadState::Semaphore && role != ThreadRole::Other);
        let mut rows = facts.samples(state, role);
        rows.retain(|of| !stuck.contains(&of.row.thread));
        for group in by_method(rows, |rows| facts.threads_stretch(rows, THREADS).is_some()) {
            let Some(stretch) = facts.threads_stretch(&group, THREADS) else { continue };
            let blame = facts.blame_selected(&group);
            let evidence = format!(
                "{:.1} of {} threads wait {} at any time{}, {}{}",
                stretch.rate,
                thread_count(&group),
                state.text(),
                stretch.when(),
                facts.thread_source(),
                places(&blame, "; ", "of the time in")
            );
            let finding = Finding::new("contention", Severity::high_if(stretch.rate >= 3.0), evidence);
            findings.push(finding.blame(&blame).see_stacks("dotnet-ipc stack TARGET --group", facts));
        }
    }
    findings
}
