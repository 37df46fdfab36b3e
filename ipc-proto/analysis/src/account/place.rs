//! What a stack shows about its thread.
use alloc::vec::Vec;

use super::method_table::{MethodNumber, OwnMethods};
use crate::names::{FrameId, Names, short_name};
use crate::{StackId, Stacks, WaitKind};

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
    /// Returns what a thread waits for in these frames, the innermost first, without those of the program.
    fn of<'n>(callees: impl DoubleEndedIterator<Item = &'n str> + Clone) -> Self {
        // The method that the program calls says most.
        let of_method = |name: &str| WAITS.iter().find(|(start, _)| name.starts_with(start));
        let called = callees.clone().rev().find_map(|name| of_method(short_name(name)));
        if let Some((_, Self::Idle)) = called {
            return Self::Idle;
        }
        match WaitKind::of(callees) {
            Some((WaitKind::Lock, _)) => Self::Lock,
            Some((WaitKind::ReaderWriterLock, _)) => Self::ReaderWriterLock,
            Some((WaitKind::Semaphore, _)) => Self::Semaphore,
            Some((WaitKind::Task, _)) => Self::Task,
            _ => called.map_or(Self::Native, |(_, state)| *state),
        }
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

/// What a thread is for, by the outermost frames of its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum ThreadRole {
    /// The runtime's own, or not known.
    #[default]
    Other,
    /// Began with a method of the program that no code of the runtime called: the main thread, or a native one.
    Main,
    /// Started by the program.
    Started,
    /// Of the thread pool.
    Pool,
    /// Runs finalizers.
    Finalizer,
}

impl ThreadRole {
    /// Returns the role by the outermost frames, the outermost first, and whether the outermost one is of the program.
    fn of<'n>(mut frames: impl Iterator<Item = &'n str>, is_own: bool) -> Self {
        const POOL: [&str; 3] = [
            "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
            "System.Threading.ThreadPoolWorkQueue.Dispatch",
            "System.Threading._ThreadPoolWaitCallback.PerformWaitCallback",
        ];
        const STARTED: [&str; 2] = ["System.Threading.Thread.Start", "System.Threading.ThreadHelper."];
        let Some(outermost) = frames.next() else { return Self::Other };
        // Since .NET 10, `GC.RunFinalizers` calls the finalizers; before, native code does.
        if outermost == "System.GC.RunFinalizers" || outermost.ends_with(".Finalize") {
            return Self::Finalizer;
        }
        if is_own {
            return Self::Main;
        }
        let mut outer = core::iter::once(outermost).chain(frames.take(4));
        let is_started = STARTED.iter().any(|start| outermost.starts_with(start));
        match outer.any(|name| POOL.contains(&name)) {
            true => Self::Pool,
            false if is_started => Self::Started,
            false => Self::Other,
        }
    }
}

/// What a stack shows about its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// What the thread does in samples outside managed code.
    pub state: ThreadState,
    /// The role of the thread.
    pub role: ThreadRole,
    /// The methods of the program, the innermost first. A method that calls itself is there once.
    pub own: Vec<MethodNumber>,
    /// Whether an exception is thrown again here, as by an `await`.
    pub is_rethrow: bool,
}

impl Place {
    pub(super) fn new(
        stack: StackId,
        stacks: &Stacks,
        frames: &mut crate::stacks::Snapshot<'_>,
        methods: &mut OwnMethods,
    ) -> Self {
        const RETHROW: &str = "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw";
        let ids: Vec<FrameId> = stacks.addresses(stack).map(|address| frames.of(address)).collect();
        let names: &Names = frames.names();
        let mut own: Vec<MethodNumber> = Vec::new();
        let mut innermost = None;
        for (place, frame) in (0..).zip(&ids) {
            if let Some(method) = methods.of(*frame, names) {
                innermost = innermost.or(Some(place));
                if own.last() != Some(&method) {
                    own.push(method);
                }
            }
        }
        let callees = ids.get(..innermost.unwrap_or(ids.len())).unwrap_or_default();
        let state = match innermost {
            Some(_) => ThreadState::of(callees.iter().map(|frame| names.text(*frame))),
            None => ThreadState::Idle,
        };
        let is_own = ids.last().is_some_and(|outermost| names.is_own(*outermost));
        let role = ThreadRole::of(ids.iter().rev().map(|frame| names.short(*frame)), is_own);
        let is_rethrow = callees.iter().any(|frame| names.short(*frame) == RETHROW);
        Self { state, role, own, is_rethrow }
    }
}
