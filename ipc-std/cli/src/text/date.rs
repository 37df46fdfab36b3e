//! Dates with a time of day, as in RFC 3339.
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time zone of dates.
#[derive(Debug, Clone, Default)]
pub(crate) enum Zone {
    #[default]
    Utc,
    Local(TimeZone),
}

impl Zone {
    /// Returns the date at a time since 1970 in nanoseconds, with so many digits of a second: as
    /// `2026-11-20T21:45:13.125Z`, or with an offset as `+01:00`. `None` after the year 9999.
    pub(crate) fn date(&self, unix_nanoseconds: i128, digits: usize) -> Option<String> {
        let time = Timestamp::from_nanosecond(unix_nanoseconds).ok()?;
        Some(match self {
            Self::Utc => format!("{time:.digits$}"),
            Self::Local(zone) => format!("{:.digits$}", time.display_with_offset(zone.to_offset(time))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_state_their_offset() {
        let time = 1_795_132_800_123_456_789;
        let local = |zone| Zone::Local(TimeZone::posix(zone).unwrap());
        let date = |zone: Zone| zone.date(time, 3).unwrap();
        assert_eq!(date(Zone::Utc), "2026-11-20T00:00:00.123Z");
        assert_eq!(date(local("CET-1CEST,M3.5.0,M10.5.0/3")), "2026-11-20T01:00:00.123+01:00");
        assert_eq!(date(local("NST3:30")), "2026-11-19T20:30:00.123-03:30");
        assert_eq!(date(local("UTC0")), "2026-11-20T00:00:00.123+00:00");
        assert_eq!(Zone::Utc.date(-1, 9).unwrap(), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(Zone::Utc.date(i128::MAX, 0), None);
    }
}
