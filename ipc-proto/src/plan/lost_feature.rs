//! [`LostFeature`]: a feature that an older command lacks; [`LostFeatures`]: a set of them.
use crate::sentences::sentences;

sentences! {
    /// A feature that an older command lacks. Its `Display` is a sentence for the user who requested the feature.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LostFeature {
        /// Blocking the program when the buffer is full, instead of losing events.
        Blocking = "blocking instead of dropping needs .NET 11",
        /// Filtering events by id.
        EventFilters = "filtering events by id needs .NET 10: all events of the providers are sent",
        /// A rundown selected by keywords; the default rundown replaces it.
        RundownKeyword = "a rundown selected by keywords needs .NET 9: the default rundown is sent",
        /// Events without stacks.
        Stackwalk = "events without stacks need .NET 9: events have stacks",
        /// Flags of a dump other than logging.
        DumpFlags = "crash reports and verbose logging need .NET 6",
        /// The message of a refused dump.
        DumpMessage = "the error message of a refused dump needs .NET 7",
    }
}

/// A set of lost features. It iterates in the order of [`LostFeature`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LostFeatures(u8);

impl LostFeatures {
    const ALL: [LostFeature; 6] = [
        LostFeature::Blocking,
        LostFeature::EventFilters,
        LostFeature::RundownKeyword,
        LostFeature::Stackwalk,
        LostFeature::DumpFlags,
        LostFeature::DumpMessage,
    ];

    /// Returns whether no feature is lost.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a feature is lost.
    #[must_use]
    pub const fn contains(self, loss: LostFeature) -> bool {
        self.0 & Self::bit(loss) != 0
    }

    /// Returns the lost features.
    pub fn iter(self) -> impl Iterator<Item = LostFeature> {
        Self::ALL.into_iter().filter(move |loss| self.contains(*loss))
    }

    const fn bit(loss: LostFeature) -> u8 {
        1u8.wrapping_shl(loss as u32)
    }

    pub(super) const fn with(self, loss: LostFeature) -> Self {
        Self(self.0 | Self::bit(loss))
    }
}
