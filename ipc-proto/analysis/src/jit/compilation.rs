//! One compilation of a method: its times, sizes and tier.
use alloc::string::String;
use core::fmt;

use ipc_proto::wire::low_u8;

/// The compilation of a version of a method. Times are nanoseconds from the start of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Compilation {
    /// The id of the process; `None` if the trace does not state it.
    pub process_id: Option<u64>,
    /// The method with its type and the types of its parameters: `System.String.Concat(class System.String[])`. Empty
    /// if the trace does not state the name.
    pub method: String,
    /// The id of the method's module, as in the events of modules.
    pub module_id: u64,
    /// The time of MethodJittingStarted, or else of the load.
    pub start: i64,
    /// The nanoseconds from the start to the load; `None` if the trace lacks one of them.
    pub duration: Option<u64>,
    /// The size of the method's IL in bytes; `None` without a start.
    pub il_size: Option<u64>,
    /// The size of the machine code in bytes; `None` without a load.
    pub native_size: Option<u64>,
    /// How the method was compiled; `None` without a load.
    pub tier: Option<Tier>,
    /// The version of the method's code: 0 is the first one, others come from tiered compilation and from profilers.
    pub version: u64,
    /// The thread that compiled the method.
    pub thread: u64,
}

/// How a method is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tier(pub u8);

impl Tier {
    /// Not reported, as before .NET Core 3.
    pub const UNKNOWN: Self = Self(0);
    /// With the fewest optimizations, for debuggers for example.
    pub const MIN_OPT_JITTED: Self = Self(1);
    /// With optimizations from the first call on: the method has no other tiers.
    pub const OPTIMIZED: Self = Self(2);
    /// Tier 0: quickly, and without optimizations.
    pub const QUICK_JITTED: Self = Self(3);
    /// Tier 1: with optimizations, after many calls.
    pub const OPTIMIZED_TIER1: Self = Self(4);
    /// Tier 1, replacing code that runs in a loop.
    pub const OPTIMIZED_TIER1_OSR: Self = Self(5);
    /// Tier 0, with counters for tier 1.
    pub const QUICK_JITTED_INSTRUMENTED: Self = Self(6);
    /// Tier 1, with counters for a better tier 1.
    pub const OPTIMIZED_TIER1_INSTRUMENTED: Self = Self(7);

    /// The names of the tiers, as in TraceEvent.
    const NAMES: [&'static str; 8] = [
        "Unknown",
        "MinOptJitted",
        "Optimized",
        "QuickJitted",
        "OptimizedTier1",
        "OptimizedTier1OSR",
        "QuickJittedInstrumented",
        "OptimizedTier1Instrumented",
    ];

    /// Returns the tier in the flags of a load event of a compiled method.
    pub(super) const fn from_flags(flags: u32) -> Self {
        Self(low_u8((flags.wrapping_shr(7) & 7) as u64))
    }

    /// Returns the name that TraceEvent uses, if the tier is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::from(self.0)).copied()
    }
}

/// Writes the name of the tier, or its number.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}
