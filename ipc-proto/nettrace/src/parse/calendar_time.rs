//! The start time of a trace in the layout of the stream, and its conversion to Unix time.
use core::time::Duration;

use ipc_proto::Decode;
use ipc_proto::wire::{Reader, WireError};

/// A date and a time of day in UTC, in the layout of Windows' SYSTEMTIME.
///
/// Decoding does not check the values: some recorded traces state 1000 milliseconds, and writers disagree about the day
/// that starts a week. [`is_valid`](Self::is_valid) checks them. The default is the first millisecond of 1970.
///
/// ```
/// use core::time::Duration;
/// use std::time::SystemTime;
/// use nettrace::CalendarTime;
///
/// let leap_day = CalendarTime::from_unix(Duration::from_millis(951_782_400_007)).unwrap();
/// assert_eq!((leap_day.year, leap_day.month, leap_day.day, leap_day.millisecond), (2000, 2, 29, 7));
/// assert_eq!(leap_day.day_of_week, 2);
///
/// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// assert!(CalendarTime::from_unix(now).unwrap().is_valid());
/// # Ok::<(), std::time::SystemTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CalendarTime {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u16,
    /// Day of the week; 0 is Sunday.
    pub day_of_week: u16,
    /// Day of the month, from 1.
    pub day: u16,
    /// Hour, from 0 to 23.
    pub hour: u16,
    /// Minute.
    pub minute: u16,
    /// Second, from 0 to 59.
    pub second: u16,
    /// Millisecond.
    pub millisecond: u16,
}

/// Days from 0000-03-01 to 1970-01-01, in the Gregorian calendar.
const EPOCH_DAY: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;

impl CalendarTime {
    /// The first millisecond of 1970, a Thursday.
    pub const UNIX_EPOCH: Self =
        Self { year: 1970, month: 1, day_of_week: 4, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 };

    /// Returns the time that is `since_epoch` after 1970-01-01 00:00 UTC, rounded down to a millisecond. Returns `None`
    /// after the year 9999, which .NET cannot represent.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Option<Self> {
        let seconds = since_epoch.as_secs();
        let days = i64::try_from(seconds.wrapping_div(86_400)).ok()?;
        // Years start in March here, so that a leap day is the last day of its year.
        let day = days.checked_add(EPOCH_DAY)?;
        let (era, day_of_era) = (day.wrapping_div(ERA), day.wrapping_rem(ERA));
        // Every 4th year has a leap day (1,460 is the last day of 4 years), every 100th has none, the 400th has one.
        let leap_days = day_of_era
            .wrapping_div(1_460)
            .wrapping_sub(day_of_era.wrapping_div(36_524))
            .wrapping_add(day_of_era.wrapping_div(146_096));
        let year_of_era = day_of_era.wrapping_sub(leap_days).wrapping_div(365);
        let before_year = year_of_era
            .wrapping_mul(365)
            .wrapping_add(year_of_era.wrapping_div(4))
            .wrapping_sub(year_of_era.wrapping_div(100));
        let day_of_year = day_of_era.wrapping_sub(before_year);
        // Five months have 153 days: 31, 30, 31, 30, 31.
        let month = day_of_year.wrapping_mul(5).wrapping_add(2).wrapping_div(153);
        let before_month = month.wrapping_mul(153).wrapping_add(2).wrapping_div(5);
        let day = day_of_year.wrapping_sub(before_month).wrapping_add(1);
        let (month, next_year) =
            if month < 10 { (month.wrapping_add(3), 0) } else { (month.wrapping_sub(9), 1) };
        let year = era.checked_mul(400)?.checked_add(year_of_era)?.checked_add(next_year)?;
        let part = |n: u64| u16::try_from(n).unwrap_or_default();
        let time = Self {
            year: u16::try_from(year).ok()?,
            month: u16::try_from(month).ok()?,
            day_of_week: u16::try_from(days.wrapping_add(4).wrapping_rem(7)).ok()?,
            day: u16::try_from(day).ok()?,
            hour: part(seconds.wrapping_div(3_600).wrapping_rem(24)),
            minute: part(seconds.wrapping_div(60).wrapping_rem(60)),
            second: part(seconds.wrapping_rem(60)),
            millisecond: part(since_epoch.subsec_millis().into()),
        };
        (time.year <= 9999).then_some(time)
    }

    /// Returns the time since 1970-01-01 00:00 UTC, or `None` for an earlier time and for one that is not
    /// [valid](Self::is_valid).
    #[must_use]
    pub fn to_unix(&self) -> Option<Duration> {
        let milliseconds = self.is_valid().then(|| self.unix_milliseconds())?;
        u64::try_from(milliseconds).ok().map(Duration::from_millis)
    }

    /// Returns whether the date exists and the time of day does, in the years from 1 to 9999. Any day of the week is
    /// valid.
    ///
    /// Microsoft's reader refuses a trace with an invalid time: "un-representable DateTime".
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        let leap =
            self.year & 3 == 0 && (self.year.wrapping_rem(100) != 0 || self.year.wrapping_rem(400) == 0);
        let days = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => 0,
        };
        let date = self.year >= 1 && self.year <= 9999 && self.day >= 1 && self.day <= days;
        date && self.hour < 24 && self.minute < 60 && self.second < 60 && self.millisecond < 1000
    }

    /// Returns the time if it exists. The millisecond 1000, which some runtimes state, is the next second.
    pub(crate) fn date(self) -> Option<Self> {
        let in_second = Self { millisecond: self.millisecond.min(999), ..self };
        (in_second.is_valid() && self.millisecond <= 1000).then_some(self)
    }

    /// Returns the milliseconds from 1970-01-01 00:00 UTC, negative before it.
    ///
    /// Values that are out of range count as well: 1000 milliseconds are a second.
    pub(crate) fn unix_milliseconds(&self) -> i64 {
        let [year, month, day] = [self.year, self.month, self.day].map(i64::from);
        let [hour, minute, second, millisecond] =
            [self.hour, self.minute, self.second, self.millisecond].map(i64::from);
        // Years start in March here, so that a leap day is the last day of its year. Each part has 16 bits, so no sum
        // overflows.
        let (year, month) = if month > 2 {
            (year, month.wrapping_sub(3))
        } else {
            (year.wrapping_sub(1), month.wrapping_add(9))
        };
        let leap_days =
            year.div_euclid(4).wrapping_sub(year.div_euclid(100)).wrapping_add(year.div_euclid(400));
        // Ten months have 306 days.
        let before_month = month.wrapping_mul(306).wrapping_add(5).wrapping_div(10);
        let days = year
            .wrapping_mul(365)
            .wrapping_add(leap_days)
            .wrapping_add(before_month)
            .wrapping_add(day)
            .wrapping_sub(EPOCH_DAY.wrapping_add(1));
        let hours = days.wrapping_mul(24).wrapping_add(hour);
        let seconds = hours.wrapping_mul(60).wrapping_add(minute).wrapping_mul(60).wrapping_add(second);
        seconds.wrapping_mul(1000).wrapping_add(millisecond)
    }
}

