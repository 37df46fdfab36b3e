//! The report on locks as JSON.
use nettrace_analysis::locks::{
    ContendedLock, Cycle, LockOwner, LockReport, LockThread, OwnerWait, WaitGroup, WaitTimes, WaitingMethod,
    WaitingThread,
};
use nettrace_analysis::names::short_name;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::shown_threads::ShownThreads;
use crate::output::dates::{DateField, Dates};
use crate::output::rows::milliseconds;
use crate::text::printable::{hexadecimal, integer, printable_name};

#[derive(Serialize)]
struct LocksRow<L: Serialize, C: Serialize, G: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: DateField,
    duration_ms: f64,
    #[serde(flatten)]
    waits: WaitsRow,
    locks: L,
    cycles: C,
    waiting_before: G,
    handles: Vec<LockMethodRow>,
    other_handles: WaitsRow,
    ended_before: WaitsRow,
    without_end: u64,
    without_stack: u64,
    sampled_threads: u64,
    lost: u64,
    dropped: u64,
}

#[derive(Serialize)]
struct WaitsRow {
    waits: u64,
    wait_ms: f64,
    longest_ms: f64,
}

#[derive(Serialize)]
struct LockRow {
    process_id: Option<Value>,
    lock: Option<String>,
    object: Option<String>,
    #[serde(flatten)]
    waits: WaitsRow,
    methods: Vec<LockMethodRow>,
    held_in: Vec<HoldingRow>,
    held_samples: u64,
    waiting: Vec<WaitingRow>,
    owner: Option<OwnerRow>,
    perhaps_deadlock: bool,
}

#[derive(Serialize)]
struct LockMethodRow {
    method: Option<String>,
    own: bool,
    #[serde(flatten)]
    waits: WaitsRow,
}

#[derive(Serialize)]
struct HoldingRow {
    method: String,
    samples: u64,
}

#[derive(Serialize)]
struct LockThreadRow {
    thread_id: Option<Value>,
    thread_name: Option<String>,
}

#[derive(Serialize)]
struct WaitingRow {
    #[serde(flatten)]
    thread: LockThreadRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    wait_ms: f64,
    method: Option<String>,
}

#[derive(Serialize)]
struct OwnerRow {
    #[serde(flatten)]
    thread: LockThreadRow,
    number: Value,
    waits_for: Option<OwnerWaitRow>,
    frames: Vec<String>,
}

#[derive(Serialize)]
struct OwnerWaitRow {
    lock: Option<String>,
    since_before: bool,
}

#[derive(Serialize)]
struct CycleRow {
    process_id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    wait_ms: f64,
    threads: Vec<CycleThreadRow>,
}

#[derive(Serialize)]
struct CycleThreadRow {
    #[serde(flatten)]
    thread: LockThreadRow,
    lock: Option<String>,
    method: Option<String>,
}

#[derive(Serialize)]
struct WaitGroupRow {
    process_id: Option<Value>,
    kind: &'static str,
    count: usize,
    method: String,
    own: bool,
    threads: Vec<Value>,
    frames: Vec<String>,
}

/// Returns the report. The rows are made while they are written, one at a time.
pub(super) fn to_json<'a>(
    report: &'a LockReport,
    lost: u64,
    is_short: bool,
    threads: &'a ShownThreads,
    dates: &'a Dates,
) -> impl Serialize + use<'a> {
    let json = LockJson { is_short, threads, dates, end: report.end };
    let mut all = WaitTimes::default();
    report.locks.iter().for_each(|lock| all.merge(lock.waits));
    LocksRow {
        start: json.start(report.span),
        end: json.start(0),
        duration_ms: milliseconds(report.span),
        waits: all.into(),
        locks: LazyRows(&report.locks, move |lock: &ContendedLock| json.lock(lock)),
        cycles: LazyRows(&report.cycles, move |cycle: &Cycle| json.cycle(cycle)),
        waiting_before: LazyRows(&report.waiting_before, move |group: &WaitGroup| json.group(group)),
        handles: report.handles.iter().map(|of| json.waits_in(of)).collect(),
        other_handles: report.other_handles.into(),
        ended_before: report.ended.into(),
        without_end: report.without_end,
        without_stack: report.without_stack,
        sampled_threads: report.sampled_threads,
        lost,
        dropped: report.dropped,
    }
}

