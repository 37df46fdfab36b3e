//! `--from` and `--to`: a range of times of a trace.
use core::ops::RangeInclusive;
use core::time::Duration;
use std::time::SystemTime;

use dotnet_ipc_syntax::durations;
use ipc_std::system_time;
use nettrace::{TimeFilter, TraceClock};

use crate::output::globals::Globals;

/// `--from` and `--to`: the times of the events to show or keep.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct TimeRangeArgs {
    /// Only the events at T and later
    #[arg(long, value_name = "T", value_parser = Time::parse)]
    from: Option<Time>,
    /// Only the events at T and earlier
    #[arg(long, value_name = "T", value_parser = Time::parse)]
    to: Option<Time>,
}

impl TimeRangeArgs {
    pub(crate) const fn is_used(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Returns the range in ticks of a trace.
    pub(crate) fn ticks(&self, clock: &TraceClock) -> RangeInclusive<u64> {
        // Rounded up, to the first tick at or after `--from`: `ticks` alone rounds down.
        let first = |from: Time| clock.ticks(from.nanoseconds(clock).saturating_sub(1)).saturating_add(1);
        let last = |to: Time| clock.ticks(to.nanoseconds(clock));
        self.from.map_or(0, first)..=self.to.map_or(u64::MAX, last)
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

/// A point in time.
#[derive(Debug, Clone, Copy)]
enum Time {
    SinceStart(Duration),
    At(SystemTime),
}

impl Time {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = humantime::parse_rfc3339_weak(text) {
            return Ok(Self::At(time));
        }
        let duration = durations::parse(text).map(Self::SinceStart);
        duration.map_err(|e| format!("{e}, and not a date such as 2026-11-20T21:45:13Z"))
    }

    /// Returns the nanoseconds since the start of the trace.
    fn nanoseconds(self, clock: &TraceClock) -> i64 {
        let narrow = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        match self {
            Self::SinceStart(duration) => narrow(duration),
            Self::At(time) => {
                match time.duration_since(system_time(clock.unix_start()).unwrap_or(SystemTime::UNIX_EPOCH)) {
                    Ok(since) => narrow(since),
                    Err(before) => narrow(before.duration()).saturating_neg(),
                }
            }
        }
    }
}
