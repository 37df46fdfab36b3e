//! What a stack shows about the state of its thread.
use super::wait_kind::WaitKind;
use super::waiting_stacks::waits;
use crate::names::{FrameId, Names};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ThreadState {
    /// Runs managed code.
    Runs,
    /// Is outside managed code, in a method of the program whose stack shows no wait: runs native code, or waits.
    Native,
    /// Waits for a lock of `Monitor` or `Lock`.
    Lock,
    /// Waits for a reader-writer lock.
    ReaderWriterLock,
    /// Waits for a `SemaphoreSlim`.
    Semaphore,
    /// Waits for the end of a task.
    Task,
    /// Sleeps.
    Sleep,
    /// Waits for the end of a thread.
    Join,
    /// Waits for a signal: an event, a monitor's pulse, a handle.
    Signal,
    /// Waits for a socket.
    Socket,
    /// Waits for work.
    Idle,
}

/// The methods that wait, beside those that [`WaitKind`] knows, by the starts of their names.
const WAITS: [(&str, ThreadState); 11] = [
    ("System.Collections.Concurrent.BlockingCollection", ThreadState::Idle),
    ("System.Runtime.CompilerServices.TaskAwaiter", ThreadState::Task),
    ("System.Runtime.CompilerServices.ValueTaskAwaiter", ThreadState::Task),
    ("System.Runtime.CompilerServices.ConfiguredTaskAwaitable", ThreadState::Task),
    ("System.Threading.Thread.Sleep", ThreadState::Sleep),
    ("System.Threading.Thread.Join", ThreadState::Join),
    ("System.Threading.Monitor.Wait", ThreadState::Signal),
    ("System.Threading.ManualResetEventSlim.Wait", ThreadState::Signal),
    ("System.Threading.WaitHandle.Wait", ThreadState::Signal),
    ("System.Net.Sockets.", ThreadState::Socket),
    ("Interop+Sys.Poll", ThreadState::Socket),
];

impl ThreadState {
    /// Returns what a thread with this stack does, in managed code or outside, and the place of the innermost method of
    /// the program. The frames are the innermost first. All analyses and commands read this, so that no two contradict.
    ///
    /// A thread outside managed code, without a method of the program and without an object for which it waits, is idle.
    #[must_use]
    pub fn of_stack(frames: &[FrameId], names: &Names, is_managed: bool) -> (Self, Option<usize>) {
        let own = frames.iter().position(|frame| names.is_own(*frame));
        if is_managed && !waits(frames.iter().map(|frame| names.text(*frame))) {
            return (Self::Runs, own);
        }
        let callees = frames.get(..own.unwrap_or(frames.len())).unwrap_or_default();
        // The method that the program calls says most.
        let of_method = |name: &str| WAITS.iter().find(|(start, _)| name.starts_with(start));
        let called = callees.iter().rev().find_map(|frame| of_method(names.short(*frame)));
        let called = called.map_or(Self::Native, |(_, state)| *state);
        let state = match WaitKind::of(frames.iter().map(|frame| names.text(*frame))) {
            _ if called == Self::Idle => Self::Idle,
            Some((WaitKind::Lock, _)) => Self::Lock,
            Some((WaitKind::ReaderWriterLock, _)) => Self::ReaderWriterLock,
            Some((WaitKind::Semaphore, _)) => Self::Semaphore,
            Some((WaitKind::Task, _)) => Self::Task,
            None if own.is_none() => Self::Idle,
            None => called,
        };
        (state, own)
    }

    /// Returns the text after "waits" or "wait".
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Runs => "to run",
            Self::Native => "outside managed code",
            Self::Lock => "for a lock",
            Self::ReaderWriterLock => "for a reader-writer lock",
            Self::Semaphore => "for a semaphore",
            Self::Task => "for a task",
            Self::Sleep => "in Thread.Sleep",
            Self::Join => "for the end of a thread",
            Self::Signal => "for a signal",
            Self::Socket => "for a socket",
            Self::Idle => "for work",
        }
    }
}