impl Default for CalendarTime {
    fn default() -> Self {
        Self::UNIX_EPOCH
    }
}

impl<'a> Decode<'a> for CalendarTime {
    const MIN_LEN: usize = 16;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Self {
            year: r.read()?,
            month: r.read()?,
            day_of_week: r.read()?,
            day: r.read()?,
            hour: r.read()?,
            minute: r.read()?,
            second: r.read()?,
            millisecond: r.read()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_until_the_year_9999_convert_both_ways() {
        // Every day of 450 years, in which all kinds of years occur, then every 100th day, then the last 400 days.
        let last = 2_932_896;
        let days = (0..=164_400).chain((164_500..last).step_by(100)).chain(last - 400..);
        let mut before = None;
        for day in days {
            let since = Duration::new(day * 86_400 + day % 86_400, 999_999_999);
            let Some(time) = CalendarTime::from_unix(since) else {
                // 9999-12-31 is the last day.
                assert_eq!(day, last + 1);
                break;
            };
            assert!(time.is_valid(), "{time:?}");
            assert_eq!(time.to_unix(), Some(Duration::from_millis(since.as_secs() * 1000 + 999)));
            assert_eq!(u64::from(time.day_of_week), (day + 4) % 7);
            if day <= 164_400 {
                assert!(before < Some((time.year, time.month, time.day)));
            }
            before = Some((time.year, time.month, time.day));
        }
        assert_eq!(before, Some((9999, 12, 31)));
        assert_eq!(CalendarTime::from_unix(Duration::MAX), None);
    }

    #[test]
    fn times_that_do_not_exist_are_invalid() {
        let epoch = CalendarTime::UNIX_EPOCH;
        assert_eq!(CalendarTime::from_unix(Duration::ZERO), Some(epoch));
        for time in [
            CalendarTime { year: 0, ..epoch },
            CalendarTime { year: 10_000, ..epoch },
            CalendarTime { month: 0, ..epoch },
            CalendarTime { month: 13, ..epoch },
            CalendarTime { day: 0, ..epoch },
            CalendarTime { day: 32, ..epoch },
            CalendarTime { month: 4, day: 31, ..epoch },
            CalendarTime { year: 1900, month: 2, day: 29, ..epoch },
            CalendarTime { hour: 24, ..epoch },
            CalendarTime { minute: 60, ..epoch },
            CalendarTime { second: 60, ..epoch },
            CalendarTime { millisecond: 1000, ..epoch },
        ] {
            assert!(!time.is_valid() && time.to_unix().is_none(), "{time:?}");
        }
        for time in [
            CalendarTime { year: 2000, month: 2, day: 29, ..epoch },
            CalendarTime { year: 2024, month: 2, day: 29, ..epoch },
            CalendarTime { year: 1, day_of_week: 9, ..epoch },
        ] {
            assert!(time.is_valid(), "{time:?}");
        }
        assert_eq!(CalendarTime { year: 1969, ..epoch }.to_unix(), None);
        assert_eq!(CalendarTime { year: 1969, month: 12, day: 31, ..epoch }.unix_milliseconds(), -86_400_000);
        assert_eq!(CalendarTime { millisecond: 1005, ..epoch }.unix_milliseconds(), 1005);
    }
}
