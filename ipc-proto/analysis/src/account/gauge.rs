//! A value that changes over the whole length of a recording.
use alloc::vec::Vec;

/// A part of the time of a gauge.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GaugePoint {
    /// The time of the first sample in nanoseconds.
    pub first: i64,
    /// The time of the last sample.
    pub last: i64,
    /// The sum of the samples.
    pub sum: f64,
    /// The number of samples.
    pub count: u64,
}

impl GaugePoint {
    /// Returns the mean of the samples.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// The samples of a value over the whole recording. If there are too many, two that follow each other become one, again
/// and again, so that nothing is cut off.
///
/// ```
/// use nettrace_analysis::account::Gauge;
///
/// let mut queue = Gauge::default();
/// (0..5_000).for_each(|second| queue.add(second * 1_000_000_000, second as f64));
/// assert!(queue.points().len() <= Gauge::LIMIT && queue.last().unwrap() > 4_900.0);
/// assert_eq!((queue.count(), queue.sum()), (5_000, 12_497_500.0));
/// assert_eq!(queue.longest_run(1_000.0), Some((1_000_000_000_000, 4_999_000_000_000)));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauge {
    points: Vec<GaugePoint>,
    /// The number of samples of a full point is this power of two.
    power: u32,
}

impl Gauge {
    /// The number of points that are stored at most.
    pub const LIMIT: usize = 1 << 10;

    /// Adds a sample at a time in nanoseconds.
    pub fn add(&mut self, time: i64, value: f64) {
        let full = 1_u64.checked_shl(self.power).unwrap_or(u64::MAX);
        if let Some(point) = self.points.last_mut().filter(|point| point.count < full) {
            point.last = time.max(point.last);
            point.sum += value;
            point.count = point.count.saturating_add(1);
            return;
        }
        if self.points.len() >= Self::LIMIT {
            let pairs = self.points.chunks(2).filter_map(|pair| {
                let (first, last) = (pair.first()?, pair.last()?);
                let (sum, count) = pair.iter().fold((0.0, 0_u64), |(sum, count), point| {
                    (sum + point.sum, count.saturating_add(point.count))
                });
                Some(GaugePoint { first: first.first, last: last.last, sum, count })
            });
            self.points = pairs.collect();
            self.power = self.power.saturating_add(1);
        }
        self.points.push(GaugePoint { first: time, last: time, sum: value, count: 1 });
    }

    /// Returns the samples with their times, or the sums of several that follow each other.
    #[must_use]
    pub fn points(&self) -> &[GaugePoint] {
        &self.points
    }

    /// Returns the number of all samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.points.iter().fold(0, |sum, point| sum.saturating_add(point.count))
    }

    /// Returns the sum of all samples.
    #[must_use]
    pub fn sum(&self) -> f64 {
        // The sum of no floats is a negative zero.
        self.points.iter().fold(0.0, |sum, point| sum + point.sum)
    }

    /// Returns the first value.
    #[must_use]
    pub fn first(&self) -> Option<f64> {
        self.points.first().map(GaugePoint::mean)
    }

    /// Returns the last value.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.points.last().map(GaugePoint::mean)
    }

    /// Returns the median.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let mut values: Vec<f64> = self.points.iter().map(GaugePoint::mean).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Returns the start and the end of the longest time in which the value is at least as large as a limit, from its
    /// first to its last sample. Of two that last equally long, the later one.
    #[must_use]
    pub fn longest_run(&self, limit: f64) -> Option<(i64, i64)> {
        let runs = self.points.chunk_by(|a, b| (a.mean() >= limit) == (b.mean() >= limit));
        let runs = runs.filter_map(|run| Some((run.first()?, run.last()?)));
        let runs =
            runs.filter(|(first, _)| first.mean() >= limit).map(|(first, last)| (first.first, last.last));
        runs.max_by_key(|(first, last)| last.saturating_sub(*first))
    }
}
