//! The weights of the events of a trace, by thread and stack.
//!
//! | [`Clock`] | weighs | events | unit |
//! |---|---|---|---|
//! | `Cpu` | 1 a sample | samples of threads in managed code that do not wait; V6: samples of the processor | samples |
//! | `Wall` | 1 a sample | all samples: a thread that is not in managed code waits, or runs native code; V6: see below | samples |
//! | `ThreadTime` | the time up to the next sample of the thread | all samples, and other events: see below | nanoseconds |
//! | `SampledTime` | as `ThreadTime` | as `ThreadTime`, without events of event sources | nanoseconds |
//! | `Allocations` | the bytes that the event stands for | AllocationTick, every 100 KB or so; AllocationSampled: see below | bytes |
//! | `AllocatedTypes` | as `Allocations` | as `Allocations`, with the type as the innermost frame | bytes |
//! | `Exceptions` | 1 | ExceptionThrown | exceptions |
//! | `Contention` | the time up to ContentionStop | ContentionStart | nanoseconds |
//! | `Waits` | the time up to WaitHandleWaitStop | WaitHandleWaitStart (.NET 9) | nanoseconds |
//! | `Events` | 1 | the events of a provider, or one kind of them | events |
//! | `AllEvents` | 1 | all events that have a stack | events |
//!
//! A sampler of the runtime visits all threads, at an interval that the trace shows by its samples. It sees whether a
//! thread is in managed code, not whether it is on a processor. So a sample means that a thread would run, not that it
//! had a processor: five threads can run on two processors. The runtime of a program that was compiled ahead of time
//! marks all samples as outside managed code: [`Samples::tells_running`].
//!
//! # Waiting in managed code
//!
//! A thread whose wait ends while the runtime is stopped for a sample is in managed code, although it has not run.
//! [`Samples::finish`](crate::Analysis::finish) makes such samples those of a waiting thread, for `Cpu` and `Wall`:
//! samples whose innermost method waits, as `Thread.Sleep` does, or is a loop around a wait. It needs the names of
//! methods, which a trace can have at its end. A thread that spins runs: [`Samples::cpu_causes`] has the samples of
//! idle threads of the pool that spin. `ThreadTime` and `SampledTime` have the rule of Microsoft's tools, without this
//! one.
//!
//! # Thread time
//!
//! The rule of `dotnet-trace report`: a thread is in the stack of an event from this event up to the next event of the
//! thread. The thread runs if the event is a sample in managed code, or an allocation. Events of event sources count
//! too: the name of the event is added to its stack as a frame, `EventName: Provider/Event`. The time after the last
//! event of a thread is not counted. `dotnet-trace convert` ignores the events of event sources, as `SampledTime` does:
//! so the last stack of a thread ends with its last sample. Microsoft's tools also follow tasks from thread to thread
//! (`AWAIT_TIME`) if the trace has the events of the task library, and add fields of events (`EventData: x=1`) and
//! activities as frames. In this crate, a thread has only its own stack.
//!
//! # Off the processor
//!
//! A trace of the operating system (V6) has samples of the processor, 1,000 a second, and switches of threads: the time
//! off the processor before the switch, with the stack that waited. `Wall` counts that time as samples of a waiting
//! thread, 1 a millisecond; the rest counts with the next switch. `ThreadTime` and `SampledTime` add it to a millisecond
//! for each sample.
//!
//! # Allocations
//!
//! With keyword AllocationSampling (0x80000000000), a runtime since .NET 10 draws one of 102,400 allocated bytes at
//! random, and sends AllocationSampled for its object. An object of `s` bytes weighs `s / (1 - (1 - 1/102400)^s)`, as
//! the runtime documents it. The events of a process count instead of its AllocationTicks if there are any.
//!
//! # Waits
//!
//! A wait ends with the next ContentionStop or WaitHandleWaitStop of its thread.
//! [`Samples::finish`](crate::Analysis::finish) adds the waits that have not ended, up to the end of the recording. A wait that another wait of the thread follows, and an
//! end without a start, have no time: [`Samples::waits`] counts them.
//!
//! # Order
//!
//! `ThreadTime`, `SampledTime`, `Contention` and `Waits` need the events in the order of time (`EventOrder::Time`); the
//! other clocks need no order, unless code is unloaded: see [`names`](crate::names).
//!
//! # Memory
//!
//! Beside [`Names`](crate::names::Names) and [`Stacks`](crate::Stacks): at most [`Samples::THREADS`] threads, and an
//! entry for each different pair of thread and stack, at most [`Samples::ENTRIES`] for each clock. [`Samples::dropped`]
//! counts the events that have no room, and [`Samples::clear`] makes room.
mod allocation_row;
mod allocations;
mod clock;
mod contention;
mod cpu_causes;
mod idle_waits;
mod interval;
mod process_names;
mod recording;
mod samples;
mod seen_event;
mod thread_roles;
mod thread_time;
mod threads;

pub(crate) use self::allocation_row::AllocationRow;
pub use self::allocations::UNKNOWN_TYPE;
pub use self::clock::{Clock, Unit};
pub use self::contention::Waits;
pub use self::cpu_causes::CpuCauses;
pub use self::idle_waits::IdleWaits;
pub use self::interval::{Interval, Weight};
pub use self::samples::Samples;
pub use self::thread_roles::ThreadRoles;
pub use self::threads::{SampledThread, ThreadNumber};
pub(crate) use self::threads::{Threads, TraceTables};
