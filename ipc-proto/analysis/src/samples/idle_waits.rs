//! The waits on WaitHandles of threads of the runtime that wait for work.
use alloc::vec::Vec;

use super::interval::Weight;

use crate::names::{Names, at};
use crate::stacks::{MethodName, MethodTable, stack_values};
use crate::{StackId, Stacks};

/// The methods that wait for the next timer.
const TIMERS: MethodTable = MethodTable(&[
    ("System.Threading.TimerQueue", "TimerThread"),
    ("Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat", "TimerLoop"),
]);

/// The methods of the thread pool that wait for work.
const POOL: MethodTable = MethodTable(&[
    ("System.Threading.LowLevelLifoSemaphore", "*"),
    ("System.Threading.PortableThreadPool+GateThread", "*"),
    ("System.Threading.PortableThreadPool+IOCompletionPoller", "*"),
    ("System.Threading.PortableThreadPool+WaitThread", "*"),
]);

/// Waits of threads that have nothing to do, in nanoseconds. They are no waits of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IdleWaits {
    /// Of the threads that wait for the next timer.
    pub timers: Weight,
    /// Of the threads of the thread pool.
    pub pool: Weight,
}

impl IdleWaits {
    /// Returns the time of all these waits.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.timers.total().saturating_add(self.pool.total())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Program,
    Timers,
    Pool,
}

/// The stacks of threads that have nothing to do.
pub(super) struct IdleStacks(Vec<Kind>);

impl IdleStacks {
    pub(super) fn new(names: &mut Names, stacks: &Stacks) -> Self {
        let of_caller = |caller, kind| if kind == Kind::Program { caller } else { kind };
        Self(stack_values(names, stacks, Kind::of, of_caller))
    }

    /// Adds the weight of a stack to `idle`, and returns whether its thread has nothing to do.
    pub(super) fn take(&self, stack: StackId, weight: Weight, idle: &mut IdleWaits) -> bool {
        match at(&self.0, stack.0) {
            Some(Kind::Timers) => idle.timers.add(weight),
            Some(Kind::Pool) => idle.pool.add(weight),
            Some(Kind::Program) | None => return false,
        }
        true
    }
}

impl Kind {
    fn of(method: &str) -> Self {
        match MethodName::of(method) {
            Some(method) if TIMERS.has(method) => Self::Timers,
            Some(method) if POOL.has(method) => Self::Pool,
            _ => Self::Program,
        }
    }
}
