//! The locks and the threads of one process.
use alloc::collections::{BTreeMap, BTreeSet};

use ipc_proto::wire::Reader;
use nettrace::TraceEvent;

use super::lock_report::WaitTimes;
use crate::StackId;
use crate::event::row_pointer;
use crate::names::{ThreadRow, process_of};
use crate::samples::{ThreadNumber, Threads};
use crate::trace::elapsed;

/// The id of a lock; `None` for all locks of a runtime that does not state it.
pub(super) type LockKey = Option<u64>;

/// The locks and the threads of one process.
#[derive(Debug, Default)]
pub(super) struct ProcessLocks {
    /// The process in the tables of threads.
    process: u64,
    pub(super) threads: BTreeMap<ThreadNumber, WaitState>,
    pub(super) locks: BTreeMap<LockKey, LockState>,
    /// The threads by their managed numbers.
    numbers: BTreeMap<u64, ThreadNumber>,
    /// The major version of the runtime.
    pub(super) version: Option<u16>,
    /// Whether the trace has the end of a rundown.
    pub(super) has_rundown: bool,
    /// The locks for which threads wait, by their owner.
    contested: BTreeMap<Owner, BTreeSet<LockKey>>,
    /// The lowest id that is one of the operating system: of the process, or of a thread.
    lowest_id: Option<u64>,
    /// Whether an owner cannot be an id of the operating system.
    has_number: bool,
    /// The lowest owner that an event stated.
    lowest_owner: Option<u64>,
    /// Whether a thread was sampled twice. The sampler visits all threads before it visits one again.
    has_second_round: bool,
    /// The waits whose end was lost: their thread waited again.
    pub(super) without_end: u64,
    /// The waits from before the recording that have ended.
    pub(super) ended: WaitTimes,
}

/// The owner of a lock, as its latest event shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Owner {
    #[default]
    Unknown,
    /// ContentionStart stated this number.
    Stated(u64),
    /// This thread has ended its wait.
    Acquired(ThreadNumber),
}

/// A thread, and its latest events.
#[derive(Debug, Default)]
pub(super) struct WaitState {
    /// The purpose of the thread in the runtime; empty if it is not known.
    pub(super) name: &'static str,
    /// The managed number.
    number: Option<u64>,
    /// The wait that has not ended.
    pub(super) wait: Option<OpenWait>,
    /// Whether the thread has an event of a lock.
    pub(super) has_events: bool,
    /// The last sample.
    pub(super) sample: Option<WaitSample>,
    /// Whether the first samples of all threads have one of this thread, and all samples of it are the same.
    pub(super) is_still: bool,
    /// Whether a sample is one in managed code.
    pub(super) was_managed: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpenWait {
    pub(super) lock: LockKey,
    pub(super) start: i64,
    pub(super) stack: StackId,
}

/// The stack of a thread at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitSample {
    pub(super) time: i64,
    pub(super) stack: StackId,
    pub(super) is_managed: bool,
}

#[derive(Debug, Default)]
pub(super) struct LockState {
    /// The address of the object, by the latest event.
    pub(super) object: Option<u64>,
    pub(super) owner: Owner,
    /// The number of threads that wait.
    waiting: u64,
    /// The waits that have ended, by the stack in which they began.
    pub(super) waits: BTreeMap<StackId, WaitTimes>,
    /// The samples of owners while other threads waited: how often a thread was in a stack, by the owner that it then
    /// perhaps was.
    pub(super) held: BTreeMap<(Owner, ThreadNumber, StackId), u64>,
}

impl ProcessLocks {
    /// The last version of CoreCLR whose events have ids of the operating system.
    const LAST_WITH_IDS: u16 = 10;
    /// How many locks of an owner get its samples.
    const HELD: usize = 16;

    /// Returns the state of the process of an event.
    pub(super) fn new(event: &TraceEvent<'_>) -> Self {
        let lowest_id = event.process_id().filter(|id| *id != 0);
        Self { process: process_of(event), lowest_id, ..Self::default() }
    }

