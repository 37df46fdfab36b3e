//! The sequence numbers of one thread in the source and in the result of a rewrite.
use crate::parse::{Event, ThreadSequence, Version};

/// The sequence numbers of a capture thread, in the source and in the result.
///
/// The numbers of events that a filter removes are reused. The numbers of lost events are not, so the gaps in the
/// result show the same losses as the gaps in the source. Microsoft's reader of V4 sees no loss before the first number
/// of a thread, so a later number shows such a loss, unless the source also has it there.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadState {
    last_in: u32,
    last_out: u32,
    /// Lost events that the result does not report yet.
    pending: u64,
    /// Whether the source has mentioned the thread.
    known: bool,
    /// The result has mentioned the thread; in V6 it has declared it.
    introduced: bool,
    /// V4 to V4: whether the source has lost events before the first number of the thread.
    starts_late: bool,
    /// V6 to V4: the thread id of the operating system, if the thread is declared with one.
    thread_id: Option<u64>,
    /// The number of calls of `Rewrite::resync` that are taken into account.
    resyncs: u32,
    /// V6 to V4: the number of sequence points that discarded all threads, and are taken into account.
    flushes: u32,
}

/// The largest gap between two numbers; a larger difference means that the number went back.
const MAX_GAP: u64 = 0x7fff_ffff;

impl ThreadState {
    /// Continues after a gap in the source, before the thread's next event or row: `last` is the thread's last number
    /// within the gap.
    pub(super) const fn resync(&mut self, resyncs: u32, last: u32) {
        if self.resyncs != resyncs {
            (self.resyncs, self.last_in, self.known) = (resyncs, last, true);
        }
    }

    /// V6: declares a thread. A thread that is declared twice continues its numbers.
    pub(super) fn begin(&mut self, thread_id: Option<u64>, to: Version) {
        if to == Version::V6 && !self.introduced {
            (self.last_out, self.introduced) = (0, true);
        }
        (self.known, self.thread_id) = (true, thread_id);
    }

    /// V6 to V4: ends the thread if a sequence point has discarded it.
    pub(super) const fn flush(&mut self, flushes: u32) {
        if self.flushes != flushes {
            self.forget();
            self.flushes = flushes;
        }
    }

    /// V6: ends the thread. Another thread may have its index later.
    const fn forget(&mut self) {
        (self.last_in, self.known, self.thread_id) = (0, false, None);
    }

    pub(super) const fn is_declared(&self) -> bool {
        self.introduced
    }

    pub(super) const fn declare(&mut self) {
        self.introduced = true;
    }

