//! The report on the locks of a trace.
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::WaitKind;
use crate::samples::{ThreadNumber, ThreadRoles};

/// The locks of a trace for which threads waited. Times are in nanoseconds, stacks have full names, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockReport {
    /// The length of the recording, or of its part.
    pub span: u64,
    /// The end of the recording, or of its part, from the start of the trace.
    pub end: i64,
    /// The locks: first those whose threads can wait indefinitely, then those with the longest waits together.
    pub locks: Vec<ContendedLock>,
    /// The threads that wait for each other.
    pub cycles: Vec<Cycle>,
    /// The threads that have waited since before the recording: first for locks, in methods of the program, and many.
    pub waiting_before: Vec<WaitGroup>,
    /// The methods of the program that wait on WaitHandles for something else than a lock, by the time of their waits.
    /// Runtimes report these waits since .NET 9.
    pub handles: Vec<WaitingMethod>,
    /// The waits on WaitHandles without a method of the program: of timers, and of idle threads of the pool.
    pub other_handles: WaitTimes,
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
    /// The samples of all these methods.
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockThread {
    /// The thread among those of the analysis.
    pub number: ThreadNumber,
    /// The operating system's id.
    pub id: u64,
    /// The purpose of the thread in the runtime; empty if it is not known.
    pub name: &'static str,
    /// The purposes of the thread, by its last sample and its wait.
    pub roles: ThreadRoles,
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
    /// The wait of the owner itself, if it is known.
    pub waits_for: Option<OwnerWait>,
    /// The stack of the owner in its last sample since the threads wait for the lock, or of its own wait; empty if there
    /// is none, or if it shows that the owner has released the lock.
    pub stack: Arc<[Arc<str>]>,
}

/// The wait of the owner of a lock.
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
    /// The kind of object for which the threads wait.
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
