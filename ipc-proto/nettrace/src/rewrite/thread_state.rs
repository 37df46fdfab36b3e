//! The sequence numbers of one thread in the source and in the result of a rewrite.
use crate::parse::event::Event;
use crate::parse::sequence_point::ThreadSequence;
use crate::parse::trace::Version;

/// The sequence numbers of a capture thread, in the source and in the result.
///
/// The numbers of events that a filter removes are reused. The numbers of lost events are not, so the gaps in the
/// result show the same losses as the gaps in the source. The first number of a thread shows no loss to a reader of V4,
/// so a later number shows a loss before the first one.
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
    /// V6 to V4: the thread id of the operating system.
    thread_id: u64,
    /// The number of calls of `Rewrite::resync` that are taken into account.
    resyncs: u32,
}

/// The largest gap between two numbers; a larger difference means that the number went back.
const MAX_GAP: u64 = 0x7fff_ffff;

impl ThreadState {
    /// Creates the state of a thread that neither the source nor the result has mentioned.
    pub(super) fn new(thread_id: u64, from: Version, to: Version) -> Self {
        // V6 counts from 0 whether a thread is declared or not, so the result may omit a declaration that the source
        // omits.
        Self { introduced: from == Version::V6 && to == Version::V6, thread_id, ..Self::default() }
    }

    /// Continues after a gap in the source, before the thread's next event or row: `last` is the thread's last number
    /// within the gap.
    pub(super) const fn resync(&mut self, resyncs: u32, last: u32) {
        if self.resyncs != resyncs {
            (self.resyncs, self.last_in, self.known) = (resyncs, last, true);
        }
    }

    /// V6: begins a thread. Another thread may have had the index before.
    pub(super) fn begin(&mut self, thread_id: u64, to: Version) {
        if to == Version::V6 || self.thread_id != thread_id {
            (self.last_out, self.introduced) = (0, to == Version::V6);
        }
        (self.last_in, self.known, self.thread_id) = (0, true, thread_id);
    }

    pub(super) const fn is_declared(&self) -> bool {
        self.introduced
    }

    pub(super) const fn declare(&mut self) {
        self.introduced = true;
    }

    pub(super) const fn thread_id(&self) -> u64 {
        self.thread_id
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Counts an event, and returns its number in the result if it is kept.
    pub(super) fn event(&mut self, event: &Event<'_>, keep: bool, from: Version, to: Version) -> u32 {
        let sequence = if from == Version::V3 { self.last_in.wrapping_add(1) } else { event.sequence };
        let mut gap = sequence.wrapping_sub(self.last_in).wrapping_sub(1);
        if !self.known && from == Version::V4 {
            gap = 0;
            if to == Version::V4 {
                self.last_out = sequence.wrapping_sub(1);
            }
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
            let mut gap = self.gap(gap, to);
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

    /// Counts a row of a sequence point, and returns the number for the row in the result, if there is one.
    pub(super) fn row(&mut self, row: &ThreadSequence, from: Version, to: Version) -> Option<u32> {
        let mut gap = row.sequence.wrapping_sub(self.last_in);
        if !self.known && from == Version::V4 {
            gap = 0;
            if to == Version::V4 {
                self.last_out = row.sequence;
            }
        }
        self.known = true;
        self.last_in = row.sequence;
        gap = Self::forwards(gap, from, to);
        if self.introduced {
            return Some(self.settle(gap, to));
        }
        self.hold(gap);
        // In a V6 result, a thread that is not declared had no event. In a V6 source, a thread begins at 0, which needs
        // no row.
        if to == Version::V6 || from == Version::V6 {
            return None;
        }
        // This row introduces the thread, so that the number of a later event can show the pending loss.
        if self.is_pending() {
            return Some(self.introduce());
        }
        self.introduced = true;
        Some(self.last_out)
    }

    /// V6 to V4: ends the thread; its losses are reported later.
    pub(super) fn gone(&mut self, row: &ThreadSequence) {
        self.hold(row.sequence.wrapping_sub(self.last_in));
        self.last_in = row.sequence;
    }

    /// Returns whether a reader of the result would miss a loss, because the result has not mentioned the thread.
    pub(super) const fn is_hidden(&self) -> bool {
        self.pending > 0 && !self.introduced
    }

    /// Mentions the thread in the result, and returns its number there. It is not 0, which Microsoft's reader takes for
    /// "not seen yet".
    pub(super) fn introduce(&mut self) -> u32 {
        self.introduced = true;
        self.last_out = self.last_out.max(1);
        self.last_out
    }

    /// Returns the thread's last number in the result, with all losses included.
    pub(super) fn last(&self, to: Version) -> u32 {
        // A copy is enough: after this number, the result has no other number of the thread.
        let mut copy = *self;
        copy.settle(0, to)
    }

    fn settle(&mut self, gap: u32, to: Version) -> u32 {
        let gap = self.gap(gap, to);
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
    fn gap(&mut self, gap: u32, to: Version) -> u32 {
        if self.pending == 0 && (self.introduced || to == Version::V6) {
            return gap;
        }
        self.hold(gap);
        if !self.introduced && to == Version::V4 {
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
