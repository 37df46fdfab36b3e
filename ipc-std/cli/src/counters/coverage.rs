//! `Coverage`: the time over which the samples of a series satisfy a term of a condition.
use core::time::Duration;

/// The observed part of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coverage {
    /// The time of the last sample in nanoseconds.
    last: i128,
    /// The time that each of the last two samples covers: its interval, or the shortest time between two samples.
    steps: Option<[i128; 2]>,
    /// The time covered by the samples that satisfied the term without a hole between them; `None` if the last one did
    /// not satisfy it.
    covered: Option<i128>,
}

impl Coverage {
    /// Takes a sample. It covers its own interval, and a hole between two samples ends the hold.
    pub(super) fn take(previous: Option<Self>, now: i128, interval: Option<f64>, is_satisfied: bool) -> Self {
        let gap = previous.map(|previous| now.saturating_sub(previous.last)).filter(|gap| *gap > 0);
        let known = previous.and_then(|previous| previous.steps);
        let stated = interval.filter(|seconds| *seconds > 0.0).and_then(nanoseconds);
        let shortest = || known.map(|[_, step]| step).into_iter().chain(gap).min();
        let step = stated.or_else(shortest);
        let steps = step.map(|step| [known.map_or(step, |[_, last]| last), step]);
        if !is_satisfied {
            return Self { last: now, steps, covered: None };
        }
        // The times of samples vary a little.
        let is_longer = |than: i128, step: i128| step.saturating_mul(2) > than.saturating_mul(3);
        // A process that was stopped states the time of the stop as a part of an interval. Nothing was observed in it.
        let usual = known.map(|[one, other]| one.max(other));
        let step = step.unwrap_or(0);
        let (own, reach) = match usual {
            Some(usual) if is_longer(usual, step) => (gap.map_or(usual, |gap| gap.min(usual)), usual),
            _ => (step, step),
        };
        let follows = |gap: i128| !is_longer(reach, gap);
        let before = previous.and_then(|previous| previous.covered).filter(|_| gap.is_none_or(follows));
        // The first sample of a series whose interval nothing states covers as much as the second one.
        let before = before.map(|before| if known.is_none() && stated.is_none() { own } else { before });
        let own = if gap.is_none() && previous.is_some() { 0 } else { own };
        Self { last: now, steps, covered: Some(before.unwrap_or(0).saturating_add(own)) }
    }

    /// Returns the time after which the series is silent.
    pub(super) fn silent_after(&self) -> i128 {
        /// After 3.5 intervals without a sample, a series no longer satisfies a term.
        const HALF_INTERVALS: i128 = 7;
        let step = self.steps.map_or(1_000_000_000, |[_, step]| step);
        self.last.saturating_add(step.saturating_mul(HALF_INTERVALS) / 2)
    }

    /// Returns whether the series satisfies a term for this time.
    pub(super) fn covers(&self, hold: i128) -> bool {
        // The intervals that a runtime states are a little shorter or longer than those that were asked for.
        self.covered.is_some_and(|covered| covered.saturating_add(covered / 50) >= hold)
    }
}

/// Returns seconds in nanoseconds; `None` for a number that no interval has.
fn nanoseconds(seconds: f64) -> Option<i128> {
    i128::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_nanos()).ok()
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The covered time of samples at these times, in milliseconds, each with its interval; of those that do not satisfy
    /// the term, the times are negative.
    fn covered(samples: impl IntoIterator<Item = (i64, Option<f64>)>) -> Option<i128> {
        let series = samples.into_iter().fold(None, |series, (at, interval)| {
            let now = i128::from(at.abs()) * 1_000_000;
            Some(Coverage::take(series, now, interval, at > 0))
        });
        series.and_then(|series| series.covered).map(|covered| covered / 1_000_000)
    }

    #[test]
    fn a_sample_covers_its_own_interval() {
        let two = Some(2.0);
        for (times, expected) in [
            (&[5_000][..], Some(2_000)),
            (&[4_000, 6_000, 8_000], Some(6_000)),
            (&[4_000, 6_000, 10_000], Some(2_000)), // one is missing
            (&[5_000, 26_000], Some(2_000)),
            (&[4_000, -6_000, 8_000, 10_000], Some(4_000)),
            (&[4_000, 6_000, -8_000], None),
            (&[4_000, 4_000, 6_000], Some(4_000)), // the same sample twice
        ] {
            assert_eq!(covered(times.iter().map(|at| (*at, two))), expected, "{times:?}");
        }
        // A process that was stopped: the time of the stop is a part of an interval, or follows it.
        for (samples, expected) in [
            (
                &[(1_000, 1.0), (2_000, 1.0), (7_600, 5.6), (8_000, 0.4), (9_000, 1.0), (10_000, 1.0)][..],
                3_400,
            ),
            (&[(1_000, 1.0), (2_000, 1.0), (7_600, 1.0), (8_000, 5.0), (9_000, 1.0), (10_000, 1.0)], 3_400),
            (&[(1_000, 1.0), (2_000, 1.0), (7_600, 5.6)], 1_000),
            // Another client ends its session, and the interval is longer from there on.
            (&[(100, 0.1), (200, 0.1), (1_200, 1.0), (2_200, 1.0), (3_200, 1.0)], 2_100),
        ] {
            let covered = covered(samples.iter().map(|(at, interval)| (*at, Some(*interval))));
            assert_eq!(covered, Some(expected), "{samples:?}");
        }
        // Gauges state no interval: the shortest distance is it.
        for (times, expected) in [
            (&[4_000][..], Some(0)),
            (&[4_000, 6_000, 8_000], Some(6_000)),
            (&[10_000, 20_000, 30_000, 60_000], Some(10_000)),
        ] {
            assert_eq!(covered(times.iter().map(|at| (*at, None))), expected, "{times:?}");
        }
    }

    /// Samples that come a little early or late, by up to a fifth of their interval, are no hole.
    #[test]
    fn jitter_is_no_hole() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut at = 10_000;
            let samples: Vec<_> = (0..20)
                .map(|_| {
                    at += 1_000 + random.i64(-200..=200);
                    (at, Some(1.0 + random.f64() * 0.001))
                })
                .collect();
            let covered_by = covered(samples.clone()).unwrap();
            assert!((20_000..20_100).contains(&covered_by), "{seed}: {covered_by}");
            let hole = samples.iter().enumerate().filter(|(n, _)| *n != 10).map(|(_, sample)| *sample);
            assert!((9_000..9_100).contains(&covered(hole).unwrap()), "{seed}");
        }
    }
}