impl From<WaitTimes> for WaitsRow {
    fn from(times: WaitTimes) -> Self {
        Self {
            waits: times.count,
            wait_ms: milliseconds(times.total),
            longest_ms: milliseconds(times.longest),
        }
    }
}

/// A list of values, and what returns the row of each.
struct LazyRows<'a, T, F>(&'a [T], F);

impl<T, R: Serialize, F: Fn(&T) -> R> Serialize for LazyRows<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(&self.1))
    }
}

/// The objects of `--json`.
#[derive(Clone, Copy)]
struct LockJson<'a> {
    is_short: bool,
    threads: &'a ShownThreads,
    dates: &'a Dates,
    /// The end of the recording.
    end: i64,
}

impl LockJson<'_> {
    /// Returns the date of the start of a wait that lasts at the end.
    fn start(&self, time: u64) -> DateField {
        self.dates.field(Some(self.end.saturating_sub_unsigned(time)))
    }

    fn method(&self, name: impl AsRef<str>) -> String {
        let name = name.as_ref();
        printable_name(if self.is_short { short_name(name) } else { name })
    }

    fn frames(&self, frames: &[impl AsRef<str>]) -> Vec<String> {
        frames.iter().map(|frame| self.method(frame)).collect()
    }

    fn thread(&self, thread: &LockThread) -> LockThreadRow {
        LockThreadRow { thread_id: Some(integer(thread.id)), thread_name: self.threads.name(thread) }
    }

    fn waits_in(&self, of: &WaitingMethod) -> LockMethodRow {
        LockMethodRow {
            method: of.method.as_ref().map(|name| self.method(name)),
            own: of.is_own,
            waits: of.waits.into(),
        }
    }

    fn lock(&self, lock: &ContendedLock) -> LockRow {
        let held =
            lock.held_in.iter().map(|of| HoldingRow { method: self.method(&of.method), samples: of.samples });
        let waiting = |of: &WaitingThread| WaitingRow {
            thread: self.thread(&of.thread),
            start: self.start(of.time),
            wait_ms: milliseconds(of.time),
            method: of.method.as_ref().map(|name| self.method(name)),
        };
        LockRow {
            process_id: lock.process_id.map(integer),
            lock: lock.id.map(hexadecimal),
            object: lock.object.map(hexadecimal),
            waits: lock.waits.into(),
            methods: lock.methods.iter().map(|of| self.waits_in(of)).collect(),
            held_in: held.collect(),
            held_samples: lock.held_samples,
            waiting: lock.waiting.iter().map(waiting).collect(),
            owner: lock.owner.as_ref().map(|owner| self.owner(owner)),
            perhaps_deadlock: lock.owner_is_stuck(),
        }
    }

    fn owner(&self, owner: &LockOwner) -> OwnerRow {
        let nobody = LockThreadRow { thread_id: None, thread_name: None };
        OwnerRow {
            thread: owner.thread.as_ref().map_or(nobody, |thread| self.thread(thread)),
            number: integer(owner.number),
            waits_for: owner.waits_for.map(|wait| match wait {
                OwnerWait::Lock(lock) => OwnerWaitRow { lock: Some(hexadecimal(lock)), since_before: false },
                OwnerWait::SinceBefore => OwnerWaitRow { lock: None, since_before: true },
            }),
            frames: self.frames(&owner.stack),
        }
    }

    fn cycle(&self, cycle: &Cycle) -> CycleRow {
        let threads = cycle.threads.iter().map(|of| CycleThreadRow {
            thread: self.thread(&of.thread),
            lock: of.lock.map(hexadecimal),
            method: of.method.as_ref().map(|name| self.method(name)),
        });
        CycleRow {
            process_id: cycle.process_id.map(integer),
            start: self.start(cycle.time),
            wait_ms: milliseconds(cycle.time),
            threads: threads.collect(),
        }
    }

    fn group(&self, group: &WaitGroup) -> WaitGroupRow {
        WaitGroupRow {
            process_id: group.process_id.map(integer),
            kind: group.kind.name(),
            count: group.threads.len(),
            method: self.method(&group.method),
            own: group.is_own,
            threads: group.threads.iter().map(|thread| integer(thread.id)).collect(),
            frames: self.frames(&group.stack),
        }
    }
}
