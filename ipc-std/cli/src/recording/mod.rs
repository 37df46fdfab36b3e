//! Recording: what `trace`, `events`, `monitor` and the analyses of a process have in common.
use core::fmt;
use core::time::Duration;
use std::io::Read;

use indicatif::{DecimalBytes, HumanCount};
use ipc_std::TraceSession;
use serde_json::{Map, Value, json};

use crate::output::failure::Failure;

pub(crate) mod analysis_input;
pub(crate) mod args;
mod counter;
mod event_ids;
pub(crate) mod keywords;
pub(crate) mod names_first;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod provider;
pub(crate) mod rundown;
pub(crate) mod session;
mod session_failure;
pub(crate) mod trace_profile;

pub(crate) use args::{LiveArgs, RecordingArgs, SessionArgs, SessionPlan};
use names_first::NamesFirst;
pub(crate) use output::TraceOutput;
pub(crate) use session_failure::{check_end, read_failure};

/// How often the tool checks a session that sends nothing.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Copies the session to the output until its end, by way of `names` if it was recorded with names first.
///
/// Calls `check` after each read, and at least every [`TICK`] if that is the client's
/// [`silence`](ipc_std::Timeouts::silence).
pub(crate) fn record(
    session: &mut TraceSession,
    output: &mut TraceOutput,
    mut names: Option<&mut NamesFirst<'_>>,
    mut check: impl FnMut(&TraceSession, &TraceOutput),
) -> Result<(), Failure> {
    let mut buf = vec![0; 64 << 10];
    let mut written = Ok(());
    loop {
        match session.read(&mut buf) {
            Ok(0) => return written,
            Ok(n) if written.is_ok() => {
                let bytes = buf.get(..n).unwrap_or_default();
                written = match &mut names {
                    Some(names) => names.write(bytes, output),
                    None => output.write(bytes),
                };
                if written.is_err() {
                    session.stop();
                }
            }
            // The rest is read so that a full disk does not block the runtime.
            Ok(_) => {}
            Err(e) => {
                if let Err(failure) = read_failure(session, e) {
                    let rest = if output.bytes() > 0 {
                        format!("{output} has the part that was received; ")
                    } else {
                        String::new()
                    };
                    return written.and_then(|()| Err(failure.with_more(&rest)));
                }
            }
        }
        check(session, output);
    }
}

/// What a recording contains.
#[derive(Debug)]
pub(crate) struct Summary<'o> {
    output: &'o TraceOutput,
    elapsed: Duration,
}

impl<'o> Summary<'o> {
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

    /// Returns what the user should know about the counts, and do.
    pub(crate) fn warning(&self, buffer_mb: u32) -> Option<String> {
        let counter = self.output.counter();
        if let Some(corrupt) = counter.corrupt() {
            return Some(format!("the events cannot be counted: the trace is {corrupt}"));
        }
        lost_warning(counter.lost(), counter.lost_at_start(), counter.events(), buffer_mb)
    }
}

/// `Wrote 1.3 MB (5.0 s, 16,531 events, 0 lost) to FILE`.
impl fmt::Display for Summary<'_> {
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
