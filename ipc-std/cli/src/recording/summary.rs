//! The contents of a recording.
use core::fmt;
use core::time::Duration;
use std::borrow::Cow;

use indicatif::{DecimalBytes, HumanCount};
use nettrace_analysis::{EventBuffer, LossReport};
use serde::Serialize;

use super::output::{TraceOutput, WrittenCounts};

/// The contents of a recording.
#[derive(Debug)]
pub(crate) struct RecordingSummary<'o> {
    output: &'o TraceOutput,
    counts: WrittenCounts,
    elapsed: Duration,
}

/// What a recording contains, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryRow<'o> {
    file: Cow<'o, str>,
    bytes: u64,
    events: Option<u64>,
    lost: Option<u64>,
    seconds: f64,
    complete: bool,
}

impl<'o> RecordingSummary<'o> {
    pub(crate) fn new(output: &'o TraceOutput, elapsed: Duration) -> Self {
        Self { output, counts: output.counts(), elapsed }
    }

    /// Returns the object for `--json`. The counts are null if the trace cannot be parsed.
    pub(crate) fn to_json(&self, complete: bool) -> SummaryRow<'o> {
        let WrittenCounts { bytes, events, losses, corrupt, .. } = self.counts;
        let is_counted = corrupt.is_none();
        SummaryRow {
            file: self.output.path().to_string_lossy(),
            bytes,
            events: is_counted.then_some(events),
            lost: is_counted.then_some(losses.lost),
            seconds: self.elapsed.as_secs_f64(),
            complete,
        }
    }

    /// Returns a warning if the counts are incomplete or events were lost, with the advice what to do.
    pub(crate) fn warning(&self, buffer_mb: u32, blocks: bool) -> Option<String> {
        let WrittenCounts { bytes, events, losses, clock, corrupt } = self.counts;
        if let Some(corrupt) = corrupt {
            return Some(format!("the events cannot be counted: the trace is {corrupt}"));
        }
        let report = LossReport { losses, clock, buffer: EventBuffer::MayFill, end: None };
        lost_warning(report, &RecordedAmount { events, bytes, buffer_mb, blocks })
    }
}

/// `Wrote 1.3 MB (5.0 s, 16,531 events, 0 lost) to FILE`.
impl fmt::Display for RecordingSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { output, counts, elapsed } = self;
        write!(f, "Wrote {} ({:.1} s", DecimalBytes(counts.bytes), elapsed.as_secs_f64())?;
        if counts.corrupt.is_none() {
            write!(f, ", {} events, {} lost", HumanCount(counts.events), HumanCount(counts.losses.lost))?;
        }
        write!(f, ") to {output}")
    }
}

/// The recording of a session, and its buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedAmount {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) buffer_mb: u32,
    /// Whether threads of the program waited when the buffer was full.
    pub(crate) blocks: bool,
}

impl RecordedAmount {
    /// The most memory that an event takes in the runtime's buffer besides its payload: its header, and 100 addresses.
    const EVENT: u64 = 1024;

    /// Returns whether the buffer of the runtime may have been full. Each thread also takes a part of the buffer that it
    /// does not fill, so only a session that recorded much less than the buffer has certainly not filled it.
    const fn buffer(&self) -> EventBuffer {
        let most = self.bytes.saturating_add(self.events.saturating_mul(Self::EVENT));
        let buffer = (self.buffer_mb as u64).saturating_mul(1 << 20);
        if self.blocks {
            EventBuffer::Blocks
        } else if most >= buffer / 4 {
            EventBuffer::MayFill
        } else {
            EventBuffer::NeverFull
        }
    }
}

/// Returns the warning for events that the runtime did not record, with the advice that can help.
pub(crate) fn lost_warning(report: LossReport, recorded: &RecordedAmount) -> Option<String> {
    let report = LossReport { buffer: recorded.buffer(), ..report };
    let lost = report.losses.lost;
    if lost == 0 {
        return None;
    }
    let RecordedAmount { events, buffer_mb, .. } = *recorded;
    let advice = match report.may_have_full_buffer() {
        true => format!("; a --buffer larger than {buffer_mb} MB, or fewer events, help if it was full"),
        false => String::new(),
    };
    let (lost, all) = (HumanCount(lost), HumanCount(events.saturating_add(lost)));
    Some(format!("{lost} of {all} events were lost {report}{advice}"))
}

#[cfg(test)]
mod tests {
    use nettrace::Losses;

    use super::*;

    #[test]
    fn advice_follows_what_a_larger_buffer_can_help() {
        const LARGE: &str = "were larger than 64 KiB, which no runtime records";
        const END: &str = "after the last event of their thread, as at the end of a session";
        let advice = "; a --buffer larger than 4 MB, or fewer events, help if it was full";
        let full = format!("the event buffer was full, or they {LARGE}");
        let stopped = format!("they were written while the session stopped, or {LARGE}");
        for (lost, at_end, bytes, blocks, expected) in [
            (6, 0, 1 << 22, false, format!("{full}{advice}")),
            (6, 0, 1 << 22, true, stopped),
            (6, 0, 1000, false, format!("they {LARGE}")),
            (6, 6, 1 << 22, false, END.to_owned()),
            (6, 2, 1 << 22, false, format!("{full}; 2 of them {END}{advice}")),
            (6, 2, 1000, false, format!("they {LARGE}; 2 of them {END}")),
            (7_920, 7_920, 1 << 22, false, format!("{END}{advice}")),
            (7_920, 7_920, 1 << 22, true, END.to_owned()),
        ] {
            let mut losses = Losses::default();
            (losses.lost, losses.at_end, losses.threads) = (lost, at_end, 3);
            let report = LossReport { losses, clock: None, buffer: EventBuffer::MayFill, end: None };
            let recorded = RecordedAmount { events: 3, bytes, buffer_mb: 4, blocks };
            let (some, all) = (HumanCount(lost), HumanCount(lost + 3));
            let expected = format!("{some} of {all} events were lost (at least; on 3 threads): {expected}");
            assert_eq!(lost_warning(report, &recorded), Some(expected));
        }
        let none =
            LossReport { losses: Losses::default(), clock: None, buffer: EventBuffer::MayFill, end: None };
        let recorded = RecordedAmount { events: 3, bytes: 9, buffer_mb: 4, blocks: false };
        assert_eq!(lost_warning(none, &recorded), None);
    }
}
