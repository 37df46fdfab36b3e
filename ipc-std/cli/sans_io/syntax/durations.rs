//! Durations on the command line.
use core::time::Duration;

/// Parses `90s`, `1m30s`, `00:01:30` (with optional days before it and a fraction after it), or a number of seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let parsed = if text.contains(':') {
        parse_clock(text)
    } else {
        parse_seconds(text).or_else(|| humantime::parse_duration(text).ok())
    };
    parsed.ok_or_else(|| "not a duration such as 90s, 1m30s, 00:01:30 or 90".to_owned())
}

/// Parses `SS[.FRACTION]`. Signs and exponents are refused.
fn parse_seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Duration::try_from_secs_f64(Some(text).filter(|_| plain)?.parse().ok()?).ok()
}

/// Parses `[DD:]HH:MM:SS[.FRACTION]`.
fn parse_clock(text: &str) -> Option<Duration> {
    let digits = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let parts: Vec<&str> = text.split(':').collect();
    let (whole, seconds) = match (parts.as_slice(), parts.iter().all(digits)) {
        ([hours, minutes, seconds], true) => ([*hours, "0", *minutes], seconds),
        ([days, hours, minutes, seconds], true) => ([*hours, *days, *minutes], seconds),
        _ => return None,
    };
    let [hours, days, minutes] = whole.map(|part| part.parse::<u64>().ok());
    let minutes = minutes.filter(|minutes| *minutes < 60)?;
    let seconds = parse_seconds(seconds).filter(|seconds| seconds.as_secs() < 60)?;
    let hours = days?.checked_mul(24)?.checked_add(hours?)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    Duration::from_secs(minutes.checked_mul(60)?).checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_durations() {
        for (text, milliseconds) in [
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("00:01:30", 90_000),
            ("90", 90_000),
            ("0.5", 500),
            ("250ms", 250),
            ("01:00:00:00", 86_400_000),
            ("00:00:01.25", 1_250),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn invalid_durations() {
        for text in [
            "",
            "-1",
            "x",
            "1x",
            "01:30",
            "00:60:00",
            "00:00:60",
            "1:2:3:4:5",
            "00:+1:00",
            "inf",
            "NaN",
            "1e99",
            "1e3",
            "+90",
            "-0",
            ".",
            "00:00:1e1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
