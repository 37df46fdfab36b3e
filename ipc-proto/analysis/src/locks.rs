//! Locks for which threads wait: how often and how long, their owners, and threads that wait for each other.
//!
//! [`Locks`] takes the events of a trace in the order of time, and makes a [`LockReport`] at the end.
//!
//! | part of the report | events | keywords of the provider |
//! |---|---|---|
//! | waits, owners, cycles | ContentionStart, ContentionStop of `Microsoft-Windows-DotNETRuntime` | Contention (0x4000) |
//! | managed numbers of threads | ThreadCreated of the same provider, and the rundown (.NET 9) | Threading (0x10000) |
//! | methods that hold a lock, waits without events | `Microsoft-DotNETCore-SampleProfiler` | none |
//! | names of methods | see [`names`](crate::names) | |
//!
//! # Waits
//!
//! A wait begins with ContentionStart, and ends with the next ContentionStop of its thread, which then has the lock. A
//! wait that has not ended counts up to the end of the recording. A thread that spins sends no event. `Monitor` (the
//! keyword `lock`) and `System.Threading.Lock` send these events; reader-writer locks, semaphores and tasks send none.
//!
//! A wait from before the recording has no event while it lasts. A thread counts as such if it has no event of a lock,
//! is in the first round of samples, and is outside managed code in all of its samples, with the same stack, which waits
//! by [`WaitKind`](crate::WaitKind). .NET 8 and 9 do not show in a stack that a thread waits for a lock of `Monitor`. Which lock it is,
//! and which thread has it, is not known.
//!
//! # Owners
//!
//! Since .NET 8, ContentionStart states the lock and its owner, or 0 if the runtime does not know the owner. The owner is
//! the operating system's id of a thread (CoreCLR 8 to 10), or the managed number (CoreCLR 11, NativeAOT), which
//! ThreadCreated and the rundown map to an id. The rundown has the version of CoreCLR, and NativeAOT sends none. In a
//! trace without a rundown, owners are ids of threads that the trace has, unless one owner is below all of these ids or
//! is the thread that waits.
//!
//! A cycle consists only of owners that are known: each of its threads waits for a lock of the next one. The owner of a
//! lock is the thread that its latest event shows.
//!
//! # Holding methods
//!
//! While threads wait for a lock, the samples of its owner show what the owner does: in most of them, it holds the lock.
//! Samples in which the owner waits for the same lock again do not count, nor those in which it has returned from the
//! method that acquires the lock, as far as the stacks of waits show these methods. An owner that has released the lock
//! otherwise still counts, because no event shows it, so methods with a few samples mean nothing.
//!
//! # Memory
//!
//! Beside [`Names`](crate::names::Names) and [`Stacks`](crate::Stacks): at most [`Locks::THREADS`] threads,
//! [`Locks::LOCKS`] locks, and [`Locks::ENTRIES`] pairs of a lock and a stack, of all processes together.
//! [`LockReport::dropped`] counts the events for which there was no room. The work for each event is logarithmic in these
//! numbers: a sample counts for 16 locks of its thread at most.
mod frames;
mod handles;
mod lock_report;
mod locks;
mod process_locks;
mod report;

pub use lock_report::{
    ContendedLock, Cycle, CycleThread, HoldingMethod, LockOwner, LockReport, LockThread, OwnerWait,
    WaitGroup, WaitTimes, WaitingMethod, WaitingThread,
};
pub(crate) use locks::LockEvents;
pub use locks::Locks;
pub(crate) use process_locks::ContentionRow;
