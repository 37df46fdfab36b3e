//! The samples in managed code that show a thread that waits.
//!
//! The runtime stops all threads for a sample. A thread whose wait ends in this moment is about to return to managed
//! code, so its sample is one in managed code although the thread has not run. With many sleeping threads, these are
//! most of the samples. Such threads have their innermost method in common: the method that waits.
use super::method_table::{MethodName, MethodTable};
use super::stacks::{StackId, Stacks};
use crate::names::{Known, Names};

/// Methods that call the operating system to wait, or that wait themselves. Methods that spin before they wait are
/// not here, unless they also have the wait inside: a thread that spins runs.
const WAITS: MethodTable = MethodTable(&[
    ("System.Threading.Thread", "Sleep* Join*"),
    ("System.Threading.WaitHandle", "Wait* SignalAndWait*"),
    ("System.Threading.Monitor", "Wait* ObjWait* Enter_Slowpath TryEnter_* ReliableEnter* Monitor_wait"),
    ("System.Threading.Lock", "TryEnterSlow*"),
    ("System.Threading.Condition", "Wait*"),
    ("System.Threading.ManualResetEventSlim", "Wait"),
    ("System.Threading.SemaphoreSlim", "Wait WaitCore WaitUntilCountOrTimeout"),
    // The semaphore on which idle threads of the pool wait. Its methods `Wait` and, since .NET 11, `WaitSlow` spin
    // first.
    (
        "System.Threading.LowLevelLifoSemaphore",
        "WaitForSignal WaitCore WaitNative WaitInternal WaitNoSpin WaitAsWaiter Block",
    ),
    ("System.Threading.LowLevelLock", "WaitAndAcquire"),
    ("System.Threading.LowLevelMonitor", "Wait*"),
    ("System.Threading.LowLevelThreadBlocker", "Wait* TimedWait"),
    ("System.Threading.LowLevelFutex", "Wait*"),
    ("System.Threading.WaitSubsystem", "Wait* Sleep* SignalAndWait*"),
    ("System.Threading.WaitSubsystem+ThreadWaitInfo", "Wait* Sleep*"),
    ("System.Threading.WaitSubsystem+WaitableObject", "Wait*"),
    // Loops that wait and then pass on the work to others.
    ("System.Threading.TimerQueue", "TimerThread"),
    ("System.Threading.PortableThreadPool+GateThread", "GateThreadStart"),
    ("System.Threading.PortableThreadPool+WaitThread", "WaitThreadStart"),
    ("System.Threading.PortableThreadPool+IOCompletionPoller", "Poll"),
    ("System.Net.Sockets.SocketAsyncEngine", "EventLoop"),
    // A collection on request is work of the thread that requests it.
    ("System.GC", "WaitFor* _WaitFor*"),
    (
        "Interop+Sys",
        "LowLevelMonitor_Wait LowLevelMonitor_TimedWait LowLevelFutex_Wait* WaitForSocketEvents Poll Read ReadStdin",
    ),
    ("Interop+RunLoop", "CFRunLoopRun"),
    ("Interop+Kernel32", "Sleep* WaitFor* GetQueuedCompletionStatus* ReadConsole*"),
    ("Interop+User32", "GetMessage* WaitMessage MsgWaitForMultipleObjects*"),
    ("Windows.Win32.PInvoke", "GetMessage* WaitMessage MsgWaitForMultipleObjects*"),
    ("MS.Win32.UnsafeNativeMethods", "GetMessage* IntGetMessage* MsgWaitForMultipleObjects*"),
]);

/// Methods in which a running thread meets the stop for the sample. The thread was in their caller.
const POLLS: MethodTable = MethodTable(&[("System.Threading.Thread", "PollGC")]);

/// The state of a thread, as the innermost method of its stack shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Runs,
    Waits,
    Polls,
}

/// Knows the stacks whose threads wait.
#[derive(Debug)]
pub(crate) struct WaitingStacks<'n> {
    names: &'n mut Names,
    stacks: &'n Stacks,
    kinds: Known<Kind>,
    waits: Known<bool>,
}

impl<'n> WaitingStacks<'n> {
    pub(crate) fn new(names: &'n mut Names, stacks: &'n Stacks) -> Self {
        stacks.name(names);
        Self { names, stacks, kinds: Known::new(), waits: Known::new() }
    }

    /// Returns whether the thread of a stack waits.
    pub(crate) fn has(&mut self, stack: StackId) -> bool {
        let Self { names, stacks, kinds, waits } = self;
        let mut kind = |address| {
            let frame = names.frame(address);
            kinds.of(frame.0, || Kind::of(names.text(frame)))
        };
        waits.of(stack.0, || Kind::is_waiting(stacks.addresses(stack).map(&mut kind)))
    }
}

/// Returns whether a thread in managed code waits there, by its frames, the innermost first.
pub(super) fn waits<'n>(frames: impl Iterator<Item = &'n str>) -> bool {
    Kind::is_waiting(frames.map(Kind::of))
}

impl Kind {
    /// Returns whether a thread waits, by the kinds of its methods, the innermost first.
    fn is_waiting(mut kinds: impl Iterator<Item = Self>) -> bool {
        kinds.find(|kind| *kind != Self::Polls) == Some(Self::Waits)
    }

    fn of(method: &str) -> Self {
        match MethodName::of(method) {
            Some(method) if WAITS.has(method) => Self::Waits,
            Some(method) if POLLS.has(method) => Self::Polls,
            _ => Self::Runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn innermost_methods() {
        const LIBRARY: &str = "System.Private.CoreLib!System.Threading.";
        for method in [
            "Thread.Sleep(int32)",
            "Thread.SleepInternal(int32)",
            "WaitHandle.WaitOneNoCheck(int32,bool,class System.Object)",
            "WaitHandle.WaitOneCore(int,int32,bool)",
            "WaitHandle.WaitMultipleIgnoringSyncContext(int*,int32,bool,int32)",
            "Monitor.Wait(class System.Object,int32)",
            "Monitor.Enter_Slowpath(class System.Object)",
            "Monitor.ReliableEnter(class System.Object,bool&)",
            "Lock.TryEnterSlow(int32,value class ThreadId)",
            "LowLevelLifoSemaphore.WaitForSignal(int32)",
            "LowLevelLifoSemaphore.Block(int32)",
            "WaitSubsystem+ThreadWaitInfo.Wait(int32,bool,bool)",
        ] {
            assert_eq!(Kind::of(&[LIBRARY, method].concat()), Kind::Waits, "{method}");
        }
        for method in [
            "LowLevelLifoSemaphore.Wait(int32,bool)",
            "LowLevelLifoSemaphore.WaitSlow(int32)",
            "LowLevelLifoSemaphore.MaybeWakeWaiterSlow()",
            "LowLevelSpinWaiter.Wait(int32,int32,bool)",
            "SpinWait.SpinOnceCore(int32)",
            "Thread.SpinWait(int32)",
            "Thread.Yield()",
            "Thread.UninterruptibleSleep0()",
            "Monitor.Enter(class System.Object,bool&)",
            "Monitor.Exit(class System.Object)",
            "SemaphoreSlim.WaitAsync(int32)",
        ] {
            assert_eq!(Kind::of(&[LIBRARY, method].concat()), Kind::Runs, "{method}");
        }
        let poll = "System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()";
        assert_eq!(Kind::of(poll), Kind::Polls);
        assert_eq!(Kind::of("System.Net.Sockets!Interop+Sys.WaitForSocketEvents(int,int*)"), Kind::Waits);
        assert_eq!(Kind::of("Shop!Shop.Thread.Sleep(int32)"), Kind::Runs);
    }
}
