use super::super::{Event, ThreadSequence, Version};

/// A capture thread's numbers, as the source has them and as the result gets them.
///
/// Numbers that a filter leaves out close up; those of events that were lost stay out, so that whoever counts gaps in
/// the result finds as many as in the source. The first number that a reader of V4 sees of a thread says nothing to it,
/// so a loss that would fall in front of that is told behind it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    last_in: u32,
    last_out: u32,
    /// Lost, but not told in the result yet.
    pending: u64,
    /// The source has told of the thread.
    known: bool,
    /// So has the result; in V6 the thread is declared.
    told: bool,
    /// V6 to V4: the system's number of it.
    thread_id: u64,
}

/// The most that can be missing between two numbers; more is one that went back.
const MAX_GAP: u64 = 0x7fff_ffff;

impl Counted {
    /// One that nothing is known of yet.
    pub(super) fn new(thread_id: u64, from: Version, to: Version) -> Self {
        // V6 counts from 0, declared or not, and what the source left out the result may too.
        Self { told: from == Version::V6 && to == Version::V6, thread_id, ..Self::default() }
    }

    /// V6: a thread begins. The index may have been another thread's.
    pub(super) fn begin(&mut self, thread_id: u64, to: Version) {
        if to == Version::V6 || self.thread_id != thread_id {
            (self.last_out, self.told) = (0, to == Version::V6);
        }
        (self.last_in, self.known, self.thread_id) = (0, true, thread_id);
    }

    pub(super) const fn is_declared(&self) -> bool {
        self.told
    }

    pub(super) const fn declare(&mut self) {
        self.told = true;
    }

    pub(super) const fn thread_id(&self) -> u64 {
        self.thread_id
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Counts an event, and gives its number in the result if it is kept.
    pub(super) fn event(&mut self, event: &Event<'_>, keep: bool, from: Version, to: Version) -> u32 {
        let sequence = if from == Version::V3 { self.last_in.wrapping_add(1) } else { event.sequence };
        let mut gap = sequence.wrapping_sub(self.last_in).wrapping_sub(1);
        if !self.known && from == Version::V4 {
            gap = 0;
            if to == Version::V4 {
                self.last_out = sequence.wrapping_sub(1);
            }
        } else if from == Version::V4 && sequence == 1 && self.last_in != 0 {
            // Another thread has got its id.
            gap = 0;
            if keep && to == Version::V4 {
                (self.last_in, self.last_out, self.told) = (1, 1, true);
                return 1;
            }
        }
        self.known = true;
        self.last_in = sequence;
        gap = Self::forwards(gap, from, to);
        if keep {
            let mut gap = self.gap(gap, to);
            if to == Version::V4 && gap != 0 && self.last_out.wrapping_add(gap) == 0 {
                // Whoever reads it would take number 1 for another thread's.
                self.hold(gap);
                gap = 0;
            }
            self.last_out = self.last_out.wrapping_add(gap).wrapping_add(1);
            self.told = true;
        } else {
            self.hold(gap);
        }
        self.last_out
    }

    /// Counts what a thread has come to, and gives what the result says of it, if anything.
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
        if self.told {
            return Some(self.settle(gap, to));
        }
        self.hold(gap);
        // What is not declared in V6 has had no event. What comes from there begins at 0, which need not be told.
        if to == Version::V6 || from == Version::V6 {
            return None;
        }
        // What was lost before is told later.
        if self.is_pending() {
            return Some(self.introduce());
        }
        self.told = true;
        Some(self.last_out)
    }

    /// V6 to V4: the thread has ended; what it lost is told later.
    pub(super) fn gone(&mut self, row: &ThreadSequence) {
        self.hold(row.sequence.wrapping_sub(self.last_in));
        self.last_in = row.sequence;
    }

    /// Whether there is a loss that a reader of the result would not see: it has not heard of the thread.
    pub(super) const fn is_hidden(&self) -> bool {
        self.pending > 0 && !self.told
    }

    /// What it has to be told for that. Not 0, which is nothing yet to Microsoft's.
    pub(super) fn introduce(&mut self) -> u32 {
        self.told = true;
        self.last_out = self.last_out.max(1);
        self.last_out
    }

    /// What the thread has come to, all that was lost included.
    pub(super) fn last(&self, to: Version) -> u32 {
        { *self }.settle(0, to)
    }

    fn settle(&mut self, gap: u32, to: Version) -> u32 {
        let gap = self.gap(gap, to);
        self.last_out = self.last_out.wrapping_add(gap);
        self.last_out
    }

    /// A number that went back stays as it is in the same version. In another one it goes on: in V6 none begins anew, and
    /// Microsoft's reader takes it for two billion events lost.
    fn forwards(gap: u32, from: Version, to: Version) -> u32 {
        if from != to && u64::from(gap) > MAX_GAP { 0 } else { gap }
    }

    /// How many numbers to leave out, where the source left out so many.
    fn gap(&mut self, gap: u32, to: Version) -> u32 {
        if self.pending == 0 && (self.told || to == Version::V6) {
            return gap;
        }
        self.hold(gap);
        if !self.told && to == Version::V4 {
            return 0;
        }
        let now = self.pending.min(MAX_GAP);
        self.pending = self.pending.wrapping_sub(now);
        u32::try_from(now).unwrap_or_default()
    }

    /// Keeps a loss for later; a number that went back is none.
    fn hold(&mut self, gap: u32) {
        if u64::from(gap) <= MAX_GAP {
            self.pending = self.pending.saturating_add(gap.into());
        }
    }
}
