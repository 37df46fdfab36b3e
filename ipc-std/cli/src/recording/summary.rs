//! What a recording contains.
use core::fmt;
use core::time::Duration;

use indicatif::{DecimalBytes, HumanCount};
use serde_json::{Map, Value, json};

use super::output::TraceOutput;

/// What a recording contains.
#[derive(Debug)]
pub(crate) struct RecordingSummary<'o> {
    output: &'o TraceOutput,
    elapsed: Duration,
}

impl<'o> RecordingSummary<'o> {
    pub(crate) const fn new(output: &'o TraceOutput, elapsed: Duration) -> Self {
        Self { output, elapsed }
    }

    /// Returns `file`, `bytes`, `events`, `lost` and `seconds`. The counts are null if the trace cannot be parsed.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let counter = self.output.counter();
        let is_counted = counter.corrupt().is_none();
        let mut object = Map::new();
        let mut insert = |key: &str, value| object.insert(key.to_owned(), value);
        insert("file", json!(self.output.path().to_string_lossy()));
        insert("bytes", json!(self.output.bytes()));
        insert("events", json!(is_counted.then(|| counter.events())));
        insert("lost", json!(is_counted.then(|| counter.lost())));
        insert("seconds", json!(self.elapsed.as_secs_f64()));
        object
    }

    /// Returns a warning if the counts are incomplete or events were lost, with the advice what to do.
    pub(crate) fn warning(&self, buffer_mb: u32) -> Option<String> {
        let counter = self.output.counter();
        if let Some(corrupt) = counter.corrupt() {
            return Some(format!("the events cannot be counted: the trace is {corrupt}"));
        }
        lost_warning(counter.lost(), counter.lost_at_start(), counter.events(), buffer_mb)
    }
}

/// `Wrote 1.3 MB (5.0 s, 16,531 events, 0 lost) to FILE`.
impl fmt::Display for RecordingSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { output, elapsed } = self;
        write!(f, "Wrote {} ({:.1} s", DecimalBytes(output.bytes()), elapsed.as_secs_f64())?;
        let counter = output.counter();
        if counter.corrupt().is_none() {
            write!(f, ", {} events, {} lost", HumanCount(counter.events()), HumanCount(counter.lost()))?;
        }
        write!(f, ") to {output}")
    }
}

/// Returns the warning for events that the runtime dropped: `at_start` of them before the first event of their thread,
/// which are not `lost` in the summary.
pub(crate) fn lost_warning(lost: u64, at_start: u64, events: u64, buffer_mb: u32) -> Option<String> {
    let lost = lost.saturating_add(at_start);
    if lost == 0 {
        return None;
    }
    let (lost, all) = (HumanCount(lost), HumanCount(events.saturating_add(lost)));
    Some(format!(
        "{lost} of {all} events were lost because the runtime's event buffer was full; use a --buffer larger than \
         {buffer_mb} MB, or enable fewer events"
    ))
}
