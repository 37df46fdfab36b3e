//! What the events of a trace show about its locks.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ipc_proto::wire::to_u64;

use super::cycles::cycles;
use super::frames::{Frames, Method};
use super::process_locks::{LockKey, LockState, Owner, ProcessLocks, ThreadState};
use crate::durations::elapsed;
use crate::names::Names;
use crate::{OwnCode, StackId, Stacks, WaitKind};

/// The locks of a trace for which threads waited. Times are in nanoseconds, stacks have full names, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockReport {
    /// The time from the first event to the end of the recording.
    pub span: u64,
    /// The locks: first those whose threads can wait indefinitely, then those with the longest waits together.
    pub locks: Vec<ContendedLock>,
    /// The threads that wait for each other.
    pub cycles: Vec<Cycle>,
    /// The threads that have waited since before the recording: first for locks, in methods of the program, and many.
    pub waiting_before: Vec<WaitGroup>,
    /// The waits for locks that began before the recording, and have ended.
    pub ended: WaitTimes,
    /// The waits whose end was lost. They count, without a time.
    pub without_end: u64,
    /// The waits whose start has no stack, as all of NativeAOT.
    pub without_stack: u64,
    /// The number of threads that were sampled.
    pub sampled_threads: u64,
    /// The number of events for which there was no room.
    pub dropped: u64,
}

/// A lock for which threads waited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContendedLock {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The id of the lock, which the runtime can use again after a collection. `None` for all locks of a runtime before
    /// .NET 8 together.
    pub id: Option<u64>,
    /// The address of the locked object when a thread waited last.
    pub object: Option<u64>,
    /// All waits; those that have not ended up to the end of the recording.
    pub waits: WaitTimes,
    /// The methods that wait, by the time of their waits.
    pub methods: Vec<WaitingMethod>,
    /// The methods of the program in which owners were sampled while other threads waited, by their samples.
    pub held_in: Vec<HoldingMethod>,
    /// All samples of owners while other threads waited.
    pub held_samples: u64,
    /// The threads that wait at the end, those that wait longest first.
    pub waiting: Vec<WaitingThread>,
    /// The owner, if threads wait at the end and its number or its id is known.
    pub owner: Option<LockOwner>,
}

impl ContendedLock {
    /// Returns whether threads wait for the lock at the end, whose owner has itself waited for a lock since before the
    /// recording: perhaps a deadlock.
    #[must_use]
    pub fn owner_is_stuck(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.waits_for == Some(OwnerWait::SinceBefore))
    }
}

/// The number of waits, and their time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitTimes {
    /// The number of waits.
    pub count: u64,
    /// The time of all waits together.
    pub total: u64,
    /// The time of the longest wait.
    pub longest: u64,
}

impl WaitTimes {
    pub(super) fn add(&mut self, nanoseconds: u64) {
        self.merge(Self { count: 1, total: nanoseconds, longest: nanoseconds });
    }

    /// Adds other waits.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }
}

/// A method in which threads wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingMethod {
    /// The full name of the method; `None` if the waits have no stack.
    pub method: Option<Arc<str>>,
    /// Whether the method belongs to the program.
    pub is_own: bool,
    /// The waits in this method.
    pub waits: WaitTimes,
}

/// A method in which a thread holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldingMethod {
    /// The full name of the method.
    pub method: Arc<str>,
    /// The number of samples.
    pub samples: u64,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockThread {
    /// The operating system's id.
    pub id: u64,
    /// The purpose of the thread in the runtime; empty if it is not known.
    pub name: &'static str,
}

/// A thread that waits at the end of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingThread {
    /// The thread.
    pub thread: LockThread,
    /// The time for which the thread has waited.
    pub time: u64,
    /// The method that waits; `None` if the wait has no stack.
    pub method: Option<Arc<str>>,
}

/// The owner of a lock for which threads wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockOwner {
    /// The thread, if it is known.
    pub thread: Option<LockThread>,
    /// The number of the thread that the events state. If it is a managed number and no event maps it to a thread, it is
    /// all that is known of the owner.
    pub number: u64,
    /// What the owner itself waits for, if that is known.
    pub waits_for: Option<OwnerWait>,
    /// The stack of the owner in its last sample since the threads wait for the lock, or of its own wait; empty if there
    /// is none.
    pub stack: Vec<Arc<str>>,
}

/// What the owner of a lock waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerWait {
    /// The lock with this id.
    Lock(u64),
    /// A lock, since before the recording.
    SinceBefore,
}

/// Threads that wait for each other: each has the lock for which the one before it waits, and the first one that of the
/// last one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The threads in the order in which they wait, the lowest id first, and the lock of each.
    pub threads: Vec<CycleThread>,
    /// The time for which all of them have waited. A cycle of microseconds at the end of a recording can be a lock that
    /// was just released.
    pub time: u64,
}

/// A thread of a [`Cycle`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CycleThread {
    /// The thread.
    pub thread: LockThread,
    /// The id of the lock for which the thread waits.
    pub lock: Option<u64>,
    /// The method that waits; `None` if the wait has no stack.
    pub method: Option<Arc<str>>,
}

