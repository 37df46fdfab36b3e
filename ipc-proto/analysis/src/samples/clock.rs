//! The quantities that weigh samples (CPU, time, bytes, events), and the unit of each.
use alloc::string::String;

/// The quantity to weigh: see the [module](super).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Clock {
    /// Samples of threads that run.
    #[default]
    Cpu,
    /// All samples.
    Wall,
    /// The time of threads by the rule of `dotnet-trace report`.
    ThreadTime,
    /// The time of threads by the rule of `dotnet-trace convert`: by samples and allocations only.
    SampledTime,
    /// Allocated bytes.
    Allocations,
    /// Allocated bytes, with the type of the object as the innermost frame of the stack.
    AllocatedTypes,
    /// Thrown exceptions.
    Exceptions,
    /// The time of waiting for locks.
    Contention,
    /// The time of waiting on WaitHandles: events, semaphores, tasks and others. .NET 9 and newer send the events.
    Waits,
    /// The events of a provider.
    Events {
        /// The name of the provider.
        provider: String,
        /// Only the events with this id.
        event_id: Option<u32>,
    },
    /// All events with a stack.
    AllEvents,
}

/// The unit of the weights of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Samples.
    Samples,
    /// Time in nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Events.
    Events,
}

impl Unit {
    /// Returns the name of the unit: `samples`, `nanoseconds`, `bytes` or `events`.
    ///
    /// ```
    /// use nettrace_analysis::samples::Clock;
    ///
    /// assert_eq!(Clock::ThreadTime.unit().name(), "nanoseconds");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Events => "events",
        }
    }
}

impl Clock {
    /// Returns the unit of the weights of this clock.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match self {
            Self::Cpu | Self::Wall => Unit::Samples,
            Self::ThreadTime | Self::SampledTime | Self::Contention | Self::Waits => Unit::Nanoseconds,
            Self::Allocations | Self::AllocatedTypes => Unit::Bytes,
            Self::Exceptions | Self::Events { .. } | Self::AllEvents => Unit::Events,
        }
    }

    /// Returns the clocks that a [report](crate::report) by this one needs: a report of CPU time also states how many
    /// threads only wait, and shows all samples if they do not tell which threads run. A report of locks states how many
    /// threads wait from before the recording. So both need [`Wall`](Self::Wall).
    pub fn recorded(&self) -> impl Iterator<Item = Self> {
        let needs_wall = matches!(self, Self::Cpu | Self::Contention);
        [self.clone()].into_iter().chain(needs_wall.then_some(Self::Wall))
    }
}