    /// Takes the start of a wait.
    pub(super) fn start(
        &mut self,
        number: ThreadNumber,
        event: &TraceEvent<'_>,
        row: &ContentionRow,
        stack: StackId,
        room: &mut Room,
    ) {
        let (id, time) = (event.thread_id(), event.nanoseconds());
        if let Some(owner) = row.owner {
            self.has_number |= owner == id;
            self.lowest_owner = Some(self.lowest_owner.map_or(owner, |lowest| lowest.min(owner)));
        }
        self.lower(id);
        let thread = self.threads.entry(number).or_default();
        thread.has_events = true;
        // The end of the earlier wait was lost.
        if let Some(earlier) = thread.wait.take() {
            self.without_end = self.without_end.saturating_add(1);
            self.add(earlier, None, room);
            self.leave(earlier.lock, None);
        }
        let lock = room.locks.entry(&mut self.locks, row.lock, &mut room.dropped);
        let Some(lock) = lock else { return };
        lock.object = row.object;
        let owner = row.lock.and(row.owner).map_or(Owner::Unknown, Owner::Stated);
        lock.waiting = lock.waiting.saturating_add(1);
        self.set_owner(row.lock, owner);
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.wait = Some(OpenWait { lock: row.lock, start: time, stack });
        }
    }

    /// Takes the end of a wait, and its nanoseconds if the event states them.
    pub(super) fn stop(&mut self, number: ThreadNumber, time: i64, duration: Option<u64>, room: &mut Room) {
        let thread = self.threads.entry(number).or_default();
        let is_first = !core::mem::replace(&mut thread.has_events, true);
        match thread.wait.take() {
            Some(wait) => {
                self.add(wait, Some(elapsed(wait.start, time)), room);
                self.leave(wait.lock, Some(number));
            }
            None if is_first => self.ended.add(duration.unwrap_or_default()),
            None => {}
        }
    }

    /// Takes a sample of a thread.
    pub(super) fn sample(&mut self, of: ThreadNumber, id: u64, sample: WaitSample, room: &mut Room) {
        let is_first_round = !self.has_second_round;
        self.lower(id);
        let thread = self.threads.entry(of).or_default();
        let earlier = thread.sample.replace(sample);
        thread.is_still = match earlier {
            Some(earlier) => thread.is_still && earlier.stack == sample.stack,
            None => is_first_round,
        };
        thread.was_managed |= sample.is_managed;
        let waits_for = thread.wait.map(|wait| wait.lock);
        let number = thread.number;
        let Self { contested, locks, has_second_round, .. } = self;
        *has_second_round |= earlier.is_some();
        let number = number.filter(|number| *number != id).map(Owner::Stated);
        for owner in [Owner::Acquired(of), Owner::Stated(id)].into_iter().chain(number) {
            for key in contested.get(&owner).into_iter().flatten().take(Self::HELD) {
                let Some(lock) = locks.get_mut(key).filter(|_| waits_for != Some(*key)) else { continue };
                let key = (owner, of, sample.stack);
                if let Some(held) = room.entries.entry(&mut lock.held, key, &mut room.dropped) {
                    *held = held.saturating_add(1);
                }
            }
        }
    }

    /// Takes the number and the purpose of a thread.
    pub(super) fn thread_row(&mut self, of: ThreadNumber, row: &ThreadRow) {
        self.lower(row.id.into());
        let number = row.number.into();
        let thread = self.threads.entry(of).or_default();
        let earlier = thread.number.replace(number).filter(|earlier| *earlier != number);
        if !row.name().is_empty() {
            thread.name = row.name();
        }
        // So there are as many numbers as threads at most.
        if let Some(earlier) = earlier.filter(|earlier| self.numbers.get(earlier) == Some(&of)) {
            self.numbers.remove(&earlier);
        }
        self.numbers.insert(number, of);
    }

    /// Returns the owner of a lock, if it is known.
    pub(super) fn thread_of(&self, owner: Owner, threads: &mut Threads) -> Option<ThreadNumber> {
        match owner {
            Owner::Unknown => None,
            Owner::Acquired(thread) => Some(thread),
            Owner::Stated(number) if self.has_managed_numbers() => self.numbers.get(&number).copied(),
            // Without the version, only an id that the trace has is an id.
            Owner::Stated(id) if self.version.is_some() => threads.of_id(self.process, id),
            Owner::Stated(id) => threads.latest(self.process, id),
        }
    }

    /// Returns whether the owners in events are managed numbers.
    pub(super) fn has_managed_numbers(&self) -> bool {
        let is_below = self.lowest_owner.zip(self.lowest_id).is_some_and(|(owner, id)| owner < id);
        match self.version {
            Some(version) => version > Self::LAST_WITH_IDS,
            // NativeAOT sends no version.
            None => self.has_rundown || self.has_number || is_below,
        }
    }

    fn lower(&mut self, id: u64) {
        self.lowest_id = Some(self.lowest_id.map_or(id, |lowest| lowest.min(id)));
    }

    /// Adds a wait that has ended.
    fn add(&mut self, wait: OpenWait, duration: Option<u64>, room: &mut Room) {
        let Some(lock) = self.locks.get_mut(&wait.lock) else { return };
        if let Some(waits) = room.entries.entry(&mut lock.waits, wait.stack, &mut room.dropped) {
            waits.add(duration.unwrap_or_default());
        }
    }

    /// Removes a thread from the threads that wait for a lock, which it has acquired unless the end of the wait was
    /// lost.
    fn leave(&mut self, key: LockKey, acquired_by: Option<ThreadNumber>) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        lock.waiting = lock.waiting.saturating_sub(1);
        let owner = key.and(acquired_by).map_or(lock.owner, Owner::Acquired);
        self.set_owner(key, owner);
    }

    fn set_owner(&mut self, key: LockKey, owner: Owner) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        let earlier = core::mem::replace(&mut lock.owner, owner);
        let is_contested = lock.waiting > 0;
        if earlier != owner || !is_contested {
            if let Some(locks) = self.contested.get_mut(&earlier) {
                locks.remove(&key);
                if locks.is_empty() {
                    self.contested.remove(&earlier);
                }
            }
        }
        if is_contested && owner != Owner::Unknown {
            self.contested.entry(owner).or_default().insert(key);
        }
    }
}

