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
    #[arg(long, value_name = "T", value_parser = parse)]
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

/// Parses a time since the start of a trace, or a date.
fn parse(text: &str) -> Result<TraceTime, String> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        let nanoseconds = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
        return Ok(TraceTime::Unix(match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => nanoseconds(since),
            Err(before) => nanoseconds(before.duration()).saturating_neg(),
        }));
    }
    let duration = durations::parse(text);
    let duration = duration.map_err(|e| format!("{e}, and not a date such as 2026-11-20T21:45:13Z"))?;
    Ok(TraceTime::SinceStart(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
}