/// Threads that have waited since before the recording, in stacks with the same [`outline`](crate::outline).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitGroup {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// What the threads wait for.
    pub kind: WaitKind,
    /// The threads, by their ids.
    pub threads: Vec<LockThread>,
    /// The method that waits.
    pub method: Arc<str>,
    /// Whether the method belongs to the program.
    pub is_own: bool,
    /// The stack of the first thread, without the innermost frames that only wait.
    pub stack: Vec<Arc<str>>,
}

/// Makes the report on the locks of all processes. The time `end` is the end of the recording.
pub(super) fn report(
    processes: BTreeMap<Option<u64>, ProcessLocks>,
    mut names: Names,
    stacks: &Stacks,
    own: &OwnCode,
    end: i64,
) -> LockReport {
    let mut report = LockReport::default();
    let mut frames = Frames::new(&mut names, stacks, own);
    for (process_id, process) in &processes {
        let mut process = ProcessReport { process_id: *process_id, process, frames: &mut frames, end };
        process.add_to(&mut report);
    }
    let in_cycles: BTreeSet<_> = report
        .cycles
        .iter()
        .flat_map(|cycle| cycle.threads.iter().map(|thread| (cycle.process_id, thread.lock)))
        .collect();
    report.locks.sort_by_key(|lock| {
        let is_in_cycle = in_cycles.contains(&(lock.process_id, lock.id));
        let rank = if is_in_cycle { 0 } else { 1_u8.saturating_add((!lock.owner_is_stuck()).into()) };
        (rank, Reverse((lock.waits.total, lock.waits.count)))
    });
    report.waiting_before.sort_by_key(|group| (group.kind, !group.is_own, Reverse(group.threads.len())));
    report
}

/// Makes the report on the locks of one process.
struct ProcessReport<'r, 'f> {
    process_id: Option<u64>,
    process: &'r ProcessLocks,
    frames: &'r mut Frames<'f>,
    end: i64,
}

impl ProcessReport<'_, '_> {
    fn add_to(&mut self, report: &mut LockReport) {
        let process = self.process;
        report.ended.merge(process.ended);
        report.without_end = report.without_end.saturating_add(process.without_end);
        let sampled = process.threads.values().filter(|thread| thread.sample.is_some()).count();
        report.sampled_threads = report.sampled_threads.saturating_add(to_u64(sampled));
        let groups = self.waiting_before();
        let since_before: BTreeSet<u64> = groups
            .iter()
            .filter(|group| group.kind == WaitKind::Lock)
            .flat_map(|group| group.threads.iter().map(|thread| thread.id))
            .collect();
        report.waiting_before.extend(groups);
        let mut waiting: BTreeMap<LockKey, Vec<u64>> = BTreeMap::new();
        let mut waits_for = BTreeMap::new();
        for (id, thread) in &process.threads {
            let Some(wait) = thread.wait else { continue };
            waiting.entry(wait.lock).or_default().push(*id);
            let owner = process.locks.get(&wait.lock).and_then(|lock| process.thread_of(lock.owner));
            if let Some(owner) = owner.filter(|owner| owner != id) {
                waits_for.insert(*id, owner);
            }
        }
        for (key, lock) in &process.locks {
            let threads = waiting.remove(key).unwrap_or_default();
            let stackless = lock.waits.get(&StackId::EMPTY).map_or(0, |waits| waits.count);
            let open = threads.iter().filter(|id| self.open_stack(**id) == StackId::EMPTY).count();
            report.without_stack =
                report.without_stack.saturating_add(stackless).saturating_add(to_u64(open));
            let lock = self.lock(*key, lock, &threads, &since_before);
            report.locks.push(lock);
        }
        for cycle in cycles(&waits_for) {
            let cycle = self.cycle(&cycle);
            report.cycles.push(cycle);
        }
    }

    fn open_stack(&self, id: u64) -> StackId {
        let wait = self.process.threads.get(&id).and_then(|thread| thread.wait);
        wait.map_or(StackId::EMPTY, |wait| wait.stack)
    }

    fn thread(&self, id: u64) -> LockThread {
        LockThread { id, name: self.process.threads.get(&id).map_or("", |thread| thread.name) }
    }