pub(super) const LOCKS: usize = 1 << 16;
pub(super) const ENTRIES: usize = 1 << 18;

/// The sizes of the stored data of all processes together.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) locks: Store,
    /// Pairs of a lock and a stack.
    pub(super) entries: Store,
    /// The number of events for which there was no room.
    pub(super) dropped: u64,
}

/// How much of one kind is stored, and how much can be.
#[derive(Debug)]
pub(super) struct Store {
    used: usize,
    limit: usize,
}

impl Default for Room {
    fn default() -> Self {
        let store = |limit| Store { used: 0, limit };
        Self { locks: store(LOCKS), entries: store(ENTRIES), dropped: 0 }
    }
}

impl Room {
    pub(super) const fn drop_event(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }
}

impl Store {
    /// Returns the value of a key, which is added if there is room. Otherwise, `dropped` counts the event.
    pub(super) fn entry<'m, K: Ord, V: Default>(
        &mut self,
        map: &'m mut BTreeMap<K, V>,
        key: K,
        dropped: &mut u64,
    ) -> Option<&'m mut V> {
        if !map.contains_key(&key) {
            if self.used >= self.limit {
                *dropped = dropped.saturating_add(1);
                return None;
            }
            self.used = self.used.saturating_add(1);
        }
        Some(map.entry(key).or_default())
    }
}

/// The start of a wait for a lock: ContentionStart. `P` has the size of a pointer. Version 1 ends after the runtime.
///
/// ```text
/// u8 flags, u16 runtime, P lock, P object, u64 owner
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentionRow {
    /// The id of the lock; `None` before .NET 8.
    pub(crate) lock: Option<u64>,
    /// The address of the object, which the collector can move.
    pub(super) object: Option<u64>,
    /// The thread that has the lock, as the runtime counts threads; `None` if the runtime does not know it.
    pub(super) owner: Option<u64>,
}

impl ContentionRow {
    pub(crate) fn decode(payload: &[u8], pointer_size: usize) -> Self {
        let mut r = Reader::new(payload);
        // The flags, and the number of the runtime.
        let _ = r.bytes(1 + 2);
        let lock = row_pointer(&mut r, pointer_size);
        let object = row_pointer(&mut r, pointer_size);
        let owner = object.and_then(|_| r.read().ok()).filter(|owner| *owner != 0);
        Self { lock, object, owner }
    }
}

/// Returns the nanoseconds of a wait for a lock, by its end: ContentionStop. `None` before .NET 5.
///
/// ```text
/// u8 flags, u16 runtime, f64 nanoseconds
/// ```
pub(super) fn contention_time(payload: &[u8]) -> Option<u64> {
    let mut r = Reader::new(payload);
    r.bytes(1 + 2).ok()?;
    let nanoseconds = f64::from_bits(r.read().ok()?);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion saturates, and makes 0 of what is no number"
    )]
    let nanoseconds = nanoseconds as u64;
    Some(nanoseconds)
}

/// Returns the major version of a runtime: RuntimeInformationStart, and the row of the rundown.
///
/// ```text
/// u16 runtime, u16 kind, 4 x u16 version of the library, u16 major version of the runtime, ...
/// ```
pub(super) fn runtime_version(payload: &[u8]) -> Option<u16> {
    let mut r = Reader::new(payload);
    r.bytes(2 + 2 + 4 * 2).ok()?;
    r.read().ok()
}
