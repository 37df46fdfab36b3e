//! The report on locks as JSON.
use nettrace_analysis::locks::{
    ContendedLock, Cycle, LockOwner, LockReport, OwnerWait, WaitGroup, WaitTimes, WaitingMethod,
    WaitingThread,
};
use nettrace_analysis::names::short_name;
use serde_json::{Value, json};

use super::shown_threads::ShownThreads;
use crate::output::rows::milliseconds;
use crate::text::printable::{hexadecimal, integer, printable_name};

pub(super) fn to_json(report: &LockReport, lost: u64, is_short: bool, threads: &ShownThreads) -> Value {
    let json = LockJson { is_short, threads };
    let mut all = WaitTimes::default();
    report.locks.iter().for_each(|lock| all.merge(lock.waits));
    json!({
        "duration_ms": milliseconds(report.span),
        "waits": all.count,
        "wait_ms": milliseconds(all.total),
        "longest_ms": milliseconds(all.longest),
        "locks": report.locks.iter().map(|lock| json.lock(lock)).collect::<Value>(),
        "cycles": report.cycles.iter().map(|cycle| json.cycle(cycle)).collect::<Value>(),
        "waiting_before": report.waiting_before.iter().map(|group| json.group(group)).collect::<Value>(),
        "ended_before": times(report.ended),
        "without_end": report.without_end,
        "without_stack": report.without_stack,
        "sampled_threads": report.sampled_threads,
        "lost": lost,
        "dropped": report.dropped,
    })
}

fn times(times: WaitTimes) -> Value {
    json!({
        "waits": times.count,
        "wait_ms": milliseconds(times.total),
        "longest_ms": milliseconds(times.longest),
    })
}

/// The objects of `--json`.
struct LockJson<'a> {
    is_short: bool,
    threads: &'a ShownThreads,
}

impl LockJson<'_> {
    fn method(&self, name: &str) -> String {
        printable_name(if self.is_short { short_name(name) } else { name })
    }

    fn frames(&self, frames: &[impl AsRef<str>]) -> Value {
        frames.iter().map(|frame| self.method(frame.as_ref())).collect()
    }

    fn lock(&self, lock: &ContendedLock) -> Value {
        let method = |of: &WaitingMethod| {
            json!({
                "method": of.method.as_deref().map(|name| self.method(name)),
                "own": of.is_own,
                "waits": of.waits.count,
                "wait_ms": milliseconds(of.waits.total),
                "longest_ms": milliseconds(of.waits.longest),
            })
        };
        let held =
            lock.held_in.iter().map(|of| json!({ "method": self.method(&of.method), "samples": of.samples }));
        let waiting = |of: &WaitingThread| {
            json!({
                "thread_id": integer(of.thread.id),
                "thread_name": self.threads.name(&of.thread),
                "wait_ms": milliseconds(of.time),
                "method": of.method.as_deref().map(|name| self.method(name)),
            })
        };
        json!({
            "process_id": lock.process_id.map(integer),
            "lock": lock.id.map(hexadecimal),
            "object": lock.object.map(hexadecimal),
            "waits": lock.waits.count,
            "wait_ms": milliseconds(lock.waits.total),
            "longest_ms": milliseconds(lock.waits.longest),
            "methods": lock.methods.iter().map(method).collect::<Value>(),
            "held_in": held.collect::<Value>(),
            "held_samples": lock.held_samples,
            "waiting": lock.waiting.iter().map(waiting).collect::<Value>(),
            "owner": lock.owner.as_ref().map(|owner| self.owner(owner)),
            "perhaps_deadlock": lock.owner_is_stuck(),
        })
    }

    fn owner(&self, owner: &LockOwner) -> Value {
        let waits_for = owner.waits_for.map(|wait| match wait {
            OwnerWait::Lock(lock) => json!({ "lock": hexadecimal(lock), "since_before": false }),
            OwnerWait::SinceBefore => json!({ "lock": null, "since_before": true }),
        });
        json!({
            "thread_id": owner.thread.as_ref().map(|thread| integer(thread.id)),
            "thread_name": owner.thread.as_ref().and_then(|thread| self.threads.name(thread)),
            "number": integer(owner.number),
            "waits_for": waits_for,
            "frames": self.frames(&owner.stack),
        })
    }

    fn cycle(&self, cycle: &Cycle) -> Value {
        let threads = cycle.threads.iter().map(|of| {
            json!({
                "thread_id": integer(of.thread.id),
                "thread_name": self.threads.name(&of.thread),
                "lock": of.lock.map(hexadecimal),
                "method": of.method.as_deref().map(|name| self.method(name)),
            })
        });
        json!({
            "process_id": cycle.process_id.map(integer),
            "wait_ms": milliseconds(cycle.time),
            "threads": threads.collect::<Value>(),
        })
    }

    fn group(&self, group: &WaitGroup) -> Value {
        json!({
            "process_id": group.process_id.map(integer),
            "kind": group.kind.name(),
            "count": group.threads.len(),
            "method": self.method(&group.method),
            "own": group.is_own,
            "threads": group.threads.iter().map(|thread| integer(thread.id)).collect::<Value>(),
            "frames": self.frames(&group.stack),
        })
    }
}
