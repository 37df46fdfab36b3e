//! The methods that only carry out the work that a clock counts: they throw, wait, send events, allocate, or stop for a
//! sample for their callers.
use crate::samples::Clock;
use crate::{KnownProvider, RuntimeEvent};

/// Starts of the names of types and methods: a namespace, and the names in it, separated by spaces.
pub(super) type Starts = &'static [(&'static str, &'static str)];

/// The work that a method carries out for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Throws an exception, and searches its handler.
    Throw,
    /// Acquires a lock.
    Lock,
    /// Sends an event.
    Send,
    /// Allocates an object.
    Allocate,
    /// Starts a thread.
    StartThread,
    /// Waits for a handle.
    Wait,
    /// Meets the stop for a sample: the running thread was in the caller.
    Poll,
}

/// What recorded runtimes have between an event and the method of the program that caused it: a task, and a type or a
/// method that carries it out. `BLESS=1 cargo test -p dotnet-ipc --test real machinery` adds those of further runtimes.
const RECORDED: &str = include_str!("machinery.txt");

impl Task {
    const fn name(self) -> &'static str {
        match self {
            Self::Throw => "throw",
            Self::Lock => "lock",
            Self::Send => "send",
            Self::Allocate => "allocate",
            Self::StartThread => "start",
            Self::Wait => "wait",
            Self::Poll => "poll",
        }
    }

    /// Returns whether a method carries this out. `is_own` states whether it is code of the program.
    pub(super) fn has(self, method: &str, is_own: bool) -> bool {
        let name = without_module(method);
        let mut recorded = RECORDED.lines().filter_map(|line| line.split_once(' '));
        if recorded.any(|(task, start)| task == self.name() && name.strip_prefix(start).is_some_and(is_end)) {
            return true;
        }
        let name = method.split('(').next().unwrap_or_default();
        let Some((type_name, method)) = name.rsplit_once('.').filter(|_| !is_own) else { return false };
        match self {
            Self::Throw => method.starts_with("Throw"),
            // The event sources of the framework, and the types that decide whether to send an event.
            Self::Send => {
                ["EventSource", "Telemetry", "Diagnostics"].iter().any(|end| type_name.ends_with(end))
            }
            _ => false,
        }
    }
}

/// Returns what the innermost methods of the stacks of a clock carry out.
pub(super) fn of(clock: &Clock) -> &'static [Task] {
    match clock {
        Clock::Cpu | Clock::Wall => &[Task::Poll],
        Clock::Exceptions => &[Task::Throw],
        Clock::Contention => &[Task::Lock, Task::Send],
        Clock::Waits => &[Task::Lock, Task::Wait, Task::Send],
        Clock::Allocations | Clock::AllocatedTypes => &[Task::Allocate],
        Clock::Events { provider, event_id } => match KnownProvider::of(provider.as_str().into()) {
            Some(KnownProvider::Runtime) => of_runtime_event(*event_id),
            // A sample is not an event that the code sends.
            Some(KnownProvider::SampleProfiler | KnownProvider::UniversalEvents) => of(&Clock::Wall),
            _ => &[Task::Send],
        },
        _ => &[],
    }
}

fn of_runtime_event(event_id: Option<u32>) -> &'static [Task] {
    use RuntimeEvent as Is;

    match event_id.and_then(|id| RuntimeEvent::new(KnownProvider::Runtime, id)) {
        Some(
            Is::ExceptionThrown
            | Is::ExceptionCatchStart
            | Is::ExceptionCatchStop
            | Is::ExceptionFinallyStart
            | Is::ExceptionFinallyStop
            | Is::ExceptionFilterStart
            | Is::ExceptionFilterStop
            | Is::ExceptionThrownStop,
        ) => &[Task::Throw],
        Some(Is::ContentionStart | Is::ContentionLockCreated | Is::ContentionStop) => {
            &[Task::Lock, Task::Send]
        }
        // An allocation can cause a collection.
        Some(Is::GCStart | Is::GCAllocationTick | Is::GCTriggered | Is::AllocationSampled) => {
            &[Task::Allocate]
        }
        Some(Is::ThreadCreating | Is::ThreadRunning) => &[Task::StartThread],
        Some(Is::WaitHandleWaitStart | Is::WaitHandleWaitStop) => &[Task::Wait, Task::Send],
        _ => &[Task::Send],
    }
}

/// Returns whether a method has one of these starts.
pub(super) fn has(starts: Starts, method: &str) -> bool {
    let method = without_module(method);
    starts.iter().any(|(namespace, names)| {
        let begins = |rest: &str| {
            names.split_ascii_whitespace().any(|name| rest.strip_prefix(name).is_some_and(is_end))
        };
        method.strip_prefix(namespace).is_some_and(begins)
    })
}

/// Returns the name of a method without its module, which short names lack.
fn without_module(method: &str) -> &str {
    method.split_once('!').map_or(method, |(_, name)| name)
}

/// Returns whether a name can end before this rest.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', ':', '+', '`', '(', '[', '|'])
}
