//! [`LossReport`], what is known about the lost events of a trace.
use core::fmt;

use nettrace::{End, Losses, TraceClock};

/// The known facts about the lost events of a trace: its `Display` states on how many threads, when and how they were
/// lost. A trace does not state the cause.
///
/// ```
/// use nettrace_analysis::nettrace::{Event, LossCounter, TraceClock};
/// use nettrace_analysis::{EventBuffer, LossReport};
///
/// let mut loss = LossCounter::default();
/// for (sequence, timestamp) in [(1, 0), (9, 2_500_000_000)] {
///     loss.event(&Event { sequence, timestamp, ..Event::default() });
/// }
/// let clock = Some(TraceClock::default());
/// let report = LossReport { losses: loss.losses(), clock, buffer: EventBuffer::NeverFull, end: None };
/// assert_eq!(
///     format!("{} events were lost {report}", report.losses.lost),
///     "7 events were lost (at least; on 1 thread, at 2.500 s): \
///      they were larger than 64 KiB, which no runtime records"
/// );
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LossReport {
    /// The lost events, of which there is at least one.
    pub losses: Losses,
    /// The clock of the trace, if it is known.
    pub clock: Option<TraceClock>,
    /// The known facts about the buffer of the runtime.
    pub buffer: EventBuffer,
    /// The end of the trace, if it has ended. The events of a block that cannot be read count as lost.
    pub end: Option<End>,
}

/// The known facts about the event buffer of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventBuffer {
    /// It can have been full; then the runtime dropped events.
    MayFill,
    /// It was too large for the events of the session.
    NeverFull,
    /// When it was full, the threads of the program waited.
    Blocks,
}

impl LossReport {
    /// The most events of a thread that can be missing only because the session stopped.
    const FEW: u64 = 100;

    /// Returns whether a larger buffer, or fewer events, can help. A few events that are missing after the last event
    /// of their thread were lost when the session stopped, whatever the buffer was.
    #[must_use]
    pub const fn may_have_full_buffer(&self) -> bool {
        let Losses { lost, at_end, threads, .. } = self.losses;
        matches!(self.buffer, EventBuffer::MayFill)
            && !matches!(self.end, Some(End::Corrupt { .. }))
            && (at_end < lost || at_end > threads.saturating_mul(Self::FEW))
    }
}

impl fmt::Display for LossReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AT_END: &str = "after the last event of their thread, as at the end of a session";
        let Losses { lost, at_start, at_end, threads, times, .. } = self.losses;
        // An event after the last number of its thread is not counted.
        f.write_str("(at least")?;
        match threads {
            0 => {}
            1 => f.write_str("; on 1 thread")?,
            threads => write!(f, "; on {threads} threads")?,
        }
        if let Some((clock, (first, last))) = self.clock.zip(times) {
            let [first, last] =
                [first, last].map(|ticks| Milliseconds(clock.nanoseconds(ticks).div_euclid(1_000_000)));
            match first == last {
                true => write!(f, ", at {first}")?,
                false => write!(f, ", from {first} to {last}")?,
            }
        }
        f.write_str("): ")?;
        if at_end >= lost {
            return f.write_str(AT_END);
        }
        if let Some(End::Corrupt { .. }) = self.end {
            f.write_str("they were in a part of the trace that cannot be read, or ")?;
        }
        f.write_str(match self.buffer {
            EventBuffer::MayFill => "the event buffer was full, or they",
            EventBuffer::NeverFull => "they",
            EventBuffer::Blocks => "they were written while the session stopped, or",
        })?;
        f.write_str(" were larger than 64 KiB, which no runtime records")?;
        if at_start > 0 {
            write!(f, "; {at_start} of them before the first event of their thread")?;
        }
        if at_end > 0 {
            write!(f, "; {at_end} of them {AT_END}")?;
        }
        Ok(())
    }
}

/// Milliseconds since the start of a trace. Its `Display` is `2.500 s`.
#[derive(PartialEq, Eq)]
struct Milliseconds(i64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let milliseconds = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
    }
}