    pub(super) fn thread_id(&self) -> u64 {
        self.thread_id.unwrap_or(Event::UNKNOWN_THREAD)
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Counts an event, and returns its number in the result if it is kept.
    pub(super) fn event(&mut self, event: &Event<'_>, keep: bool, from: Version, to: Version) -> u32 {
        let sequence = if from == Version::V3 { self.last_in.wrapping_add(1) } else { event.sequence };
        let mut gap = sequence.wrapping_sub(self.last_in).wrapping_sub(1);
        if !self.known && from != Version::V3 {
            gap = self.first(gap, from, to);
        } else if from == Version::V4 && sequence == 1 && self.last_in != 0 {
            // A new thread has the id of one that ended, so no event was lost before number 1.
            gap = 0;
            if keep && to == Version::V4 {
                (self.last_in, self.last_out, self.introduced) = (1, 1, true);
                return 1;
            }
        }
        self.known = true;
        self.last_in = sequence;
        gap = Self::forwards(gap, from, to);
        if keep {
            let mut gap = self.gap(gap);
            if to == Version::V4 && gap != 0 && self.last_out.wrapping_add(gap) == 0 {
                // A reader would take number 1 for the first event of a new thread, so the loss is reported later.
                self.hold(gap);
                gap = 0;
            }
            self.last_out = self.last_out.wrapping_add(gap).wrapping_add(1);
            self.introduced = true;
        } else {
            self.hold(gap);
        }
        self.last_out
    }

    /// Takes the first number of a thread that is not declared, which has `before` numbers before it. Returns how many of
    /// them are a loss that another number must show.
    fn first(&mut self, before: u32, from: Version, to: Version) -> u32 {
        if from == to {
            self.last_out = before;
            self.starts_late = to == Version::V4 && (1..=MAX_GAP).contains(&before.into());
        }
        // In V6, a thread without a declaration may have begun with any number.
        if from == Version::V4 && to == Version::V6 { before } else { 0 }
    }

    /// Counts a row of a sequence point, and returns the number for the row in the result, if there is one.
    pub(super) fn row(&mut self, row: &ThreadSequence, from: Version, to: Version) -> Option<u32> {
        let mut gap = row.sequence.wrapping_sub(self.last_in);
        if !self.known {
            gap = self.first(gap, from, to);
        }
        self.known = true;
        self.last_in = row.sequence;
        gap = Self::forwards(gap, from, to);
        if self.introduced {
            return Some(self.settle(gap));
        }
        self.hold(gap);
        // In another version, a thread that the result has not mentioned needs no row: V6 declares threads, and the
        // first number of a V4 thread is 1.
        if from != to {
            return None;
        }
        // This row introduces the thread, so that the number of a later event can show the pending loss.
        if self.is_pending() {
            return Some(self.introduce());
        }
        self.introduced = true;
        Some(self.last_out)
    }

    /// V6: ends the thread; its losses are reported later.
    pub(super) fn gone(&mut self, row: &ThreadSequence) {
        if self.known {
            self.hold(row.sequence.wrapping_sub(self.last_in));
        }
        self.forget();
    }

    /// Returns whether a reader of the result would miss a loss, because the result has not mentioned the thread.
    pub(super) const fn is_hidden(&self) -> bool {
        (self.pending > 0 || self.starts_late) && !self.introduced
    }

    /// Mentions the thread in the result, and returns its number there. It is not 0, which Microsoft's reader takes for
    /// "not seen yet", but the first one that shows no loss.
    pub(super) fn introduce(&mut self) -> u32 {
        self.introduced = true;
        if self.last_out == 0 {
            self.last_out = 1 << 31;
        }
        self.last_out
    }

    /// Returns the thread's last number in the result, with all losses included, which are not pending afterwards.
    pub(super) fn settle_all(&mut self) -> u32 {
        let last = self.settle(0);
        self.pending = 0;
        last
    }

    /// Returns the thread's last number in the result, with all losses included.
    pub(super) fn last(&self) -> u32 {
        // A copy is enough: after this number, the result has no other number of the thread.
        let mut copy = *self;
        copy.settle(0)
    }

    fn settle(&mut self, gap: u32) -> u32 {
        let gap = self.gap(gap);
        self.last_out = self.last_out.wrapping_add(gap);
        self.last_out
    }

    /// Returns `gap` unchanged if the version stays the same. In another version, a number that went back becomes a gap
    /// of 0, so that the numbers continue. In V6 no number starts again, and Microsoft's reader takes one that went
    /// back for two billion lost events.
    fn forwards(gap: u32, from: Version, to: Version) -> u32 {
        if from != to && u64::from(gap) > MAX_GAP { 0 } else { gap }
    }

    /// Returns how many numbers the result skips where the source skipped `gap`.
    fn gap(&mut self, gap: u32) -> u32 {
        if self.pending == 0 && self.introduced {
            return gap;
        }
        self.hold(gap);
        if !self.introduced {
            return 0;
        }
        let now = self.pending.min(MAX_GAP);
        self.pending = self.pending.wrapping_sub(now);
        u32::try_from(now).unwrap_or_default()
    }

    /// Stores a loss for a later report; a number that went back is not a loss.
    fn hold(&mut self, gap: u32) {
        if u64::from(gap) <= MAX_GAP {
            self.pending = self.pending.saturating_add(gap.into());
        }
    }
}
