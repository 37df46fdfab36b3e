//! What a recording contains.
use core::fmt;
use core::time::Duration;

use indicatif::{DecimalBytes, HumanCount};
use nettrace::Losses;
use serde_json::{Map, Value, json};

use super::output::{TraceOutput, WrittenCounts};
use crate::input::trace_file;

/// What a recording contains.
#[derive(Debug)]
pub(crate) struct RecordingSummary<'o> {
    output: &'o TraceOutput,
    counts: WrittenCounts,
    elapsed: Duration,
}

impl<'o> RecordingSummary<'o> {
    pub(crate) fn new(output: &'o TraceOutput, elapsed: Duration) -> Self {
        Self { output, counts: output.counts(), elapsed }
    }

    /// Returns `file`, `bytes`, `events`, `lost` and `seconds`. The counts are null if the trace cannot be parsed.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let WrittenCounts { bytes, events, losses, corrupt } = self.counts;
        let is_counted = corrupt.is_none();
        let mut object = Map::new();
        let mut insert = |key: &str, value| object.insert(key.to_owned(), value);
        insert("file", json!(self.output.path().to_string_lossy()));
        insert("bytes", json!(bytes));
        insert("events", json!(is_counted.then_some(events)));
        insert("lost", json!(is_counted.then_some(losses.lost)));
        insert("seconds", json!(self.elapsed.as_secs_f64()));
        object
    }

    /// Returns a warning if the counts are incomplete or events were lost, with the advice what to do.
    pub(crate) fn warning(&self, buffer_mb: u32) -> Option<String> {
        let WrittenCounts { bytes, events, losses, corrupt } = self.counts;
        if let Some(corrupt) = corrupt {
            return Some(format!("the events cannot be counted: the trace is {corrupt}"));
        }
        let recorded = RecordedAmount { events, bytes, buffer_mb };
        lost_warning(&losses, &recorded)
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

/// What a session recorded, and into which buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedAmount {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) buffer_mb: u32,
}

impl RecordedAmount {
    /// The most memory that an event takes in the runtime's buffer besides its payload: its header, and 100 addresses.
    const EVENT: u64 = 1024;

    /// Returns whether the events could fill the buffer. Each thread also takes a part of the buffer that it does not
    /// fill, so only a session that recorded much less than the buffer has certainly not filled it.
    const fn may_have_filled_buffer(&self) -> bool {
        let most = self.bytes.saturating_add(self.events.saturating_mul(Self::EVENT));
        let buffer = (self.buffer_mb as u64).saturating_mul(1 << 20);
        most >= buffer / 4
    }
}

/// Returns the warning for events that the runtime did not record, with the advice that can help.
pub(crate) fn lost_warning(losses: &Losses, recorded: &RecordedAmount) -> Option<String> {
    let Losses { lost, at_end, .. } = *losses;
    if lost == 0 {
        return None;
    }
    let RecordedAmount { events, buffer_mb, .. } = *recorded;
    let manner = if at_end > 0 || recorded.may_have_filled_buffer() {
        trace_file::manner(losses)
    } else {
        "they were larger than 64 KiB, which no runtime records".to_owned()
    };
    let advice = match at_end < lost && recorded.may_have_filled_buffer() {
        true => format!("; a --buffer larger than {buffer_mb} MB, or fewer events, help if it was full"),
        false => String::new(),
    };
    let (lost, all) = (HumanCount(lost), HumanCount(events.saturating_add(lost)));
    Some(format!("{lost} of {all} events were lost: {manner}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_has_the_cause_that_is_known() {
        let full = "the event buffer was full, or they were larger than 64 KiB, which no runtime records";
        let end = "after the last event of their thread, as at the end of a session";
        let advice = "a --buffer larger than 4 MB, or fewer events, help if it was full";
        for (lost, at_end, bytes, expected) in [
            (0, 0, 10, None),
            (6, 0, 1 << 22, Some(format!("{full}; {advice}"))),
            (6, 0, 1000, Some("they were larger than 64 KiB, which no runtime records".to_owned())),
            (6, 6, 1 << 22, Some(end.to_owned())),
            (6, 2, 1 << 22, Some(format!("{full}; 2 of them {end}; {advice}"))),
        ] {
            let mut losses = Losses::default();
            (losses.lost, losses.at_end) = (lost, at_end);
            let warning = lost_warning(&losses, &RecordedAmount { events: 3, bytes, buffer_mb: 4 });
            let expected = expected.map(|how| format!("{lost} of {} events were lost: {how}", lost + 3));
            assert_eq!(warning, expected);
        }
    }
}
