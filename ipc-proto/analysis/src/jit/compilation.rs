//! One compilation of a method: its times, sizes and tier.
use alloc::string::String;

use ipc_proto::wire::low_u8;

use crate::Durations;
use crate::event::named_number;

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
    /// The tier of the compilation; `None` without a load.
    pub tier: Option<Tier>,
    /// The version of the method's code: 0 is the first one, others come from tiered compilation and from profilers.
    pub version: u64,
    /// The thread that compiled the method.
    pub thread: u64,
    /// The thread in the trace's own numbers: [`TraceEvent::thread_index`](nettrace::TraceEvent::thread_index).
    pub thread_index: u64,
}

named_number! {
    /// The tier of a compilation.
    Tier(u8) {
        /// Not reported, as before .NET Core 3.
        UNKNOWN = 0 "Unknown",
        /// With the fewest optimizations, for debuggers for example.
        MIN_OPT_JITTED = 1 "MinOptJitted",
        /// With optimizations from the first call on: the method has no other tiers.
        OPTIMIZED = 2 "Optimized",
        /// Tier 0: quickly, and without optimizations.
        QUICK_JITTED = 3 "QuickJitted",
        /// Tier 1: with optimizations, after many calls.
        OPTIMIZED_TIER1 = 4 "OptimizedTier1",
        /// Tier 1, replacing code that runs in a loop.
        OPTIMIZED_TIER1_OSR = 5 "OptimizedTier1OSR",
        /// Tier 0, with counters for tier 1.
        QUICK_JITTED_INSTRUMENTED = 6 "QuickJittedInstrumented",
        /// Tier 1, with counters for a better tier 1.
        OPTIMIZED_TIER1_INSTRUMENTED = 7 "OptimizedTier1Instrumented",
    }
}

impl Tier {
    /// Returns the tier in the flags of a load event of a compiled method.
    pub(super) const fn from_flags(flags: u32) -> Self {
        Self(low_u8((flags.wrapping_shr(7) & 7) as u64))
    }
}

/// Sums and quantiles over compilations whose load is in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JitStatistics {
    /// All compilations.
    pub all: TierStatistics,
    tiers: [TierStatistics; 8],
}

impl JitStatistics {
    /// Returns each tier that occurs with its statistics.
    pub fn tiers(&self) -> impl Iterator<Item = (Tier, &TierStatistics)> {
        (0..).map(Tier).zip(&self.tiers).filter(|(_, statistics)| statistics.count > 0)
    }

    pub(super) fn add(&mut self, compilation: &Compilation) {
        self.all.add(compilation);
        if let Some(tier) = compilation.tier.and_then(|tier| self.tiers.get_mut(usize::from(tier.0))) {
            tier.add(compilation);
        }
    }
}

/// Sums and quantiles over the compilations of a tier, or all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TierStatistics {
    /// The number of compilations.
    pub count: u64,
    /// The times of the compilations that have a time.
    pub durations: Durations,
    /// The bytes of IL of all compilations together.
    pub il_size: u64,
    /// The bytes of machine code of all compilations together.
    pub native_size: u64,
}

impl TierStatistics {
    fn add(&mut self, compilation: &Compilation) {
        self.count = self.count.saturating_add(1);
        if let Some(duration) = compilation.duration {
            self.durations.add(duration);
        }
        self.il_size = self.il_size.saturating_add(compilation.il_size.unwrap_or_default());
        self.native_size = self.native_size.saturating_add(compilation.native_size.unwrap_or_default());
    }
}
