//! Ticks of a trace to nanoseconds and to Unix time, and back.
use crate::parse::trace::Trace;

/// Converts the ticks of a trace to time, and time to ticks.
///
/// Times count from one of two zeros. The start of the trace is as accurate as its clock. 1970-01-01 UTC is accurate to
/// a millisecond, because the trace states its start in milliseconds. Times of two traces therefore compare to a
/// millisecond at best.
///
/// ```
/// use nettrace::{CalendarTime, Trace, TraceClock, Version};
///
/// let sync_time = CalendarTime { day: 2, millisecond: 5, ..CalendarTime::UNIX_EPOCH };
/// let trace = Trace { sync_time, sync_ticks: 1000, frequency: 10_000_000, ..Trace::new(Version::V4) };
/// let clock = TraceClock::new(&trace);
/// assert_eq!(clock.nanoseconds(1003), 300);
/// assert_eq!(clock.ticks(300), 1003);
/// assert_eq!(clock.unix_nanoseconds(1003), Some(86_400_005_000_300));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceClock {
    /// Milliseconds from 1970-01-01 UTC to the start of the trace, if its date exists.
    unix_start: Option<i64>,
    /// The timestamp of the start of the trace.
    ticks: u64,
    frequency: u64,
}

/// Nanoseconds in a second.
const NANOSECONDS: u64 = 1_000_000_000;

impl TraceClock {
    /// Returns the clock of `trace`.
    ///
    /// A trace that states a frequency of 0 gets ticks of a nanosecond, which keep the order of its events.
    #[must_use]
    pub fn new(trace: &Trace<'_>) -> Self {
        let Trace { sync_time, sync_ticks: ticks, frequency, .. } = *trace;
        let frequency = if frequency == 0 { NANOSECONDS } else { frequency };
        Self { unix_start: sync_time.date().map(|date| date.unix_milliseconds()), ticks, frequency }
    }

    /// Returns the nanoseconds from the start of the trace to `ticks`, rounded down; negative before the start.
    #[must_use]
    #[inline]
    pub fn nanoseconds(&self, ticks: u64) -> i64 {
        let ticks = ticks.wrapping_sub(self.ticks) as i64;
        if self.frequency == NANOSECONDS { ticks } else { scale(ticks, NANOSECONDS, self.frequency) }
    }

    /// Returns the nanoseconds from 1970-01-01 UTC to `ticks`; negative before that day. `None` if the trace states no
    /// date that exists.
    #[must_use]
    pub fn unix_nanoseconds(&self, ticks: u64) -> Option<i128> {
        Some(self.unix_start()?.wrapping_add(self.nanoseconds(ticks).into()))
    }

    /// Returns the nanoseconds from 1970-01-01 UTC to the start of the trace, a whole number of milliseconds. `None` if
    /// the trace states no date that exists, as [`CalendarTime::is_valid`](crate::CalendarTime::is_valid) defines; but
    /// 1000 milliseconds are a second.
    #[must_use]
    pub fn unix_start(&self) -> Option<i128> {
        Some(i128::from(self.unix_start?).wrapping_mul(1_000_000))
    }

    /// Returns the last tick that is at most `nanoseconds` after the start of the trace.
    #[must_use]
    pub fn ticks(&self, nanoseconds: i64) -> u64 {
        self.ticks.saturating_add_signed(scale(nanoseconds, self.frequency, NANOSECONDS))
    }
}

/// The clock of a trace that starts at 1970-01-01 with tick 0, and whose ticks are nanoseconds.
impl Default for TraceClock {
    fn default() -> Self {
        Self { unix_start: Some(0), ticks: 0, frequency: NANOSECONDS }
    }
}

/// Returns `n * by / over`, rounded down.
///
/// Avoids a division of 128 bits, whose code takes two kilobytes on bare metal.
fn scale(n: i64, by: u64, over: u64) -> i64 {
    let magnitude = n.unsigned_abs();
    let whole = magnitude.checked_div(over).unwrap_or_default();
    let rest = magnitude.checked_rem(over).unwrap_or_default();
    let (quotient, is_exact) = multiply_divide(rest, by, over);
    let scaled = whole.saturating_mul(by).saturating_add(quotient);
    if n >= 0 {
        0_i64.saturating_add_unsigned(scaled)
    } else {
        0_i64.saturating_sub_unsigned(scaled.saturating_add((!is_exact).into()))
    }
}

