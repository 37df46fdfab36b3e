//! The blocks that a reader of a range of times can skip.
use crate::parse::block::TimeRange;
use crate::parse::event::Event;
use crate::parse::parser::Record;
use crate::parse::trace::Version;

/// The range of times that a reader wants. Decides which blocks can be skipped, by the ranges that their headers state.
///
/// Call [`record`](Self::record) with each record. If it returns true, call
/// [`Parser::skip_block`](crate::Parser::skip_block), and `resync` of a [`LossCounter`](crate::LossCounter) or a
/// [`Rewrite`](crate::Rewrite). The other blocks also contain events of other times, which
/// [`keeps`](Self::keeps) excludes.
///
/// Nothing but its events can prove the range of a block. .NET states correct ranges in V4, except in previews of .NET
/// 6; one_collect, the writer of V6, states wrong ranges. So only blocks of V4 are skipped, and none after a block
/// whose events [contradict](Self::is_contradicted) its range.
///
/// ```
/// use nettrace::{Limits, LossCounter, Parser, Record, Slot, TimeFilter};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-mixed.nettrace");
/// # let stream = std::fs::read(path)?;
/// # let mut all = Vec::new();
/// # let mut parser = Parser::new(Limits::default());
/// # loop {
/// #     match parser.next(&stream) {
/// #         Record::Event(event) => all.push(event.timestamp),
/// #         Record::End(_) => break,
/// #         _ => {}
/// #     }
/// # }
/// # let (from, to) = (all[200], all[200] + 1_000_000);
/// # let inside = all.iter().filter(|time| (from..=to).contains(time)).count();
/// let mut times = TimeFilter::new(from, to);
/// let mut slots = [Slot::default(); 64];
/// let mut loss = LossCounter::new(&mut slots);
/// let mut parser = Parser::new(Limits::default());
/// let mut events = 0;
/// loop {
///     let record = parser.next(&stream);
///     loss.record(&record);
///     if times.record(&record) {
///         parser.skip_block();
///         loss.resync();
///     }
///     match record {
///         Record::Event(event) if times.keeps(event.timestamp) => events += 1,
///         Record::End(_) => break,
///         _ => {}
///     }
/// }
/// assert!(times.skipped_blocks() > 0 && events == inside && loss.lost_after_start() == 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFilter {
    from: u64,
    to: u64,
    version: Version,
    /// The range that the current block states.
    stated: Option<TimeRange>,
    skipped_blocks: u64,
    contradicted: bool,
}

impl TimeFilter {
    /// Creates a filter for the events from tick `from` to tick `to`, both included. The filter skips no block before
    /// it has seen the [`Record::Trace`] of a V4 stream.
    #[must_use]
    pub const fn new(from: u64, to: u64) -> Self {
        Self { from, to, version: Version::V3, stated: None, skipped_blocks: 0, contradicted: false }
    }

    /// Returns whether an event with this timestamp is wanted.
    #[must_use]
    pub const fn keeps(&self, timestamp: u64) -> bool {
        self.from <= timestamp && timestamp <= self.to
    }

    /// Takes the next record of the stream, and returns whether the caller should skip the rest of its block.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) -> bool {
        match record {
            Record::Event(event) => self.event(event),
            Record::Trace(trace) => self.version = trace.version,
            Record::Block(_) => self.stated = None,
            Record::TimeRange(times) => {
                self.stated = Some(*times);
                let skips =
                    self.version == Version::V4 && !self.contradicted && !times.overlaps(self.from, self.to);
                self.skipped_blocks = self.skipped_blocks.saturating_add(skips.into());
                return skips;
            }
            _ => {}
        }
        false
    }

    /// Takes the next event, as [`record`](Self::record) does.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) {
        if let Some(stated) = self.stated {
            self.contradicted |= !stated.overlaps(event.timestamp, event.timestamp);
        }
    }

    /// Returns how many blocks were skipped.
    #[must_use]
    pub const fn skipped_blocks(&self) -> u64 {
        self.skipped_blocks
    }

    /// Returns whether an event was outside of the range that its block states. After such an event no block is
    /// skipped. Blocks that were [skipped](Self::skipped_blocks) before may have contained wanted events.
    #[must_use]
    pub const fn is_contradicted(&self) -> bool {
        self.contradicted
    }
}
