//! The state of a recording, on a terminal.
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressState, ProgressStyle};

use crate::terminal::narrow_terminal;

/// Shows the state of a recording in one line of standard error, if that is a terminal.
///
/// A thread draws the line, so that it is current while the recording waits for the runtime.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    counts: Arc<ReceivedCounts>,
}

#[derive(Debug, Default)]
struct ReceivedCounts {
    bytes: AtomicU64,
    events: AtomicU64,
    lost: AtomicU64,
    /// The unit of `events`.
    unit: &'static str,
}

impl Progress {
    /// Starts to draw. `stopping` becomes `true` when the runtime is asked to end the trace.
    pub(crate) fn start(started: Instant, duration: Option<Duration>, stopping: Arc<AtomicBool>) -> Self {
        Self::of("events", started, duration, stopping)
    }

    /// As [`start`](Self::start), for counts of another unit than events.
    pub(crate) fn of(
        unit: &'static str,
        started: Instant,
        duration: Option<Duration>,
        stopping: Arc<AtomicBool>,
    ) -> Self {
        let counts = Arc::new(ReceivedCounts { unit, ..ReceivedCounts::default() });
        let bar = ProgressBar::with_draw_target(None, narrow_terminal::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {state}") {
            let counts = Arc::clone(&counts);
            bar.set_style(style.with_key("state", move |_: &ProgressState, line: &mut dyn Write| {
                let stopping = stopping.load(Ordering::Relaxed);
                // The line is a display: there is no caller to report an error to.
                let _ = write_state(line, &counts, started.elapsed(), duration, stopping);
            }));
        }
        narrow_terminal::draw_steadily(&bar);
        Self { bar, counts }
    }

    /// Updates the counts.
    pub(crate) fn update(&self, bytes: u64, events: u64, lost: u64) {
        self.counts.bytes.store(bytes, Ordering::Relaxed);
        self.counts.events.store(events, Ordering::Relaxed);
        self.counts.lost.store(lost, Ordering::Relaxed);
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Writes `Recording: 28 kB, 163 events, 1 s of 4 s. Press Ctrl-C to stop`.
fn write_state(
    line: &mut dyn Write,
    counts: &ReceivedCounts,
    elapsed: Duration,
    duration: Option<Duration>,
    stopping: bool,
) -> fmt::Result {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let state = if stopping { "Stopping" } else { "Recording" };
    let (bytes, events) = (DecimalBytes(count(&counts.bytes)), HumanCount(count(&counts.events)));
    write!(line, "{state}: {bytes}, {events} {}", counts.unit)?;
    if counts.unit != "events" {
        let rate =
            u128::from(bytes.0).saturating_mul(1000).checked_div(elapsed.as_millis()).unwrap_or_default();
        write!(line, ", {}/s", DecimalBytes(u64::try_from(rate).unwrap_or(u64::MAX)))?;
    }
    match count(&counts.lost) {
        0 => {}
        lost => write!(line, ", {} lost", HumanCount(lost))?,
    }
    if stopping {
        return line.write_str(". Waiting for the end of the trace");
    }
    write!(line, ", {}", Clock(elapsed))?;
    if let Some(duration) = duration {
        write!(line, " of {}", Clock(duration))?;
    }
    line.write_str(". Press Ctrl-C to stop")
}

/// Whole seconds: `4 s`, `1 min 5 s`, `2 h 0 min`.
struct Clock(Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0..60 => write!(f, "{seconds} s"),
            60..3_600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            _ => write!(f, "{} h {} min", seconds / 3_600, seconds / 60 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state() {
        let counts = ReceivedCounts {
            bytes: AtomicU64::new(28_672),
            events: AtomicU64::new(1_633),
            lost: AtomicU64::new(0),
            unit: "events",
        };
        let state = |elapsed, duration: Option<u64>, stopping| {
            let mut line = String::new();
            let duration = duration.map(Duration::from_secs);
            write_state(&mut line, &counts, Duration::from_millis(elapsed), duration, stopping).unwrap();
            line
        };
        assert_eq!(
            state(1_900, Some(4), false),
            "Recording: 28.67 kB, 1,633 events, 1 s of 4 s. Press Ctrl-C to stop"
        );
        assert_eq!(
            state(65_000, None, false),
            "Recording: 28.67 kB, 1,633 events, 1 min 5 s. Press Ctrl-C to stop"
        );
        counts.lost.store(2_000_000, Ordering::Relaxed);
        assert_eq!(
            state(7_260_000, Some(4), true),
            "Stopping: 28.67 kB, 1,633 events, 2,000,000 lost. Waiting for the end of the trace"
        );
    }
}
