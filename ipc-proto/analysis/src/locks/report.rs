//! Makes the report on the locks of a trace.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ipc_proto::wire::to_u64;

use super::cycles::cycles;
use super::frames::{Frames, StackMethod};
use super::lock_report::{
    ContendedLock, Cycle, CycleThread, HoldingMethod, LockOwner, LockReport, LockThread, OwnerWait,
    WaitGroup, WaitingMethod, WaitingThread,
};
use super::process_locks::{LockKey, LockState, Owner, ProcessLocks, WaitState};
use super::wait_times::WaitTimes;
use crate::durations::elapsed;
use crate::names::Names;
use crate::samples::ThreadRoles;
use crate::{OwnCode, StackId, Stacks, WaitKind};

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

/// Where threads acquire a lock, and so have it.
#[derive(Debug, Default)]
struct LockScope {
    /// The methods that acquire the lock.
    acquire: BTreeSet<Arc<str>>,
    /// The methods that call them. A thread in one of them, and in none of the others, has returned and released the lock.
    callers: BTreeSet<Arc<str>>,
}

impl LockScope {
    /// Returns the scope of a lock by the stacks in which threads wait for it.
    fn new(frames: &mut Frames<'_>, stacks: BTreeSet<StackId>) -> Self {
        let mut scope = Self::default();
        for stack in stacks {
            let names = frames.names(stack);
            let waiting = WaitKind::leading_frames(names.iter().map(|name| &**name));
            let mut rest = names.into_iter().skip(waiting);
            scope.acquire.extend(rest.next());
            scope.callers.extend(rest);
        }
        scope
    }

    /// Returns whether a stack of these full names has a method that acquires the lock.
    fn has(&self, names: &[Arc<str>]) -> bool {
        names.iter().any(|name| self.acquire.contains(name))
    }
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

    fn thread(&mut self, id: u64) -> LockThread {
        let mut roles = ThreadRoles::default();
        let Some(thread) = self.process.threads.get(&id) else { return LockThread { id, name: "", roles } };
        let stacks = [thread.sample.map(|sample| sample.stack), thread.wait.map(|wait| wait.stack)];
        for stack in stacks.into_iter().flatten() {
            self.frames.names(stack).iter().for_each(|name| roles.add(name));
        }
        LockThread { id, name: thread.name, roles }
    }

    fn lock(
        &mut self,
        id: LockKey,
        lock: &LockState,
        threads: &[u64],
        since_before: &BTreeSet<u64>,
    ) -> ContendedLock {
        let mut waits = WaitTimes::default();
        let mut methods: BTreeMap<Option<StackMethod>, WaitTimes> = BTreeMap::new();
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
        let method = |(method, waits): (Option<StackMethod>, WaitTimes)| match method {
            Some(StackMethod { name, is_own }) => WaitingMethod { method: Some(name), is_own, waits },
            None => WaitingMethod { method: None, is_own: false, waits },
        };
        let mut methods: Vec<_> = methods.into_iter().map(method).collect();
        methods.sort_by_key(|method| Reverse((method.waits.total, method.waits.count)));
        let stacks = threads.iter().map(|id| self.open_stack(*id)).chain(lock.waits.keys().copied());
        let scope = LockScope::new(self.frames, stacks.collect());
        let (held_in, held_samples) = self.held_in(lock, &scope);
        let owner = if waiting.is_empty() { None } else { self.owner(lock, &scope, first, since_before) };
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

    /// Returns whether the owner of a lock has released it, by its stack.
    fn has_left(&mut self, stack: StackId, scope: &LockScope) -> bool {
        let method = self.frames.method(stack);
        let is_caller = method.is_some_and(|method| scope.callers.contains(&method.name));
        is_caller && !scope.has(&self.frames.names(stack))
    }

    /// Returns the methods in which owners of a lock were sampled, and the number of samples.
    fn held_in(&mut self, lock: &LockState, scope: &LockScope) -> (Vec<HoldingMethod>, u64) {
        let (mut methods, mut all) = (BTreeMap::<Arc<str>, u64>::new(), 0_u64);
        for ((stated, id, stack), samples) in &lock.held {
            let owner = stated.map_or(Owner::Acquired(*id), Owner::Stated);
            if self.process.thread_of(owner) != Some(*id) {
                continue;
            }
            let Some(StackMethod { name, is_own: true }) = self.frames.method(*stack) else { continue };
            if self.has_left(*stack, scope) {
                continue;
            }
            all = all.saturating_add(*samples);
            let sum = methods.entry(name).or_default();
            *sum = sum.saturating_add(*samples);
        }
        let mut methods: Vec<_> =
            methods.into_iter().map(|(method, samples)| HoldingMethod { method, samples }).collect();
        methods.sort_by_key(|method| Reverse(method.samples));
        (methods, all)
    }

    /// Returns the owner of a lock for which threads have waited since `first`.
    fn owner(
        &mut self,
        lock: &LockState,
        scope: &LockScope,
        first: i64,
        since_before: &BTreeSet<u64>,
    ) -> Option<LockOwner> {
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
        let stack = stack.filter(|stack| waits_for.is_some() || !self.has_left(*stack, scope));
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
    fn wait_in_samples(&mut self, thread: &WaitState) -> Option<(WaitKind, Vec<Arc<str>>, StackId)> {
        let sample =
            thread.sample.filter(|sample| thread.is_still && !thread.has_events && !sample.is_managed)?;
        let mut names = self.frames.names(sample.stack);
        let (kind, frames) = WaitKind::of(names.iter().map(|name| &**name))?;
        names.drain(..frames.min(names.len()));
        Some((kind, names, sample.stack))
    }
}
