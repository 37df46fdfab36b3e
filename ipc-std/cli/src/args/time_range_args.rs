//! `--from` and `--to`: a range of times of a trace.
use core::time::Duration;
use std::time::SystemTime;

use dotnet_ipc_sans_io::syntax::durations;
use nettrace::TimeFilter;
use nettrace_analysis::{Part, TraceTime};

use crate::run::Globals;

/// `--from` and `--to`: the times of the events to show or keep.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeRangeArgs {
    /// Only the events at T and later
    #[arg(long, value_name = "T", value_parser = parse)]
    from: Option<TraceTime>,
    /// Only the events at T and earlier
    #[arg(long, value_name = "T", value_parser = parse_end)]
    to: Option<TraceTime>,
}

impl TimeRangeArgs {
    pub(crate) const fn is_used(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Returns the part of a trace between the times.
    pub(crate) fn part(&self) -> Part {
        let part = self.from.map_or_else(Part::default, |from| Part::default().since(from));
        match self.to {
            Some(to) => part.until(to),
            None => part,
        }
    }
}

/// Warns that events may be missing, because blocks with wrong times were skipped.
pub(crate) fn report_skipped(times: &TimeFilter, globals: &Globals) {
    if times.is_contradicted() && times.skipped_blocks() > 0 {
        globals.note(
            "events may be missing: this trace states wrong times for its blocks, and some were skipped; \
             without --from and --to all blocks are read",
        );
    }
}

/// Parses a time since the start of a trace, or a date. A day without a time is its start.
fn parse(text: &str) -> Result<TraceTime, String> {
    if let Some(time) = date(&format!("{text}T00:00:00Z")).or_else(|| date(text)) {
        return Ok(TraceTime::Unix(time));
    }
    let duration = durations::parse(text);
    let duration = duration.map_err(|e| {
        format!("{e}, and not a date such as 2026-11-20, 2026-11-20T21:45:13Z or 2026-11-20T22:45:13+01:00")
    })?;
    Ok(TraceTime::SinceStart(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
}

/// Parses a time as [`parse`] does, and a day without a time as its end.
fn parse_end(text: &str) -> Result<TraceTime, String> {
    let last = date(&format!("{text}T23:59:59.999999999Z"));
    last.map_or_else(|| parse(text), |time| Ok(TraceTime::Unix(time)))
}

/// Parses a date of RFC 3339, with an offset or in UTC. Returns nanoseconds since 1970.
fn date(text: &str) -> Option<i128> {
    let split = text.len().checked_sub("+00:00".len()).and_then(|at| text.split_at_checked(at));
    let with_offset = split.and_then(|(time, offset)| Some((time, offset_seconds(offset)?)));
    // The hyphens of a day are no offset: that follows a time.
    let (time, offset) = with_offset.filter(|(time, _)| time.contains(':')).unwrap_or((text, 0));
    let time = humantime::parse_rfc3339_weak(time).ok()?;
    let nanoseconds = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    let since = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => nanoseconds(since),
        Err(before) => nanoseconds(before.duration()).saturating_neg(),
    };
    Some(since.saturating_sub(i128::from(offset).saturating_mul(1_000_000_000)))
}

/// Parses `+HH:MM` or `-HH:MM`.
fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, (hours, minutes)) = match text.strip_prefix('-') {
        Some(rest) => (-60, rest.split_once(':')?),
        None => (60, text.strip_prefix('+')?.split_once(':')?),
    };
    let number = |digits: &str, limit: i32| {
        let number: i32 = digits.parse().ok().filter(|number| *number < limit)?;
        (digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(number)
    };
    let minutes = number(hours, 24)?.saturating_mul(60).saturating_add(number(minutes, 60)?);
    Some(minutes.saturating_mul(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_offsets_and_days_have_ends() {
        const DAY: i128 = 1_795_132_800_000_000_000;
        let time = |text| match parse(text) {
            Ok(TraceTime::Unix(time)) => Some(time - DAY),
            _ => None,
        };
        let hour = 3_600_000_000_000;
        assert_eq!(time("2026-11-20"), Some(0));
        assert_eq!(parse_end("2026-11-20"), Ok(TraceTime::Unix(DAY + 24 * hour - 1)));
        assert_eq!(time("2026-11-20T01:00:00Z"), Some(hour));
        assert_eq!(
            (time("2026-11-20T01:00:00+01:00"), time("2026-11-20 01:00:00-00:30")),
            (Some(0), Some(hour * 3 / 2))
        );
        for wrong in [
            "2026-11-20T01:00:00+24:00",
            "2026-11-20T01:00:00+1:00",
            "2026-11-20+01:00",
            "2026-11-20T01:00:00++1:00",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
        assert_eq!(parse("5s"), Ok(TraceTime::SinceStart(5_000_000_000)));
    }
}
