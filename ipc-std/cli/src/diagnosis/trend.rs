//! Whether a value grows without end.

/// A value that has grown, and still grows at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    pub(super) from: f64,
    pub(super) to: f64,
    /// The place of the value from which on it grows.
    pub(super) start: usize,
}

impl Trend {
    /// Returns the growth of a series: from its lowest value on, the lows rise in several steps, and also in its last
    /// half. A value that rises once and stays has reached its level.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        const POINTS: usize = 4;
        const STEPS: usize = 3;
        const LAST_HALF: f64 = 0.25;
        let (_, lowest) =
            (0..).zip(values).min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(place, of)| (of, place))?;
        let mut lows: Vec<f64> = values.get(lowest..)?.to_vec();
        for place in (1..lows.len()).rev() {
            let next = lows.get(place).copied()?;
            let low = lows.get_mut(place.checked_sub(1)?)?;
            *low = low.min(next);
        }
        let (from, to) = (*lows.first()?, *lows.last()?);
        let middle = *lows.get(lows.len() / 2)?;
        let steps = lows.windows(2).filter(|pair| matches!(pair, [a, b] if b > a)).count();
        let grows = lows.len() >= POINTS && steps >= STEPS && to - middle >= (to - from) * LAST_HALF;
        let lowest_values = lows.iter().take_while(|low| **low <= from).count();
        let start = lowest.saturating_add(lowest_values.saturating_sub(1));
        grows.then_some(Self { from, to, start })
    }
}

#[cfg(test)]
mod tests {
    use super::Trend;

    #[test]
    fn growth() {
        let of = |values: &[f64]| Trend::of(values).map(|trend| (trend.from, trend.to, trend.start));
        assert_eq!(of(&[20.0, 24.0, 28.0, 32.0, 36.0]), Some((20.0, 36.0, 0)));
        assert_eq!(of(&[110.0, 20.0, 30.0, 41.0, 52.0, 63.0]), Some((20.0, 63.0, 1)));
        assert_eq!(of(&[20.0, 60.0, 60.0, 60.0, 60.0]), None);
        assert_eq!(of(&[20.0, 50.0, 21.0, 52.0, 20.5, 51.0, 21.0]), None);
        assert_eq!(of(&[20.0, 60.0]), None);
        assert_eq!(of(&[]), None);
    }
}
