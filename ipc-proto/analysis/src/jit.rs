//! Methods that the runtime compiled while the program ran: how long each compilation took, at which tier, and the
//! sizes of the code.
//!
//! [`Compilations`] takes the events of a trace in the order of time, and returns a [`Compilation`] for each version of
//! a method that was compiled. For a trace without lost events, times are equal to those of Microsoft's TraceEvent, to
//! the nanosecond:
//!
//! * A compilation begins with MethodJittingStarted, and ends with the load of the same method on the same thread of
//!   the same process (MethodLoadVerbose, MethodLoad). A compilation can require that other methods are compiled first,
//!   on the same thread. The time of a compilation includes the compilations inside of it.
//! * A load without a start is a compilation without a time.
//! * A start without a load, as when another thread was faster, is a compilation without a time, tier and machine code.
//! * Precompiled methods are not compiled, and do not appear.
//!
//! The events come from the provider `Microsoft-Windows-DotNETRuntime` with keyword JIT (0x10) and level verbose.
mod compilation;
mod compilations;

pub use compilation::{Compilation, JitStatistics, Tier, TierStatistics};
pub use compilations::{Compilations, JitReport};
