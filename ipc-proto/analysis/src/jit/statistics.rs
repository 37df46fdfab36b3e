//! Sums and quantiles over compilations.
use super::{Compilation, Tier};
use crate::Durations;

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
