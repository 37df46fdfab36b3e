//! Makes the report on the locks of a trace.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ipc_proto::wire::to_u64;

use super::frames::{Frames, NamedStack, StackMethod};
use super::handles::HandleWaits;
use super::lock_report::{
    ContendedLock, Cycle, CycleThread, HoldingMethod, LockOwner, LockReport, LockThread, OwnerWait,
    WaitGroup, WaitTimes, WaitingMethod, WaitingThread,
};
use super::process_locks::{LockKey, LockState, Owner, ProcessLocks};
use crate::samples::{ThreadNumber, ThreadRoles, Threads, TraceTables};
use crate::trace::elapsed;
use crate::{StackId, WaitKind};

/// Makes the report on the locks of all processes. The time `end` is the end of the recording.
pub(super) fn report(
    processes: BTreeMap<Option<u64>, ProcessLocks>,
    handles: HandleWaits,
    tables: TraceTables<'_>,
    end: i64,
) -> LockReport {
    let mut report = LockReport::default();
    let TraceTables { names, stacks, threads } = tables;
    let mut frames = Frames::new(names, stacks);
    for (process_id, process) in &processes {
        let (process_id, frames) = (*process_id, &mut frames);
        let mut process = ProcessReport { process_id, process, frames, threads, end };
        process.add_to(&mut report);
    }
    (report.handles, report.other_handles) = handles.finish(end, &mut frames);
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

/// The methods in which threads acquire a lock, and so have it: the stacks in which they wait for it.
#[derive(Debug, Default)]
struct LockScope(Vec<Arc<NamedStack>>);

impl LockScope {
    /// How many stacks are considered.
    const STACKS: usize = 64;

    /// Returns the scope of a lock by the stacks in which threads wait for it.
    fn new(frames: &mut Frames<'_>, stacks: impl Iterator<Item = StackId>) -> Self {
        let mut ids = BTreeSet::new();
        for stack in stacks {
            ids.insert(stack);
            if ids.len() >= Self::STACKS {
                break;
            }
        }
        Self(ids.into_iter().map(|id| frames.stack(id)).collect())
    }

    /// Returns whether a stack has a method that acquires the lock.
    fn acquires(&self, stack: &NamedStack) -> bool {
        self.0.iter().filter_map(|of| of.acquiring()).any(|name| stack.has(name))
    }

    /// Returns whether a stack has left the methods that acquire the lock: its method calls them. The thread then has
    /// released the lock.
    fn is_left_by(&self, stack: &NamedStack) -> bool {
        let is_caller = |name: &str| self.0.iter().any(|of| of.has_caller(name));
        stack.method.as_ref().is_some_and(|method| is_caller(&method.name)) && !self.acquires(stack)
    }
}

/// Makes the report on the locks of one process.
struct ProcessReport<'r, 'f> {
    process_id: Option<u64>,
    process: &'r ProcessLocks,
    frames: &'r mut Frames<'f>,
    threads: &'r mut Threads,
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
        let since_before: BTreeSet<ThreadNumber> = groups
            .iter()
            .filter(|group| group.kind == WaitKind::Lock)
            .flat_map(|group| group.threads.iter().map(|thread| thread.number))
            .collect();
        report.waiting_before.extend(groups);
        let mut waiting: BTreeMap<LockKey, Vec<ThreadNumber>> = BTreeMap::new();
        let mut waits_for = BTreeMap::new();
        for (number, thread) in &process.threads {
            let Some(wait) = thread.wait else { continue };
            waiting.entry(wait.lock).or_default().push(*number);
            let owner = process.locks.get(&wait.lock).map_or(Owner::Unknown, |lock| lock.owner);
            let owner = process.thread_of(owner, self.threads);
            if let Some(owner) = owner.filter(|owner| owner != number) {
                waits_for.insert((self.id(*number), *number), (self.id(owner), owner));
            }
        }
        for (key, lock) in &process.locks {
            let threads = waiting.remove(key).unwrap_or_default();
            let stackless = lock.waits.get(&StackId::EMPTY).map_or(0, |waits| waits.count);
            let open = threads.iter().filter(|number| self.open_stack(**number) == StackId::EMPTY).count();
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

    fn open_stack(&self, number: ThreadNumber) -> StackId {
        let wait = self.process.threads.get(&number).and_then(|thread| thread.wait);
        wait.map_or(StackId::EMPTY, |wait| wait.stack)
    }

    /// Returns the operating system's id of a thread.
    fn id(&self, number: ThreadNumber) -> u64 {
        self.threads.list.get(number.number()).map_or(0, |thread| thread.id)
    }

    fn thread(&mut self, number: ThreadNumber) -> LockThread {
        let (id, mut roles) = (self.id(number), ThreadRoles::default());
        let Some(thread) = self.process.threads.get(&number) else {
            return LockThread { number, id, name: "", roles };
        };
        let stacks = [thread.sample.map(|sample| sample.stack), thread.wait.map(|wait| wait.stack)];
        for stack in stacks.into_iter().flatten() {
            roles.merge(self.frames.stack(stack).roles);
        }
        LockThread { number, id, name: thread.name, roles }
    }

    fn lock(
        &mut self,
        id: LockKey,
        lock: &LockState,
        threads: &[ThreadNumber],
        since_before: &BTreeSet<ThreadNumber>,
    ) -> ContendedLock {
        let mut waits = WaitTimes::default();
        let mut methods: BTreeMap<Option<StackMethod>, WaitTimes> = BTreeMap::new();
        let mut waiting = Vec::new();
        for (stack, times) in &lock.waits {
            waits.merge(*times);
            methods.entry(self.frames.stack(*stack).method.clone()).or_default().merge(*times);
        }
        let states = threads.iter().filter_map(|id| Some((*id, self.process.threads.get(id)?.wait?)));
        let mut first = self.end;
        for (id, wait) in states {
            let method = self.frames.stack(wait.stack).method.clone();
            let time = elapsed(wait.start, self.end);
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
        let open: Vec<StackId> = threads.iter().map(|id| self.open_stack(*id)).collect();
        let scope = LockScope::new(self.frames, open.into_iter().chain(lock.waits.keys().copied()));
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

    /// Returns the methods in which owners of a lock were sampled, and the number of samples.
    fn held_in(&mut self, lock: &LockState, scope: &LockScope) -> (Vec<HoldingMethod>, u64) {
        let (mut methods, mut all) = (BTreeMap::<Arc<str>, u64>::new(), 0_u64);
        for ((owner, number, stack), samples) in &lock.held {
            if self.process.thread_of(*owner, self.threads) != Some(*number) {
                continue;
            }
            let stack = self.frames.stack(*stack);
            let Some(StackMethod { name, is_own: true }) = &stack.method else { continue };
            if scope.is_left_by(&stack) {
                continue;
            }
            all = all.saturating_add(*samples);
            let sum = methods.entry(Arc::clone(name)).or_default();
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
        since_before: &BTreeSet<ThreadNumber>,
    ) -> Option<LockOwner> {
        let number = match lock.owner {
            Owner::Unknown => return None,
            Owner::Stated(number) => number,
            Owner::Acquired(thread) => self.id(thread),
        };
        let id = self.process.thread_of(lock.owner, self.threads);
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
        let stack = stack.map(|stack| self.frames.stack(stack));
        let stack = stack.filter(|stack| waits_for.is_some() || !scope.is_left_by(stack));
        let stack = stack.map(|stack| Arc::clone(&stack.names)).unwrap_or_default();
        Some(LockOwner { thread: id.map(|id| self.thread(id)), number, waits_for, stack })
    }

    fn cycle(&mut self, of: &[(u64, ThreadNumber)]) -> Cycle {
        let waits = of.iter().filter_map(|(_, id)| Some((*id, self.process.threads.get(id)?.wait?)));
        let mut time = u64::MAX;
        let mut threads = Vec::new();
        for (id, wait) in waits {
            time = time.min(elapsed(wait.start, self.end));
            let method = self.frames.stack(wait.stack).method.as_ref().map(|method| Arc::clone(&method.name));
            threads.push(CycleThread { thread: self.thread(id), lock: wait.lock, method });
        }
        Cycle { process_id: self.process_id, threads, time }
    }

    /// Returns the threads that have waited since before the recording.
    fn waiting_before(&mut self) -> Vec<WaitGroup> {
        let mut stacks: BTreeMap<StackId, Vec<ThreadNumber>> = BTreeMap::new();
        for (id, thread) in &self.process.threads {
            let Some(sample) = thread.sample.filter(|_| thread.is_still && !thread.has_events) else {
                continue;
            };
            if !(thread.was_managed && self.frames.stack(sample.stack).runs) {
                stacks.entry(sample.stack).or_default().push(*id);
            }
        }
        let mut groups: BTreeMap<(WaitKind, Vec<Arc<str>>), WaitGroup> = BTreeMap::new();
        for (id, threads) in stacks {
            let stack = self.frames.stack(id);
            let (Some((kind, frames)), Some(method)) = (stack.wait, &stack.method) else { continue };
            let rest = stack.names.get(frames..).unwrap_or_default();
            let key = (kind, stack.outline(frames));
            let threads: Vec<LockThread> = threads.into_iter().map(|id| self.thread(id)).collect();
            let group = groups.entry(key).or_insert_with(|| WaitGroup {
                process_id: self.process_id,
                kind,
                threads: Vec::new(),
                method: Arc::clone(&method.name),
                is_own: method.is_own,
                stack: rest.to_vec(),
            });
            group.threads.extend(threads);
        }
        let mut groups: Vec<WaitGroup> = groups.into_values().collect();
        for group in &mut groups {
            group.threads.sort_by_key(|thread| thread.id);
        }
        groups
    }
}

/// Returns the cycles of a graph in which each thread waits for one other thread at most. Each cycle begins with its
/// lowest thread. The work is linear, up to a logarithm.
pub(super) fn cycles<K: Ord + Copy>(waits_for: &BTreeMap<K, K>) -> Vec<Vec<K>> {
    let mut cycles = Vec::new();
    // The walk in which each thread was reached first, and its place there.
    let mut seen: BTreeMap<K, (K, usize)> = BTreeMap::new();
    for start in waits_for.keys() {
        let (mut walk, mut next) = (Vec::new(), *start);
        while let (None, Some(owner)) = (seen.get(&next), waits_for.get(&next)) {
            seen.insert(next, (*start, walk.len()));
            walk.push(next);
            next = *owner;
        }
        if let Some((_, place)) = seen.get(&next).filter(|(of, _)| of == start) {
            let mut cycle = walk.split_off(*place);
            let lowest = (0..).zip(&cycle).min_by_key(|(_, id)| **id).map_or(0, |(place, _)| place);
            cycle.rotate_left(lowest);
            cycles.push(cycle);
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::cycles;

    #[test]
    fn cycles_of_graphs() {
        assert_eq!(cycles(&[(5, 4), (4, 5)].into()), vec![vec![4, 5]]);
        assert_eq!(cycles(&[(1, 3), (3, 2), (2, 3), (9, 1)].into()), vec![vec![2, 3]]);
        assert_eq!(
            cycles(&[(7, 8), (8, 9), (9, 7), (1, 2), (2, 1), (3, 7)].into()),
            vec![vec![1, 2], vec![7, 8, 9]]
        );
        assert!(cycles(&[(1, 2), (2, 3)].into()).is_empty());
    }
}
