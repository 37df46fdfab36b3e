//! The rows of the tables, and the numbers of clocks and orders.
use nettrace_analysis::call_tree::Order;
use nettrace_analysis::samples::Clock;

use crate::text::Text;
use crate::trace::End;

/// Samples of threads that run managed code, as in `dotnet-ipc report`. If samples do not tell which threads run, all
/// samples count, and `dipc_analysis_summary.clock` is `DIPC_CLOCK_WALL`.
pub const DIPC_CLOCK_CPU: u32 = 0;
/// All samples.
pub const DIPC_CLOCK_WALL: u32 = 1;
/// Nanoseconds from sample to sample, waiting included.
pub const DIPC_CLOCK_THREAD_TIME: u32 = 2;
/// Allocated bytes.
pub const DIPC_CLOCK_ALLOCATIONS: u32 = 3;
/// Allocated bytes, with the type of the object as the innermost function.
pub const DIPC_CLOCK_ALLOCATED_TYPES: u32 = 4;
/// Thrown exceptions.
pub const DIPC_CLOCK_EXCEPTIONS: u32 = 5;
/// Nanoseconds of waiting for locks.
pub const DIPC_CLOCK_CONTENTION: u32 = 6;
/// Nanoseconds of waiting on WaitHandles.
pub const DIPC_CLOCK_WAITS: u32 = 7;
/// All events with a stack.
pub const DIPC_CLOCK_ALL_EVENTS: u32 = 8;

/// The clocks by their numbers.
pub(crate) const CLOCKS: [Clock; 9] = [
    Clock::Cpu,
    Clock::Wall,
    Clock::ThreadTime,
    Clock::Allocations,
    Clock::AllocatedTypes,
    Clock::Exceptions,
    Clock::Contention,
    Clock::Waits,
    Clock::AllEvents,
];

/// The functions with the largest `exclusive` first.
pub const DIPC_ORDER_EXCLUSIVE: u32 = 0;
/// The functions with the largest `inclusive` first.
pub const DIPC_ORDER_INCLUSIVE: u32 = 1;
/// The functions with the largest `own` first, of those that have any.
pub const DIPC_ORDER_OWN: u32 = 2;

/// The orders by their numbers.
pub(crate) const ORDERS: [Order; 3] = [Order::Exclusive, Order::Inclusive, Order::Own];

/// A time or a duration that the trace does not have.
pub const DIPC_NOT_KNOWN: i64 = i64::MIN;

/// What an analysis has found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Summary {
    /// How the trace ends. What comes before a truncated end or outside of a corrupt part was read.
    pub end: End,
    /// The number of events.
    pub events: u64,
    /// The number of events that the runtime did not record.
    pub lost: u64,
    /// The clock of the functions: one of `DIPC_CLOCK_*`.
    pub clock: u32,
    /// The number of events that the clock counts.
    pub counted: u64,
    /// The weight of all stacks together: a function has the share `exclusive / total`.
    pub total: u64,
    /// The share of frames without a name, in percent.
    pub unnamed: f64,
    /// The number of functions.
    pub functions: usize,
    /// The number of garbage collections.
    pub collections: usize,
    /// The number of samples of counters.
    pub counters: usize,
    /// The number of types of the heap snapshots.
    pub heap_types: usize,
}

/// A function. Weights are in the unit of the clock.
#[repr(C)]
pub struct Function<'a> {
    /// The name: `module!Type.Method(args)`.
    pub name: Text<'a>,
    /// The weight of the stacks in which it is the innermost function.
    pub exclusive: u64,
    /// The weight of the stacks that contain it.
    pub inclusive: u64,
    /// The weight of the stacks in which it is the innermost function of the program; 0 for other code.
    pub own: u64,
    /// Whether it is code of the program, and not of .NET or of Microsoft's libraries.
    pub is_own: bool,
}

/// A garbage collection. Times are nanoseconds from the start of the trace, durations nanoseconds, sizes bytes.
#[repr(C)]
pub struct Collection<'a> {
    /// The id of the process; 0 if the trace does not state it.
    pub process_id: u64,
    /// The number of the collection in its process.
    pub number: u32,
    /// The oldest generation that is collected.
    pub generation: u32,
    /// `NonConcurrentGC`, `BackgroundGC` or `ForegroundGC`; a null text if it is not known.
    pub kind: Text<'a>,
    /// The reason, as `AllocSmall`; a null text if it is not known.
    pub reason: Text<'a>,
    /// The time at which it started, after the suspension; or `DIPC_NOT_KNOWN`.
    pub start: i64,
    /// The time at which the runtime began to suspend the program, or `DIPC_NOT_KNOWN`.
    pub pause_start: i64,
    /// How long the program was paused, or `DIPC_NOT_KNOWN`.
    pub pause: i64,
    /// How much of the pause it took to suspend all threads, or `DIPC_NOT_KNOWN`.
    pub suspension: i64,
    /// The duration, in which the program runs if this is a background collection, or `DIPC_NOT_KNOWN`.
    pub duration: i64,
    /// Whether the following sizes are known.
    pub has_sizes: bool,
    /// The sizes after the collection: generations 0, 1 and 2, large objects, pinned objects.
    pub after: [u64; 5],
    /// The bytes of each part that survived.
    pub promoted: [u64; 5],
    /// Whether the trace has all events of the collection.
    pub is_complete: bool,
}

/// The measurement of a counter or an instrument in an interval. A number that the program does not state is NaN.
#[repr(C)]
pub struct Counter<'a> {
    /// The nanoseconds from the start of the trace.
    pub time: i64,
    /// The id of the process; 0 if the trace does not state it.
    pub process_id: u64,
    /// The event source or the meter.
    pub provider: Text<'a>,
    /// The counter or instrument.
    pub name: Text<'a>,
    /// The name for people; can be empty.
    pub display_name: Text<'a>,
    /// The unit; can be empty.
    pub unit: Text<'a>,
    /// The tags, as `route=/a,status=200`; can be empty.
    pub tags: Text<'a>,
    /// `mean`, `sum`, `counter`, `up_down_counter`, `gauge`, `histogram` or `exponential_histogram`.
    pub kind: Text<'a>,
    /// The mean, the increment, or the value since the start of the process; NaN for histograms.
    pub value: f64,
    /// The change for each second; NaN for means, gauges and histograms.
    pub rate: f64,
    /// The quantiles 0.5, 0.95 and 0.99 of a histogram.
    pub quantiles: [f64; 3],
}

/// The objects of one type on the heap.
#[repr(C)]
pub struct HeapType<'a> {
    /// The id of the process; 0 if the trace does not state it.
    pub process_id: u64,
    /// The name.
    pub name: Text<'a>,
    /// The file of the module; a null text if it is not known.
    pub module: Text<'a>,
    /// The number of objects.
    pub count: u64,
    /// The bytes of all objects, without what they refer to.
    pub bytes: u64,
    /// The bytes of the largest object.
    pub largest: u64,
    /// Whether the type belongs to the program.
    pub is_own: bool,
}
