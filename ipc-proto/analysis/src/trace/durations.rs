//! Quantiles of any number of durations, in memory with a limit; and the time between two timestamps.
use alloc::collections::BTreeMap;

/// A set of durations in nanoseconds, and its quantiles.
///
/// Durations that differ by less than 0.8 % share a bucket, and a quantile is the longest duration of its bucket. So
/// the quantiles of a few durations are exact, and those of any number have an error below 0.8 %. There are at most
/// 7,424 buckets of 24 bytes.
///
/// ```
/// use nettrace_analysis::Durations;
///
/// let mut pauses = Durations::default();
/// for milliseconds in [4, 1, 2, 3] {
///     pauses.add(milliseconds * 1_000_000);
/// }
/// assert_eq!((pauses.count(), pauses.total(), pauses.longest()), (4, 10_000_000, 4_000_000));
/// assert_eq!((pauses.quantile(500), pauses.quantile(990)), (2_000_000, 4_000_000));
/// assert_eq!(pauses.mean(), 2_500_000);
/// pauses.merge(&pauses.clone());
/// assert_eq!((pauses.count(), pauses.count_from(3_000_000)), (8, 4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durations {
    count: u64,
    total: u64,
    longest: u64,
    buckets: BTreeMap<u16, Bucket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    count: u64,
    longest: u64,
}

/// The number of bits after the highest set bit of a duration that select its bucket.
const BITS: u32 = 7;

impl Durations {
    /// Adds a duration.
    pub fn add(&mut self, nanoseconds: u64) {
        self.add_many(nanoseconds, 1);
    }

    /// Adds `count` equal durations.
    pub(crate) fn add_many(&mut self, nanoseconds: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.count = self.count.saturating_add(count);
        self.total = self.total.saturating_add(nanoseconds.saturating_mul(count));
        self.longest = self.longest.max(nanoseconds);
        let bucket = self.buckets.entry(bucket(nanoseconds)).or_default();
        bucket.count = bucket.count.saturating_add(count);
        bucket.longest = bucket.longest.max(nanoseconds);
    }

    /// Adds all durations of another set.
    pub fn merge(&mut self, other: &Self) {
        other.buckets.values().for_each(|bucket| self.add_many(bucket.longest, bucket.count));
    }

    /// Returns the number of durations that are not shorter than a time, up to the error of a bucket.
    #[must_use]
    pub fn count_from(&self, nanoseconds: u64) -> u64 {
        let longer = self.buckets.range(bucket(nanoseconds)..).filter(|(_, of)| of.longest >= nanoseconds);
        longer.fold(0, |sum, (_, bucket)| sum.saturating_add(bucket.count))
    }

    /// Returns the number of durations.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all durations in nanoseconds.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the longest duration; 0 if there is none.
    #[must_use]
    pub const fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the mean, rounded down; 0 if there are no durations.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or_default()
    }

    /// Returns the shortest duration that `per_mille` of 1,000 durations do not exceed: 500 is the median. 0 if there
    /// are no durations.
    #[must_use]
    pub fn quantile(&self, per_mille: u16) -> u64 {
        let wanted = u128::from(self.count).saturating_mul(per_mille.into()).div_ceil(1_000);
        let mut count = 0_u128;
        for bucket in self.buckets.values() {
            count = count.saturating_add(bucket.count.into());
            if count >= wanted {
                return bucket.longest;
            }
        }
        self.longest
    }
}

/// Returns the nanoseconds from one time to a later one; 0 if they are not in order.
pub(crate) fn elapsed(start: i64, end: i64) -> u64 {
    u64::try_from(end.saturating_sub(start)).unwrap_or_default()
}

/// Returns the number of the bucket of a duration: a longer duration has the same number or a higher one.
fn bucket(nanoseconds: u64) -> u16 {
    let shift = (u64::BITS - BITS - 1).saturating_sub(nanoseconds.leading_zeros());
    let high = nanoseconds.checked_shr(shift).unwrap_or_default();
    let number = u64::from(shift).wrapping_shl(BITS).saturating_add(high);
    u16::try_from(number).unwrap_or(u16::MAX)
}