/// Returns `n * by / over`, and whether the division is exact, for `n` below `over`.
fn multiply_divide(n: u64, by: u64, over: u64) -> (u64, bool) {
    if let Some(product) = n.checked_mul(by) {
        let quotient = product.checked_div(over).unwrap_or_default();
        return (quotient, product.checked_rem(over).unwrap_or_default() == 0);
    }
    // Long multiplication: add `n` for each bit of `by`, from the highest on. The remainder stays below `over`.
    let (mut quotient, mut remainder) = (0_u64, 0_u128);
    for bit in (0..u64::BITS).rev() {
        let add = if by.wrapping_shr(bit) & 1 == 1 { n } else { 0 };
        remainder = remainder.wrapping_mul(2).wrapping_add(add.into());
        quotient = quotient.wrapping_mul(2);
        for _ in 0..2 {
            if remainder >= over.into() {
                remainder = remainder.wrapping_sub(over.into());
                quotient = quotient.wrapping_add(1);
            }
        }
    }
    (quotient, remainder == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::calendar_time::CalendarTime;
    use crate::parse::trace::Version;

    #[test]
    fn dates() {
        let time = |year, month, day| CalendarTime { year, month, day, ..CalendarTime::default() };
        const DAY: i64 = 86_400_000;
        for (date, days) in [
            (time(1970, 1, 1), 0),
            (time(1969, 12, 31), -1),
            (time(2000, 2, 29), 11_016),
            (time(2000, 3, 1), 11_017),
            (time(2024, 10, 4), 20_000),
            (time(1601, 1, 1), -134_774),
        ] {
            assert_eq!(date.unix_milliseconds(), days * DAY, "{date:?}");
        }
        // A field out of its range, and the largest number in each field.
        let time = CalendarTime { millisecond: 1000, ..time(1970, 1, 1) };
        assert_eq!(time.unix_milliseconds(), 1000);
        let max = u16::MAX;
        let time =
            CalendarTime { year: max, month: max, day: max, hour: max, minute: max, second: max, ..time };
        assert!(time.unix_milliseconds() > 0);
        let _ = CalendarTime::default().unix_milliseconds();
    }

    #[test]
    fn ends_of_the_ranges() {
        for frequency in [0, 1, 3, 10_000_000, NANOSECONDS, u64::MAX] {
            let trace = Trace { frequency, sync_ticks: 1 << 63, ..Trace::new(Version::V4) };
            let clock = TraceClock::new(&trace);
            assert_eq!(clock.nanoseconds(1 << 63), 0);
            assert_eq!(clock.ticks(0), 1 << 63);
            for ticks in [0, 1, 1 << 62, u64::MAX] {
                let nanoseconds = clock.nanoseconds(ticks);
                assert_eq!(nanoseconds < 0, ticks < 1 << 63);
                let start = clock.unix_start().unwrap();
                assert_eq!(clock.unix_nanoseconds(ticks), Some(start + i128::from(nanoseconds)));
            }
            for nanoseconds in [i64::MIN, -1, 1, i64::MAX] {
                let _ = clock.ticks(nanoseconds);
            }
        }
    }

    /// `scale` returns the same quotient as a division of 128 bits.
    #[test]
    fn scaling() {
        let numbers = [0, 1, 2, 3, 7, 99, 1 << 20, 999_999_999, 1 << 40, i64::MAX - 1, i64::MAX];
        let factors = [1, 2, 3, 1000, 10_000_000, NANOSECONDS, 1 << 35, 1 << 62, 1 << 63, u64::MAX];
        for n in numbers.into_iter().flat_map(|n| [n, -n, i64::MIN + n]) {
            for by in factors {
                for over in factors {
                    let exact = (i128::from(n) * i128::from(by)).div_euclid(over.into());
                    let expected = exact.clamp(i64::MIN.into(), i64::MAX.into());
                    assert_eq!(i128::from(scale(n, by, over)), expected, "{n} * {by} / {over}");
                }
            }
        }
    }
}
