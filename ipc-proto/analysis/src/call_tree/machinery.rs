//! Which methods only carry out what a clock counts: they throw, wait, send events, allocate, or stop for a sample for
//! their callers.
use crate::KnownProvider;
use crate::samples::Clock;

/// The library that has all of these methods. Short names lack it.
const LIBRARY: &str = "System.Private.CoreLib!";

/// Types whose methods throw an exception and search its handler.
const EXCEPTIONS: &[&str] = &["System.Runtime.EH", "System.Runtime.StackFrameIterator"];
/// Types whose methods acquire a lock.
const LOCKS: &[&str] = &["System.Threading.Monitor", "System.Threading.Lock"];
/// The start of the names of types whose methods send events.
const EVENTS: &[&str] = &["System.Diagnostics.Tracing"];
/// Methods that allocate an object.
const ALLOCATIONS: &[&str] = &[
    "System.String.FastAllocateString",
    "System.GC.AllocateNewArray",
    "System.GC.AllocateUninitializedArray",
    "System.GC.AllocateArray",
    "System.RuntimeTypeHandle.InternalAlloc",
    "System.RuntimeTypeHandle.InternalAllocNoChecks",
];
/// Methods in which a running thread meets the stop for a sample: it was in their caller.
const POLLS: &[&str] = &["System.Threading.Thread.PollGC", "System.Threading.Thread.<PollGC>g__PollGCWorker"];

/// Returns the starts of the names of methods that carry out what a clock counts, in up to two lists.
pub(super) fn of(clock: &Clock) -> [&'static [&'static str]; 2] {
    match clock {
        Clock::Cpu | Clock::Wall => [POLLS, &[]],
        Clock::Exceptions => [EXCEPTIONS, &[]],
        Clock::Contention => [LOCKS, EVENTS],
        Clock::Allocations | Clock::AllocatedTypes => [ALLOCATIONS, &[]],
        Clock::Events { provider, event_id } => match (KnownProvider::of(provider.as_str().into()), event_id)
        {
            (Some(KnownProvider::Runtime), Some(80)) => of(&Clock::Exceptions),
            (Some(KnownProvider::Runtime), Some(81 | 91)) => of(&Clock::Contention),
            (Some(KnownProvider::Runtime), Some(10 | 303)) => of(&Clock::Allocations),
            // A sample is no event that the code sends.
            (Some(KnownProvider::SampleProfiler | KnownProvider::UniversalEvents), _) => of(&Clock::Wall),
            _ => [EVENTS, &[]],
        },
        _ => [&[], &[]],
    }
}

/// Returns whether a method has one of these starts, which end with the name of a type or of a method.
pub(super) fn has(starts: &[&str], method: &str) -> bool {
    let method = method.strip_prefix(LIBRARY).unwrap_or(method);
    starts.iter().any(|start| {
        let rest = method.strip_prefix(start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '+', '`', '(', '|']))
    })
}