    fn lock(
        &mut self,
        id: LockKey,
        lock: &LockState,
        threads: &[u64],
        since_before: &BTreeSet<u64>,
    ) -> ContendedLock {
        let mut waits = WaitTimes::default();
        let mut methods: BTreeMap<Option<Method>, WaitTimes> = BTreeMap::new();
        let mut waiting = Vec::new();
        for (stack, times) in &lock.waits {
            waits.merge(*times);
            methods.entry(self.frames.method(*stack)).or_default().merge(*times);
        }
        let states = threads.iter().filter_map(|id| Some((*id, self.process.threads.get(id)?.wait?)));
        let mut first = self.end;
        for (id, wait) in states {
            let (method, time) = (self.frames.method(wait.stack), elapsed(wait.start, self.end));
            first = first.min(wait.start);
            waits.add(time);
            let name = method.as_ref().map(|method| Arc::clone(&method.name));
            methods.entry(method).or_default().add(time);
            waiting.push(WaitingThread { thread: self.thread(id), time, method: name });
        }
        waiting.sort_by_key(|thread| (Reverse(thread.time), thread.thread.id));
        let method = |(method, waits): (Option<Method>, WaitTimes)| match method {
            Some(Method { name, is_own }) => WaitingMethod { method: Some(name), is_own, waits },
            None => WaitingMethod { method: None, is_own: false, waits },
        };
        let mut methods: Vec<_> = methods.into_iter().map(method).collect();
        methods.sort_by_key(|method| Reverse((method.waits.total, method.waits.count)));
        let (held_in, held_samples) = self.held_in(lock);
        let owner = if waiting.is_empty() { None } else { self.owner(lock, first, since_before) };
        let process_id = self.process_id;
        ContendedLock {
            process_id,
            id,
            object: lock.object,
            waits,
            methods,
            held_in,
            held_samples,
            waiting,
            owner,
        }
    }

    /// Returns the methods in which owners of a lock were sampled, and the number of samples.
    fn held_in(&mut self, lock: &LockState) -> (Vec<HoldingMethod>, u64) {
        let (mut methods, mut all) = (BTreeMap::<Arc<str>, u64>::new(), 0_u64);
        for ((stated, id, stack), samples) in &lock.held {
            let owner = stated.map_or(Owner::Acquired(*id), Owner::Stated);
            if self.process.thread_of(owner) != Some(*id) {
                continue;
            }
            all = all.saturating_add(*samples);
            if let Some(Method { name, is_own: true }) = self.frames.method(*stack) {
                let sum = methods.entry(name).or_default();
                *sum = sum.saturating_add(*samples);
            }
        }
        let mut methods: Vec<_> =
            methods.into_iter().map(|(method, samples)| HoldingMethod { method, samples }).collect();
        methods.sort_by_key(|method| Reverse(method.samples));
        (methods, all)
    }

    /// Returns the owner of a lock for which threads have waited since `first`.
    fn owner(&mut self, lock: &LockState, first: i64, since_before: &BTreeSet<u64>) -> Option<LockOwner> {
        let number = match lock.owner {
            Owner::Unknown => return None,
            Owner::Stated(number) | Owner::Acquired(number) => number,
        };
        let id = self.process.thread_of(lock.owner);
        let state = id.and_then(|id| self.process.threads.get(&id));
        let wait = state.and_then(|state| state.wait);
        let waits_for = match (id, wait) {
            (Some(id), _) if since_before.contains(&id) => Some(OwnerWait::SinceBefore),
            (_, Some(wait)) => wait.lock.map(OwnerWait::Lock),
            _ => None,
        };
        let sample = state.and_then(|state| state.sample);
        let sampled = sample.filter(|sample| sample.time >= first || waits_for.is_some());
        let stack = sampled.map(|sample| sample.stack).or_else(|| wait.map(|wait| wait.stack));
        let stack = stack.map(|stack| self.frames.names(stack)).unwrap_or_default();
        Some(LockOwner { thread: id.map(|id| self.thread(id)), number, waits_for, stack })
    }

    fn cycle(&mut self, ids: &[u64]) -> Cycle {
        let waits = ids.iter().filter_map(|id| Some((*id, self.process.threads.get(id)?.wait?)));
        let mut time = u64::MAX;
        let mut threads = Vec::new();
        for (id, wait) in waits {
            time = time.min(elapsed(wait.start, self.end));
            let method = self.frames.method(wait.stack).map(|method| method.name);
            threads.push(CycleThread { thread: self.thread(id), lock: wait.lock, method });
        }
        Cycle { process_id: self.process_id, threads, time }
    }

    /// Returns the threads that have waited since before the recording.
    fn waiting_before(&mut self) -> Vec<WaitGroup> {
        let mut groups: BTreeMap<(WaitKind, Vec<Arc<str>>), WaitGroup> = BTreeMap::new();
        for (id, thread) in &self.process.threads {
            let Some((kind, stack, whole)) = self.wait_in_samples(thread) else { continue };
            let Some(method) = self.frames.method(whole) else { continue };
            let thread = self.thread(*id);
            let group = groups.entry((kind, self.frames.outline(&stack))).or_insert_with(|| WaitGroup {
                process_id: self.process_id,
                kind,
                threads: Vec::new(),
                method: method.name,
                is_own: method.is_own,
                stack,
            });
            group.threads.push(thread);
        }
        groups.into_values().collect()
    }

    /// Returns what a thread waits for, the rest of its stack and the stack, if the thread has waited there in all of its
    /// samples.
    fn wait_in_samples(&mut self, thread: &ThreadState) -> Option<(WaitKind, Vec<Arc<str>>, StackId)> {
        let sample =
            thread.sample.filter(|sample| thread.is_still && !thread.has_events && !sample.is_managed)?;
        let mut names = self.frames.names(sample.stack);
        let (kind, frames) = WaitKind::of(names.iter().map(|name| &**name))?;
        names.drain(..frames.min(names.len()));
        Some((kind, names, sample.stack))
    }
}
